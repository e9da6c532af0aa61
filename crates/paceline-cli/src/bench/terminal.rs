//! A command as somebody types it, watched for its first line.

use super::interrupt;
use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A running command of this executable; killed when this goes.
#[derive(Debug)]
pub(super) struct Terminal {
    command: String,
    process: Child,
    first_line: Receiver<Instant>,
}

impl Terminal {
    /// Starts `paceline WORDS…` on the host that `runtime_dir` stands for.
    pub(super) fn start(words: &[&str], runtime_dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(runtime_dir)
            .with_context(|| format!("runtime folder {}", runtime_dir.display()))?;
        let executable = std::env::current_exe().context("path of this executable")?;
        let command = format!("paceline {}", words.join(" "));
        let mut process = Command::new(executable)
            .args(words)
            .env("PACELINE_RUNTIME_DIR", runtime_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{command} does not start"))?;
        let stdout = process.stdout.take().context("output of a command")?;
        let (sender, first_line) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if line.is_err() {
                    return;
                }
                // Later lines are read so that the command does not stall, and nobody waits for them.
                let _ = sender.send(Instant::now());
            }
        });
        Ok(Self { command, process, first_line })
    }

    /// When its first line came.
    pub(super) fn first_line(&mut self) -> Result<Instant> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            interrupt::check()?;
            match self.first_line.recv_timeout(Duration::from_millis(50)) {
                Ok(at) => return Ok(at),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{}: no line within {} s", self.command, PATIENCE.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => bail!("{}: ended early", self.command),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
