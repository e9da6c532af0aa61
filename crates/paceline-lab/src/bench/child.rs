//! The parent's handle of a benchmark child process, and its line protocol.

use super::interrupt;
use super::protocol::{Message, Role};
use anyhow::{Context as _, Result, bail};
use paceline_tool::log;
use paceline_tool::scratch;
use paceline_tool::threads;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Zenoh's default thread pools, for a plain Zenoh program.
const ZENOH: &str = "()";

/// A running role; dropping it ends the process.
pub(super) struct Child {
    name: String,
    process: std::process::Child,
    messages: Receiver<Message>,
}

impl Child {
    /// Starts this executable in a role, inside a network namespace if one is named.
    ///
    /// `runtime_dir` represents the host of the process. Network namespaces share socket files, so
    /// each host needs its own folder.
    pub(super) fn start(
        name: &str,
        role: &Role,
        namespace: Option<&str>,
        runtime_dir: &Path,
    ) -> Result<Self> {
        let executable = std::env::current_exe().context("path of this executable")?;
        scratch::make(runtime_dir)
            .with_context(|| format!("runtime folder {}", runtime_dir.display()))?;
        let mut command = match namespace {
            None => Command::new(executable),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(executable);
                command
            }
        };
        command.args(["bench", "role"]).arg(serde_json::to_string(role)?);
        command.env("PACELINE_RUNTIME_DIR", runtime_dir);
        if std::env::var_os(threads::VARIABLE).is_none() {
            let ours = if role.is_plain() { ZENOH } else { threads::SHARED };
            command.env(threads::VARIABLE, ours);
        }
        let quiet = ("PACELINE_LOG", "error,zenoh=off".to_owned());
        command.envs([log::for_child().unwrap_or(quiet)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let stdout = process.stdout.take().context("output of a role")?;
        Ok(Self { name: name.to_owned(), process, messages: read_messages(stdout) })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn go(&mut self) -> Result<()> {
        self.send("go")
    }

    /// Like [`Self::go`], with the instant at which a scenario begins.
    pub(super) fn go_at(&mut self, start: u64) -> Result<()> {
        self.send(&format!("go {start}"))
    }

    /// Stops (`still`) or continues the process by a signal.
    pub(super) fn stall(&self, still: bool) -> Result<()> {
        self.signal(if still { Signal::STOP } else { Signal::CONT })
    }

    /// Kills the process without notice.
    pub(super) fn crash(&mut self) -> Result<()> {
        self.process.kill().with_context(|| format!("cannot kill {}", self.name))?;
        self.process.wait().map(drop).context("role")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        let pid = pid.context("a process without an id")?;
        kill_process(pid, signal).with_context(|| format!("cannot send a signal to {}", self.name))
    }

    /// Returns the messages received so far, without waiting.
    pub(super) fn received(&self) -> Vec<Message> {
        self.messages.try_iter().collect()
    }

    pub(super) fn stop(&mut self) -> Result<()> {
        self.send("stop")
    }

    fn send(&mut self, word: &str) -> Result<()> {
        let stdin = self.process.stdin.as_mut().context("input of a role")?;
        writeln!(stdin, "{word}").with_context(|| format!("{} ended early", self.name))
    }

    /// Waits for a message that `pick` accepts and discards all others.
    pub(super) fn expect<T>(
        &mut self,
        what: &str,
        timeout: Duration,
        mut pick: impl FnMut(Message) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + timeout;
        loop {
            interrupt::check()?;
            match self.messages.recv_timeout(Duration::from_millis(50)) {
                Ok(message) => {
                    if let Some(found) = pick(message) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{}: no {what} within {} s", self.name, timeout.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.process.wait().context("role")?;
                    interrupt::check()?;
                    bail!("{}: ended ({status}) before {what}", self.name)
                }
            }
        }
    }

    pub(super) fn expect_ready(&mut self) -> Result<()> {
        self.expect("connection", Duration::from_secs(20), |message| {
            matches!(message, Message::Ready).then_some(())
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A process ends by itself when its input is closed. A stopped one must continue first; one
        // that hangs is killed.
        let _ = self.stall(false);
        drop(self.process.stdin.take());
        for _ in 0..100 {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_messages(stdout: ChildStdout) -> Receiver<Message> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str(&line) else {
                eprintln!("{line}");
                continue;
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
