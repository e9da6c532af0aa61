//! chronyd for the tests of the clock. Its Debian package is only unpacked, because its installation would replace the
//! time service of the host.

use crate::setup;
use crate::steps::Outcome;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable with the path of chronyd.
pub(crate) const CHRONYD: &str = "PACELINE_CHRONYD";

/// Returns the path of chronyd: of the environment, an installed or an unpacked one; `target` is cargo's target folder.
pub(crate) fn find(target: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(CHRONYD).map(PathBuf::from);
    let unpacked = folder(target).join("usr/sbin/chronyd");
    named
        .or_else(|| setup::find("chronyd"))
        .or_else(|| Some(unpacked).filter(|file| file.is_file()))
}

fn folder(target: &Path) -> PathBuf {
    target.join("chrony")
}

/// Unpacks the package below the target folder unless there is a chronyd. Without one, the tests that need it are
/// skipped by name.
pub(crate) fn step(target: &Path) -> Outcome {
    bring(target)
        .map_or_else(|lack| Outcome::passed(&format!("skipped: {lack}")), |()| Outcome::passed(""))
}

fn bring(target: &Path) -> Result<(), String> {
    if find(target).is_some() {
        return Ok(());
    }
    let lack = || format!("chronyd missing: install chrony, or set {CHRONYD}");
    if setup::find("apt-get").is_none() || setup::find("dpkg-deb").is_none() {
        return Err(lack());
    }
    let folder = folder(target);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let succeeds = |command: &mut Command| {
        command.current_dir(&folder).status().is_ok_and(|status| status.success())
    };
    let downloads = || succeeds(Command::new("apt-get").args(["download", "-q", "chrony"]));
    let is_here = downloads()
        || (setup::is_root()
            && succeeds(Command::new("apt-get").args(["update", "-q"]))
            && downloads());
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let package = entries
        .map(|entry| entry.path())
        .find(|file| file.extension().is_some_and(|extension| extension == "deb"));
    let unpacks =
        |package: &Path| succeeds(Command::new("dpkg-deb").arg("-x").arg(package).arg("."));
    match package {
        Some(package) if is_here && unpacks(&package) && find(target).is_some() => Ok(()),
        Some(_) | None => Err(lack()),
    }
}
