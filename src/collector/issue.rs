//! The inline assembly, once for each number of operands.

// Build targets that lack the instructions have no bodies, and off the GPU `asm!` is a panic.
#![allow(unused, unreachable_code)]

use super::form::{CtaGroup, Form};
use crate::asm::asm;
use crate::sealed::Sealed;
use crate::tags::{cta_group_1, cta_group_2};
use crate::target::{lacking, on_target, ptx_86, sm_100f_103f_107f_110f};

/// The operands that all forms have, apart from A.
#[derive(Clone, Copy)]
pub struct Operands {
    pub d_tmem: u32,
    pub b_desc: u64,
    pub idesc: u32,
    pub enable_input_d: bool,
}

/// Where A is: in shared memory, which a descriptor describes (`u64`), or at an address in tensor memory (`u32`).
#[diagnostic::on_unimplemented(
    message = "A of `tcgen05.mma` cannot be `{Self}`",
    label = "no such place of A",
    note = "A is `u64`, the descriptor of a matrix in shared memory, or `u32`, an address in tensor memory"
)]
pub trait Source: Sealed {
    #[doc(hidden)]
    unsafe fn dense<F: Form>(self, operands: Operands) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn dense_4<F: Form>(self, operands: Operands, lanes: [u32; 4]) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn dense_8<F: Form>(self, operands: Operands, lanes: [u32; 8]) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn sparse<F: Form>(self, operands: Operands, sp_info_tmem: u32) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn sparse_4<F: Form>(self, operands: Operands, sp_info_tmem: u32, lanes: [u32; 4]) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn sparse_8<F: Form>(self, operands: Operands, sp_info_tmem: u32, lanes: [u32; 8]) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn sparse_scaled<F: Form>(
        self,
        operands: Operands,
        sp_info_tmem: u32,
        scale_a_tmem: u32,
        scale_b_tmem: u32,
    ) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn ws_sparse<F: Form>(self, operands: Operands, sp_info_tmem: u32) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn ws_sparse_masked<F: Form>(self, operands: Operands, sp_info_tmem: u32, mask: u64) {
        lacking()
    }
}

/// The mask of lanes of D that `G` has.
#[diagnostic::on_unimplemented(
    message = "`disable_output_lane` cannot be `{Self}` with `{G}`",
    label = "no such mask",
    note = "it is `[u32; 4]` with `cta_group_1`, and `[u32; 8]` with `cta_group_2`"
)]
pub trait Lanes<G> {
    #[doc(hidden)]
    unsafe fn dense<F: Form>(self, a: impl Source, operands: Operands);
    #[doc(hidden)]
    unsafe fn sparse<F: Form>(self, a: impl Source, operands: Operands, sp_info_tmem: u32);
}

impl Lanes<cta_group_1> for [u32; 4] {
    #[inline(always)]
    unsafe fn dense<F: Form>(self, a: impl Source, operands: Operands) {
        unsafe { a.dense_4::<F>(operands, self) }
    }
    #[inline(always)]
    unsafe fn sparse<F: Form>(self, a: impl Source, operands: Operands, sp_info_tmem: u32) {
        unsafe { a.sparse_4::<F>(operands, sp_info_tmem, self) }
    }
}

impl Lanes<cta_group_2> for [u32; 8] {
    #[inline(always)]
    unsafe fn dense<F: Form>(self, a: impl Source, operands: Operands) {
        unsafe { a.dense_8::<F>(operands, self) }
    }
    #[inline(always)]
    unsafe fn sparse<F: Form>(self, a: impl Source, operands: Operands, sp_info_tmem: u32) {
        unsafe { a.sparse_8::<F>(operands, sp_info_tmem, self) }
    }
}

/// The instruction: `$mode` stands in front of `.cta_group`, `$modifiers` behind the kind, `$information` behind B,
/// `$between` in front of `enable_input_d`, and `$last` behind it.
macro_rules! issue {
    (
        $form:ident, $operands:ident, $class:ident $a:ident $place:literal;
        $mode:literal $modifiers:literal $information:literal $between:literal $last:literal;
        $($more:tt)*
    ) => {
        unsafe {
            asm!(
                "{{",
                ".reg .pred PRED_enable_input_d;",
                "setp.ne.b32 PRED_enable_input_d, {enable_input_d}, 0;",
                concat!(
                    "tcgen05.mma", $mode, ".cta_group::{ctas}.kind::<text {kind}>", $modifiers,
                    ".collector::<text {collector}> [{d_tmem}], ", $place, ", {b_desc}", $information,
                    ", {idesc}", $between, ", PRED_enable_input_d", $last, ";"
                ),
                "}}",
                d_tmem = in(reg32) $operands.d_tmem,
                a = in($class) $a,
                b_desc = in(reg64) $operands.b_desc,
                idesc = in(reg32) $operands.idesc,
                enable_input_d = in(reg32) u32::from($operands.enable_input_d),
                $($more)*
                ctas = const $form::CTAS,
                kind = const $form::KIND,
                collector = const $form::COLLECTOR,
                options(nostack),
            );
        }
    };
}

/// Implements [`Source`] for registers `$class` of type `$ty` that the instruction writes as `$place`.
macro_rules! source {
    ($($ty:ident $class:ident $place:literal;)*) => {$(
        impl Source for $ty {
            on_target! { [ptx_86 sm_100f_103f_107f_110f]
            #[inline(always)]
            unsafe fn dense<F: Form>(self, operands: Operands) {
                issue! { F, operands, $class self $place; "" "<text {ashift}>" "" "" "<text {scale_input_d}>";
                    ashift = const F::ASHIFT, scale_input_d = const F::SCALE_INPUT_D,
                }
            }
            #[inline(always)]
            unsafe fn dense_4<F: Form>(self, operands: Operands, lanes: [u32; 4]) {
                issue! { F, operands, $class self $place;
                    "" "<text {ashift}>" "" ", {{{l0}, {l1}, {l2}, {l3}}}" "<text {scale_input_d}>";
                    l0 = in(reg32) lanes[0], l1 = in(reg32) lanes[1], l2 = in(reg32) lanes[2], l3 = in(reg32) lanes[3],
                    ashift = const F::ASHIFT, scale_input_d = const F::SCALE_INPUT_D,
                }
            }
            #[inline(always)]
            unsafe fn dense_8<F: Form>(self, operands: Operands, lanes: [u32; 8]) {
                issue! { F, operands, $class self $place;
                    "" "<text {ashift}>" "" ", {{{l0}, {l1}, {l2}, {l3}, {l4}, {l5}, {l6}, {l7}}}" "<text {scale_input_d}>";
                    l0 = in(reg32) lanes[0], l1 = in(reg32) lanes[1], l2 = in(reg32) lanes[2], l3 = in(reg32) lanes[3],
                    l4 = in(reg32) lanes[4], l5 = in(reg32) lanes[5], l6 = in(reg32) lanes[6], l7 = in(reg32) lanes[7],
                    ashift = const F::ASHIFT, scale_input_d = const F::SCALE_INPUT_D,
                }
            }
            #[inline(always)]
            unsafe fn sparse<F: Form>(self, operands: Operands, sp_info_tmem: u32) {
                issue! { F, operands, $class self $place;
                    ".sp" "<text {ashift}>" ", [{sp_info_tmem}]" "" "<text {scale_input_d}>";
                    sp_info_tmem = in(reg32) sp_info_tmem,
                    ashift = const F::ASHIFT, scale_input_d = const F::SCALE_INPUT_D,
                }
            }
            #[inline(always)]
            unsafe fn sparse_4<F: Form>(self, operands: Operands, sp_info_tmem: u32, lanes: [u32; 4]) {
                issue! { F, operands, $class self $place;
                    ".sp" "<text {ashift}>" ", [{sp_info_tmem}]" ", {{{l0}, {l1}, {l2}, {l3}}}" "<text {scale_input_d}>";
                    sp_info_tmem = in(reg32) sp_info_tmem,
                    l0 = in(reg32) lanes[0], l1 = in(reg32) lanes[1], l2 = in(reg32) lanes[2], l3 = in(reg32) lanes[3],
                    ashift = const F::ASHIFT, scale_input_d = const F::SCALE_INPUT_D,
                }
            }
            #[inline(always)]
            unsafe fn sparse_8<F: Form>(self, operands: Operands, sp_info_tmem: u32, lanes: [u32; 8]) {
                issue! { F, operands, $class self $place;
                    ".sp" "<text {ashift}>" ", [{sp_info_tmem}]"
                    ", {{{l0}, {l1}, {l2}, {l3}, {l4}, {l5}, {l6}, {l7}}}" "<text {scale_input_d}>";
                    sp_info_tmem = in(reg32) sp_info_tmem,
                    l0 = in(reg32) lanes[0], l1 = in(reg32) lanes[1], l2 = in(reg32) lanes[2], l3 = in(reg32) lanes[3],
                    l4 = in(reg32) lanes[4], l5 = in(reg32) lanes[5], l6 = in(reg32) lanes[6], l7 = in(reg32) lanes[7],
                    ashift = const F::ASHIFT, scale_input_d = const F::SCALE_INPUT_D,
                }
            }
            #[inline(always)]
            unsafe fn sparse_scaled<F: Form>(
                self, operands: Operands, sp_info_tmem: u32, scale_a_tmem: u32, scale_b_tmem: u32,
            ) {
                issue! { F, operands, $class self $place;
                    ".sp" ".block_scale.<text {scale}>" ", [{sp_info_tmem}]" ", [{scale_a_tmem}], [{scale_b_tmem}]" "";
                    sp_info_tmem = in(reg32) sp_info_tmem, scale_a_tmem = in(reg32) scale_a_tmem,
                    scale_b_tmem = in(reg32) scale_b_tmem, scale = const F::SCALE,
                }
            }
            #[inline(always)]
            unsafe fn ws_sparse<F: Form>(self, operands: Operands, sp_info_tmem: u32) {
                issue! { F, operands, $class self $place; ".ws.sp" "" ", [{sp_info_tmem}]" "" "";
                    sp_info_tmem = in(reg32) sp_info_tmem,
                }
            }
            #[inline(always)]
            unsafe fn ws_sparse_masked<F: Form>(self, operands: Operands, sp_info_tmem: u32, mask: u64) {
                issue! { F, operands, $class self $place; ".ws.sp" "" ", [{sp_info_tmem}]" "" ", {mask}";
                    sp_info_tmem = in(reg32) sp_info_tmem, mask = in(reg64) mask,
                }
            }
            }
        }
    )*};
}

source! {
    u64 reg64 "{a}";
    u32 reg32 "[{a}]";
}
