//! chronyd for the tests of the clock. Its Debian package is only unpacked, because its installation would replace the
//! time service of the host.

use crate::setup;
use crate::steps::Outcome;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path of chronyd in its package.
const UNPACKED: &str = "usr/sbin/chronyd";

/// The environment variable with the path of chronyd.
pub(crate) const CHRONYD: &str = "PACELINE_CHRONYD";

/// Returns the path of chronyd: of the environment, an installed or an unpacked one; `target` is cargo's target folder.
pub(crate) fn find(target: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(CHRONYD).map(PathBuf::from);
    let unpacked = folder(target).join(UNPACKED);
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
    if find(target).is_some_and(|file| starts(&file)) {
        return Ok(());
    }
    let lack = || format!("chronyd missing: install chrony, or set {CHRONYD}");
    if setup::find("apt-get").is_none() || setup::find("dpkg-deb").is_none() {
        return Err(lack());
    }
    let (folder, new) = (folder(target), target.join("chrony.new"));
    for old in [&folder, &new] {
        let _ = fs::remove_dir_all(old);
    }
    fs::create_dir_all(&new).map_err(|error| error.to_string())?;
    let succeeds = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(&new).stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let limits = ["-q", "-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=0"];
    let apt = |words: &[&str]| succeeds("apt-get", &[&limits[..], words].concat());
    let downloads = || apt(&["download", "chrony"]);
    // A new machine has no lists of packages yet.
    let is_here = downloads() || (setup::is_root() && apt(&["update"]) && downloads());
    let unpacks = || succeeds("sh", &["-c", "dpkg-deb -x chrony_*.deb ."]);
    let is_whole =
        is_here && unpacks() && starts(&new.join(UNPACKED)) && fs::rename(&new, &folder).is_ok();
    is_whole.then_some(()).ok_or_else(lack)
}

/// Returns whether a chronyd has all its libraries.
fn starts(chronyd: &Path) -> bool {
    let version = Command::new(chronyd).arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
