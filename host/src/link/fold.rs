//! The rewrites around the inference of address spaces: marker calls become casts, and casts that change nothing vanish.
//!
//! `cuda_ptx::address` converts pointers by calling markers that no pass knows. They stay opaque
//! while the optimiser inlines, because LLVM's constant folder cannot fold a cast back of
//! `address of a shared static + offset`; `infer-address-spaces`, which runs next, can.
//!
//! What it leaves of an address in the cluster that became a pointer and an address again, also with an offset or around a
//! loop, is a cast from the cluster's shared memory to the CTA's. LLVM has no instruction for that and goes by way of a
//! generic pointer; but the one window contains the other, so the address stays as it is.

use anyhow::{Context, Result, bail};

use super::text;

/// One marker function of `cuda_ptx::address`.
pub struct Marker {
    pub symbol: &'static str,
    direction: Direction,
    address_space: u32,
    /// The type of an address in that space, as a number.
    integer: &'static str,
}

/// LLVM's number of `.shared::cta`.
const CTA: u32 = 3;

/// LLVM's number of `.shared::cluster`.
const CLUSTER: u32 = 7;

/// What a marker converts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// A generic pointer to an address.
    ToAddress,
    /// An address to a generic pointer.
    ToPointer,
}

pub const MARKERS: [Marker; 3] = [
    Marker {
        symbol: "@__cuda_ptx_cvta_to_shared",
        direction: Direction::ToAddress,
        address_space: CTA,
        integer: "i32",
    },
    Marker {
        symbol: "@__cuda_ptx_cvta_to_global",
        direction: Direction::ToAddress,
        address_space: 1,
        integer: "i64",
    },
    Marker {
        symbol: "@__cuda_ptx_cvta_from_shared",
        direction: Direction::ToPointer,
        // An access by `.shared` would be one to this CTA's.
        address_space: CLUSTER,
        integer: "i32",
    },
];

impl Marker {
    /// Declares the marker as what it is, a pure function of its argument.
    pub fn declaration(&self) -> String {
        let (result, argument) = match self.direction {
            Direction::ToAddress => (self.integer, "ptr"),
            Direction::ToPointer => ("ptr", self.integer),
        };
        format!(
            "declare {result} {}({argument}) nocallback nofree nosync nounwind speculatable willreturn memory(none)",
            self.symbol
        )
    }

    /// Replaces one call by a cast and a conversion to or from an integer.
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
        let argument = &line[open + 1..close];
        let (space, integer) = (self.address_space, self.integer);
        let cast = format!("%cuda_ptx.cast{number}");
        Ok(match self.direction {
            Direction::ToAddress => {
                let pointer = operand(argument, "ptr ")?;
                format!(
                    "  {cast} = addrspacecast ptr {pointer} to ptr addrspace({space})\n  \
                     {result} = ptrtoint ptr addrspace({space}) {cast} to {integer}"
                )
            }
            Direction::ToPointer => {
                let address = operand(argument, &format!("{integer} "))?;
                format!(
                    "  {cast} = inttoptr {integer} {address} to ptr addrspace({space})\n  \
                     {result} = addrspacecast ptr addrspace({space}) {cast} to ptr"
                )
            }
        })
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

/// Keeps the address where a pointer into the cluster's shared memory is cast to one into the CTA's.
pub fn keep_addresses(ir: &str) -> String {
    let (from, to) = (
        format!(" = addrspacecast ptr addrspace({CLUSTER}) "),
        format!(" to ptr addrspace({CTA})"),
    );
    let mut out = String::with_capacity(ir.len());
    for (number, line) in ir.lines().enumerate() {
        let cast = line.split_once(&from).and_then(|(result, rest)| {
            let (pointer, tail) = rest.split_once(&to)?;
            Some((result, pointer, tail))
        });
        match cast {
            Some((result, pointer, tail)) => {
                let address = format!("%cuda_ptx.address{number}");
                out += &format!(
                    "  {address} = ptrtoint ptr addrspace({CLUSTER}) {pointer} to i32{tail}\n\
                     {result} = inttoptr i32 {address}{to}{tail}\n"
                );
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// The operand of `ptr [attributes] operand`, or of another type: a value, a global, a number or a
/// constant expression.
fn operand<'a>(argument: &'a str, ty: &str) -> Result<&'a str> {
    let mut rest = argument
        .strip_prefix(ty)
        .with_context(|| format!("a marker whose argument is not of the type `{}`", ty.trim()))?;
    loop {
        let word = rest.split([' ', '(']).next().unwrap_or_default();
        let is_value = rest.starts_with(|c: char| "%@-".contains(c) || c.is_ascii_digit());
        if is_value
            || matches!(
                word,
                "getelementptr"
                    | "addrspacecast"
                    | "inttoptr"
                    | "ptrtoint"
                    | "null"
                    | "undef"
                    | "poison"
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
            operand(
                "ptr noundef nonnull align 8 dereferenceable(8) captures(none) %x",
                "ptr "
            )
            .unwrap(),
            "%x"
        );
        assert_eq!(
            operand(
                "ptr nonnull getelementptr inbounds (i8, ptr @a, i64 4)",
                "ptr "
            )
            .unwrap(),
            "getelementptr inbounds (i8, ptr @a, i64 4)"
        );
        assert!(operand("i64 %x", "ptr ").is_err());
        assert!(operand("ptr noundef", "ptr ").is_err());
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
    fn an_address_becomes_a_pointer() {
        let ir = "  %7 = call noundef ptr @__cuda_ptx_cvta_from_shared(i32 noundef %6) #3\n";
        assert_eq!(
            fold(ir).unwrap(),
            "  %cuda_ptx.cast0 = inttoptr i32 %6 to ptr addrspace(7)\n  \
             %7 = addrspacecast ptr addrspace(7) %cuda_ptx.cast0 to ptr\n"
        );
    }

    #[test]
    fn an_address_in_the_cluster_stays_what_it_is() {
        let cast = |to: u32| {
            format!("  %c = addrspacecast ptr addrspace(7) %n to ptr addrspace({to}), !dbg !8\n")
        };
        assert_eq!(
            keep_addresses(&cast(3)),
            "  %cuda_ptx.address0 = ptrtoint ptr addrspace(7) %n to i32, !dbg !8\n  \
             %c = inttoptr i32 %cuda_ptx.address0 to ptr addrspace(3), !dbg !8\n"
        );
        assert_eq!(keep_addresses(&cast(1)), cast(1));
    }

    #[test]
    fn a_marker_that_is_not_called_is_an_error() {
        assert!(fold("  store ptr @__cuda_ptx_cvta_to_shared, ptr %p, align 8\n").is_err());
    }
}
