//! The bound that keeps the traits which select an instruction closed.

/// Implemented by tags and by tuples of selecting types, and by nothing outside this crate.
pub trait Sealed: Sized {}

macro_rules! seal_tuples {
    ($(($($element:ident),+))*) => {
        $(impl<$($element: Sealed),+> Sealed for ($($element,)+) {})*
    };
}

seal_tuples! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }
