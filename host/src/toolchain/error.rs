//! The one shape in which a set-up step fails.

use std::fmt;

/// A set-up step that could not be done: which one, why, and what would fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepError {
    /// What was being done, as a noun phrase or "to do X".
    pub step: String,
    /// Why it failed: what was found, with the tool's last lines.
    pub cause: String,
    /// The command, or the choice of commands, that would fix it.
    pub fix: String,
}

impl StepError {
    pub(super) fn new(
        step: impl Into<String>,
        cause: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            step: step.into(),
            cause: cause.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indented = |text: &str| text.replace('\n', "\n         ");
        write!(f, "cannot {}", self.step)?;
        write!(f, "\n  cause: {}", indented(&self.cause))?;
        write!(f, "\n  fix:   {}", indented(&self.fix))
    }
}

impl std::error::Error for StepError {}

/// A variable that names something unusable.
pub(super) fn environment_error(variable: &str, cause: String, wanted: &str) -> StepError {
    StepError::new(
        format!("use what {variable} names"),
        cause,
        format!("set {variable} to {wanted}, or unset it to have one found or installed"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_step_cause_and_fix_on_lines_of_their_own() {
        let error = StepError::new("install CUDA", "pip said:\nno", "run pip");
        assert_eq!(
            error.to_string(),
            "cannot install CUDA\n  cause: pip said:\n         no\n  fix:   run pip"
        );
    }
}
