//! Which kinds, collector buffers and scales go together, and how the instruction spells them.

use core::marker::PhantomData;

use crate::asm::text;
use crate::sealed::Sealed;
use crate::tags::*;
use crate::target::{
    Has, Target, sm_100a_103a_107a_110a, sm_100a_110a, sm_100f_103f_107f, sm_100f_103f_107f_110f,
};

/// Element types that are multiplied without scales: `kind_f16`, `kind_tf32`, `kind_f8f6f4` and `kind_i8`.
#[diagnostic::on_unimplemented(
    message = "this form of `tcgen05.mma` has no `{Self}`",
    label = "no such kind",
    note = "there is: kind_f16 | kind_tf32 | kind_f8f6f4, and kind_i8 on sm_100a and sm_110a"
)]
pub trait Kind: Sealed {
    #[doc(hidden)]
    const KIND: u128;
}

/// Kinds whose D can be scaled before the product is added: `kind_f16` and `kind_tf32`.
#[diagnostic::on_unimplemented(
    message = "`tcgen05.mma` has no `scale_input_d` for `{Self}`",
    label = "no such kind",
    note = "there is: kind_f16 | kind_tf32, on sm_100, sm_103 and sm_107"
)]
pub trait ScalesInputD: Kind {}

macro_rules! kinds {
    ($($kind:ident $text:literal $target:ident;)*) => {$(
        impl Kind for $kind
        where
            for<'a> Target: Has<$target>,
        {
            const KIND: u128 = text($text);
        }
    )*};
}

kinds! {
    kind_f16 "f16" sm_100f_103f_107f_110f;
    kind_tf32 "tf32" sm_100f_103f_107f_110f;
    kind_f8f6f4 "f8f6f4" sm_100f_103f_107f_110f;
    kind_i8 "i8" sm_100a_110a;
}

macro_rules! scales_input_d {
    ($($kind:ident)*) => {$(
        impl ScalesInputD for $kind
        where
            for<'a> Target: Has<sm_100f_103f_107f> + Has<sm_100f_103f_107f_110f>
        {}
    )*};
}

scales_input_d! { kind_f16 kind_tf32 }

/// `(kind, scale_vec)` of sparse multiplications with block scales.
#[diagnostic::on_unimplemented(
    message = "`tcgen05.mma.sp` has no block scales for `{Self}`",
    label = "no such kind and scale vector",
    note = "there is: (kind_mxf8f6f4, scale_vec_1x), (kind_mxf4 | kind_mxf4nvf4, scale_vec_2x) and (kind_mxf4nvf4, scale_vec_4x)"
)]
pub trait BlockScale: Sealed {
    #[doc(hidden)]
    const KIND: u128;
    #[doc(hidden)]
    const SCALE: u128;
}

macro_rules! block_scales {
    ($($kind:ident $text:literal $scale:ident $scale_text:literal;)*) => {$(
        impl BlockScale for ($kind, $scale)
        where
            for<'a> Target: Has<sm_100a_103a_107a_110a>,
        {
            const KIND: u128 = text($text);
            const SCALE: u128 = text($scale_text);
        }
    )*};
}

block_scales! {
    kind_mxf8f6f4 "mxf8f6f4" scale_vec_1x "scale_vec::1X";
    kind_mxf4 "mxf4" scale_vec_2x "scale_vec::2X";
    kind_mxf4nvf4 "mxf4nvf4" scale_vec_2x "scale_vec::2X";
    kind_mxf4nvf4 "mxf4nvf4" scale_vec_4x "scale_vec::4X";
}

/// A tag that says how a collector buffer is used.
pub trait Collector: Sealed {
    #[doc(hidden)]
    const USAGE: u128;
}

macro_rules! collectors {
    ($($(#[$attribute:meta])* $group:ident: $($tag:ident $text:literal)*;)*) => {$(
        $(#[$attribute])*
        pub trait $group: Collector {}
        $(
            impl $group for $tag {}
            impl Collector for $tag {
                const USAGE: u128 = text($text);
            }
        )*
    )*};
}

collectors! {
    /// How the buffer of A is used: `collector_a_fill`, `_use`, `_lastuse` or `_discard`.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` does not say how the collector buffer of A is used",
        label = "expected `collector_a_…`",
        note = "there is: collector_a_fill | collector_a_use | collector_a_lastuse | collector_a_discard"
    )]
    CollectorA:
        collector_a_fill "a::fill" collector_a_use "a::use"
        collector_a_lastuse "a::lastuse" collector_a_discard "a::discard";
    /// How a buffer of B is used: `collector_b0_fill` to `collector_b3_discard`.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` does not say how a collector buffer of B is used",
        label = "expected `collector_b0_…` to `collector_b3_…`",
        note = "each of the buffers b0 to b3 has `_fill`, `_use`, `_lastuse` and `_discard`"
    )]
    CollectorB:
        collector_b0_fill "b0::fill" collector_b0_use "b0::use"
        collector_b0_lastuse "b0::lastuse" collector_b0_discard "b0::discard"
        collector_b1_fill "b1::fill" collector_b1_use "b1::use"
        collector_b1_lastuse "b1::lastuse" collector_b1_discard "b1::discard"
        collector_b2_fill "b2::fill" collector_b2_use "b2::use"
        collector_b2_lastuse "b2::lastuse" collector_b2_discard "b2::discard"
        collector_b3_fill "b3::fill" collector_b3_use "b3::use"
        collector_b3_lastuse "b3::lastuse" collector_b3_discard "b3::discard";
}

/// How the buffer of A is used when A is shifted, which needs it: `collector_a_lastuse` or `collector_a_discard`.
#[diagnostic::on_unimplemented(
    message = "`.ashift` cannot be combined with `{Self}`",
    label = "no such use of the buffer",
    note = "there is: collector_a_lastuse | collector_a_discard"
)]
pub trait CollectorAshift: CollectorA {}
impl CollectorAshift for collector_a_lastuse {}
impl CollectorAshift for collector_a_discard {}

/// `cta_group_1` or `cta_group_2`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no group of CTAs",
    label = "expected `cta_group_1` or `cta_group_2`"
)]
pub trait CtaGroup: Sealed {
    #[doc(hidden)]
    const CTAS: u32;
}

impl CtaGroup for cta_group_1 {
    const CTAS: u32 = 1;
}
impl CtaGroup for cta_group_2 {
    const CTAS: u32 = 2;
}

/// What the text of an instruction depends on.
pub trait Form {
    const KIND: u128;
    const CTAS: u32;
    const COLLECTOR: u128;
    const SCALE: u128 = 0;
    const ASHIFT: u128 = 0;
    /// What follows `enable_input_d`.
    const SCALE_INPUT_D: u128 = 0;
}

/// A multiplication of kind `K` with collector usage `C`, for `G`.
pub struct Plain<K, G, C>(PhantomData<(K, G, C)>);
/// [`Plain`] with A shifted.
pub struct Shifted<F>(PhantomData<F>);
/// `F` with `scale_input_d`.
pub struct InputScaled<F, const SCALE: i32>(PhantomData<F>);
/// A multiplication with block scales.
pub struct BlockScaled<K, G, C>(PhantomData<(K, G, C)>);

impl<K: Kind, G: CtaGroup, C: Collector> Form for Plain<K, G, C> {
    const KIND: u128 = K::KIND;
    const CTAS: u32 = G::CTAS;
    const COLLECTOR: u128 = C::USAGE;
}

impl<F: Form> Form for Shifted<F> {
    const KIND: u128 = F::KIND;
    const CTAS: u32 = F::CTAS;
    const COLLECTOR: u128 = F::COLLECTOR;
    const ASHIFT: u128 = text(".ashift");
}

impl<F: Form, const SCALE: i32> Form for InputScaled<F, SCALE> {
    const KIND: u128 = F::KIND;
    const CTAS: u32 = F::CTAS;
    const COLLECTOR: u128 = F::COLLECTOR;
    const ASHIFT: u128 = F::ASHIFT;
    const SCALE_INPUT_D: u128 = {
        assert!(
            SCALE >= 0 && SCALE <= 15,
            "`scale_input_d` must be from 0 to 15"
        );
        let [tens, ones] = [SCALE as u8 / 10, SCALE as u8 % 10];
        let digits = match tens {
            0 => [b'0' + ones, 0],
            _ => [b'0' + tens, b'0' + ones],
        };
        text(", ") | (u16::from_le_bytes(digits) as u128) << 16
    };
}

impl<K: BlockScale, G: CtaGroup, C: Collector> Form for BlockScaled<K, G, C> {
    const KIND: u128 = K::KIND;
    const CTAS: u32 = G::CTAS;
    const COLLECTOR: u128 = C::USAGE;
    const SCALE: u128 = K::SCALE;
}
