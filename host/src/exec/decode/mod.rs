//! Statements → [`Op`]s. What is not executed is found here, before anything runs.

mod arithmetic;
mod barrier;
mod cache;
mod control;
mod convert;
mod copy;
mod data;
mod mma;
mod quals;
mod wgmma;

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};

use self::control::label;
use self::quals::Quals;
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
            multiplies: insts.iter().any(|it| matches!(it.op, Op::Wgmma(_))),
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
            "bfi" => self.bfi(q, o),
            "setp" | "set" => self.compare(name, q, o),
            "selp" => self.selp(q, o),
            "mov" => self.mov(q, o),
            "cvt" => self.cvt(q, o),
            "cvta" => self.cvta(q, o),
            "isspacep" => self.isspacep(q, o),
            "mapa" | "getctarank" => self.mapa(name, q, o),
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
            "redux" => self.redux(q, o),
            "elect" => self.elect(q, o),
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
            "wgmma" => self.wgmma(q, o),
            "mma" => self.mma(q, o),
            "movmatrix" => self.movmatrix(q, o),
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
            "createpolicy" => self.policy(q, o),
            "discard" => self.discard(q, o),
            "prefetch" | "prefetchu" | "applypriority" => {
                q.parts.clear();
                Ok(Op::Nop)
            }
            _ => bail!("no such instruction is known"),
        }
    }
}

fn expect(operands: &[Operand], count: usize) -> Result<()> {
    ensure!(
        operands.len() == count,
        "expected {count} operands, found {}",
        operands.len()
    );
    Ok(())
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
