//! What tests and benchmarks need beside cargo.

use crate::steps::Outcome;
use std::path::Path;
use std::process::Command;

/// Programs, and the Debian package that brings them.
const PROGRAMS: &[(&str, &str)] = &[("ip", "iproute2"), ("tc", "iproute2"), ("ffmpeg", "ffmpeg")];

/// Finds the programs, installs them where that is possible, else says what to install.
pub(crate) fn run() -> Outcome {
    let missing = missing();
    if missing.is_empty() {
        return Outcome::passed("everything is here");
    }
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let packages = packages.join(" ");
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    if !(is_root() && Path::new("/usr/bin/apt-get").exists()) {
        return Outcome::failed(&format!("{names} missing: install {packages}"));
    }
    let update = Command::new("apt-get").args(["update", "-q"]).status();
    let install = Command::new("apt-get")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(packages.split(' '))
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    match (update, install) {
        (Ok(_), Ok(status)) if status.success() && self::missing().is_empty() => {
            Outcome::passed(&format!("installed {packages}"))
        }
        _ => Outcome::failed(&format!("apt-get install {packages} failed: install it by hand")),
    }
}

fn missing() -> Vec<(&'static str, &'static str)> {
    PROGRAMS.iter().copied().filter(|(name, _)| !exists(name)).collect()
}

pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Into::into);
    std::env::split_paths(&path).chain(usual).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
