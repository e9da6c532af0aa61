//! The forwarding node of the calibration: a child process that reports its processor time.

use anyhow::{Context as _, Result, bail};
use paceline::Node;
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdout, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// The hidden command that runs the child.
pub(crate) const COMMAND: &str = "calibrate-role";
/// The line that the child prints once its node is open.
const READY: &str = "ready";
/// The line by which the parent requests the processor time.
const SPENT: &str = "spent";
/// The longest wait for an answer of the child.
const PATIENCE: Duration = Duration::from_secs(20);

/// The parent's handle of the child; dropping it ends the process.
pub(super) struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
}

impl Child {
    /// Starts the child on the host that `runtime_dir` represents, and waits until its node is open.
    pub(super) fn start(runtime_dir: &Path) -> Result<Self> {
        paceline_tool::scratch::make(runtime_dir)
            .with_context(|| format!("runtime folder {}", runtime_dir.display()))?;
        let mut command = crate::again::command()?;
        command.arg(COMMAND).env("PACELINE_RUNTIME_DIR", runtime_dir);
        let quiet = ("PACELINE_LOG", "error,zenoh=off".to_owned());
        command.envs([paceline_tool::log::for_child().unwrap_or(quiet)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("the forwarding node does not start")?;
        let stdout = process.stdout.take().context("output of the forwarding node")?;
        let child = Self { process, lines: read_lines(stdout) };
        match child.line()?.as_str() {
            READY => Ok(child),
            other => bail!("the forwarding node does not open: {other}"),
        }
    }

    /// Returns the processor time that the child has used, in nanoseconds.
    pub(super) fn spent(&mut self) -> Result<u64> {
        let stdin = self.process.stdin.as_mut().context("input of the forwarding node")?;
        writeln!(stdin, "{SPENT}").context("the forwarding node has ended")?;
        self.line()?.parse().context("processor time of the forwarding node")
    }

    fn line(&self) -> Result<String> {
        self.lines.recv_timeout(PATIENCE).context("the forwarding node does not answer")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It holds nothing that outlives it. Both calls fail harmlessly if it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Runs the child until its input is closed, so that it does not outlive its parent.
pub(crate) fn run() -> Result<ExitCode> {
    let node = Node::builder().name("forward").open()?;
    report(READY);
    for line in std::io::stdin().lines() {
        if line?.trim() == SPENT {
            report(&spent().to_string());
        }
    }
    node.close();
    Ok(ExitCode::SUCCESS)
}

/// Sends a line to the parent. Errors are ignored: when the parent ends, the closed input ends the
/// child.
fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Returns the processor time of this process in nanoseconds.
fn spent() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
