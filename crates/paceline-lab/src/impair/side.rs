//! A program at one end of the network.

use super::{FAR, NEAR};
use crate::netns::Namespace;
use anyhow::{Context as _, Result};
use paceline_tool::exit;
use paceline_tool::scratch;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

/// The longest wait for a program to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(3);

/// A running program; dropping it ends the program and its descendants.
#[derive(Debug)]
pub(super) struct Program {
    text: String,
    process: Child,
}

impl Program {
    /// Starts a command line in a namespace. `runtime_dir` represents its host: nodes find each
    /// other by socket files, which network namespaces share. With `aside` its output is redirected
    /// to standard error.
    pub(super) fn start(
        namespace: &Namespace,
        text: &str,
        runtime_dir: &Path,
        aside: bool,
    ) -> Result<Self> {
        scratch::make(runtime_dir)
            .with_context(|| format!("runtime folder {}", runtime_dir.display()))?;
        let mut command = namespace.command("sh");
        command.args(["-c", text]).stdin(Stdio::null()).process_group(0);
        command.env("NEAR", NEAR).env("FAR", FAR).env("PACELINE_RUNTIME_DIR", runtime_dir);
        if aside {
            command.stdout(std::io::stderr());
        }
        let process = command.spawn().with_context(|| format!("cannot start '{text}'"))?;
        Ok(Self { text: text.to_owned(), process })
    }

    /// Returns the exit code once the program has ended: its own, or 128 plus the number of the
    /// signal that ended it.
    pub(super) fn ended(&mut self) -> Result<Option<ExitCode>> {
        let status = self.process.try_wait().with_context(|| format!("'{}'", self.text))?;
        Ok(status.map(|status| ExitCode::from(code(status))))
    }

    /// Returns true if the program has ended by itself.
    pub(super) fn ended_early(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_)))
    }

    fn signal(&self, signal: Signal) {
        let group = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // The process group may already have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let until = std::time::Instant::now() + PATIENCE;
        while !self.ended_early() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
        let _ = self.process.wait();
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED)
}
