//! The decoded program: what the execution loop reads instead of text.

use std::sync::Arc;

use super::convert::{Conversion, IntegerPack};
use super::mma::Mma;
use super::tensor::Field;
use super::wgmma::Multiplication;
pub use crate::formats::Round;

/// A type of the PTX ISA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
}

impl Ty {
    /// The type that a qualifier or a declaration names.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "pred" => Self::Pred,
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return None,
        })
    }

    /// Its size in bytes; a predicate has one.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Pred | Self::B8 | Self::U8 | Self::S8 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F16x2 | Self::Bf16x2 | Self::F32 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    /// Its size in bits.
    pub fn bits(self) -> u32 {
        self.bytes() * 8
    }

    /// Whether it is a signed integer.
    pub fn signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether it is a floating-point type.
    pub fn float(self) -> bool {
        matches!(
            self,
            Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64
        )
    }
}

/// The low `bits` bits.
pub fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The low `bits` bits of `value`, with their sign copied upwards.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.min(64);
    ((value << shift) as i64) >> shift
}

/// A register by its number in the function; predicates are counted apart.
pub type Reg = u32;

/// A source operand: a register, or a constant with the bits it has in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Src {
    Reg(Reg),
    Imm(u64),
}

/// A destination register and the bits it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dst {
    pub reg: Reg,
    pub bits: u32,
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredSrc {
    pub reg: Reg,
    pub negated: bool,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Generic,
    Global,
    /// `.shared`, `.shared::cta` and `.shared::cluster`.
    Shared,
    Local,
    Const,
    /// A kernel's parameters.
    Param,
    /// Local variables and the parameters of calls, from the start of the current frame.
    Frame,
}

/// An address: a register or constant, and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addr {
    pub base: Src,
    pub offset: i64,
}

/// Whether two accesses may conflict without a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// An ordinary (weak) access.
    Weak,
    /// `.relaxed`, `.volatile`, `.acquire`, `.release` and atomics.
    Strong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Neg,
    Not,
    Abs,
    Popc,
    Clz,
    Brev,
    /// `bfind`; `true` for `.shiftamt`.
    Bfind(bool),
    Cnot,
    Sqrt,
    Rcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    MulLo,
    MulHi,
    MulWide,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    /// `bmsk`: a mask from a position and a width, which are clamped or wrapped.
    Bmsk {
        clamp: bool,
    },
}

/// How `prmt` chooses bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permute {
    /// By the selector's four nibbles.
    Selector,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ternary {
    MadLo,
    MadHi,
    MadWide,
    Fma,
    Sad,
    Bfe,
    Prmt(Permute),
    /// `shf.l`: wraps or clamps the shift.
    ShfL {
        clamp: bool,
    },
    ShfR {
        clamp: bool,
    },
    Lop3(u8),
    Dp4a {
        a_signed: bool,
        b_signed: bool,
    },
}

/// How a floating-point instruction treats its operands and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FloatMode {
    pub round: Round,
    pub ftz: bool,
    pub sat: bool,
    /// `.NaN` of `min` and `max`.
    pub nan: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Lo,
    Ls,
    Hi,
    Hs,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// Whether there are reductions and atomics of these.
pub fn reduces(f: AtomOp, ty: Ty) -> bool {
    let halves = matches!(ty, Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2)
        && matches!(f, AtomOp::Min | AtomOp::Max);
    let exact = matches!(f, AtomOp::Add) || halves || !ty.float();
    (16..=64).contains(&ty.bits()) && exact
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLt,
    LanemaskLe,
    LanemaskGt,
    LanemaskGe,
    Clock,
    ClockHi,
    /// `%current_graph_exec`: no graph launches anything here.
    NoGraph,
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    /// The address of a local variable.
    Frame {
        offset: u32,
        generic: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarRed {
    Popc,
    And,
    Or,
}

/// What waits for a phase of an mbarrier know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The state that an arrival returned.
    Token(Src),
    /// The parity of the phase.
    Parity(Src),
}

/// Who is told that an asynchronous copy is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// `.mbarrier::complete_tx::bytes`.
    Mbarrier(Addr),
    /// `.bulk_group`.
    Group,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    pub guard: Option<PredSrc>,
    pub op: Op,
    /// The line of the PTX text.
    pub line: u32,
}

#[derive(Clone, Debug)]
pub enum Op {
    Nop,
    Unary {
        f: Unary,
        ty: Ty,
        mode: FloatMode,
        dst: Dst,
        a: Src,
    },
    Binary {
        f: Binary,
        ty: Ty,
        mode: FloatMode,
        dst: Dst,
        a: Src,
        b: Src,
    },
    Ternary {
        f: Ternary,
        ty: Ty,
        mode: FloatMode,
        dst: Dst,
        a: Src,
        b: Src,
        c: Src,
    },
    Bfi {
        ty: Ty,
        dst: Dst,
        a: Src,
        b: Src,
        position: Src,
        length: Src,
    },
    /// `add.cc`, `addc`, `sub.cc`, `subc`.
    Carry {
        sub: bool,
        carry_in: bool,
        carry_out: bool,
        ty: Ty,
        dst: Dst,
        a: Src,
        b: Src,
    },
    /// `mad.lo.cc`, `madc.lo`, `mad.hi.cc`, `madc.hi`.
    MadCarry {
        hi: bool,
        carry_in: bool,
        carry_out: bool,
        ty: Ty,
        dst: Dst,
        a: Src,
        b: Src,
        c: Src,
    },
    Setp {
        cmp: Cmp,
        ty: Ty,
        ftz: bool,
        p: Option<Reg>,
        q: Option<Reg>,
        a: Src,
        b: Src,
        with: Option<(Logic, PredSrc)>,
    },
    /// `set`: the comparison as an integer mask or a float.
    Set {
        cmp: Cmp,
        ty: Ty,
        ftz: bool,
        one: u64,
        dst: Dst,
        a: Src,
        b: Src,
    },
    Selp {
        dst: Dst,
        a: Src,
        b: Src,
        p: PredSrc,
    },
    PredLogic {
        f: Logic,
        dst: Reg,
        a: PredSrc,
        b: PredSrc,
    },
    PredMov {
        dst: Reg,
        a: PredSrc,
    },
    PredImm {
        dst: Reg,
        value: bool,
    },
    /// `%is_explicit_cluster` as a predicate.
    PredExplicitCluster {
        dst: Reg,
    },
    Cvt {
        dst: Dst,
        to: Ty,
        from: Ty,
        /// `None`: the value fits, or the low bits are taken.
        round: Option<Round>,
        /// The result stays a float with an integer value.
        integral: bool,
        sat: bool,
        ftz: bool,
        a: Src,
    },
    /// `cvt` of packed or narrow floats.
    Convert(Box<Conversion>),
    /// `cvt.pack`.
    IntegerPack(IntegerPack),
    Mov {
        dst: Dst,
        a: Src,
    },
    /// 128 bits, as two halves.
    MovPair {
        dsts: [Option<Dst>; 2],
        srcs: [Src; 2],
    },
    Pack {
        dst: Dst,
        bits: u32,
        parts: Vec<Src>,
    },
    Unpack {
        bits: u32,
        parts: Vec<Option<Dst>>,
        a: Src,
    },
    Special {
        dst: Dst,
        which: Special,
    },
    Ld {
        space: Space,
        ty: Ty,
        dsts: Vec<Option<Dst>>,
        addr: Addr,
        strength: Strength,
    },
    St {
        space: Space,
        ty: Ty,
        srcs: Vec<Src>,
        addr: Addr,
        strength: Strength,
    },
    /// Adds the window of a state space to an address, or takes it away (`to`).
    Cvta {
        to: bool,
        space: Space,
        dst: Dst,
        a: Src,
    },
    Isspacep {
        space: Space,
        /// `.shared::cta`: of the executing CTA alone.
        own: bool,
        p: Reg,
        a: Src,
    },
    Mapa {
        shared: bool,
        dst: Dst,
        a: Src,
        rank: Src,
    },
    Getctarank {
        shared: bool,
        dst: Dst,
        a: Src,
    },
    /// `atom` and `red`. Elements of a vector are changed one by one; two halves of 128 bits together.
    Atom {
        space: Space,
        f: AtomOp,
        ty: Ty,
        /// Empty for `red`.
        dsts: Vec<Option<Dst>>,
        addr: Addr,
        b: Vec<Src>,
        /// What `cas` writes.
        c: Vec<Src>,
    },
    Bra {
        target: u32,
    },
    BraIdx {
        targets: Vec<u32>,
        index: Src,
    },
    Call {
        function: u32,
        /// Offsets in the caller's frame, and sizes.
        rets: Vec<(u32, u32)>,
        args: Vec<(u32, u32)>,
    },
    Ret,
    Exit,
    Trap,
    /// `bar` and `barrier`: arrival, and the wait unless it is `.arrive`.
    Bar {
        aligned: bool,
        wait: bool,
        id: Src,
        count: Option<Src>,
        red: Option<(BarRed, PredSrc, Dst)>,
    },
    BarWarp {
        members: Src,
    },
    Shfl {
        mode: Shuffle,
        dst: Dst,
        p: Option<Reg>,
        a: Src,
        b: Src,
        c: Src,
        members: Src,
    },
    Vote {
        mode: Vote,
        /// The register of `ballot`, the predicate of the others.
        dst: Option<Dst>,
        p: Option<Reg>,
        a: PredSrc,
        members: Src,
    },
    Match {
        all: bool,
        ty: Ty,
        dst: Dst,
        p: Option<Reg>,
        a: Src,
        members: Src,
    },
    Redux {
        f: Binary,
        ty: Ty,
        dst: Dst,
        a: Src,
        members: Src,
    },
    Elect {
        dst: Option<Dst>,
        p: Reg,
        members: Src,
    },
    Activemask {
        dst: Dst,
    },
    MbarInit {
        space: Space,
        addr: Addr,
        count: Src,
    },
    MbarInval {
        space: Space,
        addr: Addr,
    },
    MbarArrive {
        space: Space,
        addr: Addr,
        dst: Option<Dst>,
        count: Src,
        /// Bytes to expect first.
        expect: Option<Src>,
        drop: bool,
        complete: bool,
        release: bool,
        /// Whether the thread's `cp.async` copies are complete first.
        after_copies: bool,
    },
    MbarExpectTx {
        space: Space,
        addr: Addr,
        tx: Src,
        /// `complete_tx` takes the count away instead.
        complete: bool,
    },
    MbarWait {
        space: Space,
        addr: Addr,
        p: Reg,
        /// Whether a copy has reported anything; none does.
        report: Option<Reg>,
        wait: WaitFor,
        /// `try_wait` may suspend the thread.
        suspends: bool,
        acquire: bool,
    },
    /// `check_layout`; every barrier has the layout 0.
    MbarLayout {
        space: Space,
        addr: Addr,
        p: Reg,
        layout: u32,
    },
    MbarPending {
        dst: Dst,
        token: Src,
    },
    /// `fence`, `membar`, and the proxy fences between generic addresses.
    Fence,
    /// `fence.proxy.async`.
    FenceProxyAsync,
    FenceMbarrierInit,
    ClusterArrive {
        aligned: bool,
        release: bool,
    },
    ClusterWait {
        aligned: bool,
    },
    BulkCopy {
        dst_space: Space,
        src_space: Space,
        dst: Addr,
        src: Addr,
        size: Src,
        completion: Completion,
        /// The CTAs of `.multicast::cluster`.
        multicast: Option<Src>,
        /// `.cp_mask`: which bytes of each 16.
        byte_mask: Option<Src>,
        /// `.ignore_oob`: how many bytes at each end are not copied.
        ignored: Option<[Src; 2]>,
        /// `cp.reduce`.
        reduce: Option<(AtomOp, Ty)>,
    },
    /// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`, of tiles and columns.
    TensorCopy {
        /// To shared memory, not out of it.
        load: bool,
        map: Addr,
        /// The first element of the tile, innermost dimension first.
        corner: Vec<Src>,
        /// The offsets of a column.
        columns: Option<Vec<Src>>,
        shared: Addr,
        completion: Completion,
        multicast: Option<Src>,
        reduce: Option<AtomOp>,
    },
    /// `tensormap.replace`.
    TensormapReplace {
        space: Space,
        map: Addr,
        field: Field,
        value: Src,
    },
    /// `tensormap.cp_fenceproxy`.
    TensormapCopy {
        dst: Addr,
        src: Addr,
    },
    /// `ldmatrix`.
    LdMatrix {
        transposed: bool,
        dsts: Vec<Dst>,
        addr: Addr,
    },
    /// `stmatrix`.
    StMatrix {
        transposed: bool,
        srcs: Vec<Src>,
        addr: Addr,
    },
    /// `mma` and `mma.sp`.
    Mma(Box<Mma>),
    /// `movmatrix`.
    MovMatrix {
        dst: Dst,
        a: Src,
    },
    BulkCommit,
    BulkWait {
        pending: u32,
        read: bool,
    },
    /// `cp.async`.
    CpAsync {
        dst: Addr,
        src: Addr,
        size: u32,
        src_size: Option<Src>,
        /// Zeros are written instead of the source where this holds.
        ignore: Option<PredSrc>,
    },
    CpAsyncCommit,
    CpAsyncWait {
        /// `None` for `wait_all`.
        pending: Option<u32>,
    },
    /// `st.async` and `red.async`.
    StAsync {
        ty: Ty,
        srcs: Vec<Src>,
        addr: Addr,
        mbar: Addr,
        reduce: Option<AtomOp>,
    },
    /// `wgmma.fence`.
    WgmmaFence,
    /// `wgmma.mma_async`.
    Wgmma(Arc<Multiplication>),
    WgmmaCommit,
    WgmmaWait {
        pending: u32,
    },
}
