//! One kernel per form, in Rust and in C++, that times a chain of it.
//!
//! Both languages get the same statements: what they write differently is in [`language`](super::language), and the helpers
//! that the statements call are in `prelude.rs` and `prelude.cuh`.

use std::fmt::Write;

use super::forms::FormKernel;
use super::language::{Cpp, Language, Parts, Rust};
use super::setup::{Actor, Chain, Link, Setup};
use crate::parity::cxx;
use crate::spec::{Arg, Scalar, Space, Type, Variant};

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

/// In a step, what gives the factors A and B other values.
const LOAD: &str = "$LOAD";

const RUST_PRELUDE: &str = include_str!("prelude.rs.txt");
const CPP_PRELUDE: &str = include_str!("prelude.cuh");

/// A kernel crate's `lib.rs` with the kernels of these forms and of the links.
pub fn rust(subjects: &[&Subject]) -> String {
    all(
        subjects,
        [&Rust { bits: false }, &Rust { bits: true }],
        RUST_PRELUDE,
    )
}

/// A CUDA C++ source with the same kernels.
pub fn cpp(subjects: &[&Subject]) -> String {
    // What the twins of parity are declared in, which are called where `cuda::ptx` has nothing.
    let prelude = cxx::PRELUDE.to_owned() + CPP_PRELUDE;
    let languages: [&dyn Language; 2] = [&Cpp { bits: false }, &Cpp { bits: true }];
    all(subjects, languages, &prelude)
}

/// `languages`: for the forms of `cuda::ptx`, and for what it lacks.
fn all(subjects: &[&Subject], languages: [&dyn Language; 2], prelude: &str) -> String {
    let mut out = prelude.to_owned();
    for link in LINKS {
        out += &link_kernel(link, languages[0]);
    }
    for subject in subjects {
        let language = languages[usize::from(subject.kernel.variant.is_beyond())];
        out += &language.function(&subject.kernel);
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
        Link::Global => "cursor = onward(cursor, x & zero); x = opaque(low(cursor));",
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
            step: "",
            ..Setup::order(Actor::Warp)
        },
        first: String::new(),
        last: String::new(),
        sink: "x".to_owned(),
    };
    language.kernel(&parts)
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
        declarations += &declaration(arg, variant, language);
    }
    if let Some(base) = linked_base(subject) {
        declarations += &language.cursor(&base);
    }
    let is_result = variant.result.is_some();
    if setup.chain == Chain::Accumulate && is_result {
        declarations += &language.to_be_written("c");
    }
    let changed: &[&str] = match setup.step {
        step if step.starts_with("a[0]") => &["a"],
        step if step.contains(LOAD) => &["a", "b"],
        _ => &[],
    };
    for name in changed {
        declarations += &language.to_be_written(name);
    }
    if setup.shared > 0 {
        declarations += &language.constant("desc_a", "descriptor(fixed(matrices()))");
        declarations += &language.constant("desc_b", "descriptor(fixed(at(matrices(), 8192)))");
    }
    if variant.args.iter().any(|arg| arg.name == "threads") {
        declarations += &language.variable("block_threads", "u32", "get_sreg_ntid_x()");
    }
    let call = |index: u32| {
        let arguments: Vec<_> = variant
            .args
            .iter()
            .scan(false, |chained, arg| {
                Some(argument(arg, subject, index, chained, language))
            })
            .collect();
        let arguments = Vec::from_iter(arguments.into_iter().filter(|text| !text.is_empty()));
        let arguments = arguments.join(", ");
        match setup.chain {
            Chain::Accumulate if is_result => language.accumulate(&subject.kernel, "c", &arguments),
            _ => language.call(&subject.kernel, &arguments),
        }
    };
    let bytes = setup.bytes.to_string();
    let load = ["a", "b"].map(|name| format!("load({}, source);", language.out_argument(name)));
    let load = load.join(" ");
    let step = |index| {
        setup
            .step
            .replace("$CALL", &call(index))
            .replace(LOAD, &load)
            .replace("BYTES", &bytes)
            .replace("STEP", &format!("trip * {} + {index}", setup.unroll))
            + "\n"
    };
    let (mut first, mut last) = (setup.first.to_owned(), setup.last.to_owned());
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
        step: (0..setup.unroll).map(step).collect::<String>() + setup.after,
        setup: setup.clone(),
        first,
        last,
        sink: sink(variant, setup),
    })
}

/// What is stored at the end: of registers that are added to the first, unless a step is more than one instruction and
/// the assembler would leave out what only the others need.
fn sink(variant: &Variant, setup: &Setup) -> String {
    let Some(name) = written(variant, setup.chain) else {
        let stored = match variant.function.as_str() {
            // Not the last predicate, for which the assembler would make room in each step, in one language.
            "mbarrier_check_layout" => "shared_address(cursor)",
            _ => "fold(x)",
        };
        return stored.to_owned();
    };
    let count = match &variant.result {
        Some(Arg {
            ty: Type::Array { len, .. },
            ..
        }) if setup.step.contains(LOAD) => *len,
        _ => 1,
    };
    let folded = Vec::from_iter((0..count).map(|index| format!("fold({name}[{index}])")));
    folded.join(" ^ ")
}

/// The registers that every step writes, if it adds to them.
fn written(variant: &Variant, chain: Chain) -> Option<&str> {
    let accumulates = |arg: &&Arg| {
        matches!(arg.ty, Type::InOut { .. }) || chain == Chain::Accumulate && arg.name == "c"
    };
    let found = variant.args.iter().find(accumulates);
    found.map(|arg| arg.name.as_str())
}

/// What an argument needs to be declared before the loop.
fn declaration(arg: &Arg, variant: &Variant, language: &dyn Language) -> String {
    match &arg.ty {
        Type::Array { of, len } if arg.name.contains("coords") => {
            let mut values = vec![language.cast("zero", *of); *len];
            // Each warp has a tile of its own, along the last dimension; a column of pixels is an image.
            let extent = match is_im2col(variant) {
                true => 1,
                false => super::job::TILES[*len - 1][*len - 1],
            };
            values[*len - 1] = language.cast(&format!("tile * {extent}"), *of);
            language.array(&arg.name, *of, &values)
        }
        // The first pixel of the bounding box.
        Type::Array { of, len } if arg.name == "im2col_info" => {
            language.array(&arg.name, *of, &vec![language.cast("zero", *of); *len])
        }
        Type::Array { of, len } => {
            // Not twice the same, for which the compilers would copy registers, each in its own way, or share them.
            let first = match arg.name.as_str() {
                "b" => 16,
                "c" => 32,
                _ => 0,
            };
            let value = |i| language.cast(&format!("seed + {}", first + i), *of);
            let values = (0..*len).map(value);
            let values = Vec::from_iter(values);
            language.array(&arg.name, *of, &values)
        }
        Type::Out { of, len } => language.out_variable(&arg.name, *of, *len),
        Type::InOut { of, len } => language.out_variable(&arg.name, *of, Some(*len)),
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
        Type::Tag(tag) => language.tag(&tag.name),
        Type::Immediate { low, .. } => language.immediate(*low),
        Type::Pointer {
            space,
            mutable,
            to,
            len,
        } => {
            let base = match space {
                _ if !*chained && is_linked(subject, arg) => {
                    *chained = true;
                    "cursor".to_owned()
                }
                Space::Shared if is_replacement(subject) && index % 2 == 1 => "target".to_owned(),
                // Neighbouring steps use other places, or the assembler would drop all but one.
                Space::Shared if can_be_merged(subject) => {
                    format!("at({}, {})", shared_base(arg, subject), index % 2 * 512)
                }
                Space::Shared => shared_base(arg, subject).to_owned(),
                Space::Global if can_be_merged(subject) => {
                    format!("at(global, {})", index % 8 * 512)
                }
                // One of two places in turn, of which the assembler does not know that they differ: it would keep the
                // word that is replaced in a register from step to step. Lane 0 is the only one.
                Space::Global if is_replacement(subject) && index % 2 == 1 => "global".to_owned(),
                // All lanes give the same address, and one that is aligned.
                Space::Global
                    if ["tensormap", "applypriority", "discard"]
                        .iter()
                        .any(|start| subject.kernel.variant.function.starts_with(start)) =>
                {
                    "slab".to_owned()
                }
                Space::Global => "global".to_owned(),
                Space::Generic if is_generic_address(subject) => {
                    format!("at(global, {})", index % 8 * 512)
                }
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
            language.pointer(&base, [(*to, *len), (in_cpp, *len)], *mutable)
        }
        Type::Scalar(of) => {
            let first_value = setup.chain == Chain::Value && !*chained;
            if first_value {
                *chained = true;
                return language.cast("x", *of);
            }
            let value = match (&arg.ty, arg.name.as_str()) {
                // The descriptor of A; elsewhere `a` is a number.
                (Type::Scalar(Scalar::U64), "a") => "desc_a",
                (_, name) => scalar(name),
            };
            match setup.chain {
                Chain::Link(Link::Register) if !*chained => {
                    *chained = true;
                    language.linked(value, *of)
                }
                _ => language.cast(value, *of),
            }
        }
        Type::Array { .. } => arg.name.clone(),
        Type::InOut { .. } | Type::Out { .. } => language.out_argument(&arg.name),
    }
}

/// Whether the form does nothing when it follows itself.
fn can_be_merged(subject: &Subject) -> bool {
    let function = &subject.kernel.variant.function;
    let starts = ["prefetch", "st", "red_and", "red_or"];
    subject.setup.chain == Chain::Order && starts.iter().any(|start| function.starts_with(start))
}

fn is_replacement(subject: &Subject) -> bool {
    let function = &subject.kernel.variant.function;
    function.starts_with("tensormap_replace")
}

/// Whether the chain's link can change this address.
fn is_linked(subject: &Subject, arg: &Arg) -> bool {
    let Type::Pointer { space, .. } = arg.ty else {
        return false;
    };
    match subject.setup.chain {
        Chain::Link(Link::Shared) => space == Space::Shared,
        Chain::Link(Link::Global) => {
            space == Space::Global || is_generic_address(subject) && space == Space::Generic
        }
        _ => false,
    }
}

/// Whether a generic pointer is an address, and not a tensor map.
fn is_generic_address(subject: &Subject) -> bool {
    subject.kernel.variant.is_beyond() && !has_coordinates(subject)
}

/// Where the chain of addresses starts.
fn linked_base(subject: &Subject) -> Option<String> {
    let mut args = subject.kernel.variant.args.iter();
    let arg = args.find(|arg| is_linked(subject, arg))?;
    if subject.setup.chain == Chain::Link(Link::Global) {
        return Some("global".to_owned());
    }
    // Not the fixed address: the compilers follow this one into shared memory, and add 32 bits to it.
    let base = shared_base(arg, subject);
    Some(match base.strip_prefix("at(") {
        _ if base.contains("peer") => base.to_owned(),
        Some(rest) => format!("at(own_{rest}"),
        None => format!("own_{base}"),
    })
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
        (_, "dst_mem") if subject.kernel.family.name == "cp_async" => "at(target, lane * 16)",
        // Each lane has its own place.
        (_, "addr") if remote => "at(peer_target, lane * 16)",
        (_, "addr") => "at(target, lane * 16)",
        (_, "src_mem" | "src") => "source",
        (_, "smem_ptr") => "at(source, lane * 16)",
        (_, "gmem_ptr") => "at(target, lane * 16)",
        (_, "tm_addr") => "source",
        _ if remote => "peer_target",
        _ => "target",
    }
}

/// How many coordinates the form takes.
fn coordinates(variant: &Variant) -> Option<usize> {
    variant.args.iter().find_map(|arg| match &arg.ty {
        Type::Array { len, .. } if arg.name.contains("coords") => Some(*len),
        _ => None,
    })
}

fn has_coordinates(subject: &Subject) -> bool {
    coordinates(subject.kernel.variant).is_some()
}

fn is_im2col(variant: &Variant) -> bool {
    variant.opcode().contains("im2col")
}

/// The tensor map for the coordinates that the form takes.
fn map_base(subject: &Subject) -> String {
    let variant = subject.kernel.variant;
    let map = super::job::map_of(coordinates(variant).unwrap_or(1), is_im2col(variant));
    format!("at(maps, {})", 128 * map)
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
        "barrier" => "1",
        "threads" => "block_threads",
        "nanoseconds" | "ignore_src" => "zero",
        "src_size" => "4",
        "primary_size" => "1024",
        "total_size" => "4096",
        "access_property" => "policy",
        // 1.0
        "fraction" => "0x3f800000",
        // Of each four elements the first and the second.
        "metadata" | "sp_meta" => "0x44444444",
        "b_desc" => "desc_b",
        "scale_d" => "one",
        "b_reg" => "zero",
        "c_reg" => "select",
        _ => "seed",
    }
}
