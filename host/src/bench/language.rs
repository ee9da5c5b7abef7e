//! What Rust and C++ write differently in the kernels that time forms.

use super::forms::FormKernel;
use super::setup::{Actor, Barrier, Chain, Setup};
use super::twin;
use crate::parity::beyond;
use crate::spec::Scalar;

/// A kernel's text, but for what the languages write differently.
pub struct Parts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Before the loop.
    pub declarations: String,
    /// The unrolled body of the loop.
    pub step: String,
    /// How the form is timed.
    pub setup: Setup,
    /// Before each pass.
    pub first: String,
    /// After each pass.
    pub last: String,
    /// What is stored at the end, so that nothing is optimised away.
    pub sink: String,
}

/// What a pointer points to: a scalar, or so many.
pub type Pointee = (Scalar, Option<usize>);

/// What differs between the languages.
pub trait Language {
    /// What has to stand before the kernel.
    fn function(&self, kernel: &FormKernel) -> String;
    /// The type's name.
    fn type_name(&self, of: Scalar) -> &'static str;
    /// An integer as another type: its value, or its bits.
    fn cast(&self, value: &str, of: Scalar) -> String;
    /// The same of an integer with what links a step to the one before.
    fn linked(&self, value: &str, of: Scalar) -> String;
    /// A pointer argument, and what it points to in Rust and in C++.
    fn pointer(&self, value: &str, to: [Pointee; 2], mutable: bool) -> String;
    /// A tag; nothing if the call has none.
    fn tag(&self, name: &str) -> String;
    /// A number in the instruction; nothing if the call has none.
    fn immediate(&self, value: i64) -> String;
    /// Declares a variable.
    fn variable(&self, name: &str, of: &str, value: &str) -> String;
    /// The address that a linked chain carries on.
    fn cursor(&self, base: &str) -> String;
    /// Declares a number of 64 bits.
    fn constant(&self, name: &str, value: &str) -> String;
    /// Declares an array.
    fn array(&self, name: &str, of: Scalar, values: &[String]) -> String;
    /// Makes a variable of an array.
    fn to_be_written(&self, name: &str) -> String;
    /// Declares what an instruction writes.
    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> String;
    /// Passes it.
    fn out_argument(&self, name: &str) -> String;
    /// Calls the form.
    fn call(&self, kernel: &FormKernel, arguments: &str) -> String;
    /// Calls the form, and writes its result to a variable.
    fn accumulate(&self, kernel: &FormKernel, to: &str, arguments: &str) -> String;
    /// The kernel.
    fn kernel(&self, parts: &Parts) -> String;
}

/// Calls the crate's functions.
pub struct Rust {
    /// Whether registers of other types are made of the bits of integers.
    pub bits: bool,
}

impl Language for Rust {
    fn function(&self, _: &FormKernel) -> String {
        String::new()
    }

    fn type_name(&self, of: Scalar) -> &'static str {
        of.rust()
    }

    fn cast(&self, value: &str, of: Scalar) -> String {
        match of {
            Scalar::Bits(128) => format!("[({value}) as u64, ({value}) as u64]"),
            Scalar::U128 => format!("({value}) as u128 * (1 << 64 | 1)"),
            Scalar::Bool if self.bits => format!("({value}) != 0"),
            of if self.bits && !is_integer(of) => {
                let bits = format!("u{}", of.bits());
                format!(
                    "::core::mem::transmute::<{bits}, {}>(({value}) as {bits})",
                    of.rust()
                )
            }
            of => format!("({value}) as {}", of.rust()),
        }
    }

    fn linked(&self, value: &str, of: Scalar) -> String {
        let word = if of.bits() == 64 { "u64" } else { "u32" };
        match self.bits {
            true => self.cast(&format!("({value}) as {word} | (x & zero) as {word}"), of),
            false => format!("({} | {})", self.cast(value, of), self.cast("x & zero", of)),
        }
    }

    fn constant(&self, name: &str, value: &str) -> String {
        format!("let {name}: u64 = {value};\n")
    }

    fn to_be_written(&self, name: &str) -> String {
        format!("let mut {name} = {name};\n")
    }

    fn accumulate(&self, kernel: &FormKernel, to: &str, arguments: &str) -> String {
        format!("{to} = {}", self.call(kernel, arguments))
    }

    fn pointer(&self, value: &str, [(to, len), _]: [Pointee; 2], mutable: bool) -> String {
        let to = match (to, len) {
            (Scalar::Any, _) => "u8".to_owned(),
            (to, None) => to.rust().to_owned(),
            (to, Some(len)) => format!("[{}; {len}]", to.rust()),
        };
        let constant = if mutable { "" } else { ".cast_const()" };
        format!("{value}.cast::<{to}>(){constant}")
    }

    fn tag(&self, name: &str) -> String {
        name.to_owned()
    }

    fn immediate(&self, value: i64) -> String {
        format!("n32::<{value}>")
    }

    fn variable(&self, name: &str, of: &str, value: &str) -> String {
        format!("let mut {name}: {of} = {value};\n")
    }

    fn cursor(&self, base: &str) -> String {
        format!("let mut cursor = {base};\n")
    }

    fn array(&self, name: &str, of: Scalar, values: &[String]) -> String {
        format!(
            "let {name}: [{}; {}] = [{}];\n",
            of.rust(),
            values.len(),
            values.join(", ")
        )
    }

    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> String {
        let of = of.rust();
        let ty = len.map_or(of.to_owned(), |len| format!("[{of}; {len}]"));
        format!("let mut {name}: {ty} = ::core::mem::zeroed();\n")
    }

    fn out_argument(&self, name: &str) -> String {
        format!("&mut {name}")
    }

    fn call(&self, kernel: &FormKernel, arguments: &str) -> String {
        format!("{}({arguments})", kernel.overload.rust_name)
    }

    fn kernel(&self, parts: &Parts) -> String {
        let Parts {
            name,
            declarations,
            step,
            setup,
            first,
            last,
            sink,
        } = parts;
        let (attributes, _) = attributes(setup);
        format!(
            "kernel! {{\n{attributes}\npub fn {name}(out: *mut u64, data: *mut u8, maps: *mut u8, trips: u32, passes: u32, \
             zero: u32, one: u32, full: u32, select: u32, hint: u32, policy: u64, place: u32, pauses: u32) {{ unsafe {{\n\
             prologue!(own_bar, own_source, own_target, bar, source, target, peer_bar, peer_target, slab, global, lane, warp, rank, tile, seed, data, zero, place);\n\
             {}let mut parity: u32 = 0;\n{declarations}\
             let (mut t0, mut t1) = (0u64, 0u64);\nlet mut pass = 0;\nloop {{\nnounroll();\n{sync}\n\
             let n = opaque(if pass == 0 {{ 1 }} else {{ trips }});\n\
             if {actor} {{\n{first}\nt0 = clock();\nlet mut trip = 0;\nloop {{\nnounroll();\n{step}\
             trip = opaque(trip + 1);\nif trip >= n {{ break; }}\n}}\nt1 = clock();\n{last}\n}}\n\
             pass = opaque(pass + 1);\nif pass >= passes {{ break; }}\n}}\n{sync}\nrecord(out, lane, warp, t0, t1, {sink});\n}} }}\n}}\n",
            barrier(setup, self),
            sync = sync(setup),
            actor = actor(setup),
        )
    }
}

/// Calls `cuda::ptx`, or what parity compares with where it has nothing.
pub struct Cpp {
    /// Whether the kernels are of what `cuda::ptx` lacks.
    pub bits: bool,
}

impl Language for Cpp {
    fn function(&self, kernel: &FormKernel) -> String {
        match self.bits {
            true => twin::function(&beyond_name(kernel), kernel.variant),
            false => String::new(),
        }
    }

    fn type_name(&self, of: Scalar) -> &'static str {
        if self.bits {
            return beyond::register(of);
        }
        match of {
            Scalar::Bits(65..) => "ulonglong2",
            of => of.cxx(),
        }
    }

    fn cast(&self, value: &str, of: Scalar) -> String {
        match of {
            of if self.bits && of.words() == 2 => {
                format!("{{uint64_t({value}), uint64_t({value})}}")
            }
            Scalar::Bits(128) => format!("ulonglong2{{({value}), ({value})}}"),
            Scalar::Bool if self.bits => format!("({value}) != 0"),
            Scalar::F32 if self.bits => format!("__uint_as_float((uint32_t)({value}))"),
            Scalar::F64 if self.bits => format!("__longlong_as_double((long long)({value}))"),
            of => format!("({})({value})", self.type_name(of)),
        }
    }

    fn linked(&self, value: &str, of: Scalar) -> String {
        let word = if of.bits() == 64 {
            "uint64_t"
        } else {
            "uint32_t"
        };
        match self.bits {
            true => self.cast(&format!("({word})({value}) | ({word})(x & zero)"), of),
            false => format!("({} | {})", self.cast(value, of), self.cast("x & zero", of)),
        }
    }

    fn constant(&self, name: &str, value: &str) -> String {
        format!("const uint64_t {name} = {value};\n")
    }

    fn to_be_written(&self, _: &str) -> String {
        String::new()
    }

    fn accumulate(&self, kernel: &FormKernel, to: &str, arguments: &str) -> String {
        format!("assign({to}, {})", self.call(kernel, arguments))
    }

    fn pointer(&self, value: &str, [_, (to, _)]: [Pointee; 2], mutable: bool) -> String {
        if self.bits {
            return format!("({}*)({value})", beyond::pointee(to));
        }
        let constant = if mutable { "" } else { "const " };
        format!("({constant}{}*)({value})", self.type_name(to))
    }

    fn tag(&self, name: &str) -> String {
        match self.bits {
            true => String::new(),
            false => name.to_owned(),
        }
    }

    fn immediate(&self, value: i64) -> String {
        match self.bits {
            true => String::new(),
            false => format!("n32_t<{value}>{{}}"),
        }
    }

    fn variable(&self, name: &str, of: &str, value: &str) -> String {
        let of = if of == "u32" { "uint32_t" } else { of };
        format!("{of} {name} = {value};\n")
    }

    fn cursor(&self, base: &str) -> String {
        format!("uint8_t* cursor = {base};\n")
    }

    fn array(&self, name: &str, of: Scalar, values: &[String]) -> String {
        format!(
            "{} {name}[{}] = {{{}}};\n",
            self.type_name(of),
            values.len(),
            values.join(", ")
        )
    }

    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> String {
        let len = len.map_or(String::new(), |len| format!("[{len}]"));
        format!("{} {name}{len} = {{}};\n", self.type_name(of))
    }

    fn out_argument(&self, name: &str) -> String {
        name.to_owned()
    }

    fn call(&self, kernel: &FormKernel, arguments: &str) -> String {
        match self.bits {
            true => format!("{}({arguments})", beyond_name(kernel)),
            false => format!("cuda::ptx::{}({arguments})", kernel.variant.function),
        }
    }

    fn kernel(&self, parts: &Parts) -> String {
        let Parts {
            name,
            declarations,
            step,
            setup,
            first,
            last,
            sink,
        } = parts;
        let (_, attributes) = attributes(setup);
        format!(
            "extern \"C\" __global__ void {attributes} {name}(uint64_t* out, uint8_t* data, uint8_t* maps, uint32_t trips, \
             uint32_t passes, uint32_t zero, uint32_t one, uint32_t full, uint32_t select, uint32_t hint, uint64_t policy, uint32_t place, uint32_t pauses) {{\n\
             PROLOGUE\n{}uint32_t parity = 0;\n{declarations}\
             uint64_t t0 = 0, t1 = 0;\nuint32_t pass = 0;\n_Pragma(\"unroll 1\")\ndo {{\n{sync}\n\
             uint32_t n = opaque(pass == 0 ? 1 : trips);\n\
             if ({actor}) {{\n{first}\nt0 = clock_now();\nuint32_t trip = 0;\n_Pragma(\"unroll 1\")\ndo {{\n{step}\
             trip = opaque(trip + 1);\n}} while (trip < n);\nt1 = clock_now();\n{last}\n}}\n\
             pass = opaque(pass + 1);\n}} while (pass < passes);\n{sync}\nrecord(out, lane, warp, t0, t1, {sink});\n}}\n",
            barrier(setup, self),
            sync = sync(setup),
            actor = actor(setup),
        )
    }
}

/// The function of C++ for a form that `cuda::ptx` lacks.
fn beyond_name(kernel: &FormKernel) -> String {
    format!("form_{}", kernel.name)
}

fn is_integer(of: Scalar) -> bool {
    use Scalar::{Bits, I16, I32, I64, U8, U16, U32, U64};
    matches!(of, U8 | U16 | U32 | U64 | I16 | I32 | I64 | Bits(_))
}

/// Launch attributes in Rust and in C++.
fn attributes(setup: &Setup) -> (String, String) {
    if setup.step.starts_with("grow") {
        let rust = "#[launch_bounds(128, 1)]\n#[maxnreg(64)]";
        return (rust.to_owned(), "__maxnreg__(64)".to_owned());
    }
    let threads = setup.max_threads;
    (
        format!("#[launch_bounds({threads})]"),
        format!("__launch_bounds__({threads})"),
    )
}

fn sync(setup: &Setup) -> &'static str {
    if setup.cluster {
        "cluster_sync();"
    } else {
        "block_sync();"
    }
}

/// Which threads execute the chain.
fn actor(setup: &Setup) -> &'static str {
    match (setup.actor, setup.chain, setup.cluster) {
        (Actor::Warp, ..) => "true",
        // One CTA copies to both.
        (Actor::Lane, Chain::Completion, true) => "lane == 0 && rank == 0",
        (Actor::Lane, ..) => "lane == 0",
    }
}

/// Initialises the barrier of each warp, and gives a state for waits.
fn barrier(setup: &Setup, language: &dyn Language) -> String {
    let init = match setup.barrier {
        Barrier::Open => "open_barrier(bar, lane)",
        Barrier::One => "one_barrier(bar, lane)",
        Barrier::Done => "done_barrier(bar, lane)",
        Barrier::NewLayout => "new_barrier(bar, lane)",
    };
    language.variable("state", language.type_name(Scalar::U64), init) + sync(setup) + "\n"
}
