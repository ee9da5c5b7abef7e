//! The inline assembly, once for each number and size of registers and size of an address.
//!
//! Everything else about an instruction is text that a [`Form`] gives. One block for each of the
//! thousands of instructions would take seconds to compile in every build.

// Build targets that lack the instructions have no bodies, and off the GPU `asm!` is a panic.
#![allow(unused, unreachable_code)]

use super::form::{Form, Word};
use crate::asm::asm;
use crate::target::{lacking, on_target, ptx_74, ptx_81, ptx_83, ptx_88, sm_80, sm_90, sm_100};

/// The registers of a value, for instructions that take an address `A`: 32 bits in shared memory, 64 elsewhere.
pub trait Registers<A>: Sized {
    #[doc(hidden)]
    unsafe fn exchange<F: Form>(self, address: A) -> Self {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn exchange_hint<F: Form>(self, address: A, policy: u64) -> Self {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn reduce<F: Form>(self, address: A) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn reduce_hint<F: Form>(self, address: A, policy: u64) {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn compare<F: Form>(self, address: A, compare: Self) -> Self {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn load<F: Form>(address: A) -> Self {
        lacking()
    }
    #[doc(hidden)]
    unsafe fn store<F: Form>(self, address: A) {
        lacking()
    }
}

/// A value of 128 bits in two registers, which the instruction takes as one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Wide([u64; 2]);

/// `asm!` with the words of the opcode. All of these access memory and order other accesses, so none is
/// `nomem`; nor are relaxed loads `readonly`, because the block is also that of loads that acquire.
macro_rules! instruction {
    ($form:ident, $($template:expr),+; $($operands:tt)*) => {
        unsafe {
            asm!(
                $($template,)+
                $($operands)*
                sem = const $form::SEM,
                scope = const $form::SCOPE,
                space = const $form::SPACE,
                ty = const $form::TYPE,
                options(nostack),
            )
        }
    };
}

macro_rules! opcode {
    (atom) => {
        "atom<text {sem}><text {scope}><text {space}><text {op}><text {ty}> "
    };
    (atom hint) => {
        "atom<text {sem}><text {scope}><text {space}><text {op}>.L2::cache_hint<text {ty}> "
    };
    (red) => {
        "red<text {sem}><text {scope}><text {space}><text {op}><text {ty}> "
    };
    (red hint) => {
        "red<text {sem}><text {scope}><text {space}><text {op}>.L2::cache_hint<text {ty}> "
    };
    (ld) => {
        "ld<text {sem}><text {scope}><text {space}><text {ty}> "
    };
    (st) => {
        "st<text {sem}><text {scope}><text {space}><text {ty}> "
    };
}

/// `name = in(class) value`, for a register of 8 bits in a wider one.
macro_rules! method {
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; exchange $old:literal, $value:literal; $($d:ident $v:ident),*) => {
        #[inline(always)]
        unsafe fn exchange<F: Form>(self, address: $address) -> Self {
            let [$($v),*] = self;
            $(let $d: $wide;)*
            instruction! { F, concat!(opcode!(atom), $old, ", [{address}], ", $value, ";");
                $($d = out($register) $d,)*
                address = in($class) address,
                $($v = in($register) <$wide>::from($v),)*
                op = const F::OP,
            }
            [$($d as $part),*]
        }
    };
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; exchange_hint $old:literal, $value:literal; $($d:ident $v:ident),*) => {
        #[inline(always)]
        unsafe fn exchange_hint<F: Form>(self, address: $address, policy: u64) -> Self {
            let [$($v),*] = self;
            $(let $d: $wide;)*
            instruction! { F, concat!(opcode!(atom hint), $old, ", [{address}], ", $value, ", {policy};");
                $($d = out($register) $d,)*
                address = in($class) address,
                $($v = in($register) <$wide>::from($v),)*
                policy = in(reg64) policy,
                op = const F::OP,
            }
            [$($d as $part),*]
        }
    };
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; reduce $old:literal, $value:literal; $($d:ident $v:ident),*) => {
        #[inline(always)]
        unsafe fn reduce<F: Form>(self, address: $address) {
            let [$($v),*] = self;
            instruction! { F, concat!(opcode!(red), "[{address}], ", $value, ";");
                address = in($class) address,
                $($v = in($register) <$wide>::from($v),)*
                op = const F::OP,
            }
        }
    };
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; reduce_hint $old:literal, $value:literal; $($d:ident $v:ident),*) => {
        #[inline(always)]
        unsafe fn reduce_hint<F: Form>(self, address: $address, policy: u64) {
            let [$($v),*] = self;
            instruction! { F, concat!(opcode!(red hint), "[{address}], ", $value, ", {policy};");
                address = in($class) address,
                $($v = in($register) <$wide>::from($v),)*
                policy = in(reg64) policy,
                op = const F::OP,
            }
        }
    };
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; compare $old:literal, $value:literal; $d:ident $v:ident) => {
        #[inline(always)]
        unsafe fn compare<F: Form>(self, address: $address, compare: Self) -> Self {
            let old: $wide;
            instruction! { F, concat!(opcode!(atom), "{old}, [{address}], {compare}, {value};");
                old = out($register) old,
                address = in($class) address,
                compare = in($register) compare[0],
                value = in($register) self[0],
                op = const F::OP,
            }
            [old]
        }
    };
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; load $old:literal, $value:literal; $($d:ident $v:ident),*) => {
        #[inline(always)]
        unsafe fn load<F: Form>(address: $address) -> Self {
            $(let $d: $wide;)*
            instruction! { F, concat!(opcode!(ld), $old, ", [{address}];");
                $($d = out($register) $d,)*
                address = in($class) address,
            }
            [$($d as $part),*]
        }
    };
    ([$class:ident $address:ty] $register:ident $wide:ty as $part:ty; store $old:literal, $value:literal; $($d:ident $v:ident),*) => {
        #[inline(always)]
        unsafe fn store<F: Form>(self, address: $address) {
            let [$($v),*] = self;
            instruction! { F, concat!(opcode!(st), "[{address}], ", $value, ";");
                address = in($class) address,
                $($v = in($register) <$wide>::from($v),)*
            }
        }
    };
}

/// Implements [`Registers`] for as many registers as there are names, for both sizes of an address.
/// `[ptx sm]` is what the build target needs to have a method.
macro_rules! registers {
    (
        [$part:ty; $len:literal] in $register:ident $wide:ty, $names:tt $texts:tt:
        in all spaces { $($target:tt $method:ident)* }
        in global memory { $($global_target:tt $global_method:ident)* }
    ) => {
        impl Registers<u32> for [$part; $len] {
            $(on_target! { $target method_of! { [reg32 u32] $register $wide as $part; $method $texts; $names } })*
        }
        impl Registers<u64> for [$part; $len] {
            $(on_target! { $target method_of! { [reg64 u64] $register $wide as $part; $method $texts; $names } })*
            $(on_target! { $global_target method_of! { [reg64 u64] $register $wide as $part; $global_method $texts; $names } })*
        }
    };
}

/// [`method!`] with its lists unpacked.
macro_rules! method_of {
    ($address:tt $register:ident $wide:ty as $part:ty; $method:ident ($($texts:tt)*); ($($names:tt)*)) => {
        method! { $address $register $wide as $part; $method $($texts)*; $($names)* }
    };
}

registers! {
    [u8; 1] in reg32 u32, (d0 v0) ("{d0}", "{v0}"):
    in all spaces { [] load [] store }
    in global memory {}
}
registers! {
    [u16; 1] in reg16 u16, (d0 v0) ("{d0}", "{v0}"):
    in all spaces { [] exchange [] reduce [] compare [] load [] store }
    in global memory { [ptx_74 sm_80] exchange_hint [ptx_74 sm_80] reduce_hint }
}
registers! {
    [u32; 1] in reg32 u32, (d0 v0) ("{d0}", "{v0}"):
    in all spaces { [] exchange [] reduce [] compare [] load [] store }
    in global memory { [ptx_74 sm_80] exchange_hint [ptx_74 sm_80] reduce_hint }
}
registers! {
    [u64; 1] in reg64 u64, (d0 v0) ("{d0}", "{v0}"):
    in all spaces { [] exchange [] reduce [] compare [] load [] store }
    in global memory { [ptx_74 sm_80] exchange_hint [ptx_74 sm_80] reduce_hint }
}
registers! {
    [u8; 2] in reg32 u32, (d0 v0, d1 v1) ("{{{d0}, {d1}}}", "{{{v0}, {v1}}}"):
    in all spaces { [] load [] store }
    in global memory {}
}
registers! {
    [u8; 4] in reg32 u32, (d0 v0, d1 v1, d2 v2, d3 v3)
    ("{{{d0}, {d1}, {d2}, {d3}}}", "{{{v0}, {v1}, {v2}, {v3}}}"):
    in all spaces { [] load [] store }
    in global memory {}
}
registers! {
    [u16; 2] in reg16 u16, (d0 v0, d1 v1) ("{{{d0}, {d1}}}", "{{{v0}, {v1}}}"):
    in all spaces { [] load [] store }
    in global memory {
        [ptx_81 sm_90] exchange [ptx_81 sm_90] exchange_hint [ptx_81 sm_90] reduce [ptx_81 sm_90] reduce_hint
    }
}
registers! {
    [u16; 4] in reg16 u16, (d0 v0, d1 v1, d2 v2, d3 v3)
    ("{{{d0}, {d1}, {d2}, {d3}}}", "{{{v0}, {v1}, {v2}, {v3}}}"):
    in all spaces { [] load [] store }
    in global memory {
        [ptx_81 sm_90] exchange [ptx_81 sm_90] exchange_hint [ptx_81 sm_90] reduce [ptx_81 sm_90] reduce_hint
    }
}
registers! {
    [u16; 8] in reg16 u16, (d0 v0, d1 v1, d2 v2, d3 v3, d4 v4, d5 v5, d6 v6, d7 v7)
    (
        "{{{d0}, {d1}, {d2}, {d3}, {d4}, {d5}, {d6}, {d7}}}",
        "{{{v0}, {v1}, {v2}, {v3}, {v4}, {v5}, {v6}, {v7}}}"
    ):
    in all spaces {}
    in global memory {
        [ptx_81 sm_90] exchange [ptx_81 sm_90] exchange_hint [ptx_81 sm_90] reduce [ptx_81 sm_90] reduce_hint
    }
}
registers! {
    [u32; 2] in reg32 u32, (d0 v0, d1 v1) ("{{{d0}, {d1}}}", "{{{v0}, {v1}}}"):
    in all spaces { [] load [] store }
    in global memory {
        [ptx_81 sm_90] exchange [ptx_81 sm_90] exchange_hint [ptx_81 sm_90] reduce [ptx_81 sm_90] reduce_hint
    }
}
registers! {
    [u32; 4] in reg32 u32, (d0 v0, d1 v1, d2 v2, d3 v3)
    ("{{{d0}, {d1}, {d2}, {d3}}}", "{{{v0}, {v1}, {v2}, {v3}}}"):
    in all spaces { [] load [] store }
    in global memory {
        [ptx_81 sm_90] exchange [ptx_81 sm_90] exchange_hint [ptx_81 sm_90] reduce [ptx_81 sm_90] reduce_hint
    }
}
registers! {
    [u32; 8] in reg32 u32, (d0 v0, d1 v1, d2 v2, d3 v3, d4 v4, d5 v5, d6 v6, d7 v7)
    (
        "{{{d0}, {d1}, {d2}, {d3}, {d4}, {d5}, {d6}, {d7}}}",
        "{{{v0}, {v1}, {v2}, {v3}, {v4}, {v5}, {v6}, {v7}}}"
    ):
    in all spaces {}
    in global memory { [ptx_88 sm_100] load [ptx_88 sm_100] store }
}
registers! {
    [u64; 2] in reg64 u64, (d0 v0, d1 v1) ("{{{d0}, {d1}}}", "{{{v0}, {v1}}}"):
    in all spaces { [] load [] store }
    in global memory {}
}
registers! {
    [u64; 4] in reg64 u64, (d0 v0, d1 v1, d2 v2, d3 v3)
    ("{{{d0}, {d1}, {d2}, {d3}}}", "{{{v0}, {v1}, {v2}, {v3}}}"):
    in all spaces {}
    in global memory { [ptx_88 sm_100] load [ptx_88 sm_100] store }
}

/// The methods of [`Wide`] that an address of either size has.
macro_rules! wide {
    ($class:ident $address:ty) => {
        on_target! { [ptx_83 sm_90]
        #[inline(always)]
        unsafe fn exchange<F: Form>(self, address: $address) -> Self {
            let (old0, old1);
            instruction! { F,
                "{{",
                ".reg .b128 B128_old, B128_value;",
                "mov.b128 B128_value, {{{value0}, {value1}}};",
                concat!(opcode!(atom), "B128_old, [{address}], B128_value;"),
                "mov.b128 {{{old0}, {old1}}}, B128_old;",
                "}}";
                old0 = out(reg64) old0,
                old1 = out(reg64) old1,
                address = in($class) address,
                value0 = in(reg64) self.0[0],
                value1 = in(reg64) self.0[1],
                op = const F::OP,
            }
            Self([old0, old1])
        }
        #[inline(always)]
        unsafe fn compare<F: Form>(self, address: $address, compare: Self) -> Self {
            let (old0, old1);
            instruction! { F,
                "{{",
                ".reg .b128 B128_old, B128_compare, B128_value;",
                "mov.b128 B128_compare, {{{compare0}, {compare1}}};",
                "mov.b128 B128_value, {{{value0}, {value1}}};",
                concat!(opcode!(atom), "B128_old, [{address}], B128_compare, B128_value;"),
                "mov.b128 {{{old0}, {old1}}}, B128_old;",
                "}}";
                old0 = out(reg64) old0,
                old1 = out(reg64) old1,
                address = in($class) address,
                compare0 = in(reg64) compare.0[0],
                compare1 = in(reg64) compare.0[1],
                value0 = in(reg64) self.0[0],
                value1 = in(reg64) self.0[1],
                op = const F::OP,
            }
            Self([old0, old1])
        }
        }
        on_target! { [ptx_83]
        #[inline(always)]
        unsafe fn load<F: Form>(address: $address) -> Self {
            let (value0, value1);
            instruction! { F,
                "{{",
                ".reg .b128 B128_value;",
                concat!(opcode!(ld), "B128_value, [{address}];"),
                "mov.b128 {{{value0}, {value1}}}, B128_value;",
                "}}";
                value0 = out(reg64) value0,
                value1 = out(reg64) value1,
                address = in($class) address,
            }
            Self([value0, value1])
        }
        #[inline(always)]
        unsafe fn store<F: Form>(self, address: $address) {
            instruction! { F,
                "{{",
                ".reg .b128 B128_value;",
                "mov.b128 B128_value, {{{value0}, {value1}}};",
                concat!(opcode!(st), "[{address}], B128_value;"),
                "}}";
                address = in($class) address,
                value0 = in(reg64) self.0[0],
                value1 = in(reg64) self.0[1],
            }
        }
        }
    };
}

impl Registers<u32> for Wide {
    wide! { reg32 u32 }
}

impl Registers<u64> for Wide {
    wide! { reg64 u64 }
    on_target! { [ptx_83 sm_90]
    #[inline(always)]
    unsafe fn exchange_hint<F: Form>(self, address: u64, policy: u64) -> Self {
        let (old0, old1);
        instruction! { F,
            "{{",
            ".reg .b128 B128_old, B128_value;",
            "mov.b128 B128_value, {{{value0}, {value1}}};",
            concat!(opcode!(atom hint), "B128_old, [{address}], B128_value, {policy};"),
            "mov.b128 {{{old0}, {old1}}}, B128_old;",
            "}}";
            old0 = out(reg64) old0,
            old1 = out(reg64) old1,
            address = in(reg64) address,
            value0 = in(reg64) self.0[0],
            value1 = in(reg64) self.0[1],
            policy = in(reg64) policy,
            op = const F::OP,
        }
        Self([old0, old1])
    }
    }
}

/// Whether a generic address is in the space.
#[inline(always)]
pub fn is_in<P: Word>(address: u64) -> bool {
    let inside: u32;
    unsafe {
        asm!(
            "{{",
            ".reg .pred P_OUT;",
            "isspacep<text {space}> P_OUT, {address};",
            "selp.b32 {inside}, 1, 0, P_OUT;",
            "}}",
            inside = out(reg32) inside,
            address = in(reg64) address,
            space = const P::TEXT,
            // The answer follows from the address.
            options(pure, nomem, nostack),
        );
    }
    inside != 0
}
