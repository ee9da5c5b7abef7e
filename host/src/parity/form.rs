//! One variant of `cuda::ptx` with everything that its template leaves open decided.

use super::headers::{Overload, Variant};
use anyhow::{Context, Result, bail};

/// A variant and what each argument of a call to it is.
#[derive(Clone, Debug)]
pub struct Form<'h> {
    /// The overload.
    pub overload: &'h Overload,
    /// The instruction.
    pub variant: &'h Variant,
    /// One per parameter.
    pub slots: Vec<Slot>,
    /// What the call returns, if anything.
    pub result: Option<Scalar>,
    /// Template arguments that the call must name because no argument shows them.
    pub template: Vec<Scalar>,
}

/// What stands for one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A tag constant, as `sem_release`.
    Tag(String),
    /// A compile-time number.
    Immediate,
    /// A value.
    Value(Scalar),
    /// An array of values.
    Array(Scalar, usize),
    /// A pointer, with its type.
    Pointer(String),
    /// A value, or an array of them, that the call writes.
    Output(Scalar, Option<usize>),
}

/// A value type of C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its name in the C++ twin.
    pub name: &'static str,
    /// The type of the kernel parameters that carry it.
    pub part: &'static str,
    /// How many of them there are.
    pub parts: usize,
}

/// C++ name, name in the twin, kernel parameter, number of parameters. A template parameter stands for the plain
/// integer of its size; `bits128` and `bits256` are declared in the twin.
const SCALARS: &[(&str, Scalar)] = &[
    scalar("bool", "bool", "uint32_t", 1),
    scalar("float", "float", "float", 1),
    scalar("double", "double", "double", 1),
    scalar("int16_t", "int16_t", "int16_t", 1),
    scalar("int32_t", "int32_t", "int32_t", 1),
    scalar("int64_t", "int64_t", "int64_t", 1),
    scalar("uint8_t", "uint8_t", "uint8_t", 1),
    scalar("uint16_t", "uint16_t", "uint16_t", 1),
    scalar("uint32_t", "uint32_t", "uint32_t", 1),
    scalar("uint64_t", "uint64_t", "uint64_t", 1),
    scalar("__half", "__half", "uint16_t", 1),
    scalar("__half2", "__half2", "uint32_t", 1),
    scalar("__nv_bfloat16", "__nv_bfloat16", "uint16_t", 1),
    scalar("__nv_bfloat162", "__nv_bfloat162", "uint32_t", 1),
    scalar("Tp", "uint32_t", "uint32_t", 1),
    scalar("S32", "int32_t", "int32_t", 1),
    scalar("S64", "int64_t", "int64_t", 1),
    scalar("U32", "uint32_t", "uint32_t", 1),
    scalar("U64", "uint64_t", "uint64_t", 1),
    scalar("B8", "uint8_t", "uint8_t", 1),
    scalar("B16", "uint16_t", "uint16_t", 1),
    scalar("B32", "uint32_t", "uint32_t", 1),
    scalar("B64", "uint64_t", "uint64_t", 1),
    scalar("B128", "bits128", "uint64_t", 2),
    scalar("B256", "bits256", "uint64_t", 4),
];

const fn scalar(
    cxx: &'static str,
    name: &'static str,
    part: &'static str,
    parts: usize,
) -> (&'static str, Scalar) {
    (cxx, Scalar { name, part, parts })
}

/// Integer types whose names end in `_t` like those of tags.
const INTEGERS: &[&str] = &[
    "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
    "size_t",
];

impl<'h> Form<'h> {
    /// Decides tags and types from the conditions around the variant.
    ///
    /// # Errors
    ///
    /// A type or a condition that is not known.
    pub fn new(overload: &'h Overload, variant: &'h Variant) -> Result<Self> {
        let conditions = Conditions::parse(variant)?;
        let slot = |parameter: &super::headers::Parameter| {
            conditions
                .slot(&parameter.ty, &parameter.name)
                .with_context(|| {
                    format!(
                        "{}:{}: the parameter `{parameter}` of `{}`",
                        overload.file, overload.line, overload.function
                    )
                })
        };
        let slots = overload
            .parameters
            .iter()
            .map(slot)
            .collect::<Result<Vec<_>>>()?;
        let result = match overload.returns.as_str() {
            "void" => None,
            ty => Some(conditions.scalar(ty)?),
        };
        let types = overload
            .template
            .iter()
            .filter_map(|parameter| parameter.strip_prefix("typename "));
        let hidden = types.filter(|ty| {
            !ty.starts_with('=') && !overload.parameters.iter().any(|it| has_word(&it.ty, ty))
        });
        let template = hidden
            .map(|ty| conditions.scalar(ty))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            overload,
            variant,
            slots,
            result,
            template,
        })
    }

    /// The tag constants among the arguments, in order.
    pub fn tags(&self) -> Vec<&str> {
        let mut tags = Vec::new();
        for slot in &self.slots {
            if let Slot::Tag(tag) = slot {
                tags.push(tag.as_str());
            }
        }
        tags
    }
}

/// What `if constexpr` says about the variant: parameter → constant, and the size of a template type.
struct Conditions<'v> {
    tags: Vec<(&'v str, &'v str)>,
    size: Option<u32>,
}

impl<'v> Conditions<'v> {
    fn parse(variant: &'v Variant) -> Result<Self> {
        let mut conditions = Self {
            tags: Vec::new(),
            size: None,
        };
        for condition in variant
            .conditions
            .iter()
            .flat_map(|condition| condition.split(" && "))
        {
            let Some((left, right)) = condition.split_once(" == ") else {
                bail!("expected a condition such as `scope == scope_cta`, found `{condition}`");
            };
            match left.strip_prefix("sizeof(") {
                Some(_) => {
                    conditions.size = Some(
                        right
                            .parse()
                            .with_context(|| format!("the size in `{condition}`"))?,
                    )
                }
                None => conditions.tags.push((left, right)),
            }
        }
        Ok(conditions)
    }

    fn slot(&self, ty: &str, name: &str) -> Result<Slot> {
        if let Some((element, length)) = ty.split_once("(&)[") {
            let length = length
                .trim_end_matches(']')
                .parse()
                .with_context(|| format!("the length in `{ty}`"))?;
            return Ok(match element.strip_prefix("const ") {
                Some(element) => Slot::Array(self.scalar(element)?, length),
                None => Slot::Output(self.scalar(element)?, Some(length)),
            });
        }
        if let Some(pointee) = ty.strip_suffix('*') {
            let (constant, pointee) = pointee
                .strip_prefix("const ")
                .map_or(("", pointee), |rest| ("const ", rest));
            let pointee = if pointee == "void" {
                "void"
            } else {
                self.scalar(pointee)?.name
            };
            return Ok(Slot::Pointer(format!("{constant}{pointee}*")));
        }
        if let Some(referent) = ty.strip_suffix('&') {
            return Ok(match referent.strip_prefix("const ") {
                Some(referent) => Slot::Value(self.scalar(referent)?),
                None => Slot::Output(self.scalar(referent)?, None),
            });
        }
        if ty.starts_with("n32_t<") {
            return Ok(Slot::Immediate);
        }
        if ty.ends_with("_t") && !INTEGERS.contains(&ty) {
            return Ok(Slot::Tag(ty[..ty.len() - 2].to_owned()));
        }
        if ty.ends_with('>') {
            let tag = self.tags.iter().find(|(parameter, _)| *parameter == name);
            let (_, tag) = tag.with_context(|| {
                format!("expected a condition on `{name}` around the instruction")
            })?;
            return Ok(Slot::Tag((*tag).to_owned()));
        }
        Ok(Slot::Value(self.scalar(ty)?))
    }

    fn scalar(&self, ty: &str) -> Result<Scalar> {
        // The one template type that has no size in its name.
        let ty = match (ty, self.size) {
            ("Type", Some(4)) => "B32",
            ("Type", Some(8)) => "B64",
            _ => ty,
        };
        let known = SCALARS.iter().find(|(name, _)| *name == ty);
        let (_, scalar) = known.with_context(|| format!("expected a known type, found `{ty}`"))?;
        Ok(*scalar)
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        .any(|it| it == word)
}
