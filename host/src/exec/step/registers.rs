//! Instructions that touch registers alone.

use super::super::alu::{self, Lanes};
use super::super::machine::Machine;
use super::super::op::*;
use super::super::state::*;
use super::memory::{space_of, window};
use super::*;

impl<'a> Machine<'a> {
    /// Instructions that touch registers alone.
    pub(super) fn compute(
        &mut self,
        inst: &Inst,
        warp: &mut Warp,
        at: Window,
        active: u32,
    ) -> Option<Flow> {
        let mut out = [0; 32];
        match &inst.op {
            Op::Nop => {}
            Op::Mov { dst, a } => {
                let values = warp.read(at, *a);
                warp.write(at, *dst, active, &values);
            }
            Op::Binary {
                f,
                ty,
                mode,
                dst,
                a,
                b,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                alu::binary(*f, *ty, *mode, &a, &b, &mut out);
                warp.write(at, *dst, active, &out);
            }
            Op::Unary {
                f,
                ty,
                mode,
                dst,
                a,
            } => {
                alu::unary(*f, *ty, *mode, &warp.read(at, *a), &mut out);
                warp.write(at, *dst, active, &out);
            }
            Op::Ternary {
                f,
                ty,
                mode,
                dst,
                a,
                b,
                c,
            } => {
                let [a, b, c] = [*a, *b, *c].map(|src| warp.read(at, src));
                alu::ternary(*f, *ty, *mode, [&a, &b, &c], &mut out);
                warp.write(at, *dst, active, &out);
            }
            Op::Bfi {
                ty,
                dst,
                a,
                b,
                position,
                length,
            } => {
                let [a, b, c, d] = [*a, *b, *position, *length].map(|src| warp.read(at, src));
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = alu::bfi(*ty, a[lane], b[lane], c[lane], d[lane]);
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Carry {
                sub,
                carry_in,
                carry_out,
                ty,
                dst,
                a,
                b,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let zero = [0; 32];
                let sum = if *sub {
                    [&a, &zero, &b]
                } else {
                    [&a, &b, &zero]
                };
                add_carry(warp, at, active, *ty, *dst, sum, *carry_in, *carry_out);
            }
            Op::MadCarry {
                hi,
                carry_in,
                carry_out,
                ty,
                dst,
                a,
                b,
                c,
            } => {
                let [a, b, c] = [*a, *b, *c].map(|src| warp.read(at, src));
                let f = if *hi { Binary::MulHi } else { Binary::MulLo };
                alu::binary(f, *ty, FloatMode::default(), &a, &b, &mut out);
                let sum = [&out, &c, &[0; 32]];
                add_carry(warp, at, active, *ty, *dst, sum, *carry_in, *carry_out);
            }
            Op::Setp {
                cmp,
                ty,
                ftz,
                p,
                q,
                a,
                b,
                with,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let held = alu::compare(*cmp, *ty, *ftz, &a, &b);
                let combine = |held: u32| match with {
                    Some((f, c)) => logic(*f, held, warp.predicate(at, *c)),
                    None => held,
                };
                let (yes, no) = (combine(held), combine(!held));
                if let Some(p) = p {
                    warp.write_predicate(at, *p, active, yes);
                }
                if let Some(q) = q {
                    warp.write_predicate(at, *q, active, no);
                }
            }
            Op::Set {
                cmp,
                ty,
                ftz,
                one,
                dst,
                a,
                b,
            } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let held = alu::compare(*cmp, *ty, *ftz, &a, &b);
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = if held >> lane & 1 == 1 { *one } else { 0 };
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Selp { dst, a, b, p } => {
                let (a, b) = (warp.read(at, *a), warp.read(at, *b));
                let p = warp.predicate(at, *p);
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = if p >> lane & 1 == 1 { a[lane] } else { b[lane] };
                }
                warp.write(at, *dst, active, &out);
            }
            Op::PredLogic { f, dst, a, b } => {
                let value = logic(*f, warp.predicate(at, *a), warp.predicate(at, *b));
                warp.write_predicate(at, *dst, active, value);
            }
            Op::PredMov { dst, a } => {
                let value = warp.predicate(at, *a);
                warp.write_predicate(at, *dst, active, value);
            }
            Op::PredImm { dst, value } => {
                let value = if *value { u32::MAX } else { 0 };
                warp.write_predicate(at, *dst, active, value);
            }
            Op::PredExplicitCluster { dst } => {
                let value = if self.explicit_cluster { u32::MAX } else { 0 };
                warp.write_predicate(at, *dst, active, value);
            }
            Op::MovPair { dsts, srcs } => {
                let values = srcs.map(|src| warp.read(at, src));
                for (dst, values) in dsts.iter().zip(&values) {
                    if let Some(dst) = dst {
                        warp.write(at, *dst, active, values);
                    }
                }
            }
            Op::Cvt {
                dst,
                to,
                from,
                round,
                integral,
                sat,
                ftz,
                a,
            } => {
                let a = warp.read(at, *a);
                alu::convert(
                    *to, *from, *round, *integral, *sat, *ftz, dst.bits, &a, &mut out,
                );
                warp.write(at, *dst, active, &out);
            }
            Op::Convert(conversion) => {
                let srcs = conversion.srcs.iter().map(|src| warp.read(at, *src));
                let srcs = Vec::from_iter(srcs);
                let random = conversion.random.map(|random| warp.read(at, random));
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = conversion.of(&srcs, random.as_ref(), lane);
                }
                warp.write(at, conversion.dst, active, &out);
            }
            Op::IntegerPack(pack) => {
                let third = pack.c.unwrap_or(Src::Imm(0));
                let [a, b, c] = [pack.a, pack.b, third].map(|src| warp.read(at, src));
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = pack.of(a[lane], b[lane], c[lane]);
                }
                warp.write(at, pack.dst, active, &out);
            }
            Op::Pack { dst, bits, parts } => {
                for (number, part) in parts.iter().enumerate() {
                    let part = warp.read(at, *part);
                    for (out, part) in out.iter_mut().zip(part) {
                        *out |= (part & mask(*bits)) << (bits * number as u32);
                    }
                }
                warp.write(at, *dst, active, &out);
            }
            Op::Unpack { bits, parts, a } => {
                let a = warp.read(at, *a);
                for (number, part) in parts.iter().enumerate() {
                    if let Some(dst) = part {
                        let values = a.map(|a| a >> (bits * number as u32) & mask(*bits));
                        warp.write(at, *dst, active, &values);
                    }
                }
            }
            Op::Cvta { to, space, dst, a } => {
                let window = window(*space);
                let values = warp.read(at, *a).map(|a| {
                    if *to {
                        a.wrapping_sub(window)
                    } else {
                        a.wrapping_add(window)
                    }
                });
                warp.write(at, *dst, active, &values);
            }
            Op::Isspacep { space, own, p, a } => {
                let a = warp.read(at, *a);
                let is_in = |address| match (space_of(address), space) {
                    // The window of the parameters is in that of global memory.
                    (Space::Param, Space::Global) => true,
                    (of, space) => of == *space && (!own || self.is_own_shared(address)),
                };
                let held = (0..32).fold(0, |bits, lane| bits | u32::from(is_in(a[lane])) << lane);
                warp.write_predicate(at, *p, active, held);
            }
            _ => return None,
        }
        Some(Flow::Next)
    }

    pub(super) fn special(&self, warp: &Warp, at: Window, which: Special) -> Lanes {
        let (cluster, cta) = self.at;
        let cluster = &self.clusters[cluster];
        let ctaid = cluster.ctas[cta].ctaid;
        let all = |value: u32| [u64::from(value); 32];
        let shape = self.cluster_shape;
        let per_lane = |f: &dyn Fn(u32) -> u32| {
            let mut values = [0; 32];
            for (lane, value) in values.iter_mut().enumerate() {
                *value = u64::from(f(lane as u32));
            }
            values
        };
        let shared = self.program.functions[self.kernel as usize].shared_end - SHARED_START;
        match which {
            Special::Tid(axis) => {
                per_lane(&|lane| self.thread_of(warp.number * 32 + lane)[axis as usize])
            }
            Special::Ntid(axis) => all(self.grid.block[axis as usize]),
            Special::Ctaid(axis) => all(ctaid[axis as usize]),
            Special::Nctaid(axis) => all(self.grid.grid[axis as usize]),
            Special::Laneid => per_lane(&|lane| lane),
            Special::Warpid => all(warp.number),
            Special::Nwarpid => all(self.threads_per_cta().div_ceil(32)),
            Special::Smid => all(cta as u32),
            Special::Nsmid => all(1),
            Special::Gridid => all(1),
            Special::LanemaskEq => per_lane(&|lane| 1 << lane),
            Special::LanemaskLt => per_lane(&|lane| (1 << lane) - 1),
            Special::LanemaskLe => per_lane(&|lane| u32::MAX >> (31 - lane)),
            Special::LanemaskGt => per_lane(&|lane| !(u32::MAX >> (31 - lane))),
            Special::LanemaskGe => per_lane(&|lane| !((1 << lane) - 1)),
            Special::Clock => [self.stats.warp_instructions; 32],
            Special::ClockHi => [self.stats.warp_instructions >> 32; 32],
            Special::NoGraph => [0; 32],
            Special::Clusterid(axis) => all(ctaid[axis as usize] / shape[axis as usize]),
            Special::Nclusterid(axis) => all(self.clusters_of_grid()[axis as usize]),
            Special::ClusterCtaid(axis) => all(ctaid[axis as usize] % shape[axis as usize]),
            Special::ClusterNctaid(axis) => all(shape[axis as usize]),
            Special::ClusterCtarank => all(cta as u32),
            Special::ClusterNctarank => all(self.cluster_size()),
            Special::IsExplicitCluster => all(self.explicit_cluster.into()),
            Special::DynamicSmemSize => all(self.grid.shared_bytes),
            Special::TotalSmemSize | Special::AggrSmemSize => all(shared + self.grid.shared_bytes),
            Special::Frame { offset, generic } => {
                let window = if generic { LOCAL_WINDOW } else { 0 };
                [window + at.local + u64::from(offset); 32]
            }
        }
    }
}

fn logic(f: Logic, a: u32, b: u32) -> u32 {
    match f {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

#[allow(clippy::too_many_arguments)]
fn add_carry(
    warp: &mut Warp,
    at: Window,
    active: u32,
    ty: Ty,
    dst: Dst,
    [a, b, minus]: [&Lanes; 3],
    carry_in: bool,
    carry_out: bool,
) {
    let mut out = [0; 32];
    let mut carries = 0u32;
    let bits = ty.bits();
    for lane in 0..32 {
        let carry = i128::from(carry_in && warp.carry >> lane & 1 == 1);
        let m = mask(bits);
        let value = |x: &Lanes| i128::from(x[lane] & m);
        // The flag is the borrow of a difference.
        let borrow = if minus.iter().any(|it| *it != 0) {
            -carry
        } else {
            carry
        };
        let sum = value(a) + value(b) - value(minus) + borrow;
        out[lane] = sum as u64 & m;
        carries |= u32::from(!(0..1i128 << bits).contains(&sum)) << lane;
    }
    warp.write(at, dst, active, &out);
    if carry_out {
        warp.carry = warp.carry & !active | carries & active;
    }
}
