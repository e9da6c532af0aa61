//! The requirements of a static build: the target, and C and C++ compilers for musl.

use crate::setup;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The part of a C++ library that is needed here.
const LIBRARY: &str = include_str!("cxx.cpp");
/// `musl-gcc` with the host's C++ compiler: headers and library are those of musl.
const COMPILER: &str = "\
#!/bin/sh
REALGCC=g++ exec musl-gcc \"$@\" -fno-exceptions -fno-rtti
";
/// The name under which the library is linked.
const NAME: &str = "paceline_cxx";
const PROGRAMS: &[(&str, &str)] = &[
    ("musl-gcc", "musl-tools"),
    ("g++", "g++"),
    ("ar", "binutils"),
    ("nasm", "nasm"),
    ("cmake", "cmake"),
];

/// Installs Rust's standard library for the target if it is missing.
pub(crate) fn add_target(target: &str) -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.context("cannot start rustc; is it on the PATH?")?.stdout;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    if sysroot.join("lib/rustlib").join(target).join("lib").is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", target]).status();
    let added = added.is_ok_and(|status| status.success());
    ensure!(added, "the target {target} is not installed: rustup target add {target}");
    Ok(())
}

/// Returns the environment for building C and C++ for the target, and creates the necessary files
/// in `folder`.
///
/// If the user names a C++ compiler for the target, it has its own library, and the result is
/// empty.
pub(crate) fn prepare(target: &str, folder: &Path) -> Result<Vec<(String, OsString)>> {
    let suffix = target.replace('-', "_");
    if std::env::var_os(format!("CXX_{suffix}")).is_some() {
        return Ok(Vec::new());
    }
    if let Err(problem) = setup::bring(PROGRAMS) {
        bail!(
            "no compilers for {target}: {problem}, or name others in CC_{suffix} and CXX_{suffix}"
        );
    }
    let folder = folder.join("cxx");
    let compiler = build(&folder).with_context(|| format!("in {}", folder.display()))?;
    Ok(vec![
        (format!("CXX_{suffix}"), compiler.into()),
        (format!("CXXSTDLIB_{suffix}"), NAME.into()),
        ("LIBRARY_PATH".to_owned(), folder.into()),
    ])
}

/// Writes the compiler wrapper and builds the library with it.
fn build(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let compiler = folder.join("musl-g++");
    fs::write(&compiler, COMPILER)?;
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755))?;
    fs::write(folder.join("cxx.cpp"), LIBRARY)?;
    let object = ["-O2", "-fPIC", "-c", "cxx.cpp", "-o", "cxx.o"];
    run(Command::new(&compiler).args(object).current_dir(folder))?;
    let archive = format!("lib{NAME}.a");
    run(Command::new("ar").args(["crs", &archive, "cxx.o"]).current_dir(folder))?;
    Ok(compiler)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
