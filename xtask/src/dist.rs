//! `cargo xtask dist`: builds one file that runs on any Linux of this processor architecture.
//!
//! The target is musl, whose C library is linked completely into the file. With glibc, a static
//! file still loads the host's name service libraries, which must be of the same glibc version.

use crate::alone::Alone;
use crate::cxx;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = root.join(folder).join(&target);
    cxx::add_target(&target)?;
    let tools = cxx::prepare(&target, &folder)?;
    println!("building for {target} (some minutes: Zenoh is compiled again)");
    let build = ["build", "--profile", "dist", "--package", "paceline-cli", "--bin", "paceline"];
    let built = crate::cargo(root)
        .args(build)
        .args(["--target", &target])
        .envs(tools)
        .status()
        .context("cargo build does not start; is cargo on the PATH?")?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let binary = folder.join("dist/paceline");
    let shown = binary.display();
    let bytes = std::fs::read(&binary).with_context(|| format!("cannot read {shown}"))?;
    ensure!(is_static(&bytes)?, "{shown} asks for a loader: something in it is not static");
    let version = Command::new(&binary).arg("--version").output();
    let version = version.with_context(|| format!("{shown} does not start"))?;
    ensure!(version.status.success(), "{shown} --version: {}", version.status);
    let version = String::from_utf8_lossy(&version.stdout);
    println!("{shown}: static, {} bytes, {}", bytes.len(), version.trim());
    match Alone::new(&binary)? {
        Some(alone) => println!("in a folder with nothing else: {}", alone.check()?),
        None => println!("not tried alone: this user may not change the root; as root it is"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if a 64-bit ELF file names no loader, so that the kernel starts it without any
/// library.
fn is_static(elf: &[u8]) -> Result<bool> {
    const LOADER: u64 = 3;
    ensure!(elf.starts_with(b"\x7fELF\x02\x01"), "not an ELF file of 64 bits, lowest byte first");
    let (table, entry, count) = (number(elf, 32, 8)?, number(elf, 54, 2)?, number(elf, 56, 2)?);
    for index in 0..count {
        let at = usize::try_from(table + index * entry)?;
        if number(elf, at, 4)? == LOADER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a little-endian number of `length` bytes at `at`.
fn number(elf: &[u8], at: usize, length: usize) -> Result<u64> {
    let bytes = at.checked_add(length).and_then(|end| elf.get(at..end)).context("cut short")?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header and two program headers of 56 bytes, the second of this kind.
    fn elf(kind: u8) -> Vec<u8> {
        let mut elf = vec![0; 64 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56]) = (64, 56, 2);
        (elf[64], elf[64 + 56]) = (1, kind);
        elf
    }

    #[test]
    fn a_file_that_names_a_loader_is_not_static() {
        assert!(is_static(&elf(6)).unwrap());
        assert!(!is_static(&elf(3)).unwrap());
        let mut short = elf(6);
        short.truncate(100);
        assert!(is_static(&short).is_err() && is_static(b"#!/bin/sh").is_err());
        let mine = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let expected = cfg!(target_env = "musl");
        assert_eq!(is_static(&mine).unwrap(), expected, "this test itself");
    }
}
