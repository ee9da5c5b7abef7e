//! The last look at the PTX that llc wrote.

use anyhow::{Result, bail};

use super::arguments::Header;
use super::text::is_name_char;

/// Device functions that the driver itself provides to every module.
const DRIVER_FUNCTIONS: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Fails if the module cannot be what was meant.
pub fn check(ptx: &str) -> Result<()> {
    let undefined = undefined_functions(ptx);
    if !undefined.is_empty() {
        bail!(
            "the kernels call functions that nothing defines: {}. A name with dots is an LLVM \
             intrinsic that this llc does not know (use newer LLVM tools); any other is an `extern` \
             declaration without a definition",
            undefined.join(", ")
        );
    }
    if let Some((table, shared)) = shared_address_in_global(ptx) {
        bail!(
            "the optimiser built the global table {table} of the shared-memory address of {shared}, \
             which PTX cannot express; please report this with the kernel's source"
        );
    }
    Ok(())
}

/// Removes the `debug` flag that LLVM sets on `.target` for a module with line tables: it makes ptxas
/// keep every variable alive, while line tables alone cost nothing.
pub fn keep_line_tables_only(ptx: &str) -> String {
    ptx.split_inclusive('\n')
        .map(|line| match line.strip_suffix(", debug\n") {
            Some(target) if target.starts_with(".target ") => format!("{target}\n"),
            _ => line.to_owned(),
        })
        .collect()
}

/// Writes the header's `.version` and `.target` where they are newer than what LLVM knows.
pub fn set_header(ptx: &str, header: &Header) -> String {
    let replacement = |line: &str| {
        let (directive, value) = if line.starts_with(".version ") {
            (".version", header.version.as_ref()?)
        } else if line.starts_with(".target ") {
            (".target", header.target.as_ref()?)
        } else {
            return None;
        };
        Some(format!("{directive} {value}\n"))
    };
    ptx.split_inclusive('\n')
        .map(|line| replacement(line).unwrap_or_else(|| line.to_owned()))
        .collect()
}

fn undefined_functions(ptx: &str) -> Vec<&str> {
    let mut names: Vec<&str> = ptx
        .match_indices(".extern .func ")
        .filter_map(|(at, directive)| {
            let mut rest = ptx[at + directive.len()..].trim_start();
            if rest.starts_with('(') {
                rest = rest[rest.find(')')? + 1..].trim_start();
            }
            let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
            Some(&rest[..end])
        })
        .filter(|name| !DRIVER_FUNCTIONS.contains(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A `.global` or `.const` initialiser that names a shared object: `(table, object)`.
fn shared_address_in_global(ptx: &str) -> Option<(&str, &str)> {
    let shared: Vec<&str> = ptx
        .lines()
        .filter(|line| is_shared_declaration(line))
        .filter_map(declared_name)
        .collect();
    ptx.lines()
        .filter(|line| {
            line.starts_with(".global")
                || line.starts_with(".const")
                || line.starts_with(".visible .global")
        })
        .find_map(|line| {
            let (declaration, initialiser) = line.split_once('=')?;
            let mut words = initialiser.split(|c| !is_name_char(c));
            let used = words.find(|word| shared.contains(word))?;
            Some((declared_name(declaration)?, used))
        })
}

fn is_shared_declaration(line: &str) -> bool {
    line.starts_with(".shared ") || line.starts_with(".extern .shared ")
}

/// The name in `.shared .align 8 .b8 name[8];`.
fn declared_name(line: &str) -> Option<&str> {
    let declarator = line.trim().trim_end_matches([';', '=']).trim_end();
    let word = declarator.split_whitespace().last()?;
    word.split('[').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_functions_are_named() {
        let ptx = ".extern .func  (.param .b32 func_retval0) llvm.nvvm.new\n(\n);\n.extern .func (.param .b32 r) vprintf (.param .b64 a);\n";
        let error = check(ptx).unwrap_err().to_string();
        assert!(
            error.contains("llvm.nvvm.new") && !error.contains("vprintf,"),
            "{error}"
        );
    }

    #[test]
    fn a_table_of_shared_addresses_is_refused() {
        let ptx = ".shared .align 8 .b8 A[8];\n.global .align 8 .u64 table[2] = {generic(A), generic(B)};\n";
        let error = check(ptx).unwrap_err().to_string();
        assert!(error.contains("table") && error.contains(" A,"), "{error}");
        assert!(check(&ptx.replace("generic(A)", "generic(AA)")).is_ok());
    }

    #[test]
    fn the_debug_flag_goes_and_line_tables_stay() {
        let ptx = ".target sm_90a, debug\n.loc 1 2 3\n// x, debug\n";
        assert_eq!(
            keep_line_tables_only(ptx),
            ".target sm_90a\n.loc 1 2 3\n// x, debug\n"
        );
    }

    #[test]
    fn the_header_is_set_where_it_is_given() {
        let ptx = "//\n.version 9.0\n.target sm_100a\n// .version 9.0\n";
        let header = Header {
            version: Some("9.4".into()),
            target: Some("sm_107a".into()),
        };
        assert_eq!(
            set_header(ptx, &header),
            "//\n.version 9.4\n.target sm_107a\n// .version 9.0\n"
        );
        assert_eq!(set_header(ptx, &Header::default()), ptx);
    }
}
