//! One kernel per form, in Rust and in C++, that times a chain of it.
//!
//! Both languages get the same statements: what they write differently is in `Language`, and the helpers that
//! the statements call are in `prelude.rs` and `prelude.cuh`.

use std::fmt::Write;

use super::forms::FormKernel;
use super::setup::{Actor, Barrier, Chain, Link, Setup};
use crate::spec::{Arg, Scalar, Space, Type};

/// A form with its set-up.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The form.
    pub kernel: FormKernel<'a>,
    /// How it is timed.
    pub setup: Setup,
}

/// The links that are timed alone; the third is one instruction, of two in the first.
pub const LINKS: [Link; 2] = [Link::Shared, Link::Global];

const RUST_PRELUDE: &str = include_str!("prelude.rs.txt");
const CPP_PRELUDE: &str = include_str!("prelude.cuh");

/// A kernel crate's `lib.rs` with the kernels of these forms and of the links.
pub fn rust(subjects: &[Subject]) -> String {
    all(subjects, &Rust, RUST_PRELUDE)
}

/// A CUDA C++ source with the same kernels.
pub fn cpp(subjects: &[Subject]) -> String {
    all(subjects, &Cpp, CPP_PRELUDE)
}

fn all(subjects: &[Subject], language: &dyn Language, prelude: &str) -> String {
    let mut out = prelude.to_owned();
    for link in LINKS {
        out += &link_kernel(link, language);
    }
    for subject in subjects {
        out += &kernel(subject, language);
    }
    out
}

/// The name of the kernel that times a link alone.
pub fn link_name(link: Link) -> &'static str {
    match link {
        Link::Global => "link_global",
        Link::Shared | Link::Register => "link_shared",
    }
}

/// The link of [`Chain::Link`] without an instruction between: what it adds to the slope.
fn link_kernel(link: Link, language: &dyn Language) -> String {
    let step = match link {
        Link::Global => "cursor = at(cursor, x & zero); x = opaque(low(cursor));",
        _ => "cursor = advance(cursor, x & zero); x = opaque(shared_address(cursor));",
    };
    let base = if link == Link::Global {
        "global"
    } else {
        "own_bar"
    };
    let parts = Parts {
        name: link_name(link),
        declarations: language.variable("x", "u32", "seed") + &language.cursor(base),
        step: step.repeat(64),
        setup: Setup {
            chain: Chain::Value,
            actor: Actor::Warp,
            cluster: false,
            unroll: 64,
            bytes: 0,
            places: false,
            threads: 32,
            barrier: Barrier::Open,
            step: "",
            with: "",
        },
        first: String::new(),
        last: String::new(),
        sink: "x".to_owned(),
    };
    language.kernel(&parts)
}

/// A kernel's text, but for what the languages write differently.
pub struct Parts<'a> {
    name: &'a str,
    declarations: String,
    /// The unrolled body of the loop.
    step: String,
    setup: Setup,
    /// Before each pass.
    first: String,
    /// After each pass.
    last: String,
    /// What is stored at the end, so that nothing is optimised away.
    sink: String,
}

fn kernel(subject: &Subject, language: &dyn Language) -> String {
    let (setup, variant) = (&subject.setup, subject.kernel.variant);
    let mut declarations = String::new();
    let mut x = Scalar::U32;
    if let (
        Chain::Value,
        Some(Arg {
            ty: Type::Scalar(of),
            ..
        }),
    ) = (setup.chain, &variant.result)
    {
        x = *of;
    }
    declarations += &language.variable("x", language.type_name(x), &language.cast("seed", x));
    for arg in &variant.args {
        declarations += &declaration(arg, language);
    }
    if let Some(base) = linked_base(subject) {
        declarations += &language.cursor(&base);
    }
    let call = |index: u32| {
        let arguments: Vec<_> = variant
            .args
            .iter()
            .scan(false, |chained, arg| {
                Some(argument(arg, subject, index, chained, language))
            })
            .collect();
        language.call(&subject.kernel, &arguments.join(", "))
    };
    let bytes = setup.bytes.to_string();
    let step = |index| {
        setup
            .step
            .replace("$CALL", &call(index))
            .replace("BYTES", &bytes)
            + "\n"
    };
    let (mut first, mut last) = (String::new(), String::new());
    if setup.chain == Chain::Exchange {
        // CTA 0 sends one more than it waits for.
        let _ = write!(first, "if (rank == 0) {{ {}; }}", call(0));
        let _ = write!(
            last,
            "if (rank == 1) {{ arm(bar, {bytes}); wait(bar, parity); parity = opaque(parity ^ 1); }}"
        );
    }
    language.kernel(&Parts {
        name: &subject.kernel.name,
        declarations,
        step: (0..setup.unroll).map(step).collect(),
        setup: setup.clone(),
        first,
        last,
        sink: "fold(x)".to_owned(),
    })
}

/// What an argument needs to be declared before the loop.
fn declaration(arg: &Arg, language: &dyn Language) -> String {
    match &arg.ty {
        Type::Array { of, len } if arg.name.contains("coords") => {
            let mut values = vec![language.cast("zero", *of); *len];
            // Each warp has a tile of its own, along the last dimension.
            let extent = super::job::TILES[*len - 1][*len - 1];
            values[*len - 1] = language.cast(&format!("tile * {extent}"), *of);
            language.array(&arg.name, *of, &values)
        }
        Type::Array { of, len } => {
            // Not twice the same, for which the compilers would copy registers, each in its own way.
            let values = (0..*len).map(|i| language.cast(&format!("seed + {i}"), *of));
            let values = Vec::from_iter(values);
            language.array(&arg.name, *of, &values)
        }
        Type::Out { of, len } => language.out_variable(&arg.name, *of, *len),
        _ => String::new(),
    }
}

/// The text of an argument in step `index`. The first argument that can takes the link of the chain.
fn argument(
    arg: &Arg,
    subject: &Subject,
    index: u32,
    chained: &mut bool,
    language: &dyn Language,
) -> String {
    let setup = &subject.setup;
    match &arg.ty {
        Type::Tag(tag) => tag.name.clone(),
        Type::Immediate { low, .. } => language.immediate(*low),
        Type::Pointer {
            space, mutable, to, ..
        } => {
            let base = match space {
                _ if !*chained && linked_space(setup) == Some(*space) => {
                    *chained = true;
                    "cursor".to_owned()
                }
                Space::Shared => shared_base(arg, subject).to_owned(),
                Space::Global
                    if subject.kernel.variant.function.starts_with("prefetch")
                        || subject.kernel.variant.function.starts_with("st") =>
                {
                    // Neighbouring steps use other lines, or the assembler would drop all but one.
                    format!("at(global, {})", index % 8 * 512)
                }
                // All lanes give the same address.
                Space::Global if subject.kernel.variant.function.starts_with("tensormap") => {
                    "slab".to_owned()
                }
                Space::Global => "global".to_owned(),
                Space::Generic => map_base(subject),
            };
            // The barrier of the form for signed integers is an `int64_t*` in C++.
            let signed = |other: &Arg| {
                matches!(
                    other.ty,
                    Type::Pointer {
                        to: Scalar::I64,
                        ..
                    }
                )
            };
            let odd = arg.name == "remote_bar" && subject.kernel.variant.args.iter().any(signed);
            let in_cpp = if odd { Scalar::I64 } else { *to };
            language.pointer(&base, [*to, in_cpp], *mutable)
        }
        Type::Scalar(of) => {
            let first_value = setup.chain == Chain::Value && !*chained;
            if first_value {
                *chained = true;
                return language.cast("x", *of);
            }
            let value = scalar(&arg.name);
            match setup.chain {
                Chain::Link(Link::Register) if !*chained => {
                    *chained = true;
                    format!(
                        "({} | {})",
                        language.cast(value, *of),
                        language.cast("x & zero", *of)
                    )
                }
                _ => language.cast(value, *of),
            }
        }
        Type::Array { .. } => arg.name.clone(),
        Type::InOut { .. } | Type::Out { .. } => language.out_argument(&arg.name),
    }
}

/// The space of the address that the chain's link changes.
fn linked_space(setup: &Setup) -> Option<Space> {
    match setup.chain {
        Chain::Link(Link::Shared) => Some(Space::Shared),
        Chain::Link(Link::Global) => Some(Space::Global),
        _ => None,
    }
}

/// Where the chain of addresses starts.
fn linked_base(subject: &Subject) -> Option<String> {
    let linked = linked_space(&subject.setup)?;
    let of = |arg: &Arg| match arg.ty {
        Type::Pointer {
            space: Space::Global,
            ..
        } if linked == Space::Global => Some("global".to_owned()),
        // Not the fixed address: the compilers follow this one into shared memory, and add 32 bits to it.
        Type::Pointer { space, .. } if space == linked => {
            let base = shared_base(arg, subject);
            Some(match base.strip_prefix("at(") {
                Some(rest) => format!("at(own_{rest}"),
                None => format!("own_{base}"),
            })
        }
        _ => None,
    };
    subject.kernel.variant.args.iter().find_map(of)
}

/// The object in shared memory that a pointer of the form names.
fn shared_base(arg: &Arg, subject: &Subject) -> &'static str {
    let remote = subject.setup.cluster && subject.setup.chain != Chain::Completion;
    let is_barrier = matches!(arg.name.as_str(), "bar" | "remote_bar")
        || subject.kernel.family.name == "mbarrier"
        || subject
            .kernel
            .variant
            .function
            .starts_with("cp_async_mbarrier");
    match (is_barrier, arg.name.as_str()) {
        (true, _) if remote => "peer_bar",
        (true, _) => "bar",
        (_, "src_mem" | "src") => "source",
        (_, "smem_ptr") => "at(source, lane * 16)",
        (_, "gmem_ptr") => "at(target, lane * 16)",
        (_, "tm_addr") => "source",
        _ if remote => "peer_target",
        _ => "target",
    }
}

/// The tensor map for the coordinates that the form takes.
fn map_base(subject: &Subject) -> String {
    let coordinates = subject
        .kernel
        .variant
        .args
        .iter()
        .find_map(|arg| match &arg.ty {
            Type::Array { len, .. } if arg.name.contains("coords") => Some(*len),
            _ => None,
        });
    format!("at(maps, {})", 128 * (coordinates.unwrap_or(1) - 1))
}

/// What a register operand is, by its name.
fn scalar(name: &str) -> &'static str {
    match name {
        "count" => "one",
        "tx_count" => "one",
        // The barrier's first phase is complete.
        "phase_parity" => "zero",
        "state" => "state",
        "suspend_time_hint" => "hint",
        "size" => "1024",
        "cta_mask" => "3",
        "ignore_bytes_left" | "ignore_bytes_right" => "zero",
        "cache_policy" => "policy",
        "membermask" | "lane_mask" => "full",
        "clamp_segmask" => "31",
        "b_reg" => "zero",
        "c_reg" => "select",
        _ => "seed",
    }
}

/// What differs between the languages.
trait Language {
    fn type_name(&self, of: Scalar) -> &'static str;
    fn cast(&self, value: &str, of: Scalar) -> String;
    /// A pointer argument, and what it points to in Rust and in C++.
    fn pointer(&self, value: &str, to: [Scalar; 2], mutable: bool) -> String;
    fn immediate(&self, value: i64) -> String;
    fn variable(&self, name: &str, of: &str, value: &str) -> String;
    /// The address that a linked chain carries on.
    fn cursor(&self, base: &str) -> String;
    fn array(&self, name: &str, of: Scalar, values: &[String]) -> String;
    fn out_variable(&self, name: &str, of: Scalar, len: Option<usize>) -> String;
    fn out_argument(&self, name: &str) -> String;
    fn call(&self, kernel: &FormKernel, arguments: &str) -> String;
    fn kernel(&self, parts: &Parts) -> String;
}

struct Rust;

impl Language for Rust {
    fn type_name(&self, of: Scalar) -> &'static str {
        of.rust()
    }

    fn cast(&self, value: &str, of: Scalar) -> String {
        match of {
            Scalar::Bits(128) => format!("[({value}) as u64, ({value}) as u64]"),
            of => format!("({value}) as {}", of.rust()),
        }
    }

    fn pointer(&self, value: &str, [to, _]: [Scalar; 2], mutable: bool) -> String {
        let to = if to == Scalar::Any { "u8" } else { to.rust() };
        let constant = if mutable { "" } else { ".cast_const()" };
        format!("{value}.cast::<{to}>(){constant}")
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
        let attributes = attributes(setup).map_or("#[launch_bounds(1024)]", |(rust, _)| rust);
        format!(
            "kernel! {{\n{attributes}\npub fn {name}(out: *mut u64, data: *mut u8, maps: *mut u8, trips: u32, passes: u32, \
             zero: u32, one: u32, full: u32, select: u32, hint: u32, policy: u64, place: u32) {{ unsafe {{\n\
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

struct Cpp;

impl Language for Cpp {
    fn type_name(&self, of: Scalar) -> &'static str {
        match of {
            Scalar::U8 | Scalar::Bits(8) => "uint8_t",
            Scalar::U16 | Scalar::Bits(16) => "uint16_t",
            Scalar::U32 | Scalar::Bits(32) => "uint32_t",
            Scalar::U64 | Scalar::Bits(64) => "uint64_t",
            Scalar::I16 => "int16_t",
            Scalar::I32 => "int32_t",
            Scalar::I64 => "int64_t",
            Scalar::F16 => "__half",
            Scalar::Bf16 => "__nv_bfloat16",
            Scalar::F64 => "double",
            Scalar::F32 => "float",
            Scalar::Bool => "bool",
            Scalar::Bits(_) => "ulonglong2",
            _ => "void",
        }
    }

    fn cast(&self, value: &str, of: Scalar) -> String {
        match of {
            Scalar::Bits(128) => format!("ulonglong2{{({value}), ({value})}}"),
            of => format!("({})({value})", self.type_name(of)),
        }
    }

    fn pointer(&self, value: &str, [_, to]: [Scalar; 2], mutable: bool) -> String {
        let constant = if mutable { "" } else { "const " };
        format!("({constant}{}*)({value})", self.type_name(to))
    }

    fn immediate(&self, value: i64) -> String {
        format!("n32_t<{value}>{{}}")
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
        format!("cuda::ptx::{}({arguments})", kernel.variant.function)
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
        let attributes = attributes(setup).map_or("__launch_bounds__(1024)", |(_, cpp)| cpp);
        format!(
            "extern \"C\" __global__ void {attributes} {name}(uint64_t* out, uint8_t* data, uint8_t* maps, uint32_t trips, \
             uint32_t passes, uint32_t zero, uint32_t one, uint32_t full, uint32_t select, uint32_t hint, uint64_t policy, uint32_t place) {{\n\
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

/// Launch attributes in Rust and in C++ where they are not the usual ones.
fn attributes(setup: &Setup) -> Option<(&'static str, &'static str)> {
    setup.step.starts_with("grow").then_some((
        "#[launch_bounds(128, 1)]\n#[maxnreg(64)]",
        "__maxnreg__(64)",
    ))
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
