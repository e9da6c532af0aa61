//! Runs the release binary in a folder without anything else: no library, no program, no `/proc`.

use crate::setup;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Fifteen test cards of 160x120 as H.264, one of which is a key frame.
const FILM: &[u8] = include_bytes!("film.264");

/// The folder. Removed when dropped.
pub(crate) struct Alone {
    folder: PathBuf,
    enter: Vec<PathBuf>,
}

impl Alone {
    /// Creates the folder with the binary, a film and an empty `/tmp`. Returns `None` if this user
    /// must not change the root directory of a process.
    pub(crate) fn new(binary: &Path) -> Result<Option<Self>> {
        let Some(enter) = enter()? else { return Ok(None) };
        let folder = std::env::temp_dir().join(format!("paceline-dist-{}", std::process::id()));
        let alone = Self { folder, enter };
        let made = || -> std::io::Result<()> {
            fs::create_dir_all(alone.folder.join("tmp"))?;
            fs::write(alone.folder.join("film.264"), FILM)?;
            fs::copy(binary, alone.folder.join("paceline")).map(drop)
        };
        made().with_context(|| format!("cannot fill {}", alone.folder.display()))?;
        Ok(Some(alone))
    }

    /// Tests the binary there. Returns a description of the tested features.
    pub(crate) fn check(&self) -> Result<String> {
        self.run(&["--version"])?;
        self.run(&["doctor"])?;
        let _camera = self.start(&["pub", "robot/camera", "--test-card", "320x240@30"])?;
        let _film =
            self.start(&["pub", "robot/film", "--file", "/film.264", "--hz", "30", "--loop"])?;
        // Both exit with code 0 only after 20 pictures, scaled to this size.
        let sub = ["--count", "20", "--timeout", "30s", "--size"];
        let of =
            |tag, size, more: &[&'static str]| [&["sub", tag], &sub[..], &[size], more].concat();
        self.run(&of("robot/camera", "160x120", &["--max-hz", "10"]))?;
        self.run(&of("robot/film", "80x60", &[]))?;
        Ok("doctor, JPEG and H.264 from pub to sub, scaled".to_owned())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut words = self.enter.iter();
        let mut command = Command::new(words.next().map_or(Path::new("chroot"), |word| word));
        command.args(words).arg(&self.folder).arg("/paceline").args(args);
        command.env_clear().stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let output = self.command(args).output().context("cannot start chroot")?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        ensure!(output.status.success(), "paceline {}: {}\n{text}", args.join(" "), output.status);
        Ok(())
    }

    fn start(&self, args: &[&str]) -> Result<Running> {
        let mut command = self.command(args);
        let child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
        Ok(Running(child.context("cannot start chroot")?))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A child process. Killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the command that runs a program with the folder as its root directory, up to the folder
/// argument. Returns `None` if this user must not do that.
fn enter() -> Result<Option<Vec<PathBuf>>> {
    let program = |name| setup::find(name).with_context(|| format!("{name} missing"));
    let chroot = program("chroot")?;
    if setup::is_root() {
        return Ok(Some(vec![chroot]));
    }
    let words = vec![program("unshare")?, "--map-root-user".into(), chroot];
    let mut probe = words.iter();
    let mut command = Command::new(probe.next().map_or(Path::new("unshare"), |word| word));
    let tried = command.args(probe).arg("--version").output().context("cannot start unshare")?;
    Ok(tried.status.success().then_some(words))
}
