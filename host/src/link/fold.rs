//! The rewrite after the first optimisation: marker calls become address-space casts.
//!
//! `cuda_ptx::address` converts pointers by calling markers that no pass knows. They stay opaque
//! while the optimiser inlines, because LLVM's constant folder cannot fold a cast back of
//! `address of a shared static + offset`; `infer-address-spaces`, which runs next, can.

use anyhow::{Context, Result, bail};

use super::text;

/// One marker function of `cuda_ptx::address`.
pub struct Marker {
    pub symbol: &'static str,
    address_space: u32,
    result: &'static str,
}

pub const MARKERS: [Marker; 2] = [
    Marker {
        symbol: "@__cuda_ptx_cvta_to_shared",
        address_space: 3,
        result: "i32",
    },
    Marker {
        symbol: "@__cuda_ptx_cvta_to_global",
        address_space: 1,
        result: "i64",
    },
];

impl Marker {
    /// Declares the marker as what it is, a pure function of its argument.
    pub fn declaration(&self) -> String {
        format!(
            "declare {} {}(ptr) nocallback nofree nosync nounwind speculatable willreturn memory(none)",
            self.result, self.symbol
        )
    }

    /// Replaces one call by a cast and a conversion to an integer.
    fn cast(&self, line: &str, number: usize) -> Result<String> {
        let (result, call) = line
            .trim_start()
            .split_once(" = ")
            .context("a marker whose result is not used")?;
        if !call.contains("call ") {
            bail!("a marker in something other than a `call`");
        }
        let open = line.find(self.symbol).context("no marker")? + self.symbol.len();
        let close = text::closing(line, open).context("a marker call without an end")?;
        let pointer = operand(&line[open + 1..close])?;
        let (space, integer) = (self.address_space, self.result);
        Ok(format!(
            "  %cuda_ptx.cast{number} = addrspacecast ptr {pointer} to ptr addrspace({space})\n  \
             {result} = ptrtoint ptr addrspace({space}) %cuda_ptx.cast{number} to {integer}"
        ))
    }
}

/// Replaces all marker calls of an optimised module.
pub fn fold(ir: &str) -> Result<String> {
    let mut out = String::with_capacity(ir.len());
    for (number, line) in ir.lines().enumerate() {
        match MARKERS.iter().find(|marker| line.contains(marker.symbol)) {
            Some(_) if line.starts_with("declare ") => {}
            Some(marker) => {
                let cast = marker
                    .cast(line, number)
                    .with_context(|| format!("in the IR line `{line}`"))?;
                out.push_str(&cast);
                out.push('\n');
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(out)
}

/// The operand of `ptr [attributes] operand`: a value, a global or a constant expression.
fn operand(argument: &str) -> Result<&str> {
    let mut rest = argument
        .strip_prefix("ptr ")
        .context("a marker whose argument is not a pointer")?;
    loop {
        let word = rest.split([' ', '(']).next().unwrap_or_default();
        let is_value = rest.starts_with(['%', '@']);
        if is_value
            || matches!(
                word,
                "getelementptr" | "addrspacecast" | "inttoptr" | "null" | "undef" | "poison"
            )
        {
            return Ok(rest);
        }
        // An attribute: `noundef`, `align 8`, `captures(none)`.
        rest = match (word, rest.as_bytes().get(word.len())) {
            (_, Some(b'(')) => {
                let end = text::closing(rest, word.len()).context("an attribute without an end")?;
                rest[end + 1..].trim_start()
            }
            ("align", Some(_)) => {
                rest["align ".len()..]
                    .split_once(' ')
                    .context("an alignment without a value")?
                    .1
            }
            (_, Some(_)) => &rest[word.len() + 1..],
            (_, None) => bail!("`{argument}` has no operand that is understood"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_found_behind_attributes() {
        assert_eq!(
            operand("ptr noundef nonnull align 8 dereferenceable(8) captures(none) %x").unwrap(),
            "%x"
        );
        assert_eq!(
            operand("ptr nonnull getelementptr inbounds (i8, ptr @a, i64 4)").unwrap(),
            "getelementptr inbounds (i8, ptr @a, i64 4)"
        );
        assert!(operand("i64 %x").is_err());
        assert!(operand("ptr noundef").is_err());
    }

    #[test]
    fn a_marker_call_becomes_a_cast() {
        let ir =
            "  %5 = tail call noundef i32 @__cuda_ptx_cvta_to_shared(ptr noundef nonnull %p) #3\n";
        assert_eq!(
            fold(ir).unwrap(),
            "  %cuda_ptx.cast0 = addrspacecast ptr %p to ptr addrspace(3)\n  \
             %5 = ptrtoint ptr addrspace(3) %cuda_ptx.cast0 to i32\n"
        );
    }

    #[test]
    fn a_marker_that_is_not_called_is_an_error() {
        assert!(fold("  store ptr @__cuda_ptx_cvta_to_shared, ptr %p, align 8\n").is_err());
    }
}
