//! The rewrite before optimisation: what rustc cannot say becomes what LLVM understands.
//!
//! - pointers to shared, constant and local memory get the 32 bits that these spaces have, which
//!   lets ptxas fold offsets into the instruction;
//! - statics in the section `.shared` become globals of the shared state space, those in
//!   `.shared.extern` the one dynamic shared array;
//! - the records of `kernel!` become function attributes and by-value grid constants;
//! - the markers that `cuda_ptx` calls get the attributes of pure functions, so that LLVM may move
//!   and merge them; [`fold`](super::fold) replaces them after the optimiser has inlined.
//!
//! Anything in these places that it does not understand is an error.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};

use super::fold::MARKERS;
use super::record::{self, GridConstant, Record};
use super::text;

const SHARED: &str = ".shared";
const DYNAMIC_SHARED: &str = ".shared.extern";
/// All `extern_shared!` statics are this one object: they start at the same address.
const DYNAMIC_NAME: &str = "@__cuda_ptx_dynamic_shared";
/// Every kernel calls this; see `cuda_ptx::kernel::require_link_stage`.
const BYPASS_MARKER: &str = "@__cuda_ptx_was_linked_without_cuda_ptx_link";

const DATA_LAYOUT: &str = "target datalayout = \"";
/// The widths that `llc --nvptx-short-ptr` expects, for address spaces 3, 4 and 5.
const SHORT_POINTERS: &str = "-p3:32:32-p4:32:32-p5:32:32";

/// Rewrites the linked, not yet optimised module.
pub fn rewrite(ir: &str) -> Result<String> {
    let globals = Globals::collect(ir)?;
    let mut out = String::with_capacity(ir.len() + ir.len() / 8);
    for line in ir.lines() {
        if let Some(line) =
            rewrite_line(line, &globals).with_context(|| format!("in the IR line `{line}`"))?
        {
            out.push_str(&line);
            out.push('\n');
        }
    }
    if let Some(align) = globals.dynamic_align {
        out.push_str(&format!(
            "{DYNAMIC_NAME} = external addrspace(3) global [0 x i8], align {align}\n"
        ));
    }
    Ok(out)
}

/// The globals that the link stage has to do with.
#[derive(Default)]
struct Globals {
    /// Name of each shared static → the constant expression for its generic address.
    shared: HashMap<String, String>,
    /// The largest alignment of the dynamic shared statics, if there are any.
    dynamic_align: Option<u32>,
    /// Names of the record statics.
    records: Vec<String>,
    /// The kernels by symbol name.
    kernels: HashMap<String, Record>,
}

impl Globals {
    fn collect(ir: &str) -> Result<Self> {
        let mut globals = Self::default();
        for line in ir.lines().filter(|line| line.starts_with('@')) {
            globals
                .add(line)
                .with_context(|| format!("in the IR line `{line}`"))?;
        }
        Ok(globals)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let Some(section) = section(line) else {
            return Ok(());
        };
        let name = text::global_name(line, 0).context("a global without a name")?;
        match section {
            SHARED => {
                shared_type(line)?;
                self.shared.insert(name.to_owned(), generic_address(name));
            }
            DYNAMIC_SHARED => {
                shared_type(line)?;
                self.shared
                    .insert(name.to_owned(), generic_address(DYNAMIC_NAME));
                let align = alignment(line)?;
                self.dynamic_align = Some(self.dynamic_align.unwrap_or(1).max(align));
            }
            record::SECTION => {
                let start = text::find(line, "c\"", 0)
                    .context("a kernel record that is not a byte string")?;
                let end = line[start + 2..]
                    .find('"')
                    .context("a kernel record without an end")?
                    + start
                    + 3;
                let bytes = text::decode_bytes(&line[start..end])
                    .context("a kernel record with a bad escape")?;
                let record = Record::parse(&bytes)?;
                self.records.push(name.to_owned());
                self.kernels.insert(record.name.clone(), record);
            }
            _ => {}
        }
        Ok(())
    }

    fn is_record(&self, name: &str) -> bool {
        self.records.iter().any(|record| record == name)
    }
}

/// The generic address of an object in shared memory.
fn generic_address(name: &str) -> String {
    format!("addrspacecast (ptr addrspace(3) {name} to ptr)")
}

fn section(line: &str) -> Option<&str> {
    let start = text::find(line, ", section \"", 0)? + ", section \"".len();
    line[start..].split('"').next()
}

fn alignment(line: &str) -> Result<u32> {
    let start = text::find(line, ", align ", 0).context("a shared static without an alignment")?;
    let digits = line[start + ", align ".len()..]
        .split(',')
        .next()
        .unwrap_or_default();
    digits
        .parse()
        .with_context(|| format!("`{digits}` is not an alignment"))
}

/// The type of a shared static, which must be uninitialised.
fn shared_type(line: &str) -> Result<&str> {
    let name = text::global_name(line, 0).unwrap_or_default();
    let start = [" global ", " constant "]
        .iter()
        .find_map(|keyword| text::find(line, keyword, 0).map(|at| at + keyword.len()))
        .context("a shared static that is neither `global` nor `constant`")?;
    if text::find(&line[..start], "thread_local", 0).is_some() {
        bail!("the shared static {name} is thread-local: shared memory belongs to the CTA");
    }
    let rest = &line[start..];
    let end = if rest.starts_with('[') {
        text::closing(rest, 0).map(|n| n + 1)
    } else {
        rest.find(' ')
    };
    let end = end.context("a shared static whose type is not understood")?;
    let initialiser = rest[end..].trim_start();
    if !(initialiser.starts_with("undef,") || initialiser.starts_with("poison,")) {
        bail!(
            "the shared static {name} has an initial value, but shared memory cannot be initialised: \
             declare it with `shared!` and store to it in the kernel"
        );
    }
    Ok(&rest[..end])
}

fn rewrite_line(line: &str, globals: &Globals) -> Result<Option<String>> {
    if line.starts_with('@') {
        rewrite_global(line, globals)
    } else if line.starts_with("define ") {
        rewrite_definition(line, globals).map(Some)
    } else if line.starts_with("declare ") {
        Ok(Some(rewrite_declaration(line)?))
    } else if line.starts_with(' ') {
        rewrite_instruction(line, globals)
    } else if let Some(layout) = line.strip_prefix(DATA_LAYOUT) {
        shorten_pointers(layout).map(Some)
    } else {
        Ok(Some(line.to_owned()))
    }
}

fn shorten_pointers(layout: &str) -> Result<String> {
    let rest = layout
        .strip_prefix('e')
        .context("a data layout that is not little-endian")?;
    if rest.contains("-p3:") {
        bail!("a data layout that already says how wide shared-memory pointers are");
    }
    Ok(format!("{DATA_LAYOUT}e{SHORT_POINTERS}{rest}"))
}

fn rewrite_global(line: &str, globals: &Globals) -> Result<Option<String>> {
    let name = text::global_name(line, 0).context("a global without a name")?;
    if globals.is_record(name) {
        return Ok(None);
    }
    if matches!(name, "@llvm.used" | "@llvm.compiler.used") {
        return rewrite_used(line, globals);
    }
    if globals.shared.contains_key(name) {
        if section(line) == Some(DYNAMIC_SHARED) {
            return Ok(None);
        }
        let (ty, align) = (shared_type(line)?, alignment(line)?);
        return Ok(Some(format!(
            "{name} = internal addrspace(3) global {ty} undef, align {align}"
        )));
    }
    if let Some(shared) = globals.shared.keys().find(|shared| mentions(line, shared)) {
        bail!(
            "{name} holds the address of the shared static {shared}, which is not a constant: every \
             CTA has its own; take the address inside the kernel"
        );
    }
    Ok(Some(line.to_owned()))
}

fn mentions(line: &str, name: &str) -> bool {
    text::replace_globals(line, |found| (found == name).then_some("")).is_some()
}

/// Drops records and shared statics from `@llvm.used`: they must not survive as globals.
fn rewrite_used(line: &str, globals: &Globals) -> Result<Option<String>> {
    let name = text::global_name(line, 0).unwrap_or_default();
    let list =
        text::find(line, "] [", 0).context("a list of used globals that is not an array")? + 2;
    let end = text::closing(line, list).context("a list of used globals without an end")?;
    let kept: Vec<&str> = text::split_arguments(&line[list + 1..end])
        .into_iter()
        .filter(|element| {
            let global = element.strip_prefix("ptr ").unwrap_or(element);
            !globals.is_record(global) && !globals.shared.contains_key(global)
        })
        .collect();
    Ok((!kept.is_empty()).then(|| {
        format!(
            "{name} = appending global [{} x ptr] [{}], section \"llvm.metadata\"",
            kept.len(),
            kept.join(", ")
        )
    }))
}

fn rewrite_definition(line: &str, globals: &Globals) -> Result<String> {
    let at = text::find(line, "@", 0).context("a function without a name")?;
    let name = text::global_name(line, at).context("a function without a name")?;
    let open = at + name.len();
    let close = text::closing(line, open).context("a parameter list without an end")?;
    let record = globals.kernels.get(&name[1..]);

    let mut parameters = line[open + 1..close].to_owned();
    let mut attributes = String::new();
    if let Some(record) = record {
        if text::find(&line[..at], "ptx_kernel", 0).is_none() {
            bail!("`kernel!` names {name}, which is not a kernel");
        }
        parameters = rewrite_parameters(&parameters, &record.grid_constants)?;
        attributes.push_str(&record.function_attributes());
    }
    if !globals.shared.is_empty() {
        // A lookup table of shared-memory addresses would be an invalid initialiser in PTX.
        attributes.push_str(" \"no-jump-tables\"=\"true\"");
    }
    let rest = &line[close + 1..];
    let group = text::find(rest, " #", 0).or_else(|| text::find(rest, " {", 0));
    let (before, after) = rest.split_at(group.context("a function without a body")?);
    Ok(format!(
        "{}({parameters}){before}{attributes}{after}",
        &line[..open]
    ))
}

/// Grid constants arrive in the Rust signature as pointers; they are made by-value parameters whose
/// address is their place in parameter memory.
fn rewrite_parameters(parameters: &str, grid_constants: &[Option<GridConstant>]) -> Result<String> {
    let parameters = text::split_arguments(parameters);
    if parameters.len() != grid_constants.len() {
        bail!(
            "`kernel!` recorded {} parameters, but the function has {}",
            grid_constants.len(),
            parameters.len()
        );
    }
    let rewritten = parameters.iter().zip(grid_constants).map(|(parameter, constant)| match constant {
        None => Ok((*parameter).to_owned()),
        Some(GridConstant { size, align }) => {
            let value = parameter.rsplit(' ').next().unwrap_or_default();
            if !parameter.starts_with("ptr ") || !value.starts_with('%') {
                bail!("the grid constant `{parameter}` is not a pointer");
            }
            Ok(format!(
                "ptr noalias noundef readonly byval([{size} x i8]) align {align} \"nvvm.grid_constant\" {value}"
            ))
        }
    });
    Ok(rewritten.collect::<Result<Vec<_>>>()?.join(", "))
}

fn rewrite_declaration(line: &str) -> Result<String> {
    let at = text::find(line, "@", 0).context("a declaration without a name")?;
    let name = text::global_name(line, at).context("a declaration without a name")?;
    match MARKERS.iter().find(|marker| marker.symbol == name) {
        Some(marker) => Ok(marker.declaration()),
        None => Ok(line.to_owned()),
    }
}

fn rewrite_instruction(line: &str, globals: &Globals) -> Result<Option<String>> {
    if mentions_bypass_marker(line) {
        return Ok(None);
    }
    let replaced = text::replace_globals(line, |name| globals.shared.get(name).map(String::as_str));
    Ok(Some(replaced.unwrap_or_else(|| line.to_owned())))
}

fn mentions_bypass_marker(line: &str) -> bool {
    line.contains(BYPASS_MARKER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_to_shared_memory_are_short() {
        assert_eq!(
            rewrite("target datalayout = \"e-p6:32:32-i64:64\"\n").unwrap(),
            "target datalayout = \"e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-i64:64\"\n"
        );
    }

    #[test]
    fn shared_statics_move_to_the_shared_space() {
        let ir = concat!(
            "@A = internal global [8 x i8] undef, section \".shared\", align 8\n",
            "@AB = internal constant [4 x i8] c\"abcd\", align 1\n",
            "define void @f() #0 {\n",
            "  store i8 0, ptr @A, align 8\n",
            "  %1 = load i8, ptr getelementptr inbounds (i8, ptr @A, i64 4), align 1\n",
            "  %2 = load i8, ptr @AB, align 1\n",
            "}\n",
        );
        let out = rewrite(ir).unwrap();
        assert!(
            out.contains("@A = internal addrspace(3) global [8 x i8] undef, align 8\n"),
            "{out}"
        );
        assert!(
            out.contains("store i8 0, ptr addrspacecast (ptr addrspace(3) @A to ptr), align 8"),
            "{out}"
        );
        assert!(
            out.contains("(i8, ptr addrspacecast (ptr addrspace(3) @A to ptr), i64 4)"),
            "{out}"
        );
        assert!(out.contains("load i8, ptr @AB"), "{out}");
    }

    #[test]
    fn dynamic_shared_statics_become_one_object() {
        let ir = concat!(
            "@X = internal global [128 x i8] undef, section \".shared.extern\", align 128\n",
            "@Y = internal global [16 x i8] undef, section \".shared.extern\", align 16\n",
            "define void @f() #0 {\n  call void @g(ptr @X, ptr @Y)\n}\n",
        );
        let out = rewrite(ir).unwrap();
        assert!(out.contains(
            "@__cuda_ptx_dynamic_shared = external addrspace(3) global [0 x i8], align 128\n"
        ));
        assert_eq!(
            out.matches("ptr addrspace(3) @__cuda_ptx_dynamic_shared")
                .count(),
            2
        );
        assert!(!out.contains("@X") && !out.contains("@Y"));
    }

    #[test]
    fn an_initialised_shared_static_is_refused() {
        for initialiser in ["zeroinitializer", "c\"abcdefgh\""] {
            let ir = format!(
                "@A = internal global [8 x i8] {initialiser}, section \".shared\", align 8\n"
            );
            let error = format!("{:#}", rewrite(&ir).unwrap_err());
            assert!(error.contains("cannot be initialised"), "{error}");
        }
    }

    #[test]
    fn a_shared_address_in_a_global_is_refused() {
        let ir = concat!(
            "@A = internal global [8 x i8] undef, section \".shared\", align 8\n",
            "@T = private constant [1 x ptr] [ptr @A]\n",
        );
        let error = format!("{:#}", rewrite(ir).unwrap_err());
        assert!(
            error.contains("@T holds the address of the shared static @A"),
            "{error}"
        );
    }

    #[test]
    fn records_become_attributes_and_grid_constants() {
        let words = [256u32, 0, 0, 2, 1, 1, 0, 0, 0, 2, 128, 64, 0, 0];
        let mut bytes: String = words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .map(|b| format!("\\{b:02X}"))
            .collect();
        bytes.push('k');
        let ir = format!(
            "@R = internal constant <{{ [57 x i8] }}> <{{ [57 x i8] c\"{bytes}\" }}>, section \".cuda_ptx.kernel\", align 1\n\
             @llvm.used = appending global [1 x ptr] [ptr @R], section \"llvm.metadata\"\n\
             define ptx_kernel void @k(ptr noundef readonly align 64 dereferenceable(128) %0, ptr noundef %1) unnamed_addr #1 {{\n\
             \x20 call void @__cuda_ptx_was_linked_without_cuda_ptx_link() #2\n\
             \x20 ret void\n}}\n"
        );
        assert_eq!(
            rewrite(&ir).unwrap(),
            "define ptx_kernel void @k(ptr noalias noundef readonly byval([128 x i8]) align 64 \
             \"nvvm.grid_constant\" %0, ptr noundef %1) unnamed_addr \"nvvm.maxntid\"=\"256\" \
             \"nvvm.cluster_dim\"=\"2,1,1\" #1 {\n  ret void\n}\n"
        );
    }
}
