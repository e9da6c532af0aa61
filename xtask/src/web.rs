//! The dashboard's page: built by Node and tested in a browser. Without them these steps are
//! skipped.

use crate::setup;
use crate::steps::Outcome;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Node, and a browser for the tests, with their Debian packages.
const BUILD: &[(&str, &str)] = &[("node", "nodejs"), ("npm", "npm")];
const BROWSER: &[(&str, &str)] = &[("chromium", "chromium")];
/// The oldest Node version that the build tools support.
const NODE_MIN: u32 = 20;
/// The time limit of the browser tests in seconds.
const TEST_WITHIN: &str = "240";

/// Builds the page into the folder that the binary embeds.
pub(crate) fn build(root: &Path) -> Outcome {
    match node_is_here() {
        Ok(()) => {}
        Err(lack) => return Outcome::passed(&format!("skipped: {lack}")),
    }
    if let Err(problem) = install(root) {
        return Outcome::failed(&problem);
    }
    Outcome::of(npm(root).args(["run", "--silent", "build"]))
}

/// Tests the page in a browser with a demo, reads a recording with Foxglove's libraries, and runs
/// the page's benchmark for some seconds.
pub(crate) fn test(root: &Path) -> Outcome {
    if let Err(lack) = node_is_here().and_then(|()| setup::bring(BROWSER).map(|_| ())) {
        println!("skipped: web/test: {lack}");
        return Outcome::passed(&format!("skipped: {lack}"));
    }
    let binary = binary(root);
    let Some(browser) = setup::find("chromium") else {
        return Outcome::failed("chromium not found");
    };
    let run = |words: &[&str]| {
        let mut run = Command::new("timeout");
        run.args([TEST_WITHIN, "npm", "run", "--silent"]).args(words);
        run.current_dir(root.join("web")).env("PACELINE_BIN", &binary).env("CHROMIUM", &browser);
        Outcome::of(&mut run)
    };
    match run(&["test"]) {
        passed if passed.is_passed() => run(&["bench", "--", "--short"]),
        failed => failed,
    }
}

/// Returns the path of the binary that the tests were built with.
pub(crate) fn binary(root: &Path) -> PathBuf {
    target(root).join("debug/paceline")
}

/// Returns the path of the benchmarks' binary.
pub(crate) fn lab(root: &Path) -> PathBuf {
    target(root).join("debug/paceline-lab")
}

/// Returns cargo's target folder.
pub(crate) fn target(root: &Path) -> PathBuf {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root.join(folder)
}

fn node_is_here() -> Result<(), String> {
    if let Some((name, _)) = BUILD.iter().find(|(name, _)| setup::find(name).is_none()) {
        return Err(format!("{name} not found: install Node {NODE_MIN} or newer for the page"));
    }
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= NODE_MIN => Ok(()),
        _ => Err(format!("node is {}: install Node {NODE_MIN} or newer", version.trim())),
    }
}

/// Installs the packages of the lock file unless they are already installed.
fn install(root: &Path) -> Result<(), String> {
    let lock = root.join("web/package-lock.json");
    let installed = root.join("web/node_modules/.lock");
    let same = std::fs::read(&lock)
        .is_ok_and(|lock| std::fs::read(&installed).is_ok_and(|was| was == lock));
    if same {
        return Ok(());
    }
    let status = npm(root).args(["ci", "--ignore-scripts"]).stdin(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("npm ci failed: its first run needs the npm registry".to_owned());
    }
    std::fs::copy(&lock, &installed).map(|_| ()).map_err(|error| error.to_string())
}

fn npm(root: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(root.join("web"));
    npm
}
