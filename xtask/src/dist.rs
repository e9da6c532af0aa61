//! `cargo xtask dist`: builds the files of a release, installs each into an empty folder and runs
//! it there.

mod archive;
mod binary;
mod crates;
mod deb;
mod proof;
mod wheel;

use crate::web;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The version of the workspace, and so of every file.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How the binary and the wheel are compiled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Profile {
    /// The release: a static binary, link-time optimisation, no debug information.
    Dist,
    /// The profile of the tests, to try the packaging itself without a release build. The binary is
    /// not static, and the crates are unpacked but not compiled.
    Dev,
}

impl Profile {
    /// Parses the arguments of the command: none, or `--profile dev`.
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] | ["--profile", "dist"] => Ok(Self::Dist),
            ["--profile", "dev"] => Ok(Self::Dev),
            _ => Err(format!("dist takes '--profile dist' or '--profile dev', not {args:?}")),
        }
    }

    /// The name of the profile in Cargo.toml.
    const fn name(self) -> &'static str {
        match self {
            Self::Dist => "dist",
            Self::Dev => "dev",
        }
    }
}

/// The settings of a run.
struct Plan<'a> {
    root: &'a Path,
    profile: Profile,
    /// Cargo's target folder.
    target: PathBuf,
    /// The folder of the finished files, which is empty at the start.
    out: PathBuf,
}

/// A finished file.
struct Artefact {
    file: PathBuf,
    /// Where the file was installed, and the commands that ran there.
    proof: String,
}

/// The lines of the final table.
#[derive(Default)]
struct Table {
    lines: Vec<String>,
    failed: bool,
}

impl Table {
    /// Adds the files of a step, or its error.
    fn add(&mut self, step: &str, result: Result<Vec<Artefact>>) {
        let result = result.and_then(|files| files.iter().map(line).collect::<Result<Vec<_>>>());
        match result {
            Ok(lines) => self.lines.extend(lines),
            Err(error) => {
                self.failed = true;
                self.lines.push(format!("{step:<44} {:>11}  FAILED: {error:#}", ""));
            }
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{:<44} {:>11}  installed and run\n", "file", "bytes");
        for line in &self.lines {
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

/// Returns the table's line of a file.
fn line(artefact: &Artefact) -> Result<String> {
    let file = &artefact.file;
    let bytes = fs::metadata(file).with_context(|| file.display().to_string())?.len();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{name:<44} {bytes:>11}  {}", artefact.proof))
}

pub(crate) fn run(root: &Path, profile: Profile) -> Result<ExitCode> {
    let target = web::target(root);
    let out = target.join(match profile {
        Profile::Dist => "artefacts",
        Profile::Dev => "artefacts-dev",
    });
    empty(&out)?;
    let plan = Plan { root, profile, target, out };
    if profile == Profile::Dist {
        // Before the packages, because the package of paceline-http contains the page.
        println!("== dashboard: {}", web::build(root));
    }
    let mut table = Table::default();
    println!("== crates");
    let sources = crates::package(&plan);
    println!("== binary");
    let binary = sources.as_ref().map_err(|_| anyhow::anyhow!("needs the crates"));
    let binary = binary.and_then(|sources| binary::build(&plan, sources));
    let built = binary.as_ref().map(|binary| binary.file.clone()).ok();
    let compiled = built.is_some() && profile == Profile::Dist;
    table.add("crates", sources.map(|sources| sources.into_artefacts(compiled)));
    table.add("binary", binary.map(|binary| vec![binary]));
    println!("== Debian package");
    let deb = built.context("needs the binary").and_then(|binary| deb::build(&plan, &binary));
    table.add("Debian package", deb.map(|deb| vec![deb]));
    println!("== wheel");
    table.add("wheel", wheel::build(&plan).map(|wheel| vec![wheel]));
    println!("\n{}\nThe files are in {}", table.text(), plan.out.display());
    Ok(if table.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Creates a folder, or removes everything in it.
fn empty(folder: &Path) -> Result<()> {
    let made = || -> std::io::Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)
    };
    made().with_context(|| format!("cannot empty {}", folder.display()))
}

/// Copies a file into a folder under a name. Returns the new path.
fn copy(file: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let to = folder.join(name);
    let copied = fs::copy(file, &to);
    copied.with_context(|| format!("cannot copy {} to {}", file.display(), to.display()))?;
    Ok(to)
}

/// Runs a command whose messages are shown, and checks that it succeeds.
fn run_shown(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// Runs a command, checks that it succeeds, and returns its standard output.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {command:?}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{}", output.status, problem.trim());
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_dist_unless_another_is_named() {
        let parse = |args: &[&str]| {
            Profile::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parse(&[]), Ok(Profile::Dist));
        assert_eq!(parse(&["--profile", "dev"]), Ok(Profile::Dev));
        for wrong in [&["--profile"][..], &["--profile", "release"], &["now"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_error_is_a_row_of_the_table() {
        let mut table = Table::default();
        let file = std::env::current_exe().unwrap();
        table.add("binary", Ok(vec![Artefact { file, proof: "ran".to_owned() }]));
        assert!(!table.failed && table.text().lines().count() == 2);
        table.add("wheel", Err(anyhow::anyhow!("no Python")));
        let missing = Artefact { file: "/nothing/here".into(), proof: String::new() };
        table.add("crates", Ok(vec![missing]));
        assert!(table.failed);
        assert!(table.text().contains("FAILED: no Python") && table.text().lines().count() == 4);
    }
}
