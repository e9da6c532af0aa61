//! Runs an installed `paceline` in an environment of its own.

use super::output;
use crate::alone::Running;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The time limit of a command in seconds.
const WITHIN_S: &str = "60";

/// The time after which the demo is interrupted, in seconds.
const DEMO_S: &str = "12";

/// A temporary folder. Removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Result<Self> {
        let name = format!("paceline-dist-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        super::empty(&folder)?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a command without this user's settings, whose processes meet in `host`.
fn alone(program: impl AsRef<Path>, host: &Folder) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().stdin(Stdio::null());
    command.env("PATH", "/usr/bin:/bin").env("HOME", host.path());
    command.env("PACELINE_RUNTIME_DIR", host.path());
    command
}

/// Checks the version, and that a publisher's pictures reach a subscriber for two seconds. Returns
/// a description.
pub(super) fn works(program: &Path) -> Result<String> {
    let host = Folder::new("host")?;
    let version = output(alone(program, &host).arg("--version"))?;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let expected = format!("paceline {}", super::VERSION);
    ensure!(version == expected, "{} --version: '{version}', not '{expected}'", program.display());
    let mut camera = alone(program, &host);
    camera.args(["pub", "robot/camera", "--test-card", "320x240@30"]);
    let camera = camera.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
    let _camera = Running(camera.with_context(|| program.display().to_string())?);
    let mut sub = alone("timeout", &host);
    sub.arg(WITHIN_S).arg(program).args(["sub", "robot/camera"]);
    output(sub.args(["--count", "20", "--max-hz", "10", "--size", "160x120"]))?;
    Ok(format!("{version}, pub to sub"))
}

/// Runs the demo, which starts the program again for each of its nodes, and interrupts it as Ctrl-C
/// would. Returns a description.
pub(super) fn demo(program: &Path) -> Result<String> {
    let host = Folder::new("demo")?;
    let mut demo = alone("timeout", &host);
    // The status is that of the demo, and 137 if it ignores the interrupt.
    demo.args(["--preserve-status", "--signal=INT", "--kill-after=20", DEMO_S]);
    let demo = demo.arg(program).args(["demo", "--no-http", "--json"]);
    let output = demo.output().context("cannot start timeout")?;
    let (text, problem) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Code 3: this machine is too busy for the demo's rates, which is no fault of the package.
    let ended = matches!(output.status.code(), Some(0 | 3));
    let seconds = text.lines().count();
    ensure!(ended && seconds > 2, "demo: {}\n{text}{problem}", output.status);
    Ok("demo, ended by Ctrl-C".to_owned())
}
