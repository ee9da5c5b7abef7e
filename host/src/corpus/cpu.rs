//! The corpus on the CPU.

use anyhow::Result;

use super::{Case, Warps, cases, run};
use crate::exec::Program;
use crate::guide::device::{Device, Kernel};

/// The kernels of a PTX module that the CPU can execute, and their cases.
pub struct Executable {
    program: Program,
    cases: Vec<Case>,
}

impl Executable {
    /// Decodes the module, and leaves out the cases whose kernels reach an instruction that is not
    /// executed.
    ///
    /// # Errors
    /// If the text is not PTX.
    pub fn of_ptx(text: &str) -> Result<Self> {
        let program = Program::parse(text)?;
        let mut cases = cases(Warps::Apart);
        cases.retain(|case| program.executes(&case.kernel).is_ok());
        Ok(Self { program, cases })
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
