//! A command as somebody types it, and what it prints.

use super::interrupt;
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// One line that a command printed, and when it came.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) at: Instant,
    pub(super) text: String,
}

/// A running command of this executable; killed when this goes.
#[derive(Debug)]
pub(super) struct Terminal {
    command: String,
    process: Child,
    lines: Receiver<Line>,
}

impl Terminal {
    /// Starts `paceline WORDS…` on the host that `runtime_dir` stands for, inside a network namespace
    /// if one is named.
    pub(super) fn start(
        words: &[&str],
        runtime_dir: &Path,
        namespace: Option<&str>,
    ) -> Result<Self> {
        crate::scratch::make(runtime_dir)
            .with_context(|| format!("runtime folder {}", runtime_dir.display()))?;
        let executable = std::env::current_exe().context("path of this executable")?;
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
            .with_context(|| format!("{command} does not start"))?;
        let stdout = process.stdout.take().context("output of a command")?;
        Ok(Self { command, process, lines: read_lines(stdout) })
    }

    /// When its first line came.
    pub(super) fn first_line(&mut self) -> Result<Instant> {
        match self.next_line(PATIENCE)? {
            Some(line) => Ok(line.at),
            None => bail!("{}: ended before it printed anything", self.command),
        }
    }

    /// Its next line; `None` once it has ended.
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

    /// All lines up to its end.
    pub(super) fn rest(&mut self, patience: Duration) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line(patience)? {
            lines.push(line);
        }
        self.process.wait().with_context(|| self.command.clone())?;
        Ok(lines)
    }

    /// Asks it to end, as Ctrl-C does, and gives what it printed since.
    pub(super) fn end(&mut self) -> Result<Vec<Line>> {
        self.signal(Signal::INT)?;
        self.rest(PATIENCE)
    }

    /// When the last line came of those that came since this was asked before; their text is nobody's.
    pub(super) fn last_line(&mut self) -> Option<Instant> {
        self.lines.try_iter().last().map(|line| line.at)
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.process.try_wait().with_context(|| self.command.clone())
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid()?, signal).with_context(|| self.command.clone())
    }

    /// Seconds of processor time that it has used so far.
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
            // Read on when nobody waits for lines any more: the command must not stall.
            let _ = sender.send(Line { at: Instant::now(), text });
        }
    });
    lines
}
