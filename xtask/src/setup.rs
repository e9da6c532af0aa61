//! The requirements of tests and benchmarks in addition to cargo.

use crate::steps::Outcome;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, each with its Debian package. Without nasm, OpenH264 is built without assembly and
/// scaling video costs twice as much.
const PROGRAMS: &[(&str, &str)] =
    &[("ip", "iproute2"), ("tc", "iproute2"), ("ffmpeg", "ffmpeg"), ("nasm", "nasm")];
/// The shells whose completion is tested. Without one, its tests are skipped by name.
const SHELLS: &[(&str, &str)] = &[("zsh", "zsh"), ("fish", "fish")];

/// The encoders whose video is tested. Without one, its modes are skipped by name.
const ENCODERS: &[(&str, &str)] = &[
    ("x264", "x264"),
    ("SvtAv1EncApp", "svt-av1"),
    ("aomenc", "aom-tools"),
    ("gst-launch-1.0", "gstreamer1.0-tools gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly"),
];

/// The cameras of the tests, GStreamer's RTSP server for Python. Without them, their tests are skipped by name.
const CAMERAS: &[(&str, &str)] = &[
    (
        "/usr/lib/x86_64-linux-gnu/girepository-1.0/GstRtspServer-1.0.typelib",
        "gir1.2-gst-rtsp-server-1.0",
    ),
    ("/usr/lib/python3/dist-packages/gi/__init__.py", "python3-gi"),
    (
        "/usr/lib/x86_64-linux-gnu/gstreamer-1.0/libgstrtp.so",
        "gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly",
    ),
];

/// Finds the programs, and installs missing ones if possible. Fails with the packages to install, except for shells,
/// encoders and cameras.
pub(crate) fn run() -> Outcome {
    let detail = match bring(PROGRAMS) {
        Ok(detail) => detail,
        Err(problem) => return Outcome::failed(&problem),
    };
    let problems =
        [SHELLS, ENCODERS, CAMERAS].into_iter().filter_map(|programs| bring(programs).err());
    Outcome::passed(&[detail].into_iter().chain(problems).collect::<Vec<_>>().join("; "))
}

/// Finds or installs programs, each given with its Debian package. Returns a description of the
/// changes.
///
/// # Errors
/// The missing programs and the packages to install.
pub(crate) fn bring(programs: &[(&str, &str)]) -> Result<String, String> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok("all programs are installed".to_owned());
    }
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let packages = packages.join(" ");
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    if !(is_root() && Path::new("/usr/bin/apt-get").exists()) {
        return Err(format!("{names} missing: install {packages}"));
    }
    let update = Command::new("apt-get").args(["update", "-q"]).status();
    let install = Command::new("apt-get")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(packages.split(' '))
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    match (update, install) {
        (Ok(_), Ok(status)) if status.success() && self::missing(programs).is_empty() => {
            Ok(format!("installed {packages}"))
        }
        _ => Err(format!("apt-get install {packages} failed: install it by hand")),
    }
}

fn missing<'a>(programs: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    programs.iter().copied().filter(|(name, _)| find(name).is_none()).collect()
}

/// Returns the path of a program on the PATH or in the system folders.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Into::into);
    let mut folders = std::env::split_paths(&path).chain(usual);
    folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()))
}

pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
