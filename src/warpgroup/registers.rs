//! The inline assembly, once for each number of registers of D.
//!
//! Numbers of operands are fixed in inline assembly; everything else about the instruction is text
//! that a [`Form`] gives. One block for each of the two thousand instructions would take five
//! seconds to compile in every build.

// Build targets that lack the instructions have no bodies, and off the GPU `asm!` is a panic.
#![allow(unused, unreachable_code)]

use super::form::Form;
use crate::asm::asm;
use crate::target::{lacking, on_target, ptx_80, sm_90a};

/// `[u32; N]` for each `N` that D may have.
pub trait Registers {
    /// Calls `f` with the number of each register and the register, one after the other: no loop, which
    /// would need an array in memory to index.
    #[doc(hidden)]
    fn each(&mut self, f: impl FnMut(u32, &mut u32));
    #[doc(hidden)]
    unsafe fn multiply<F: Form>(&mut self, a_desc: u64, b_desc: u64, scale_d: bool) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn multiply_registers<F: Form>(&mut self, a: [u32; 4], b_desc: u64, scale_d: bool) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn multiply_sparse<F: Form, const SP_SEL: i32>(
        &mut self,
        a_desc: u64,
        b_desc: u64,
        sp_meta: u32,
        scale_d: bool,
    ) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn multiply_sparse_registers<F: Form, const SP_SEL: i32>(
        &mut self,
        a: [u32; 4],
        b_desc: u64,
        sp_meta: u32,
        scale_d: bool,
    ) {
        lacking()
    }
}

/// Keeps the compiler from moving accesses to a register across this.
#[inline(always)]
pub fn fence(register: &mut u32) {
    // Not `nomem`: it stays where it is among waits and fences.
    unsafe { asm!("// {0}", inout(reg32) * register, options(nostack)) }
}

/// The instruction with A as `$a`, and what `.sp` adds. `$d` numbers the registers of D, which are read
/// and written: fields of `$self`, because rustc takes more than twice as long to check elements of an array.
macro_rules! multiply {
    (
        $self:ident, $form:ident, $scale_d:ident, [$first:tt $($d:tt)*];
        $sp:literal, $k:literal, $a:literal, $sparsity:literal;
        $($operands:tt)*
    ) => {
        unsafe {
            let registers = Fields::of($self);
            asm!(
                "{{",
                ".reg .pred PRED_scale_d;",
                "setp.ne.b32 PRED_scale_d, {scale_d}, 0;",
                concat!(
                    "wgmma.mma_async", $sp, ".sync.aligned.m64n{n}k{k}<text {types}><text {operation}> {{{",
                    $first, "}", $(", {", $d, "}",)* "}}, ", $a, ", {b_desc}", $sparsity,
                    ", PRED_scale_d<text {immediates}>;"
                ),
                "}}",
                inout(reg32) registers.$first,
                $(inout(reg32) registers.$d,)*
                $($operands)*
                scale_d = in(reg32) u32::from($scale_d),
                n = const $form::N,
                k = const $form::K * $k,
                types = const $form::TYPES,
                operation = const $form::OPERATION,
                immediates = const $form::IMMEDIATES,
                options(nostack),
            );
        }
    };
}

/// Implements [`Registers`] for an array of as many registers as `$d` numbers.
macro_rules! registers {
    ($($d:tt)*) => {
        const _: () = {
        /// The array as fields.
        #[repr(C)]
        struct Fields($(field!($d)),*);
        impl Fields {
            #[inline(always)]
            fn of(array: &mut [u32; [$($d),*].len()]) -> &mut Self {
                // SAFETY: as many `u32`, one after the other.
                unsafe { &mut *core::ptr::from_mut(array).cast() }
            }
        }
        impl Registers for [u32; [$($d),*].len()] {
            #[inline(always)]
            fn each(&mut self, mut f: impl FnMut(u32, &mut u32)) {
                $(f($d, &mut self[$d]);)*
            }
            on_target! { [ptx_80 sm_90a]
            #[inline(always)]
            unsafe fn multiply<F: Form>(&mut self, a_desc: u64, b_desc: u64, scale_d: bool) {
                multiply! { self, F, scale_d, [$($d)*]; "", 1, "{a_desc}", "";
                    a_desc = in(reg64) a_desc, b_desc = in(reg64) b_desc,
                }
            }
            #[inline(always)]
            unsafe fn multiply_registers<F: Form>(&mut self, a: [u32; 4], b_desc: u64, scale_d: bool) {
                multiply! { self, F, scale_d, [$($d)*]; "", 1, "{{{a0}, {a1}, {a2}, {a3}}}", "";
                    a0 = in(reg32) a[0], a1 = in(reg32) a[1], a2 = in(reg32) a[2], a3 = in(reg32) a[3],
                    b_desc = in(reg64) b_desc,
                }
            }
            #[inline(always)]
            unsafe fn multiply_sparse<F: Form, const SP_SEL: i32>(
                &mut self, a_desc: u64, b_desc: u64, sp_meta: u32, scale_d: bool,
            ) {
                multiply! { self, F, scale_d, [$($d)*]; ".sp", 2, "{a_desc}", ", {sp_meta}, {sp_sel}";
                    a_desc = in(reg64) a_desc, b_desc = in(reg64) b_desc,
                    sp_meta = in(reg32) sp_meta, sp_sel = const SP_SEL,
                }
            }
            #[inline(always)]
            unsafe fn multiply_sparse_registers<F: Form, const SP_SEL: i32>(
                &mut self, a: [u32; 4], b_desc: u64, sp_meta: u32, scale_d: bool,
            ) {
                multiply! { self, F, scale_d, [$($d)*]; ".sp", 2, "{{{a0}, {a1}, {a2}, {a3}}}", ", {sp_meta}, {sp_sel}";
                    a0 = in(reg32) a[0], a1 = in(reg32) a[1], a2 = in(reg32) a[2], a3 = in(reg32) a[3],
                    b_desc = in(reg64) b_desc, sp_meta = in(reg32) sp_meta, sp_sel = const SP_SEL,
                }
            }
            }
        }
        };
    };
}

macro_rules! field {
    ($d:tt) => {
        u32
    };
}

/// [`registers!`] for the numbers of the first group, of the first two, and so on.
macro_rules! prefixes {
    ([$($d:tt)*]) => {};
    ([$($d:tt)*] [$($more:tt)*] $($rest:tt)*) => {
        registers! { $($d)* $($more)* }
        prefixes! { [$($d)* $($more)*] $($rest)* }
    };
}

prefixes! {
    []
    [0 1] [2 3] [4 5] [6 7] [8 9] [10 11] [12 13] [14 15] [16 17] [18 19] [20 21] [22 23] [24 25]
    [26 27] [28 29] [30 31] [32 33] [34 35] [36 37] [38 39] [40 41] [42 43] [44 45] [46 47] [48 49]
    [50 51] [52 53] [54 55] [56 57] [58 59] [60 61] [62 63] [64 65 66 67] [68 69 70 71]
    [72 73 74 75] [76 77 78 79] [80 81 82 83] [84 85 86 87] [88 89 90 91] [92 93 94 95]
    [96 97 98 99] [100 101 102 103] [104 105 106 107] [108 109 110 111] [112 113 114 115]
    [116 117 118 119] [120 121 122 123] [124 125 126 127]
}
