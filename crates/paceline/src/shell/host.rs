//! One node per host: the processes of a host meet in a runtime folder, and one of them listens there.

use crate::error::OpenError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest path that a unix socket can have, with room for the file's name.
const PATH_BYTES_MAX: usize = 108 - "/node.sock".len() - 1;

/// This process's place among those of its host.
#[derive(Debug)]
pub(crate) struct Host {
    dir: PathBuf,
    lock: File,
    listens: bool,
    guest: bool,
}

impl Host {
    /// Opens the folder, and takes the host's place if it is free; a guest never takes it.
    pub(crate) fn join(dir: PathBuf, guest: bool) -> Result<Self, OpenError> {
        let refuse = |source: std::io::Error| OpenError::RuntimeDir { path: dir.clone(), source };
        if dir.as_os_str().len() > PATH_BYTES_MAX {
            let what = format!("path longer than {PATH_BYTES_MAX} bytes");
            return Err(refuse(std::io::Error::other(what)));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(refuse)?;
        let owner = std::fs::metadata(&dir).map_err(refuse)?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return Err(refuse(std::io::Error::other("belongs to another user")));
        }
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join("node.lock"))
            .map_err(refuse)?;
        let mut host = Self { dir, lock, listens: false, guest };
        host.try_take_over();
        Ok(host)
    }

    /// True if this process is the one that listens.
    pub(crate) const fn listens(&self) -> bool {
        self.listens
    }

    /// Takes the host's place if whoever had it is gone; true if it is ours from now on.
    ///
    /// The lock belongs to the open file: the kernel gives it back when its process ends, however it
    /// ends.
    pub(crate) fn try_take_over(&mut self) -> bool {
        if !self.listens
            && !self.guest
            && flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // What the last host left would keep us from listening.
            let _ = std::fs::remove_file(self.socket());
            self.listens = true;
            return true;
        }
        false
    }

    /// Where the host listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("node.sock")
    }

    /// The host's own link, as an endpoint.
    pub(crate) fn endpoint(&self) -> String {
        format!("unixsock-stream/{}", self.socket().display())
    }
}

/// The folder in which the processes of a host meet, if none is named: `$PACELINE_RUNTIME_DIR`, else
/// `$XDG_RUNTIME_DIR/paceline`, else one of this user's under the system's temporary folder.
#[must_use]
pub fn default_dir() -> PathBuf {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = named("PACELINE_RUNTIME_DIR") {
        return dir;
    }
    if let Some(dir) = named("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        return dir.join("paceline");
    }
    std::env::temp_dir().join(format!("paceline-{}", rustix::process::geteuid().as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_attaches_and_takes_over_when_the_first_is_gone() {
        let dir = std::env::temp_dir().join(format!("pl-host-{}", std::process::id()));
        let first = Host::join(dir.clone(), false).unwrap();
        let mut second = Host::join(dir.clone(), false).unwrap();
        assert!(first.listens());
        assert!(!second.listens() && !second.try_take_over());
        let mut guest = Host::join(dir.clone(), true).unwrap();
        drop(first);
        assert!(!guest.try_take_over());
        assert!(second.try_take_over() && second.listens());
        drop(second);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_is_named() {
        let err = Host::join(PathBuf::from("/proc/nowhere"), false).unwrap_err().to_string();
        assert!(err.contains("/proc/nowhere") && err.contains("PACELINE_RUNTIME_DIR"), "{err}");
        let long =
            Host::join(PathBuf::from(format!("/tmp/{}", "x".repeat(120))), false).unwrap_err();
        assert!(long.to_string().contains("longer than"), "{long}");
    }
}
