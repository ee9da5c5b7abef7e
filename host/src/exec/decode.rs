//! Statements → [`Op`]s. What is not executed is found here, before anything runs.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

use super::op::*;
use super::parse::{Function as Source, Operand, Statement};
use super::program::{Function, Symbol, align_up};
use super::tensor::Field;

/// Decodes one function.
pub struct Decoder<'m, 'a> {
    symbols: &'m HashMap<&'a str, Symbol>,
    source: &'m Source<'a>,
    own: HashMap<&'a str, Symbol>,
    params: Vec<(u32, u32)>,
    rets: Vec<(u32, u32)>,
    sizes: HashMap<&'a str, u32>,
    frame: u32,
}

/// The qualifiers of one opcode. Each is taken by what understands it; what is left is not executed.
struct Quals<'a> {
    parts: Vec<&'a str>,
}

impl<'a> Quals<'a> {
    fn take(&mut self, name: &str) -> bool {
        let found = self.parts.iter().position(|part| *part == name);
        if let Some(at) = found {
            self.parts.remove(at);
        }
        found.is_some()
    }

    fn one_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        choices
            .iter()
            .find_map(|(name, value)| self.take(name).then_some(*value))
    }

    /// The last type among the qualifiers.
    fn ty(&mut self) -> Result<Ty> {
        let at = self
            .parts
            .iter()
            .rposition(|part| Ty::parse(part).is_some())
            .context("expected a type")?;
        Ok(Ty::parse(self.parts.remove(at)).expect("the position is that of a type"))
    }

    fn space(&mut self) -> Space {
        self.one_of(&[
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("shared::cta", Space::Shared),
            ("shared::cluster", Space::Shared),
            ("local", Space::Local),
            ("const", Space::Const),
            ("param", Space::Param),
            ("param::entry", Space::Param),
            ("param::func", Space::Param),
        ])
        .unwrap_or(Space::Generic)
    }

    fn round(&mut self) -> Round {
        self.one_of(&[
            ("rn", Round::Near),
            ("rz", Round::Zero),
            ("rm", Round::Down),
            ("rp", Round::Up),
        ])
        .unwrap_or_default()
    }

    fn float_mode(&mut self) -> FloatMode {
        FloatMode {
            round: self.round(),
            ftz: self.take("ftz"),
            sat: self.take("sat"),
            nan: self.take("NaN"),
        }
    }

    /// Scope, cache and eviction hints, which change no result.
    fn hints(&mut self) {
        self.parts.retain(|part| {
            !matches!(
                *part,
                "cta"
                    | "cluster"
                    | "gpu"
                    | "sys"
                    | "ca"
                    | "cg"
                    | "cs"
                    | "lu"
                    | "cv"
                    | "wb"
                    | "wt"
                    | "nc"
            ) && !part.starts_with("L1::")
                && !part.starts_with("L2::")
        });
    }

    /// The operands without a cache policy, which changes no result.
    fn without_policy<'o, 'p>(&self, operands: &'o [Operand<'p>]) -> &'o [Operand<'p>] {
        match operands {
            [rest @ .., _] if self.parts.contains(&"L2::cache_hint") => rest,
            all => all,
        }
    }

    fn strength(&mut self) -> Strength {
        let strong = [
            "relaxed", "acquire", "release", "volatile", "acq_rel", "mmio",
        ];
        if strong.into_iter().any(|name| self.take(name)) {
            Strength::Strong
        } else {
            self.take("weak");
            Strength::Weak
        }
    }
}

impl<'m, 'a> Decoder<'m, 'a> {
    /// A decoder of `source`, whose own shared variables start at `shared`, if it is a kernel.
    pub fn new(
        symbols: &'m HashMap<&'a str, Symbol>,
        source: &'m Source<'a>,
        mut shared: u32,
    ) -> Self {
        let (mut own, mut sizes, mut frame) = (HashMap::new(), HashMap::new(), 0u32);
        let (mut params, mut rets) = (Vec::new(), Vec::new());
        for (list, variables) in [(&mut params, &source.params), (&mut rets, &source.rets)] {
            for variable in variables {
                frame = align_up(frame, variable.align);
                let symbol = if source.entry {
                    Symbol::Param(frame)
                } else {
                    Symbol::Frame(frame)
                };
                own.insert(variable.name, symbol);
                list.push((frame, variable.bytes));
                frame += variable.bytes;
            }
        }
        if source.entry {
            frame = 0;
        }
        for variable in &source.variables {
            match variable.space {
                Space::Local | Space::Param => {
                    frame = align_up(frame, variable.align);
                    own.insert(variable.name, Symbol::Frame(frame));
                    sizes.insert(variable.name, variable.bytes);
                    frame += variable.bytes;
                }
                Space::Shared if source.entry && !variable.unsized_array => {
                    shared = align_up(shared, variable.align);
                    own.insert(variable.name, Symbol::Shared(shared));
                    shared += variable.bytes;
                }
                _ => {}
            }
        }
        Self {
            symbols,
            source,
            own,
            params,
            rets,
            sizes,
            frame: align_up(frame, 16),
        }
    }

    /// Decodes the body. An instruction that is not executed makes the function one that cannot be run.
    pub fn function(self, shared_end: u32, all: &[Source]) -> Function {
        let mut insts = Vec::with_capacity(self.source.body.len() + 1);
        let mut refused = None;
        for statement in &self.source.body {
            match self.statement(statement, all) {
                Ok(op) => insts.push(Inst {
                    guard: statement.guard,
                    op,
                    line: statement.line as u32,
                }),
                Err(error) => {
                    let (line, opcode) = (statement.line, statement.opcode);
                    refused = Some(format!(
                        "line {line}: `{opcode}` is not executed: {error:#}"
                    ));
                    insts.clear();
                    break;
                }
            }
        }
        let line = insts.last().map_or(self.source.line as u32, |it| it.line);
        insts.push(Inst {
            guard: None,
            op: Op::Ret,
            line,
        });
        let dims = |name: &str| self.source.directives.get(name);
        let product = |values: &Vec<u32>| values.iter().fold(1u32, |a, b| a.saturating_mul(*b));
        Function {
            name: self.source.name.to_owned(),
            entry: self.source.entry,
            registers: self.source.registers.len() as u32,
            predicates: self.source.predicates,
            params: self.params,
            rets: self.rets,
            frame_bytes: self.frame,
            shared_end,
            max_threads: dims(".maxntid").or(dims(".reqntid")).map(product),
            required_threads: dims(".reqntid").cloned(),
            cluster: dims(".reqnctapercluster")
                .map(|dims| [0, 1, 2].map(|axis| dims.get(axis).copied().unwrap_or(1))),
            insts,
            refused,
        }
    }

    fn symbol(&self, name: &str) -> Option<Symbol> {
        self.own
            .get(name)
            .or_else(|| self.symbols.get(name))
            .copied()
    }

    fn src(&self, operand: &Operand, ty: Ty) -> Result<Src> {
        Ok(match operand {
            Operand::Reg { reg, ty } => {
                ensure!(ty.bits() <= 64, "expected a register of at most 64 bits");
                Src::Reg(*reg)
            }
            Operand::Int(value) => {
                let bits = match ty {
                    Ty::F32 => u64::from((*value as f32).to_bits()),
                    Ty::F64 => (*value as f64).to_bits(),
                    _ => *value as u64,
                };
                Src::Imm(bits & mask(ty.bits()))
            }
            Operand::Float { bits, width } => Src::Imm(match (ty, width) {
                (Ty::F32 | Ty::B32, 64) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
                (Ty::F64 | Ty::B64, 32) => f64::from(f32::from_bits(*bits as u32)).to_bits(),
                _ => *bits,
            }),
            Operand::Name("WARP_SZ", 0) => Src::Imm(32),
            Operand::Name(name, offset) => match self.symbol(name) {
                Some(Symbol::Global(address)) => Src::Imm(address.wrapping_add_signed(*offset)),
                Some(Symbol::Shared(address)) => {
                    Src::Imm(u64::from(address.wrapping_add_signed(*offset as i32)))
                }
                Some(Symbol::Param(at)) => Src::Imm(u64::from(at).wrapping_add_signed(*offset)),
                Some(Symbol::Function(number)) => Src::Imm(u64::from(number)),
                Some(Symbol::Frame(_)) => bail!("expected no local variable here: `{name}`"),
                None => bail!("expected a register, number or variable, found `{name}`"),
            },
            other => bail!("expected a register or number, found {other:?}"),
        })
    }

    fn dst(&self, operand: &Operand) -> Result<Dst> {
        match operand {
            Operand::Reg { reg, ty } => {
                ensure!(ty.bits() <= 64, "expected a register of at most 64 bits");
                Ok(Dst {
                    reg: *reg,
                    bits: ty.bits(),
                })
            }
            other => bail!("expected a register for the result, found {other:?}"),
        }
    }

    fn dst_or_sink(&self, operand: &Operand) -> Result<Option<Dst>> {
        match operand {
            Operand::Sink => Ok(None),
            other => self.dst(other).map(Some),
        }
    }

    fn pred(&self, operand: &Operand) -> Result<PredSrc> {
        match operand {
            Operand::Pred(p) => Ok(*p),
            other => bail!("expected a predicate, found {other:?}"),
        }
    }

    fn pred_dst(&self, operand: &Operand) -> Result<Reg> {
        Ok(self.pred(operand)?.reg)
    }

    fn addr(&self, operand: &Operand) -> Result<Addr> {
        let Operand::Address(parts, offset) = operand else {
            bail!("expected an address in `[]`, found {operand:?}");
        };
        ensure!(parts.len() == 1, "expected one address in `[]`");
        Ok(match &parts[0] {
            // A name carries its own offset.
            name @ Operand::Name(..) => Addr {
                base: self.src(name, Ty::U64)?,
                offset: *offset,
            },
            base => Addr {
                base: self.src(base, Ty::U64)?,
                offset: *offset,
            },
        })
    }

    /// An address in the frame, if the operand names a local variable or a parameter of a call.
    fn frame_address(&self, operand: &Operand) -> Option<i64> {
        let Operand::Address(parts, offset) = operand else {
            return None;
        };
        match parts.as_slice() {
            [Operand::Name(name, plus)] => match self.symbol(name) {
                Some(Symbol::Frame(at)) => Some(i64::from(at) + plus + offset),
                _ => None,
            },
            _ => None,
        }
    }

    fn statement(&self, statement: &Statement<'a>, all: &[Source]) -> Result<Op> {
        let mut parts = statement.opcode.split('.');
        let name = parts.next().unwrap_or_default();
        let mut q = Quals {
            parts: parts.collect(),
        };
        let o = statement.operands.as_slice();
        let op = self.decode(name, &mut q, o, all)?;
        if let Some(left) = q.parts.first() {
            bail!("no meaning of `.{left}` here is known");
        }
        Ok(op)
    }

    fn decode(&self, name: &str, q: &mut Quals, o: &[Operand], all: &[Source]) -> Result<Op> {
        match name {
            "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "and" | "or" | "xor"
            | "shl" | "shr" | "bmsk" => self.binary(name, q, o),
            "addc" | "subc" => self.carry(name, q, o),
            "mad" | "madc" | "fma" | "sad" | "bfe" | "prmt" | "shf" | "lop3" | "dp4a" | "mad24" => {
                self.ternary(name, q, o)
            }
            "mul24" => bail!("24-bit products are not executed"),
            "neg" | "not" | "abs" | "popc" | "clz" | "brev" | "bfind" | "cnot" | "sqrt" | "rcp" => {
                self.unary(name, q, o)
            }
            "bfi" => {
                let ty = q.ty()?;
                expect(o, 5)?;
                Ok(Op::Bfi {
                    ty,
                    dst: self.dst(&o[0])?,
                    a: self.src(&o[1], ty)?,
                    b: self.src(&o[2], ty)?,
                    position: self.src(&o[3], Ty::U32)?,
                    length: self.src(&o[4], Ty::U32)?,
                })
            }
            "setp" | "set" => self.compare(name, q, o),
            "selp" => {
                let ty = q.ty()?;
                expect(o, 4)?;
                Ok(Op::Selp {
                    dst: self.dst(&o[0])?,
                    a: self.src(&o[1], ty)?,
                    b: self.src(&o[2], ty)?,
                    p: self.pred(&o[3])?,
                })
            }
            "mov" => self.mov(q, o),
            "cvt" => self.cvt(q, o),
            "cvta" => {
                let to = q.take("to");
                let space = q.space();
                let ty = q.ty()?;
                expect(o, 2)?;
                if let Operand::Name(name, plus) = &o[1]
                    && let Some(Symbol::Frame(at)) = self.symbol(name)
                {
                    ensure!(!to, "expected an address that is generic");
                    return Ok(Op::Special {
                        dst: self.dst(&o[0])?,
                        which: Special::Frame {
                            offset: at.wrapping_add_signed(*plus as i32),
                            generic: true,
                        },
                    });
                }
                Ok(Op::Cvta {
                    to,
                    space,
                    dst: self.dst(&o[0])?,
                    a: self.src(&o[1], ty)?,
                })
            }
            "isspacep" => {
                let space = q.space();
                expect(o, 2)?;
                Ok(Op::Isspacep {
                    space,
                    p: self.pred_dst(&o[0])?,
                    a: self.src(&o[1], Ty::U64)?,
                })
            }
            "mapa" | "getctarank" => {
                let shared = q.space() == Space::Shared;
                let ty = q.ty()?;
                expect(o, if name == "mapa" { 3 } else { 2 })?;
                let (dst, a) = (self.dst(&o[0])?, self.src(&o[1], ty)?);
                Ok(if name == "mapa" {
                    Op::Mapa {
                        shared,
                        dst,
                        a,
                        rank: self.src(&o[2], Ty::U32)?,
                    }
                } else {
                    Op::Getctarank { shared, dst, a }
                })
            }
            "ld" | "ldu" | "st" => self.memory(name, q, o),
            "atom" | "red" => self.atom(name, q, o),
            "bra" => {
                q.take("uni");
                expect(o, 1)?;
                Ok(Op::Bra {
                    target: label(&o[0])?,
                })
            }
            "brx" => self.branch_table(q, o),
            "call" => self.call(q, o, all),
            "ret" => {
                q.take("uni");
                Ok(Op::Ret)
            }
            "exit" => Ok(Op::Exit),
            "trap" | "brkpt" => Ok(Op::Trap),
            "bar" | "barrier" => self.bar(name, q, o),
            "shfl" => self.shuffle(q, o),
            "vote" => self.vote(q, o),
            "match" => self.matching(q, o),
            "redux" => {
                q.take("sync");
                let f = q
                    .one_of(&[
                        ("add", Binary::Add),
                        ("min", Binary::Min),
                        ("max", Binary::Max),
                        ("and", Binary::And),
                        ("or", Binary::Or),
                        ("xor", Binary::Xor),
                    ])
                    .context("expected an operation")?;
                let ty = q.ty()?;
                expect(o, 3)?;
                ensure!(!ty.float(), "reductions of floats are not executed");
                Ok(Op::Redux {
                    f,
                    ty,
                    dst: self.dst(&o[0])?,
                    a: self.src(&o[1], ty)?,
                    members: self.src(&o[2], Ty::U32)?,
                })
            }
            "elect" => {
                q.take("sync");
                expect(o, 2)?;
                let Operand::Pair(d, p) = &o[0] else {
                    bail!("expected `d|p`");
                };
                Ok(Op::Elect {
                    dst: self.dst_or_sink(d)?,
                    p: self.pred_dst(p)?,
                    members: self.src(&o[1], Ty::U32)?,
                })
            }
            "activemask" => {
                q.ty()?;
                expect(o, 1)?;
                Ok(Op::Activemask {
                    dst: self.dst(&o[0])?,
                })
            }
            "mbarrier" => self.mbarrier(q, o),
            "fence" | "membar" => self.fence(q),
            "cp" => self.cp(q, o),
            "tensormap" => self.tensor_map(q, o),
            "ldmatrix" | "stmatrix" => self.matrix(name == "ldmatrix", q, o),
            "multimem" => bail!("it needs the memory of several GPUs"),
            "griddepcontrol" => {
                ensure!(
                    q.take("wait") || q.take("launch_dependents"),
                    "expected `.wait` or `.launch_dependents`"
                );
                Ok(Op::Nop)
            }
            "nanosleep" => {
                q.ty()?;
                expect(o, 1)?;
                Ok(Op::Nop)
            }
            "setmaxnreg" => {
                q.parts.clear();
                Ok(Op::Nop)
            }
            "prefetch" | "prefetchu" | "discard" | "applypriority" => {
                ensure!(name != "discard", "`discard` destroys data");
                q.parts.clear();
                Ok(Op::Nop)
            }
            _ => bail!("no such instruction is known"),
        }
    }

    fn binary(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("cc") {
            return self.carry_form(name == "sub", false, true, q, o);
        }
        let f = match name {
            "add" => Binary::Add,
            "sub" => Binary::Sub,
            "mul" if q.take("hi") => Binary::MulHi,
            "mul" if q.take("wide") => Binary::MulWide,
            "mul" => {
                q.take("lo");
                Binary::MulLo
            }
            "div" => Binary::Div,
            "rem" => Binary::Rem,
            "min" => Binary::Min,
            "max" => Binary::Max,
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            "shl" => Binary::Shl,
            "shr" => Binary::Shr,
            _ => Binary::Bmsk {
                clamp: {
                    let clamp = q.take("clamp");
                    ensure!(clamp || q.take("wrap"), "expected `.clamp` or `.wrap`");
                    clamp
                },
            },
        };
        let ty = q.ty()?;
        let mode = q.float_mode();
        expect(o, 3)?;
        if ty == Ty::Pred {
            let f = match f {
                Binary::And => Logic::And,
                Binary::Or => Logic::Or,
                _ => Logic::Xor,
            };
            return Ok(Op::PredLogic {
                f,
                dst: self.pred_dst(&o[0])?,
                a: self.pred(&o[1])?,
                b: self.pred(&o[2])?,
            });
        }
        let shift = matches!(f, Binary::Shl | Binary::Shr);
        let b_ty = if shift { Ty::U32 } else { ty };
        if ty.float() {
            let known = match f {
                Binary::Add | Binary::Sub | Binary::MulLo => true,
                Binary::Div => matches!(ty, Ty::F32 | Ty::F64),
                Binary::Min | Binary::Max => true,
                _ => false,
            };
            ensure!(known, "no such operation on floats is known");
            ensure!(
                mode.round == Round::Near || f != Binary::Div,
                "only division to nearest is executed"
            );
        } else if mode.sat {
            ensure!(
                ty == Ty::S32 && matches!(f, Binary::Add | Binary::Sub),
                "`.sat` is executed on `.s32` sums alone"
            );
        }
        Ok(Op::Binary {
            f,
            ty,
            mode,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], b_ty)?,
        })
    }

    fn carry(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let out = q.take("cc");
        self.carry_form(name == "subc", true, out, q, o)
    }

    fn carry_form(
        &self,
        sub: bool,
        carry_in: bool,
        carry_out: bool,
        q: &mut Quals,
        o: &[Operand],
    ) -> Result<Op> {
        let ty = q.ty()?;
        expect(o, 3)?;
        Ok(Op::Carry {
            sub,
            carry_in,
            carry_out,
            ty,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], ty)?,
        })
    }

    fn ternary(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let mut mode = FloatMode::default();
        let (f, ty, count, c_ty);
        match name {
            "mad" | "madc" if q.take("cc") || name == "madc" => {
                let carry_out = name == "mad" || q.take("cc");
                let hi = q.take("hi");
                q.take("lo");
                let ty = q.ty()?;
                expect(o, 4)?;
                return Ok(Op::MadCarry {
                    hi,
                    carry_in: name == "madc",
                    carry_out,
                    ty,
                    dst: self.dst(&o[0])?,
                    a: self.src(&o[1], ty)?,
                    b: self.src(&o[2], ty)?,
                    c: self.src(&o[3], ty)?,
                });
            }
            "mad" => {
                f = if q.take("hi") {
                    Ternary::MadHi
                } else if q.take("wide") {
                    Ternary::MadWide
                } else if q.take("lo") {
                    Ternary::MadLo
                } else {
                    Ternary::Fma
                };
                ty = q.ty()?;
                mode = q.float_mode();
                ensure!(
                    ty.float() == (f == Ternary::Fma) && !mode.sat | ty.float(),
                    "no such form of `mad` is known"
                );
                count = 4;
                c_ty = match (f, ty) {
                    (Ternary::MadWide, Ty::U16 | Ty::S16) => Ty::U32,
                    (Ternary::MadWide, _) => Ty::U64,
                    _ => ty,
                };
            }
            "fma" => {
                f = Ternary::Fma;
                ty = q.ty()?;
                mode = q.float_mode();
                ensure!(
                    matches!(ty, Ty::F32 | Ty::F64) && mode.round == Round::Near,
                    "`fma` is executed on `.f32` and `.f64`, to nearest"
                );
                (count, c_ty) = (4, ty);
            }
            "sad" => (f, ty, count, c_ty) = sad_like(Ternary::Sad, q.ty()?),
            "bfe" => {
                f = Ternary::Bfe;
                (ty, count, c_ty) = (q.ty()?, 4, Ty::U32);
            }
            "prmt" => {
                f = Ternary::Prmt(
                    q.one_of(&[
                        ("f4e", Permute::F4e),
                        ("b4e", Permute::B4e),
                        ("rc8", Permute::Rc8),
                        ("ecl", Permute::Ecl),
                        ("ecr", Permute::Ecr),
                        ("rc16", Permute::Rc16),
                    ])
                    .unwrap_or(Permute::Selector),
                );
                (ty, count, c_ty) = (q.ty()?, 4, Ty::U32);
            }
            "shf" => {
                let left = q.take("l");
                ensure!(left || q.take("r"), "expected `.l` or `.r`");
                let clamp = q.take("clamp");
                ensure!(clamp || q.take("wrap"), "expected `.clamp` or `.wrap`");
                f = if left {
                    Ternary::ShfL { clamp }
                } else {
                    Ternary::ShfR { clamp }
                };
                (ty, count, c_ty) = (q.ty()?, 4, Ty::U32);
            }
            "lop3" => {
                ty = q.ty()?;
                expect(o, 5)?;
                let Operand::Int(table) = o[4] else {
                    bail!("expected an immediate table");
                };
                f = Ternary::Lop3(table as u8);
                (count, c_ty) = (5, ty);
            }
            "dp4a" => {
                let second = q.ty()?;
                let first = q.ty()?;
                f = Ternary::Dp4a {
                    a_signed: first == Ty::S32,
                    b_signed: second == Ty::S32,
                };
                (ty, count, c_ty) = (Ty::B32, 4, Ty::B32);
            }
            _ => bail!("no such instruction is known"),
        }
        expect(o, count)?;
        let b_ty = if f == Ternary::Bfe { Ty::U32 } else { ty };
        Ok(Op::Ternary {
            f,
            ty,
            mode,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], b_ty)?,
            c: self.src(&o[3], c_ty)?,
        })
    }

    fn unary(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let f = match name {
            "neg" => Unary::Neg,
            "not" => Unary::Not,
            "abs" => Unary::Abs,
            "popc" => Unary::Popc,
            "clz" => Unary::Clz,
            "brev" => Unary::Brev,
            "bfind" => Unary::Bfind(q.take("shiftamt")),
            "cnot" => Unary::Cnot,
            "sqrt" => Unary::Sqrt,
            _ => Unary::Rcp,
        };
        let ty = q.ty()?;
        let rounded = ["rn", "rz", "rm", "rp"]
            .iter()
            .any(|it| q.parts.contains(it));
        let mode = q.float_mode();
        expect(o, 2)?;
        if matches!(f, Unary::Sqrt | Unary::Rcp) {
            ensure!(
                rounded && mode.round == Round::Near,
                "only `.rn` is executed: an approximation is the hardware's own"
            );
        }
        if ty == Ty::Pred {
            let a = self.pred(&o[1])?;
            return Ok(Op::PredMov {
                dst: self.pred_dst(&o[0])?,
                a: PredSrc {
                    negated: !a.negated,
                    ..a
                },
            });
        }
        Ok(Op::Unary {
            f,
            ty,
            mode,
            dst: self.dst(&o[0])?,
            a: self.src(&o[1], ty)?,
        })
    }

    fn compare(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let cmp = q
            .one_of(&[
                ("eq", Cmp::Eq),
                ("ne", Cmp::Ne),
                ("lt", Cmp::Lt),
                ("le", Cmp::Le),
                ("gt", Cmp::Gt),
                ("ge", Cmp::Ge),
                ("lo", Cmp::Lo),
                ("ls", Cmp::Ls),
                ("hi", Cmp::Hi),
                ("hs", Cmp::Hs),
                ("equ", Cmp::Equ),
                ("neu", Cmp::Neu),
                ("ltu", Cmp::Ltu),
                ("leu", Cmp::Leu),
                ("gtu", Cmp::Gtu),
                ("geu", Cmp::Geu),
                ("num", Cmp::Num),
                ("nan", Cmp::Nan),
            ])
            .context("expected a comparison")?;
        let logic = q.one_of(&[("and", Logic::And), ("or", Logic::Or), ("xor", Logic::Xor)]);
        let ty = q.ty()?;
        let ftz = q.take("ftz");
        ensure!(
            !matches!(ty, Ty::F16x2 | Ty::Bf16x2),
            "comparisons of packed floats are not executed"
        );
        if name == "set" {
            let to = q.ty()?;
            expect(o, 3)?;
            ensure!(logic.is_none(), "`set` with a predicate is not executed");
            // By the ISA it is 1.0; an H200 (driver 580) gives the integer 1 for `.f32.s32`.
            ensure!(!to.float(), "`set` with a float as result is not executed");
            let one = mask(to.bits());
            return Ok(Op::Set {
                cmp,
                ty,
                ftz,
                one,
                dst: self.dst(&o[0])?,
                a: self.src(&o[1], ty)?,
                b: self.src(&o[2], ty)?,
            });
        }
        expect(o, if logic.is_some() { 4 } else { 3 })?;
        let (p, second) = match &o[0] {
            Operand::Pair(p, second) => (&**p, Some(&**second)),
            p => (p, None),
        };
        let target = |operand: &Operand| match operand {
            Operand::Sink => Ok(None),
            other => self.pred_dst(other).map(Some),
        };
        Ok(Op::Setp {
            cmp,
            ty,
            ftz,
            p: target(p)?,
            q: second.map(target).transpose()?.flatten(),
            a: self.src(&o[1], ty)?,
            b: self.src(&o[2], ty)?,
            with: logic
                .map(|logic| Ok::<_, anyhow::Error>((logic, self.pred(&o[3])?)))
                .transpose()?,
        })
    }

    fn mov(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let ty = q.ty()?;
        expect(o, 2)?;
        if ty == Ty::Pred {
            let dst = self.pred_dst(&o[0])?;
            return Ok(match &o[1] {
                Operand::Name("%is_explicit_cluster", 0) => Op::PredExplicitCluster { dst },
                Operand::Int(value) => Op::PredImm {
                    dst,
                    value: *value != 0,
                },
                a => Op::PredMov {
                    dst,
                    a: self.pred(a)?,
                },
            });
        }
        if ty == Ty::B128 {
            let ([low, high], [from_low, from_high]) = (halves(&o[0])?, halves(&o[1])?);
            return Ok(Op::MovPair {
                dsts: [self.dst_or_sink(&low)?, self.dst_or_sink(&high)?],
                srcs: [
                    self.src(&from_low, Ty::B64)?,
                    self.src(&from_high, Ty::B64)?,
                ],
            });
        }
        match (&o[0], &o[1]) {
            (Operand::Vector(parts), a) => {
                let bits = ty.bits() / parts.len() as u32;
                Ok(Op::Unpack {
                    bits,
                    parts: parts
                        .iter()
                        .map(|part| self.dst_or_sink(part))
                        .collect::<Result<_>>()?,
                    a: self.src(a, ty)?,
                })
            }
            (dst, Operand::Vector(parts)) => {
                let bits = ty.bits() / parts.len() as u32;
                let part_ty = match bits {
                    8 => Ty::B8,
                    16 => Ty::B16,
                    _ => Ty::B32,
                };
                Ok(Op::Pack {
                    dst: self.dst(dst)?,
                    bits,
                    parts: parts
                        .iter()
                        .map(|part| self.src(part, part_ty))
                        .collect::<Result<_>>()?,
                })
            }
            (dst, Operand::Name(name, 0)) if name.starts_with('%') => {
                let dst = self.dst(dst)?;
                Ok(match special(name) {
                    Some(which) => Op::Special { dst, which },
                    None => bail!("no special register `{name}` is known"),
                })
            }
            (dst, Operand::Name(name, plus)) if let Some(Symbol::Frame(at)) = self.symbol(name) => {
                Ok(Op::Special {
                    dst: self.dst(dst)?,
                    which: Special::Frame {
                        offset: at.wrapping_add_signed(*plus as i32),
                        generic: false,
                    },
                })
            }
            (dst, a) => Ok(Op::Mov {
                dst: self.dst(dst)?,
                a: self.src(a, ty)?,
            }),
        }
    }

    fn cvt(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("pack") {
            bail!("`cvt.pack` is not executed");
        }
        let integral = q.one_of(&[
            ("rni", Round::Near),
            ("rzi", Round::Zero),
            ("rmi", Round::Down),
            ("rpi", Round::Up),
        ]);
        let float = q.one_of(&[
            ("rn", Round::Near),
            ("rz", Round::Zero),
            ("rm", Round::Down),
            ("rp", Round::Up),
        ]);
        let (sat, ftz, relu) = (q.take("sat"), q.take("ftz"), q.take("relu"));
        let from = q.ty()?;
        let to = q.ty()?;
        if matches!(to, Ty::F16x2 | Ty::Bf16x2) {
            expect(o, 3)?;
            let round = float.context("expected a rounding")?;
            ensure!(
                from == Ty::F32 && matches!(round, Round::Near | Round::Zero) && !sat,
                "no such packed conversion is known"
            );
            return Ok(Op::CvtPack {
                dst: self.dst(&o[0])?,
                to,
                round,
                relu,
                hi: self.src(&o[1], Ty::F32)?,
                lo: self.src(&o[2], Ty::F32)?,
            });
        }
        ensure!(!relu, "`.relu` is executed on packed conversions alone");
        ensure!(
            !matches!(from, Ty::F16x2 | Ty::Bf16x2),
            "no such packed conversion is known"
        );
        expect(o, 2)?;
        Ok(Op::Cvt {
            dst: self.dst(&o[0])?,
            to,
            from,
            round: integral.or(float),
            integral: integral.is_some(),
            sat,
            ftz,
            a: self.src(&o[1], from)?,
        })
    }

    fn memory(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("async") {
            return self.store_async(q, o, None);
        }
        ensure!(!q.take("bulk"), "`st.bulk` is not executed");
        let strength = q.strength();
        let mut space = q.space();
        let lanes = q
            .one_of(&[("v2", 2), ("v4", 4), ("v8", 8)])
            .unwrap_or(1usize);
        q.take("unified");
        let ty = q.ty()?;
        let o = q.without_policy(o);
        q.hints();
        expect(o, 2)?;
        let (value, address) = if name == "st" {
            (&o[1], &o[0])
        } else {
            (&o[0], &o[1])
        };
        let addr = match self.frame_address(address) {
            Some(offset) => {
                space = Space::Frame;
                Addr {
                    base: Src::Imm(0),
                    offset,
                }
            }
            None => self.addr(address)?,
        };
        let values = match value {
            Operand::Vector(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        ensure!(values.len() == lanes, "expected {lanes} registers");
        let halved;
        let (ty, values) = if ty == Ty::B128 {
            let pairs: Vec<_> = values.iter().map(halves).collect::<Result<_>>()?;
            halved = pairs.concat();
            (Ty::B64, halved.as_slice())
        } else {
            (ty, values)
        };
        Ok(if name == "st" {
            Op::St {
                space,
                ty,
                srcs: values
                    .iter()
                    .map(|value| self.src(value, ty))
                    .collect::<Result<_>>()?,
                addr,
                strength,
            }
        } else {
            Op::Ld {
                space,
                ty,
                dsts: values
                    .iter()
                    .map(|value| self.dst_or_sink(value))
                    .collect::<Result<_>>()?,
                addr,
                strength,
            }
        })
    }

    fn atom(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let asynchronous = q.take("async");
        q.strength();
        let f = atom_op(q).context("expected an operation")?;
        if asynchronous {
            return self.store_async(q, o, Some(f));
        }
        q.take("noftz");
        let space = q.space();
        let ty = q.ty()?;
        let o = q.without_policy(o);
        q.hints();
        check_atom(f, ty)?;
        let first = usize::from(name == "atom");
        let count = first + if f == AtomOp::Cas { 3 } else { 2 };
        expect(o, count)?;
        Ok(Op::Atom {
            space,
            f,
            ty,
            dst: match first {
                1 => self.dst_or_sink(&o[0])?,
                _ => None,
            },
            addr: self.addr(&o[first])?,
            b: self.src(&o[first + 1], ty)?,
            c: match o.get(first + 2) {
                Some(c) => self.src(c, ty)?,
                None => Src::Imm(0),
            },
        })
    }

    fn store_async(&self, q: &mut Quals, o: &[Operand], reduce: Option<AtomOp>) -> Result<Op> {
        q.strength();
        q.hints();
        ensure!(
            q.take("shared::cluster") && q.take("mbarrier::complete_tx::bytes"),
            "expected `.shared::cluster.mbarrier::complete_tx::bytes`"
        );
        let lanes = q.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1usize);
        let ty = q.ty()?;
        expect(o, 3)?;
        if let Some(f) = reduce {
            check_atom(f, ty)?;
        }
        let values = match &o[1] {
            Operand::Vector(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        ensure!(values.len() == lanes, "expected {lanes} registers");
        Ok(Op::StAsync {
            ty,
            srcs: values
                .iter()
                .map(|value| self.src(value, ty))
                .collect::<Result<_>>()?,
            addr: self.addr(&o[0])?,
            mbar: self.addr(&o[2])?,
            reduce,
        })
    }

    fn branch_table(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("idx"), "expected `.idx`");
        q.take("uni");
        expect(o, 2)?;
        let Operand::Name(name, 0) = &o[1] else {
            bail!("expected a list of targets");
        };
        let targets = self
            .source
            .tables
            .get(name)
            .with_context(|| format!("expected `.branchtargets` called `{name}`"))?;
        Ok(Op::BraIdx {
            targets: targets.iter().map(label).collect::<Result<_>>()?,
            index: self.src(&o[0], Ty::U32)?,
        })
    }

    fn call(&self, q: &mut Quals, o: &[Operand], all: &[Source]) -> Result<Op> {
        q.take("uni");
        let (rets, rest) = match o {
            [Operand::List(rets), rest @ ..] => (rets.as_slice(), rest),
            rest => (&[][..], rest),
        };
        let (name, args) = match rest {
            [Operand::Name(name, 0)] => (*name, &[][..]),
            [Operand::Name(name, 0), Operand::List(args)] => (*name, args.as_slice()),
            _ => bail!("expected the name of a function; indirect calls are not executed"),
        };
        let Some(Symbol::Function(function)) = self.symbol(name) else {
            bail!("the function `{name}` has no body in this module");
        };
        let callee = all
            .iter()
            .filter(|it| it.has_body)
            .nth(function as usize)
            .context("expected a function")?;
        let places = |operands: &[Operand], formal: usize| -> Result<Vec<(u32, u32)>> {
            ensure!(
                operands.len() == formal,
                "`{name}` takes or returns {formal} values, found {}",
                operands.len()
            );
            operands
                .iter()
                .map(|operand| match operand {
                    Operand::Name(name, 0) => match self.own.get(name) {
                        Some(Symbol::Frame(at)) => {
                            Ok((*at, self.sizes.get(name).copied().unwrap_or(0)))
                        }
                        _ => bail!("expected a `.param` of this function, found `{name}`"),
                    },
                    _ => bail!("expected a `.param`; arguments in registers are not executed"),
                })
                .collect()
        };
        Ok(Op::Call {
            function,
            rets: places(rets, callee.rets.len())?,
            args: places(args, callee.params.len())?,
        })
    }

    fn bar(&self, name: &str, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("cluster") {
            let aligned = q.take("aligned");
            if q.take("arrive") {
                let relaxed = q.take("relaxed");
                q.take("release");
                return Ok(Op::ClusterArrive {
                    aligned,
                    release: !relaxed,
                });
            }
            ensure!(q.take("wait"), "expected `.arrive` or `.wait`");
            q.take("acquire");
            return Ok(Op::ClusterWait { aligned });
        }
        if q.take("warp") {
            q.take("sync");
            expect(o, 1)?;
            return Ok(Op::BarWarp {
                members: self.src(&o[0], Ty::U32)?,
            });
        }
        q.take("cta");
        let aligned = name == "bar" || q.take("aligned");
        if q.take("red") {
            let red = q
                .one_of(&[
                    ("popc", BarRed::Popc),
                    ("and", BarRed::And),
                    ("or", BarRed::Or),
                ])
                .context("expected an operation")?;
            let ty = q.ty()?;
            ensure!(o.len() >= 3, "expected a result, a barrier and a predicate");
            let dst = match ty {
                Ty::Pred => Dst {
                    reg: self.pred_dst(&o[0])?,
                    bits: 1,
                },
                _ => self.dst(&o[0])?,
            };
            return Ok(Op::Bar {
                aligned,
                wait: true,
                id: self.src(&o[1], Ty::U32)?,
                count: match o.len() {
                    4 => Some(self.src(&o[2], Ty::U32)?),
                    _ => None,
                },
                red: Some((red, self.pred(&o[o.len() - 1])?, dst)),
            });
        }
        let wait = q.take("sync");
        ensure!(wait || q.take("arrive"), "expected `.sync` or `.arrive`");
        ensure!(!o.is_empty(), "expected a barrier");
        Ok(Op::Bar {
            aligned,
            wait,
            id: self.src(&o[0], Ty::U32)?,
            count: o.get(1).map(|count| self.src(count, Ty::U32)).transpose()?,
            red: None,
        })
    }

    fn shuffle(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sync"), "expected `.sync`");
        let mode = q
            .one_of(&[
                ("up", Shuffle::Up),
                ("down", Shuffle::Down),
                ("bfly", Shuffle::Bfly),
                ("idx", Shuffle::Idx),
            ])
            .context("expected a mode")?;
        q.ty()?;
        expect(o, 5)?;
        let (d, p) = match &o[0] {
            Operand::Pair(d, p) => (&**d, Some(self.pred_dst(p)?)),
            d => (d, None),
        };
        Ok(Op::Shfl {
            mode,
            dst: self.dst(d)?,
            p,
            a: self.src(&o[1], Ty::B32)?,
            b: self.src(&o[2], Ty::B32)?,
            c: self.src(&o[3], Ty::B32)?,
            members: self.src(&o[4], Ty::B32)?,
        })
    }

    fn vote(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sync"), "expected `.sync`");
        let mode = q
            .one_of(&[
                ("all", Vote::All),
                ("any", Vote::Any),
                ("uni", Vote::Uni),
                ("ballot", Vote::Ballot),
            ])
            .context("expected a mode")?;
        q.ty()?;
        expect(o, 3)?;
        let ballot = mode == Vote::Ballot;
        Ok(Op::Vote {
            mode,
            dst: ballot.then(|| self.dst(&o[0])).transpose()?,
            p: (!ballot).then(|| self.pred_dst(&o[0])).transpose()?,
            a: self.pred(&o[1])?,
            members: self.src(&o[2], Ty::B32)?,
        })
    }

    fn matching(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(q.take("sync"), "expected `.sync`");
        let all = q.take("all");
        ensure!(all || q.take("any"), "expected `.all` or `.any`");
        let ty = q.ty()?;
        expect(o, 3)?;
        let (d, p) = match &o[0] {
            Operand::Pair(d, p) => (&**d, Some(self.pred_dst(p)?)),
            d => (d, None),
        };
        Ok(Op::Match {
            all,
            ty,
            dst: self.dst(d)?,
            p,
            a: self.src(&o[1], ty)?,
            members: self.src(&o[2], Ty::B32)?,
        })
    }

    fn mbarrier(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        ensure!(!q.parts.is_empty(), "expected an operation");
        let what = q.parts.remove(0);
        if what == "pending_count" {
            q.ty()?;
            expect(o, 2)?;
            return Ok(Op::MbarPending {
                dst: self.dst(&o[0])?,
                token: self.src(&o[1], Ty::B64)?,
            });
        }
        ensure!(q.take("b64"), "expected `.b64`");
        let space = q.space();
        let relaxed = q.take("relaxed");
        let (release, acquire) = (q.take("release"), q.take("acquire"));
        ensure!(
            u8::from(relaxed) + u8::from(release) + u8::from(acquire) <= 1,
            "expected one of `.relaxed`, `.release` and `.acquire`"
        );
        q.take("cta");
        q.take("cluster");
        match what {
            "check_layout" => {
                let layout = q.one_of(&[("layout::v0", 0), ("layout::v1", 1)]);
                expect(o, 2)?;
                Ok(Op::MbarLayout {
                    space,
                    addr: self.addr(&o[1])?,
                    p: self.pred_dst(&o[0])?,
                    layout: layout.context("expected a layout")?,
                })
            }
            "init" => {
                q.take("layout::v0");
                ensure!(
                    !q.take("layout::v1"),
                    "barriers with a conditional phase are not executed"
                );
                expect(o, 2)?;
                Ok(Op::MbarInit {
                    space,
                    addr: self.addr(&o[0])?,
                    count: self.src(&o[1], Ty::U32)?,
                })
            }
            "inval" => {
                expect(o, 1)?;
                Ok(Op::MbarInval {
                    space,
                    addr: self.addr(&o[0])?,
                })
            }
            "expect_tx" | "complete_tx" => {
                expect(o, 2)?;
                Ok(Op::MbarExpectTx {
                    space,
                    addr: self.addr(&o[0])?,
                    tx: self.src(&o[1], Ty::U32)?,
                    complete: what == "complete_tx",
                })
            }
            "arrive" | "arrive_drop" => {
                let expect_tx = q.take("expect_tx");
                let no_complete = q.take("noComplete");
                let (dst, rest) = match o {
                    [Operand::Address(..), ..] => (None, o),
                    [dst, rest @ ..] => (self.dst_or_sink(dst)?, rest),
                    [] => bail!("expected an address"),
                };
                ensure!(
                    (1..=2).contains(&rest.len()),
                    "expected one or two operands"
                );
                let number = rest
                    .get(1)
                    .map(|count| self.src(count, Ty::U32))
                    .transpose()?;
                Ok(Op::MbarArrive {
                    space,
                    addr: self.addr(&rest[0])?,
                    dst,
                    count: match number {
                        Some(count) if !expect_tx => count,
                        _ => Src::Imm(1),
                    },
                    expect: if expect_tx {
                        Some(number.context("expected a transaction count")?)
                    } else {
                        None
                    },
                    drop: what == "arrive_drop",
                    complete: !no_complete,
                    release: !relaxed,
                    after_copies: false,
                })
            }
            "test_wait" | "try_wait" => {
                let parity = q.take("parity");
                q.take("phase_type::primary");
                ensure!(
                    !q.take("phase_type::conditional"),
                    "barriers with a conditional phase are not executed"
                );
                let [results, rest @ ..] = o else {
                    bail!("expected a predicate, an address and a phase");
                };
                let (p, report) = match results {
                    Operand::Pair(p, report) => (&**p, Some(self.pred_dst(report)?)),
                    p => (p, None),
                };
                // What was reported is nothing in particular when nothing was.
                let rest = match rest {
                    [Operand::Reg { .. }, rest @ ..] if report.is_some() => rest,
                    rest => rest,
                };
                let limit = usize::from(what == "try_wait");
                ensure!(
                    (2..=2 + limit).contains(&rest.len()),
                    "expected a predicate, an address and a phase"
                );
                Ok(Op::MbarWait {
                    space,
                    addr: self.addr(&rest[0])?,
                    p: self.pred_dst(p)?,
                    report,
                    wait: if parity {
                        WaitFor::Parity(self.src(&rest[1], Ty::U32)?)
                    } else {
                        WaitFor::Token(self.src(&rest[1], Ty::B64)?)
                    },
                    suspends: what == "try_wait",
                    acquire: !relaxed,
                })
            }
            _ => bail!("no such operation on barriers is known"),
        }
    }

    fn fence(&self, q: &mut Quals) -> Result<Op> {
        if q.take("mbarrier_init") {
            q.parts.clear();
            return Ok(Op::FenceMbarrierInit);
        }
        if q.take("proxy") {
            if let Some(at) = q.parts.iter().position(|it| it.starts_with("async")) {
                q.parts.remove(at);
                q.strength();
                q.hints();
                // A form for one space is executed for all. A one-directional form also names the two
                // proxies.
                q.parts.retain(|it| {
                    !it.starts_with("sync_restrict::")
                        && !it.starts_with("async::generic")
                        && !matches!(*it, "global" | "shared::cta" | "shared::cluster")
                });
                return Ok(Op::FenceProxyAsync);
            }
            ensure!(
                q.take("alias") || q.take("tensormap::generic"),
                "of the proxy fences, `async`, `alias` and `tensormap` are executed"
            );
        }
        q.take("alias");
        q.take("sc");
        q.strength();
        q.hints();
        q.take("gl");
        q.parts.retain(|it| !it.starts_with("sync_restrict::"));
        Ok(Op::Fence)
    }

    fn cp(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        let reduce = q.take("reduce");
        ensure!(q.take("async"), "expected `.async`");
        if !q.take("bulk") {
            return self.cp_async(q, o);
        }
        if q.take("commit_group") {
            return Ok(Op::BulkCommit);
        }
        if q.take("wait_group") {
            let read = q.take("read");
            q.take("sync_restrict::proxy::async");
            expect(o, 1)?;
            let Operand::Int(pending) = o[0] else {
                bail!("expected an immediate count");
            };
            return Ok(Op::BulkWait {
                pending: pending as u32,
                read,
            });
        }
        if q.take("prefetch") {
            q.parts.clear();
            return Ok(Op::Nop);
        }
        if q.take("tensor") {
            return self.tensor_copy(q, o, reduce);
        }
        self.bulk_copy(q, o, reduce)
    }

    fn bulk_copy(&self, q: &mut Quals, o: &[Operand], reduce: bool) -> Result<Op> {
        let group = q.take("bulk_group");
        ensure!(
            group || q.take("mbarrier::complete_tx::bytes"),
            "expected `.mbarrier::complete_tx::bytes` or `.bulk_group`"
        );
        let multicast = q.take("multicast::cluster");
        let masked = q.take("cp_mask");
        let ignoring = q.take("ignore_oob");
        let hint = q.take("L2::cache_hint");
        let space_at = |q: &mut Quals| match q.parts.first().copied() {
            Some(part @ ("global" | "shared::cta" | "shared::cluster")) => {
                q.parts.remove(0);
                Ok(if part == "global" {
                    Space::Global
                } else {
                    Space::Shared
                })
            }
            _ => bail!("expected a state space"),
        };
        let (dst_space, src_space) = (space_at(q)?, space_at(q)?);
        let reduce = if reduce {
            q.take("noftz");
            let f = atom_op(q).context("expected an operation")?;
            let ty = q.ty()?;
            check_atom(f, ty)?;
            Some((f, ty))
        } else {
            None
        };
        let mut rest = o.iter();
        let mut next = || rest.next().context("expected another operand");
        let (dst, src) = (self.addr(next()?)?, self.addr(next()?)?);
        let size = self.src(next()?, Ty::U32)?;
        let ignored = match ignoring {
            true => Some([self.src(next()?, Ty::U32)?, self.src(next()?, Ty::U32)?]),
            false => None,
        };
        let completion = if group {
            Completion::Group
        } else {
            Completion::Mbarrier(self.addr(next()?)?)
        };
        let multicast = match multicast {
            true => Some(self.src(next()?, Ty::U16)?),
            false => None,
        };
        if hint {
            next()?;
        }
        let byte_mask = match masked {
            true => Some(self.src(next()?, Ty::U16)?),
            false => None,
        };
        ensure!(rest.next().is_none(), "expected fewer operands");
        Ok(Op::BulkCopy {
            dst_space,
            src_space,
            dst,
            src,
            size,
            completion,
            multicast,
            byte_mask,
            ignored,
            reduce,
        })
    }

    /// A tensor map and the coordinates of a tile: `[map, {x, y}]`.
    fn tile_of_map(&self, operand: &Operand) -> Result<(Addr, Vec<Src>)> {
        let Operand::Address(parts, offset) = operand else {
            bail!("expected a tensor map and coordinates in `[]`, found {operand:?}");
        };
        let [map, Operand::Vector(coordinates)] = parts.as_slice() else {
            bail!("expected a tensor map and coordinates in `[]`");
        };
        let corner = coordinates.iter().map(|it| self.src(it, Ty::S32));
        Ok((
            Addr {
                base: self.src(map, Ty::U64)?,
                offset: *offset,
            },
            corner.collect::<Result<_>>()?,
        ))
    }

    fn tensor_copy(&self, q: &mut Quals, o: &[Operand], reduce: bool) -> Result<Op> {
        let dims = ["1d", "2d", "3d", "4d", "5d"];
        let dims = dims.iter().position(|dims| q.take(dims));
        let dims = dims.context("expected `.1d` to `.5d`")? + 1;
        let store = q.take("bulk_group");
        ensure!(
            store || q.take("mbarrier::complete_tx::bytes"),
            "expected `.mbarrier::complete_tx::bytes` or `.bulk_group`"
        );
        let reduce = match reduce {
            true => Some(atom_op(q).context("expected an operation")?),
            false => None,
        };
        q.take("tile");
        q.take("global");
        ensure!(
            q.take("shared::cta") || !store && q.take("shared::cluster"),
            "expected `.shared::cta` or `.shared::cluster`"
        );
        let multicast = !store && q.take("multicast::cluster");
        let hint = q.take("L2::cache_hint");
        let (tile, shared) = if store { (0, 1) } else { (1, 0) };
        expect(
            o,
            2 + usize::from(!store) + usize::from(multicast) + usize::from(hint),
        )?;
        let (map, corner) = self.tile_of_map(&o[tile])?;
        ensure!(
            corner.len() == dims,
            "expected {dims} coordinates, found {}",
            corner.len()
        );
        Ok(Op::TensorCopy {
            load: !store,
            map,
            corner,
            shared: self.addr(&o[shared])?,
            completion: match store {
                true => Completion::Group,
                false => Completion::Mbarrier(self.addr(&o[2])?),
            },
            multicast: match multicast {
                true => Some(self.src(&o[3], Ty::U16)?),
                false => None,
            },
            reduce,
        })
    }

    fn tensor_map(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("cp_fenceproxy") {
            for part in [
                "global",
                "shared::cta",
                "tensormap::generic",
                "sync",
                "aligned",
            ] {
                ensure!(q.take(part), "expected `.{part}`");
            }
            q.strength();
            q.hints();
            expect(o, 3)?;
            ensure!(o[2] == Operand::Int(128), "expected a size of 128 bytes");
            return Ok(Op::TensormapCopy {
                dst: self.addr(&o[0])?,
                src: self.addr(&o[1])?,
            });
        }
        ensure!(q.take("replace"), "expected `.replace` or `.cp_fenceproxy`");
        ensure!(
            q.take("tile") && q.take("b1024"),
            "expected `.tile` and `.b1024`"
        );
        let space = q.space();
        q.ty()?;
        let value = o.len().checked_sub(1).context("expected a value")?;
        let dimension = match (value, &o.get(1)) {
            (2, Some(Operand::Int(dimension @ 0..5))) => *dimension as u32,
            (1, _) => 0,
            _ => bail!("expected a dimension from 0 to 4"),
        };
        let field = q.one_of(&[
            ("global_address", Field::Address),
            ("rank", Field::Rank),
            ("box_dim", Field::Tile(dimension)),
            ("global_dim", Field::Dim(dimension)),
            ("global_stride", Field::Stride(dimension.min(3))),
            ("element_stride", Field::Step(dimension)),
            ("elemtype", Field::DataType),
            ("interleave_layout", Field::Interleave),
            ("swizzle_mode", Field::Swizzle),
            ("fill_mode", Field::OutOfBounds),
        ]);
        Ok(Op::TensormapReplace {
            space,
            map: self.addr(&o[0])?,
            field: field.context("expected a field")?,
            value: self.src(&o[value], Ty::U64)?,
        })
    }

    fn matrix(&self, load: bool, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        for part in ["sync", "aligned", "m8n8"] {
            ensure!(q.take(part), "expected `.{part}`");
        }
        let count = q.one_of(&[("x1", 1), ("x2", 2), ("x4", 4usize)]);
        let count = count.context("expected `.x1`, `.x2` or `.x4`")?;
        let transposed = q.take("trans");
        ensure!(
            q.take("shared") || q.take("shared::cta"),
            "expected `.shared`"
        );
        ensure!(q.take("b16"), "matrices of `.b16` alone are executed");
        expect(o, 2)?;
        let (address, values) = if load { (&o[1], &o[0]) } else { (&o[0], &o[1]) };
        let values = match values {
            Operand::Vector(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        ensure!(values.len() == count, "expected {count} registers");
        let addr = self.addr(address)?;
        Ok(match load {
            true => Op::LdMatrix {
                transposed,
                dsts: values
                    .iter()
                    .map(|it| self.dst(it))
                    .collect::<Result<_>>()?,
                addr,
            },
            false => Op::StMatrix {
                transposed,
                srcs: values
                    .iter()
                    .map(|it| self.src(it, Ty::B32))
                    .collect::<Result<_>>()?,
                addr,
            },
        })
    }

    fn cp_async(&self, q: &mut Quals, o: &[Operand]) -> Result<Op> {
        if q.take("commit_group") {
            return Ok(Op::CpAsyncCommit);
        }
        if q.take("wait_all") {
            return Ok(Op::CpAsyncWait { pending: None });
        }
        if q.take("wait_group") {
            expect(o, 1)?;
            let Operand::Int(pending) = o[0] else {
                bail!("expected an immediate count");
            };
            return Ok(Op::CpAsyncWait {
                pending: Some(pending as u32),
            });
        }
        if q.take("mbarrier") {
            ensure!(q.take("arrive"), "expected `.arrive`");
            let counted = q.take("noinc");
            q.take("shared");
            q.take("shared::cta");
            q.take("b64");
            expect(o, 1)?;
            // The copies may be complete before the instruction is. Without `.noinc` it then counts an
            // arrival up and down again.
            if !counted {
                return Ok(Op::CpAsyncWait { pending: None });
            }
            return Ok(Op::MbarArrive {
                space: Space::Shared,
                addr: self.addr(&o[0])?,
                dst: None,
                count: Src::Imm(1),
                expect: None,
                drop: false,
                complete: true,
                release: true,
                after_copies: true,
            });
        }
        let hint = q.take("L2::cache_hint");
        q.hints();
        q.take("shared");
        q.take("shared::cta");
        q.take("global");
        let count = o.len() - usize::from(hint);
        ensure!(
            (3..=4).contains(&count),
            "expected a destination, a source and a size"
        );
        let Operand::Int(size) = o[2] else {
            bail!("expected an immediate size");
        };
        let (mut src_size, mut ignore) = (None, None);
        match o.get(3) {
            Some(Operand::Pred(p)) => ignore = Some(*p),
            Some(size) if count == 4 => src_size = Some(self.src(size, Ty::U32)?),
            _ => {}
        }
        ensure!(
            matches!(size, 4 | 8 | 16),
            "expected a size of 4, 8 or 16 bytes, found {size}"
        );
        Ok(Op::CpAsync {
            dst: self.addr(&o[0])?,
            src: self.addr(&o[1])?,
            size: size as u32,
            src_size,
            ignore,
        })
    }
}

/// The halves of 128 bits: of a register, or of a vector of two.
fn halves<'a>(operand: &Operand<'a>) -> Result<[Operand<'a>; 2]> {
    match operand {
        Operand::Reg { reg, ty: Ty::B128 } => {
            Ok([*reg, *reg + 1].map(|reg| Operand::Reg { reg, ty: Ty::B64 }))
        }
        Operand::Vector(parts) if parts.len() == 2 => Ok([parts[0].clone(), parts[1].clone()]),
        other => bail!("expected a register of 128 bits or two of 64, found {other:?}"),
    }
}

fn sad_like(f: Ternary, ty: Ty) -> (Ternary, Ty, usize, Ty) {
    (f, ty, 4, ty)
}

fn expect(operands: &[Operand], count: usize) -> Result<()> {
    ensure!(
        operands.len() == count,
        "expected {count} operands, found {}",
        operands.len()
    );
    Ok(())
}

fn label(operand: &Operand) -> Result<u32> {
    match operand {
        Operand::Label(target) => Ok(*target),
        other => bail!("expected a label, found {other:?}"),
    }
}

fn atom_op(q: &mut Quals) -> Option<AtomOp> {
    q.one_of(&[
        ("and", AtomOp::And),
        ("or", AtomOp::Or),
        ("xor", AtomOp::Xor),
        ("exch", AtomOp::Exch),
        ("cas", AtomOp::Cas),
        ("add", AtomOp::Add),
        ("inc", AtomOp::Inc),
        ("dec", AtomOp::Dec),
        ("min", AtomOp::Min),
        ("max", AtomOp::Max),
    ])
}

fn check_atom(f: AtomOp, ty: Ty) -> Result<()> {
    ensure!(reduces(f, ty), "no such atomic operation is known");
    Ok(())
}

fn special(name: &str) -> Option<Special> {
    let (base, axis) = match name.rsplit_once('.') {
        Some((base, "x")) => (base, 0),
        Some((base, "y")) => (base, 1),
        Some((base, "z")) => (base, 2),
        _ => (name, 0),
    };
    Some(match base {
        "%tid" => Special::Tid(axis),
        "%ntid" => Special::Ntid(axis),
        "%ctaid" => Special::Ctaid(axis),
        "%nctaid" => Special::Nctaid(axis),
        "%laneid" => Special::Laneid,
        "%warpid" => Special::Warpid,
        "%nwarpid" => Special::Nwarpid,
        "%smid" => Special::Smid,
        "%nsmid" => Special::Nsmid,
        "%gridid" => Special::Gridid,
        "%lanemask_eq" => Special::LanemaskEq,
        "%lanemask_lt" => Special::LanemaskLt,
        "%lanemask_le" => Special::LanemaskLe,
        "%lanemask_gt" => Special::LanemaskGt,
        "%lanemask_ge" => Special::LanemaskGe,
        "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Special::Clock,
        "%clock_hi" | "%globaltimer_hi" => Special::ClockHi,
        "%current_graph_exec" => Special::NoGraph,
        "%clusterid" => Special::Clusterid(axis),
        "%nclusterid" => Special::Nclusterid(axis),
        "%cluster_ctaid" => Special::ClusterCtaid(axis),
        "%cluster_nctaid" => Special::ClusterNctaid(axis),
        "%cluster_ctarank" => Special::ClusterCtarank,
        "%cluster_nctarank" => Special::ClusterNctarank,
        "%is_explicit_cluster" => Special::IsExplicitCluster,
        "%dynamic_smem_size" => Special::DynamicSmemSize,
        "%total_smem_size" => Special::TotalSmemSize,
        "%aggr_smem_size" => Special::AggrSmemSize,
        _ => return None,
    })
}
