//! Says what the set-up is doing: a bar on a terminal, plain lines elsewhere. Standard output stays clean.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one installation.
pub(super) struct Progress {
    title: String,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins an installation of `steps` steps.
    pub fn start(title: &str, steps: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {prefix} [{pos}/{len}] {msg} ({elapsed})")
                    .expect("a valid template"),
            );
            bar.set_prefix(title.to_string());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            title: title.to_string(),
            bar,
        }
    }

    /// Names the step that begins now.
    pub fn step(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_string()),
            None => eprintln!("{}: {what}", self.title),
        }
    }

    /// The step named last is done.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// One line about a choice that the set-up made.
pub(super) fn note(text: &str) {
    eprintln!("note: {text}");
}
