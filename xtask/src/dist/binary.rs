//! The binary: one file that runs on any Linux of this processor architecture.
//!
//! The target is musl, whose C library is linked completely into the file. With glibc, a static
//! file still loads the host's name service libraries, which must be of the same glibc version.

use super::crates::Sources;
use super::{Artefact, Plan, Profile, VERSION, copy, output, proof, run_shown};
use crate::alone::Alone;
use crate::cxx;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Command;

/// Builds the binary and runs it.
pub(super) fn build(plan: &Plan<'_>, sources: &Sources) -> Result<Artefact> {
    match plan.profile {
        Profile::Dist => static_binary(plan, sources),
        Profile::Dev => debug_binary(plan),
    }
}

/// Builds the static binary from the packaged crates, which shows that the packages are complete.
fn static_binary(plan: &Plan<'_>, sources: &Sources) -> Result<Artefact> {
    let arch = std::env::consts::ARCH;
    let target = format!("{arch}-unknown-linux-musl");
    let folder = plan.target.join(&target);
    cxx::add_target(&target)?;
    let tools = cxx::prepare(&target, &folder)?;
    println!("building for {target} (some minutes: Zenoh is compiled for it)");
    let build = ["build", "--profile", "dist", "--package", "paceline-cli", "--bin", "paceline"];
    let mut cargo = crate::cargo(plan.root);
    cargo.args(build).args(["--target", &target]).arg("--manifest-path").arg(sources.manifest());
    run_shown(cargo.envs(tools).env("CARGO_TARGET_DIR", &plan.target))?;
    let name = format!("paceline-{VERSION}-{arch}-linux");
    let file = copy(&folder.join("dist/paceline"), &plan.out, &name)?;
    let shown = file.display();
    let bytes = fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
    ensure!(is_static(&bytes)?, "{shown} names a loader, so a part of it is not static");
    let works = proof::works(&file)?;
    let alone = match Alone::new(&file)? {
        Some(alone) => format!("in an empty root folder: {}", alone.check()?),
        None => "not tried in an empty root folder, which needs root".to_owned(),
    };
    Ok(Artefact { file, proof: format!("static; {works}; {alone}") })
}

/// Builds the binary as the tests do, and removes its debug information.
fn debug_binary(plan: &Plan<'_>) -> Result<Artefact> {
    // The whole workspace: other features would compile Zenoh again.
    run_shown(crate::cargo(plan.root).args(["build", "--workspace", "--bin", "paceline"]))?;
    let name = format!("paceline-{VERSION}-{}-dev", std::env::consts::ARCH);
    let file = copy(&crate::web::binary(plan.root), &plan.out, &name)?;
    output(Command::new("strip").arg(&file))?;
    let proof = format!("not static; {}", proof::works(&file)?);
    Ok(Artefact { file, proof })
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
        let mine = fs::read(std::env::current_exe().unwrap()).unwrap();
        let expected = cfg!(target_env = "musl");
        assert_eq!(is_static(&mine).unwrap(), expected, "this test itself");
    }
}
