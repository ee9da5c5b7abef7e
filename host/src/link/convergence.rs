//! Marks what is convergent, before LLVM optimises: every function, every inline-assembly call site
//! and every call through a pointer.
//!
//! A convergent operation is one whose result or effect depends on which other threads execute it
//! together with this one. LLVM neither duplicates it into the arms of a divergent branch nor merges,
//! sinks or hoists it across one. rustc says it of no `asm!`, so every one is marked here; LLVM takes
//! the mark off functions in which nothing is convergent.

use anyhow::{Context, Result, bail};

use super::text;

/// Setting this environment variable to anything but nothing or `0` leaves the marks out. Such code
/// may deadlock; the variable exists for the tests that show what the marks prevent.
pub const SWITCH: &str = "CUDA_PTX_LINK_WITHOUT_CONVERGENCE";

/// Whether the link stage marks convergence; only [`SWITCH`] can keep it from that.
#[must_use]
pub fn is_marked() -> bool {
    std::env::var_os(SWITCH).is_none_or(|value| value.is_empty() || value == "0")
}

/// Marks a module.
pub fn mark(ir: &str) -> Result<String> {
    let mut out = String::with_capacity(ir.len() + ir.len() / 32);
    for line in ir.lines() {
        match mark_line(line).with_context(|| format!("in the IR line `{line}`"))? {
            Some((before, after)) => out.extend([before, " convergent", after]),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    Ok(out)
}

/// The line around the place of the attribute, if it needs one.
fn mark_line(line: &str) -> Result<Option<(&str, &str)>> {
    if line.starts_with("define ") {
        return definition(line).map(Some);
    }
    if !line.starts_with(' ') {
        return Ok(None);
    }
    let open = match text::find(line, " asm ", 0) {
        Some(asm) => Some(assembly(line, asm)?),
        None => indirect_call(line),
    };
    let Some(open) = open else {
        return Ok(None);
    };
    let close = text::closing(line, open).context("a call without an end")?;
    Ok(Some(line.split_at(close + 1)))
}

fn definition(line: &str) -> Result<(&str, &str)> {
    let at = text::find(line, "@", 0).context("a function without a name")?;
    let name = text::global_name(line, at).context("a function without a name")?;
    let close = text::closing(line, at + name.len()).context("a parameter list without an end")?;
    let group = text::find(line, " #", close).or_else(|| text::find(line, " {", close));
    Ok(line.split_at(group.context("a function without a body")?))
}

/// The index of the bracket that opens the arguments of the inline assembly at `asm`.
fn assembly(line: &str, asm: usize) -> Result<usize> {
    if text::find(&line[..asm], "call", 0).is_none() || text::find(line, "callbr ", 0).is_some() {
        bail!("inline assembly in something other than a `call`");
    }
    constraints_end(line, asm).context("inline assembly that is not understood")
}

/// `asm [sideeffect] [alignstack] "template", "constraints"(arguments) attributes`.
fn constraints_end(line: &str, asm: usize) -> Option<usize> {
    let template = line[asm..].find('"')? + asm;
    let template_end = line[template + 1..].find('"')? + template + 2;
    let constraints = line[template_end..].strip_prefix(", \"")?;
    let open = template_end + 3 + constraints.find('"')? + 1;
    line[open..].starts_with('(').then_some(open)
}

/// The index of the bracket that opens the arguments of `call … %pointer(arguments)`.
fn indirect_call(line: &str) -> Option<usize> {
    let mut at = text::find(line, "call ", 0)?;
    loop {
        let value = text::find(line, "%", at)?;
        let name = &line[value + 1..];
        let end = value + 1 + name.find(|c| !text::is_name_char(c))?;
        if line[end..].starts_with('(') {
            return Some(end);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is marked carries the attribute at `|`.
    fn marked(line: &str) {
        let plain = line.replace('|', "");
        assert_eq!(
            mark(&plain).unwrap(),
            line.replace('|', " convergent") + "\n"
        );
    }

    #[test]
    fn inline_assembly_becomes_convergent() {
        marked(
            r#"  call void asm sideeffect alignstack "bar.sync 0;", "~{memory}"()|, !srcloc !5"#,
        );
        marked(r#"  %7 = tail call i32 asm "mov.u32 ${0}, %tid.x;", "=&r"()| #4, !srcloc !2"#);
        marked(
            r#"  call void asm sideeffect "a (\22x\22);\0A", "r,~{memory}"(i32 add (i32 1, i32 2))| #1"#,
        );
    }

    #[test]
    fn calls_through_pointers_become_convergent() {
        marked("  %3 = call noundef range(i32 0, 9) i32 %f.1(ptr %a, i32 %b)| #4, !dbg !5");
        marked("  call void %0(ptr align 8 %1)|");
    }

    #[test]
    fn functions_become_convergent() {
        marked("define internal void @f(ptr dereferenceable(8) %0) unnamed_addr| #1 {");
        marked("define ptx_kernel void @\"a#b\"() unnamed_addr| {");
    }

    #[test]
    fn other_lines_are_left_alone() {
        for line in [
            "  call void @f(ptr @asm, ptr %1)",
            "  store i32 1, ptr %asm, align 4",
            "declare void @f(ptr)",
            "@s = internal constant [5 x i8] c\" asm \"",
        ] {
            marked(line);
        }
    }

    #[test]
    fn invoked_assembly_is_an_error() {
        assert!(mark(r#"  invoke void asm sideeffect "x", "~{memory}"()"#).is_err());
    }
}
