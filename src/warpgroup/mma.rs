//! `wgmma.mma_async` and its forms.

use super::form::{
    Call, Columns, Element, Multiplies, Plain, Satfinite, Saturates, Scaled, Scales, Source,
    Sparse, Transposed, Transposes,
};
use crate::immediate::n32;
use crate::target::{Has, Target, ptx_80, ptx_82, sm_90a};

/// Starts a multiplication of A, of 64 rows, by B, and adds D.
///
/// Where the instruction has immediates to scale and to transpose, they do neither.
///
/// ```text
/// wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, scale-d{, immediates};
///     PTX ISA 8.0, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
pub unsafe fn wgmma_mma_async<A, B, D: Element, S: Source, const N: usize>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: S,
    b_desc: u64,
    scale_d: bool,
) where
    for<'a> Target: Has<ptx_80> + Has<sm_90a>,
    (A, B): Multiplies<D>,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    unsafe { a.multiply::<Call<(A, B), D, N, Plain, S>, _>(d.registers(), b_desc, scale_d) }
}

/// Starts a multiplication of A, of 64 rows, by B, and adds D.
///
/// Each of A and B is multiplied by 1, or by -1.
///
/// ```text
/// wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, scale-d, imm-scale-a, imm-scale-b;
///     PTX ISA 8.0, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_scaled<
    A,
    B,
    D: Element,
    S: Source,
    const N: usize,
    const IMM_SCALE_A: i32,
    const IMM_SCALE_B: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: S,
    b_desc: u64,
    scale_d: bool,
    _imm_scale_a: n32<IMM_SCALE_A>,
    _imm_scale_b: n32<IMM_SCALE_B>,
) where
    for<'a> Target: Has<ptx_80> + Has<sm_90a>,
    (A, B): Multiplies<D> + Scales,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    unsafe {
        a.multiply::<Call<(A, B), D, N, Scaled<IMM_SCALE_A, IMM_SCALE_B>, S>, _>(
            d.registers(),
            b_desc,
            scale_d,
        )
    }
}

/// Starts a multiplication of A, of 64 rows, by B, and adds D.
///
/// Each of A and B is multiplied by 1 or -1, and transposed (its rows run along M or N, not K) if its
/// immediate is 1.
///
/// ```text
/// wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b;
///     PTX ISA 8.0, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_transposed<
    A,
    B,
    D: Element,
    const N: usize,
    const IMM_SCALE_A: i32,
    const IMM_SCALE_B: i32,
    const IMM_TRANS_A: i32,
    const IMM_TRANS_B: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: u64,
    b_desc: u64,
    scale_d: bool,
    _imm_scale_a: n32<IMM_SCALE_A>,
    _imm_scale_b: n32<IMM_SCALE_B>,
    _imm_trans_a: n32<IMM_TRANS_A>,
    _imm_trans_b: n32<IMM_TRANS_B>,
) where
    for<'a> Target: Has<ptx_80> + Has<sm_90a>,
    (A, B): Multiplies<D> + Transposes,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    unsafe {
        a.multiply::<Call<
            (A, B),
            D,
            N,
            Transposed<Scaled<IMM_SCALE_A, IMM_SCALE_B>, IMM_TRANS_A, IMM_TRANS_B>,
            u64,
        >, _>(d.registers(), b_desc, scale_d)
    }
}

/// Starts a multiplication of A, of 64 rows, by B, and adds D.
///
/// A is in registers. Each of A and B is multiplied by 1 or -1, and B is transposed if its immediate is 1.
///
/// ```text
/// wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b;
///     PTX ISA 8.0, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_transposed_b<
    A,
    B,
    D: Element,
    const N: usize,
    const IMM_SCALE_A: i32,
    const IMM_SCALE_B: i32,
    const IMM_TRANS_B: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: [u32; 4],
    b_desc: u64,
    scale_d: bool,
    _imm_scale_a: n32<IMM_SCALE_A>,
    _imm_scale_b: n32<IMM_SCALE_B>,
    _imm_trans_b: n32<IMM_TRANS_B>,
) where
    for<'a> Target: Has<ptx_80> + Has<sm_90a>,
    (A, B): Multiplies<D> + Transposes,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    unsafe {
        a.multiply::<Call<(A, B), D, N, Transposed<Scaled<IMM_SCALE_A, IMM_SCALE_B>, 0, IMM_TRANS_B>, [u32; 4]>, _>(d.registers(), b_desc, scale_d)
    }
}

/// Starts a multiplication of A, of 64 rows, by B, and adds D.
///
/// Sums that do not fit `i32` become its least or greatest value.
///
/// ```text
/// wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype.satfinite d, a, b-desc, scale-d;
///     PTX ISA 8.0, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
pub unsafe fn wgmma_mma_async_satfinite<A, B, D: Element, S: Source, const N: usize>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: S,
    b_desc: u64,
    scale_d: bool,
) where
    for<'a> Target: Has<ptx_80> + Has<sm_90a>,
    (A, B): Multiplies<D> + Saturates,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    unsafe { a.multiply::<Call<(A, B), D, N, Satfinite, S>, _>(d.registers(), b_desc, scale_d) }
}

/// Starts a multiplication of A, which is sparse, by B, and adds D.
///
/// Where the instruction has immediates to scale and to transpose, they do neither.
///
/// ```text
/// wgmma.mma_async.sp.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, sp-meta, sp-sel, scale-d{, immediates};
///     PTX ISA 8.2, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `sp_meta`: where the elements of A are that are not zero.
/// - `sp_sel`: which threads give `sp_meta`: 0 or 1 for types of 16 and 32 bits, 0 for those of 8 bits.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_sp<A, B, D: Element, S: Source, const N: usize, const SP_SEL: i32>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: S,
    b_desc: u64,
    sp_meta: u32,
    _sp_sel: n32<SP_SEL>,
    scale_d: bool,
) where
    for<'a> Target: Has<ptx_82> + Has<sm_90a>,
    (A, B): Multiplies<D> + Sparse,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    const {
        assert!(
            SP_SEL >= 0 && SP_SEL < <(A, B) as Multiplies<D>>::SELECTORS,
            "`sp_sel` must be 0 or 1 for types of 16 and 32 bits, and 0 for those of 8 bits"
        )
    };
    unsafe {
        a.multiply_sparse::<Call<(A, B), D, N, Plain, S>, _, SP_SEL>(
            d.registers(),
            b_desc,
            sp_meta,
            scale_d,
        )
    }
}

/// Starts a multiplication of A, which is sparse, by B, and adds D.
///
/// Each of A and B is multiplied by 1, or by -1.
///
/// ```text
/// wgmma.mma_async.sp.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, sp-meta, sp-sel, scale-d, imm-scale-a, imm-scale-b;
///     PTX ISA 8.2, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `sp_meta`: where the elements of A are that are not zero.
/// - `sp_sel`: which threads give `sp_meta`: 0 or 1 for types of 16 and 32 bits, 0 for those of 8 bits.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_sp_scaled<
    A,
    B,
    D: Element,
    S: Source,
    const N: usize,
    const SP_SEL: i32,
    const IMM_SCALE_A: i32,
    const IMM_SCALE_B: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: S,
    b_desc: u64,
    sp_meta: u32,
    _sp_sel: n32<SP_SEL>,
    scale_d: bool,
    _imm_scale_a: n32<IMM_SCALE_A>,
    _imm_scale_b: n32<IMM_SCALE_B>,
) where
    for<'a> Target: Has<ptx_82> + Has<sm_90a>,
    (A, B): Multiplies<D> + Scales + Sparse,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    const {
        assert!(
            SP_SEL >= 0 && SP_SEL < <(A, B) as Multiplies<D>>::SELECTORS,
            "`sp_sel` must be 0 or 1 for types of 16 and 32 bits, and 0 for those of 8 bits"
        )
    };
    unsafe {
        a.multiply_sparse::<Call<(A, B), D, N, Scaled<IMM_SCALE_A, IMM_SCALE_B>, S>, _, SP_SEL>(
            d.registers(),
            b_desc,
            sp_meta,
            scale_d,
        )
    }
}

/// Starts a multiplication of A, which is sparse, by B, and adds D.
///
/// Each of A and B is multiplied by 1 or -1, and transposed (its rows run along M or N, not K) if its
/// immediate is 1.
///
/// ```text
/// wgmma.mma_async.sp.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, sp-meta, sp-sel, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b;
///     PTX ISA 8.2, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `sp_meta`: where the elements of A are that are not zero.
/// - `sp_sel`: which threads give `sp_meta`: 0 or 1 for types of 16 and 32 bits, 0 for those of 8 bits.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_sp_transposed<
    A,
    B,
    D: Element,
    const N: usize,
    const SP_SEL: i32,
    const IMM_SCALE_A: i32,
    const IMM_SCALE_B: i32,
    const IMM_TRANS_A: i32,
    const IMM_TRANS_B: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: u64,
    b_desc: u64,
    sp_meta: u32,
    _sp_sel: n32<SP_SEL>,
    scale_d: bool,
    _imm_scale_a: n32<IMM_SCALE_A>,
    _imm_scale_b: n32<IMM_SCALE_B>,
    _imm_trans_a: n32<IMM_TRANS_A>,
    _imm_trans_b: n32<IMM_TRANS_B>,
) where
    for<'a> Target: Has<ptx_82> + Has<sm_90a>,
    (A, B): Multiplies<D> + Transposes + Sparse,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    const {
        assert!(
            SP_SEL >= 0 && SP_SEL < <(A, B) as Multiplies<D>>::SELECTORS,
            "`sp_sel` must be 0 or 1 for types of 16 and 32 bits, and 0 for those of 8 bits"
        )
    };
    unsafe {
        a.multiply_sparse::<Call<
            (A, B),
            D,
            N,
            Transposed<Scaled<IMM_SCALE_A, IMM_SCALE_B>, IMM_TRANS_A, IMM_TRANS_B>,
            u64,
        >, _, SP_SEL>(d.registers(), b_desc, sp_meta, scale_d)
    }
}

/// Starts a multiplication of A, which is sparse, by B, and adds D.
///
/// A is in registers. Each of A and B is multiplied by 1 or -1, and B is transposed if its immediate is 1.
///
/// ```text
/// wgmma.mma_async.sp.sync.aligned.m64nNkK.dtype.atype.btype d, a, b-desc, sp-meta, sp-sel, scale-d, imm-scale-a, imm-scale-b, imm-trans-b;
///     PTX ISA 8.2, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `sp_meta`: where the elements of A are that are not zero.
/// - `sp_sel`: which threads give `sp_meta`: 0 or 1 for types of 16 and 32 bits, 0 for those of 8 bits.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_sp_transposed_b<
    A,
    B,
    D: Element,
    const N: usize,
    const SP_SEL: i32,
    const IMM_SCALE_A: i32,
    const IMM_SCALE_B: i32,
    const IMM_TRANS_B: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: [u32; 4],
    b_desc: u64,
    sp_meta: u32,
    _sp_sel: n32<SP_SEL>,
    scale_d: bool,
    _imm_scale_a: n32<IMM_SCALE_A>,
    _imm_scale_b: n32<IMM_SCALE_B>,
    _imm_trans_b: n32<IMM_TRANS_B>,
) where
    for<'a> Target: Has<ptx_82> + Has<sm_90a>,
    (A, B): Multiplies<D> + Transposes + Sparse,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    const {
        assert!(
            SP_SEL >= 0 && SP_SEL < <(A, B) as Multiplies<D>>::SELECTORS,
            "`sp_sel` must be 0 or 1 for types of 16 and 32 bits, and 0 for those of 8 bits"
        )
    };
    unsafe {
        a.multiply_sparse::<Call<(A, B), D, N, Transposed<Scaled<IMM_SCALE_A, IMM_SCALE_B>, 0, IMM_TRANS_B>, [u32; 4]>, _, SP_SEL>(d.registers(), b_desc, sp_meta, scale_d)
    }
}

/// Starts a multiplication of A, which is sparse, by B, and adds D.
///
/// Sums that do not fit `i32` become its least or greatest value.
///
/// ```text
/// wgmma.mma_async.sp.sync.aligned.m64nNkK.dtype.atype.btype.satfinite d, a, b-desc, sp-meta, sp-sel, scale-d;
///     PTX ISA 8.2, sm_90a
/// ```
///
/// - `type_a`, `type_b`: types of the elements of A and B, which with those of D decide K.
/// - `d`: the thread's registers of D, an [`Accumulator`](super::Accumulator). Their number decides N.
/// - `a`: the descriptor of A ([`Descriptor::bits`](super::Descriptor::bits)), or the thread's registers of it.
/// - `b_desc`: the descriptor of B.
/// - `sp_meta`: where the elements of A are that are not zero.
/// - `sp_sel`: which threads give `sp_meta`: 0 or 1 for types of 16 and 32 bits, 0 for those of 8 bits.
/// - `scale_d`: whether D is added. If not, what `d` held does not count.
///
/// PTX ISA: [`wgmma.mma_async.sp`](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#asynchronous-warpgroup-level-matrix-instructions-wgmma-mma-async-sp)
///
/// # Safety
///
/// - All threads of the warpgroup execute the same call, with the same descriptors and `scale_d`.
/// - The descriptors describe matrices in this CTA's shared memory, of the shape and the types, that
///   the async proxy can read.
/// - [`wgmma_fence`](crate::wgmma_fence) comes before the first multiplication, and after every access
///   to the registers of `d` or `a` that is not another multiplication into `d` with the same shape.
/// - Until [`wgmma_wait_group`](crate::wgmma_wait_group) has waited for it, nobody writes the matrices,
///   and the registers of `d` and `a` are not accessed but by such multiplications.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // as many as the instruction has
pub unsafe fn wgmma_mma_async_sp_satfinite<
    A,
    B,
    D: Element,
    S: Source,
    const N: usize,
    const SP_SEL: i32,
>(
    _type_a: A,
    _type_b: B,
    d: &mut [D; N],
    a: S,
    b_desc: u64,
    sp_meta: u32,
    _sp_sel: n32<SP_SEL>,
    scale_d: bool,
) where
    for<'a> Target: Has<ptx_82> + Has<sm_90a>,
    (A, B): Multiplies<D> + Saturates + Sparse,
    [D; N]: Columns<<(A, B) as Multiplies<D>>::Columns>,
{
    const {
        assert!(
            SP_SEL >= 0 && SP_SEL < <(A, B) as Multiplies<D>>::SELECTORS,
            "`sp_sel` must be 0 or 1 for types of 16 and 32 bits, and 0 for those of 8 bits"
        )
    };
    unsafe {
        a.multiply_sparse::<Call<(A, B), D, N, Satfinite, S>, _, SP_SEL>(
            d.registers(),
            b_desc,
            sp_meta,
            scale_d,
        )
    }
}
