//! The signature of a Rust function, over all variants that it stands for.

use anyhow::{Result, bail};

use crate::spec::{Arg, Overload, Scalar, Type, Variant};

/// Names of type parameters and of array lengths.
const TYPES: [&str; 6] = ["T", "U", "V", "W", "X", "Y"];
pub(super) const LENGTHS: [&str; 3] = ["N", "M", "K"];

/// What the elements of an argument are, over all variants of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// One type.
    Fixed(Scalar),
    /// Behind a pointer: whatever it is, the instruction sees only an address.
    Any(&'static str),
    /// Any type of this size; the instruction sees its bits.
    Bits(&'static str, Scalar),
    /// Any type of several sizes; the size selects the variant.
    Sized(&'static str),
    /// One of several types; the type selects the variant.
    Selected(&'static str),
}

/// How long an array argument is, over all variants of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    None,
    Fixed(usize),
    Selected(&'static str),
}

/// An argument or the result, over all variants of a function.
pub(super) struct Position<'a> {
    pub arg: &'a Arg,
    pub element: Element,
    pub length: Length,
}

/// The signature of a function, and what selects a variant.
pub(super) struct Shape<'a> {
    pub args: Vec<Position<'a>>,
    pub result: Option<Position<'a>>,
    /// Indices of the tags that differ.
    pub tags: Vec<usize>,
    /// Type parameters and their bounds, in order.
    pub types: Vec<(&'static str, Element)>,
    /// Length parameters, in order.
    pub lengths: Vec<&'static str>,
}

/// The scalar that an argument is made of, or points to.
pub(super) fn scalar_of(ty: &Type) -> Option<Scalar> {
    match ty {
        Type::Tag(_) | Type::Immediate { .. } => None,
        Type::Scalar(of)
        | Type::Array { of, .. }
        | Type::InOut { of, .. }
        | Type::Out { of, .. } => Some(*of),
        Type::Pointer { to, .. } => Some(*to),
    }
}

pub(super) fn length_of(ty: &Type) -> Option<usize> {
    match ty {
        Type::Array { len, .. } | Type::InOut { len, .. } => Some(*len),
        Type::Out { len, .. } => *len,
        _ => None,
    }
}

impl<'a> Shape<'a> {
    pub fn new(overload: &'a Overload) -> Result<Self> {
        let first = &overload.variants[0];
        let mut shape = Shape {
            args: Vec::new(),
            result: None,
            tags: Vec::new(),
            types: Vec::new(),
            lengths: Vec::new(),
        };
        let mut columns = Columns::default();
        for (index, arg) in first.args.iter().enumerate() {
            let column: Vec<&Type> = overload
                .variants
                .iter()
                .map(|v| &v.args[index].ty)
                .collect();
            let kind = std::mem::discriminant(&arg.ty);
            if column.iter().any(|ty| std::mem::discriminant(*ty) != kind) {
                bail!(
                    "{}: forms of `{}` differ in what kind of argument `{}` is",
                    first.form.at,
                    overload.rust_name,
                    arg.name
                );
            }
            if matches!(arg.ty, Type::Tag(_)) && column.iter().any(|ty| **ty != arg.ty) {
                shape.tags.push(index);
            }
            let position = shape.position(arg, &column, &mut columns);
            shape.args.push(position);
        }
        if let Some(result) = &first.result {
            let same = |variant: &Variant| {
                variant
                    .result
                    .as_ref()
                    .map(|result| std::mem::discriminant(&result.ty))
                    == Some(std::mem::discriminant(&result.ty))
            };
            let points = matches!(
                result.ty,
                Type::Pointer {
                    to: Scalar::Any,
                    ..
                }
            );
            if let (true, Some((_, first))) = (points, shape.types.first()) {
                // It points to what the first pointer points to.
                shape.result = Some(Position {
                    arg: result,
                    element: *first,
                    length: Length::None,
                });
            } else if overload.variants.iter().all(same) {
                let column: Vec<&Type> = overload
                    .variants
                    .iter()
                    .filter_map(|variant| variant.result.as_ref().map(|result| &result.ty))
                    .collect();
                shape.result = Some(shape.position(result, &column, &mut columns));
            }
        }
        Ok(shape)
    }

    fn position(&mut self, arg: &'a Arg, column: &[&Type], columns: &mut Columns) -> Position<'a> {
        let scalars: Vec<Scalar> = column.iter().filter_map(|ty| scalar_of(ty)).collect();
        let lengths: Vec<usize> = column.iter().filter_map(|ty| length_of(ty)).collect();
        let element = match scalars.as_slice() {
            [] => Element::Fixed(Scalar::Any),
            [first, rest @ ..] => {
                let one = rest.iter().all(|other| other == first);
                let bits = scalars.iter().all(|of| matches!(of, Scalar::Bits(_)));
                if one && *first == Scalar::Any {
                    let name = TYPES[self.types.len()];
                    self.types.push((name, Element::Any(name)));
                    Element::Any(name)
                } else if one && !bits {
                    Element::Fixed(*first)
                } else {
                    match columns.types.iter().find(|(known, _)| *known == scalars) {
                        Some((_, element)) => *element,
                        None => {
                            let name = TYPES[self.types.len()];
                            let element = match (one, bits) {
                                (true, _) => Element::Bits(name, *first),
                                (false, true) => Element::Sized(name),
                                (false, false) => Element::Selected(name),
                            };
                            columns.types.push((scalars.clone(), element));
                            self.types.push((name, element));
                            element
                        }
                    }
                }
            }
        };
        let length = match lengths.as_slice() {
            [] => Length::None,
            [first, rest @ ..] if rest.iter().all(|other| other == first) => Length::Fixed(*first),
            _ => match columns.lengths.iter().find(|(known, _)| *known == lengths) {
                Some((_, length)) => *length,
                None => {
                    let name = LENGTHS[self.lengths.len()];
                    self.lengths.push(name);
                    columns
                        .lengths
                        .push((lengths.clone(), Length::Selected(name)));
                    Length::Selected(name)
                }
            },
        };
        Position {
            arg,
            element,
            length,
        }
    }

    /// The generic parameters of the function.
    pub fn generics(&self) -> String {
        let mut generics: Vec<String> = self
            .tags
            .iter()
            .map(|&index| camel_case(&self.args[index].arg.name))
            .collect();
        generics.extend(self.types.iter().map(|(name, element)| match element {
            Element::Bits(_, of) => format!("{name}: Value<Bits = {}>", of.rust()),
            Element::Any(_) | Element::Fixed(_) => name.to_string(),
            // The trait that selects the variant is a kind of `Value` itself.
            Element::Selected(_) if self.selectors().0 == *name => name.to_string(),
            Element::Sized(_) | Element::Selected(_) => format!("{name}: Value"),
        }));
        generics.extend(
            self.lengths
                .iter()
                .map(|name| format!("const {name}: usize")),
        );
        generics.extend(self.immediates());
        angle(&generics)
    }

    pub fn immediates(&self) -> impl Iterator<Item = String> {
        self.args
            .iter()
            .filter(|position| matches!(position.arg.ty, Type::Immediate { .. }))
            .map(|position| format!("const {}: i32", position.arg.name.to_uppercase()))
    }

    /// The parameters of the function.
    pub fn params(&self) -> String {
        let types = self.param_types();
        let params: Vec<String> = self
            .args
            .iter()
            .zip(types)
            .enumerate()
            .map(|(index, (position, ty))| {
                // The type of a tag or an immediate says all; the value is nothing.
                let unused = match position.arg.ty {
                    Type::Tag(_) => !self.tags.contains(&index),
                    Type::Immediate { .. } => true,
                    _ => false,
                };
                let underscore = if unused { "_" } else { "" };
                format!("{underscore}{}: {ty}", position.arg.name)
            })
            .collect();
        params.join(", ")
    }

    /// The types of the parameters.
    pub fn param_types(&self) -> Vec<String> {
        let ty = |(index, position): (usize, &Position)| match &position.arg.ty {
            Type::Tag(_) if self.tags.contains(&index) => camel_case(&position.arg.name),
            Type::Tag(tag) => tag.name.clone(),
            Type::Immediate { .. } => format!("n32<{}>", position.arg.name.to_uppercase()),
            _ => position.public_type(),
        };
        self.args.iter().enumerate().map(ty).collect()
    }

    /// Whether a variant must be selected by anything.
    pub fn selects(&self) -> bool {
        let selecting = |(_, element): &(_, Element)| {
            matches!(element, Element::Sized(_) | Element::Selected(_))
        };
        !self.tags.is_empty() || !self.lengths.is_empty() || self.types.iter().any(selecting)
    }

    /// The types that select a variant, as the function names them: the first one implements the
    /// trait, the others are its parameters.
    pub fn selectors(&self) -> (String, Vec<String>) {
        let tags: Vec<String> = self
            .tags
            .iter()
            .map(|&index| camel_case(&self.args[index].arg.name))
            .collect();
        let types = self
            .types
            .iter()
            .filter_map(|(name, element)| match element {
                Element::Sized(_) => Some(format!("{name}::Bits")),
                Element::Selected(_) => Some(name.to_string()),
                _ => None,
            });
        let mut rest: Vec<String> = types.collect();
        let mut lengths: Vec<String> = self.lengths.iter().map(|name| name.to_string()).collect();
        if !tags.is_empty() {
            rest.append(&mut lengths);
            return (tuple(&tags), rest);
        }
        if rest.is_empty() {
            let array = self
                .first_array()
                .map_or("()".to_string(), Position::array_type);
            return (array, lengths.split_off(self.implied_lengths()));
        }
        let first = rest.remove(0);
        rest.append(&mut lengths);
        (first, rest)
    }

    /// How many lengths the type that implements the trait says, if that is an array: one, unless
    /// other arguments have that length too, for which the trait needs it as a parameter.
    pub fn implied_lengths(&self) -> usize {
        let first = self.lengths.first();
        let uses = |position: &&Position| match position.length {
            Length::Selected(name) => Some(&name) == first,
            _ => false,
        };
        usize::from(self.args.iter().filter(uses).count() == 1)
    }

    /// The array whose length implements the trait, if nothing else does.
    fn first_array(&self) -> Option<&Position<'a>> {
        self.args
            .iter()
            .find(|position| matches!(position.length, Length::Selected(_)))
    }

    /// The parameters of the trait, declared.
    pub fn trait_parameters(&self) -> Vec<String> {
        let (_, rest) = self.selectors();
        rest.iter()
            .map(|name| match name.strip_suffix("::Bits") {
                Some(name) => format!("{name}: Value"),
                None if LENGTHS.contains(&name.as_str()) => format!("const {name}: usize"),
                None => format!("{name}: Value"),
            })
            .collect()
    }
}

/// The columns of types and lengths that have a parameter.
#[derive(Default)]
struct Columns {
    types: Vec<(Vec<Scalar>, Element)>,
    lengths: Vec<(Vec<usize>, Length)>,
}

impl Position<'_> {
    /// The array that it is, or that it is a reference to, in the trait.
    fn array_type(&self) -> String {
        self.register_type().trim_start_matches("&mut ").to_string()
    }

    /// Its type in the function's signature.
    pub fn public_type(&self) -> String {
        self.type_of(match self.element {
            Element::Fixed(of) => of.rust(),
            Element::Any(name)
            | Element::Bits(name, _)
            | Element::Sized(name)
            | Element::Selected(name) => name,
        })
    }

    /// Its type in the trait, where a value of any type is its bits.
    pub fn register_type(&self) -> String {
        let name;
        self.type_of(match self.element {
            Element::Any(_) => "()",
            Element::Fixed(of) | Element::Bits(_, of) => of.rust(),
            Element::Sized(parameter) => {
                name = format!("{parameter}::Bits");
                &name
            }
            Element::Selected(name) => name,
        })
    }

    fn type_of(&self, element: &str) -> String {
        let array = match self.length {
            Length::None => element.to_string(),
            Length::Fixed(len) => format!("[{element}; {len}]"),
            Length::Selected(name) => format!("[{element}; {name}]"),
        };
        match &self.arg.ty {
            Type::Pointer { mutable, .. } => format!("{}{element}", pointer(*mutable)),
            Type::InOut { .. } | Type::Out { .. } => format!("&mut {array}"),
            _ => array,
        }
    }

    /// Whether the instruction sees bits where the caller sees a type.
    pub fn is_converted(&self) -> bool {
        matches!(self.element, Element::Bits(..) | Element::Sized(_))
    }

    /// The argument as the trait takes it.
    pub fn converted(&self) -> String {
        let name = &self.arg.name;
        match (&self.arg.ty, self.element) {
            (Type::Immediate { .. }, _) => format!("_{name}"),
            (Type::Pointer { .. }, Element::Any(_)) => format!("{name}.cast()"),
            _ if !self.is_converted() => name.clone(),
            (Type::Pointer { .. }, _) => format!("{name}.cast()"),
            (Type::Array { .. }, _) => format!("array_to_bits({name})"),
            (Type::InOut { .. } | Type::Out { .. }, _) => format!("array_bits_mut({name})"),
            _ => format!("{name}.to_bits()"),
        }
    }
}

pub(super) fn angle(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        parts => format!("<{}>", parts.join(", ")),
    }
}

pub(super) fn tuple(types: &[String]) -> String {
    match types {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

pub(super) fn pointer(mutable: bool) -> &'static str {
    if mutable { "*mut " } else { "*const " }
}

pub(super) fn rust_type(ty: &Type) -> String {
    match ty {
        Type::Tag(tag) => tag.name.clone(),
        Type::Immediate { .. } => "i32".to_string(),
        Type::Scalar(of) => of.rust().to_string(),
        Type::Pointer { mutable, to, .. } => format!("{}{}", pointer(*mutable), to.rust()),
        Type::Array { of, len } => format!("[{}; {len}]", of.rust()),
        Type::Out { of, len: None } => format!("&mut {}", of.rust()),
        Type::InOut { of, len } | Type::Out { of, len: Some(len) } => {
            format!("&mut [{}; {len}]", of.rust())
        }
    }
}

pub(super) fn result_type(result: Option<&Arg>) -> String {
    result.map_or("()".to_string(), |result| rust_type(&result.ty))
}

pub(super) fn arrow(result: &str) -> String {
    match result {
        "()" => String::new(),
        ty => format!(" -> {ty}"),
    }
}

/// `mbarrier_arrive` → `MbarrierArrive`.
pub(super) fn camel_case(name: &str) -> String {
    name.split('_')
        .map(|part| {
            let mut chars = part.chars();
            match chars.next() {
                Some(first) => first.to_ascii_uppercase().to_string() + chars.as_str(),
                None => String::new(),
            }
        })
        .collect()
}
