//! Runs a command as a user types it and reads its output.

use super::{interrupt, program};
use anyhow::{Context as _, Result, bail};
use paceline_tool::scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A line of output and its time.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) at: Instant,
    pub(super) text: String,
}

/// A running command; dropping this kills it.
#[derive(Debug)]
pub(super) struct Terminal {
    command: String,
    process: Child,
    lines: Receiver<Line>,
}

impl Terminal {
    /// Starts `paceline WORDS…` on the host represented by `runtime_dir`, inside a network
    /// namespace if one is named.
    pub(super) fn start(
        words: &[&str],
        runtime_dir: &Path,
        namespace: Option<&str>,
    ) -> Result<Self> {
        scratch::make(runtime_dir)
            .with_context(|| format!("runtime folder {}", runtime_dir.display()))?;
        let executable = program::path()?;
        let command = format!("paceline {}", words.join(" "));
        let mut starter = match namespace {
            None => Command::new(executable),
            Some(namespace) => {
                let mut starter = Command::new("ip");
                starter.args(["netns", "exec", namespace]).arg(executable);
                starter
            }
        };
        let mut process = starter
            .args(words)
            .env("PACELINE_RUNTIME_DIR", runtime_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {command}"))?;
        let stdout = process.stdout.take().context("output of a command")?;
        Ok(Self { command, process, lines: read_lines(stdout) })
    }

    /// Waits for the first line and returns its time.
    pub(super) fn first_line(&mut self) -> Result<Instant> {
        match self.next_line(PATIENCE)? {
            Some(line) => Ok(line.at),
            None => bail!("{}: ended before it printed anything", self.command),
        }
    }

    /// Returns the next line, or `None` once the command has ended.
    pub(super) fn next_line(&mut self, patience: Duration) -> Result<Option<Line>> {
        let deadline = Instant::now() + patience;
        loop {
            interrupt::check()?;
            match self.lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{}: no line within {} s", self.command, patience.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Returns all lines until the command ends.
    pub(super) fn rest(&mut self, patience: Duration) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line(patience)? {
            lines.push(line);
        }
        self.process.wait().with_context(|| self.command.clone())?;
        Ok(lines)
    }

    /// Sends SIGINT, as Ctrl-C does, and returns the remaining lines.
    pub(super) fn end(&mut self) -> Result<Vec<Line>> {
        self.signal(Signal::INT)?;
        self.rest(PATIENCE)
    }

    /// Discards the lines since the last call and returns the time of the latest.
    pub(super) fn last_line(&mut self) -> Option<Instant> {
        self.lines.try_iter().last().map(|line| line.at)
    }

    /// Returns the exit status if the command has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.process.try_wait().with_context(|| self.command.clone())
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid()?, signal).with_context(|| self.command.clone())
    }

    /// Returns the processor time used so far, in seconds.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        super::machine::cpu_seconds(self.process.id())
    }

    fn pid(&self) -> Result<Pid> {
        let id = i32::try_from(self.process.id()).context("process id")?;
        Pid::from_raw(id).context("process id")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_lines(stdout: ChildStdout) -> Receiver<Line> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for text in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Read on even if the receiver is dropped: the command must not block on a full pipe.
            let _ = sender.send(Line { at: Instant::now(), text });
        }
    });
    lines
}
