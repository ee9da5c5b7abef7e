//! The corpus on the CPU.

use anyhow::Result;

use super::{Case, cases, run};
use crate::exec::Program;
use crate::guide::device::{Device, Kernel};
use crate::inspect::ptx;

/// Instructions of the corpus that the executor does not know.
const NOT_EXECUTED: [&str; 3] = ["ldmatrix", "stmatrix", "tensormap"];

/// The kernels of a PTX module that the CPU can execute, and their cases.
pub struct Executable {
    program: Program,
    cases: Vec<Case>,
}

impl Executable {
    /// Takes the kernels that cannot be executed out of the text, and decodes the rest.
    ///
    /// # Errors
    /// If the text is not PTX, or a kernel that runs on the GPU and is left has an instruction that
    /// is not executed.
    pub fn of_ptx(text: &str) -> Result<Self> {
        let module = ptx::Module::parse(text)?;
        let mut cases = cases();
        let mut text: Vec<&str> = text.lines().collect();
        for function in module.kernels.iter().chain(&module.functions) {
            let case = cases.iter().position(|case| case.kernel == function.name);
            let is_kernel = module.kernel(&function.name).is_some();
            if is_executed(function) && (case.is_some() || !is_kernel) {
                continue;
            }
            for line in function.lines.clone() {
                text[line - 1] = "";
            }
            case.map(|case| cases.remove(case));
        }
        Ok(Self {
            program: Program::parse(&text.join("\n"))?,
            cases,
        })
    }

    /// What can be run.
    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Executes one case under the schedule that `seed` picks.
    ///
    /// # Errors
    /// If the executor finds a mistake, or a result is wrong.
    pub fn run(&self, case: &Case, seed: u64) -> Result<()> {
        let device = Device::cpu(&self.program, seed);
        run(&device, &Kernel::Cpu(&case.kernel), case)
    }
}

/// Whether the executor knows all instructions; a call through a pointer is none.
fn is_executed(function: &ptx::Kernel) -> bool {
    function.instructions.iter().all(|instruction| {
        let base = instruction.opcode.split('.').next().unwrap_or_default();
        let through_pointer = base == "call" && instruction.to_string().contains("prototype_");
        !NOT_EXECUTED.contains(&base) && !through_pointer
    })
}
