//! A module ready to run: decoded functions, and where its variables lie.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::decode::Decoder;
use super::op::{Inst, Op, Space};
use super::parse::{self, Init, Location, Variable};

/// Where shared memory starts: the addresses below are the system's, as on the GPU.
pub const SHARED_START: u32 = 1024;
/// Where a module's global variables lie.
const VARIABLES: u64 = 0x2_0000_0000;

/// A module.
///
/// ```
/// use cuda_ptx_host::exec::Program;
///
/// let text = ".version 8.0\n.target sm_90a\n.address_size 64
///     .visible .entry odd() { frobnicate.u32; }
///     .visible .entry plain() { ret; }";
/// let program = Program::parse(text)?;
/// assert!(program.executes("plain").is_ok());
/// assert!(program.executes("odd").unwrap_err().to_string().contains("line 4"));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug)]
pub struct Program {
    pub(super) functions: Vec<Function>,
    pub(super) variables: Vec<GlobalVariable>,
    files: HashMap<u32, String>,
    locations: Vec<(usize, Option<Location>)>,
    /// Where dynamic shared memory starts, for every kernel of the module.
    pub(super) dynamic_start: u32,
}

/// A decoded kernel or device function.
#[derive(Debug)]
pub(super) struct Function {
    pub name: String,
    pub entry: bool,
    pub insts: Vec<Inst>,
    /// Whether it has warpgroups multiply matrices.
    pub multiplies: bool,
    /// Why it cannot be run: its first instruction that is not executed.
    pub refused: Option<String>,
    pub registers: u32,
    pub predicates: u32,
    /// Offset and size of each parameter: in the parameter block of a kernel, in the frame of a
    /// device function.
    pub params: Vec<(u32, u32)>,
    /// The same of what a device function returns.
    pub rets: Vec<(u32, u32)>,
    /// Local variables, and the parameters of calls.
    pub frame_bytes: u32,
    /// Where static shared memory of the kernel ends.
    pub shared_end: u32,
    /// `.maxntid` or `.reqntid`.
    pub max_threads: Option<u32>,
    pub required_threads: Option<Vec<u32>>,
    /// `.reqnctapercluster`.
    pub cluster: Option<[u32; 3]>,
}

#[derive(Debug)]
pub(super) struct GlobalVariable {
    pub name: String,
    pub address: u64,
    pub bytes: Vec<u8>,
    pub constant: bool,
}

/// What a name in an operand means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    /// An address in global or constant memory.
    Global(u64),
    Shared(u32),
    /// An offset in the frame.
    Frame(u32),
    /// An offset in the parameter block of a kernel.
    Param(u32),
    Function(u32),
}

pub(super) fn align_up(value: u32, align: u32) -> u32 {
    value.next_multiple_of(align)
}

impl Program {
    /// Parses and decodes a module. Of its kernels, [`Program::executes`] tells which can be run.
    ///
    /// # Errors
    /// Text that is not PTX; the message has its line.
    pub fn parse(text: &str) -> Result<Self> {
        let text = parse::parse(text)?;
        let mut symbols = HashMap::new();
        let mut variables = Vec::new();
        let mut shared = SHARED_START;
        let mut dynamic = Vec::new();
        let mut dynamic_align = 16;
        let device_variables = text.functions.iter().filter(|it| !it.entry);
        let device_variables = device_variables.flat_map(|it| &it.variables);
        for variable in text.variables.iter().chain(device_variables.clone()) {
            match variable.space {
                Space::Shared if variable.unsized_array => {
                    dynamic.push(variable.name);
                    dynamic_align = dynamic_align.max(variable.align);
                }
                Space::Shared => {
                    shared = align_up(shared, variable.align);
                    symbols.insert(variable.name, Symbol::Shared(shared));
                    shared = end_of(shared, variable)?;
                }
                Space::Global | Space::Const if !variable.external => {
                    place(variable, &mut variables, &mut symbols);
                }
                _ => {}
            }
        }
        for function in text.functions.iter().filter(|it| it.entry) {
            for variable in &function.variables {
                if matches!(variable.space, Space::Global | Space::Const) {
                    place(variable, &mut variables, &mut symbols);
                }
            }
        }
        for (number, function) in text.functions.iter().filter(|it| it.has_body).enumerate() {
            symbols.insert(function.name, Symbol::Function(number as u32));
        }
        let kernel_ends: Vec<u32> = text
            .functions
            .iter()
            .map(|function| {
                let of_kernel = function.variables.iter().filter(|_| function.entry);
                of_kernel
                    .filter(|it| it.space == Space::Shared && !it.unsized_array)
                    .try_fold(shared, |at, it| end_of(align_up(at, it.align), it))
            })
            .collect::<Result<_>>()?;
        let end = kernel_ends.iter().copied().max().unwrap_or(shared);
        let dynamic_start = align_up(end, dynamic_align.max(128));
        for name in dynamic {
            symbols.insert(name, Symbol::Shared(dynamic_start));
        }
        initialise(&text, &symbols, &mut variables)?;
        let mut functions = Vec::new();
        for (function, &shared_end) in text.functions.iter().zip(&kernel_ends) {
            if function.has_body {
                let decoder = Decoder::new(&symbols, function, shared);
                functions.push(decoder.function(shared_end, &text.functions));
            }
        }
        Ok(Self {
            functions,
            variables,
            files: text.files,
            locations: text.locations,
            dynamic_start,
        })
    }

    /// The names of the kernels, in their order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        let kernels = self.functions.iter().filter(|it| it.entry);
        kernels.map(|it| it.name.as_str())
    }

    /// Fails unless every instruction that the kernel reaches is executed.
    ///
    /// # Errors
    /// There is no such kernel, or the first instruction that is not executed, with its line.
    pub fn executes(&self, kernel: &str) -> Result<()> {
        let mut reached = vec![self.kernel(kernel)?];
        let mut next = 0;
        while let Some(&number) = reached.get(next) {
            let function = &self.functions[number as usize];
            if let Some(reason) = &function.refused {
                bail!("`{kernel}` cannot be run: {reason}");
            }
            for inst in &function.insts {
                if let Op::Call { function, .. } = inst.op
                    && !reached.contains(&function)
                {
                    reached.push(function);
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// The source lines of a line of the text, the innermost inlined call first.
    pub(super) fn source(&self, line: u32) -> Vec<(String, u32)> {
        let after = self
            .locations
            .partition_point(|(at, _)| *at <= line as usize);
        let Some((_, Some(location))) = after.checked_sub(1).map(|it| &self.locations[it]) else {
            return Vec::new();
        };
        let mut sources: Vec<(String, u32)> = location
            .comment
            .split("@[")
            .filter_map(|call| {
                let mut parts = call.trim().trim_end_matches([']', ' ']).rsplitn(3, ':');
                let (_, line, file) = (parts.next()?, parts.next()?, parts.next()?);
                Some((file.to_owned(), line.parse().ok()?))
            })
            .collect();
        if sources.is_empty()
            && let Some(file) = self.files.get(&location.file)
        {
            sources.push((file.clone(), location.line));
        }
        sources.retain(|(_, line)| *line > 0);
        sources
    }

    pub(super) fn kernel(&self, name: &str) -> Result<u32> {
        let found = self
            .functions
            .iter()
            .position(|it| it.entry && it.name == name);
        match found {
            Some(number) => Ok(number as u32),
            None => bail!(
                "no kernel `{name}` in the module; it has {}",
                self.kernels().collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

fn end_of(start: u32, variable: &Variable) -> Result<u32> {
    match start.checked_add(variable.bytes) {
        Some(end) if end < 1 << 24 => Ok(end),
        _ => bail!(
            "`{}` has {} bytes: expected shared memory below 16 MiB",
            variable.name,
            variable.bytes
        ),
    }
}

fn place<'a>(
    variable: &Variable<'a>,
    variables: &mut Vec<GlobalVariable>,
    symbols: &mut HashMap<&'a str, Symbol>,
) {
    let end = variables
        .last()
        .map_or(VARIABLES, |it| it.address + it.bytes.len() as u64 + 256);
    let address = end.next_multiple_of(u64::from(variable.align.max(256)));
    symbols.insert(variable.name, Symbol::Global(address));
    variables.push(GlobalVariable {
        name: variable.name.to_owned(),
        address,
        bytes: vec![0; variable.bytes as usize],
        constant: variable.space == Space::Const,
    });
}

fn initialise(
    text: &parse::Text,
    symbols: &HashMap<&str, Symbol>,
    variables: &mut [GlobalVariable],
) -> Result<()> {
    let all = text
        .variables
        .iter()
        .chain(text.functions.iter().flat_map(|it| &it.variables));
    for variable in all.filter(|it| !it.init.is_empty()) {
        let Some(placed) = variables.iter_mut().find(|it| it.name == variable.name) else {
            bail!(
                "`{}`: expected an initial value only in global and constant memory",
                variable.name
            );
        };
        let mut at = 0;
        for element in &variable.init {
            let (value, bytes) = match element {
                Init::Number { value, bytes } => (*value, *bytes),
                Init::Symbol {
                    name,
                    offset,
                    generic,
                    bytes,
                } => {
                    let address = match symbols.get(name) {
                        Some(Symbol::Global(address)) => *address,
                        Some(Symbol::Shared(address)) if !generic => u64::from(*address),
                        Some(Symbol::Function(number)) => u64::from(*number),
                        _ => bail!("`{}`: no address of `{name}` is known", variable.name),
                    };
                    (address.wrapping_add_signed(*offset), *bytes)
                }
            };
            let bytes = bytes as usize;
            let value = u128::from(value).to_le_bytes();
            placed.bytes[at..at + bytes].copy_from_slice(&value[..bytes]);
            at += bytes;
        }
    }
    Ok(())
}
