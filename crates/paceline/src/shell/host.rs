//! One node per host: the processes of a host share a runtime folder, and one of them listens
//! there.
//!
//! Access to the folder decides who can join. It belongs to this user and is writable only by this user, or
//! it is the folder of a system-wide node: another user's, in a folder of root, such as `/run/paceline`. There this
//! process is a guest. A user or a cleaner of temporary folders may delete the files at any time; the node that
//! listens restores them.

use crate::error::OpenError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, symlink_metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest path of the folder: the limit of a Unix socket path minus the file name.
const PATH_BYTES_MAX: usize = 108 - "/node.sock".len() - 1;
/// The socket of the host's node.
const SOCKET: &str = "node.sock";
/// A second hard link to the socket. It keeps the file if the first name is deleted.
const KEPT: &str = "node.sock.kept";
/// The lock file of the host's node: its lock owner has that role.
const LOCK: &str = "node.lock";

/// The role of this process among those of its host.
#[derive(Debug)]
pub(crate) struct Host {
    dir: PathBuf,
    /// The open lock file; `None` in the folder of another user.
    lock: Option<File>,
    listens: bool,
    guest: bool,
    /// The device and inode of the socket file while this process listens.
    bound: Option<(u64, u64)>,
}

/// The action that the host's node must take for its files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Upkeep {
    /// None: the files are intact.
    Kept,
    /// None: the socket file was deleted or replaced, and has been restored.
    Restored,
    /// Listen again: the socket file is lost.
    Listen,
    /// Connect: another process has become the host's node.
    Connect,
}

impl Host {
    /// Opens the folder, and becomes the host's node if there is none; a guest never does.
    pub(crate) fn join(dir: PathBuf, guest: bool) -> Result<Self, OpenError> {
        if dir.as_os_str().len() > PATH_BYTES_MAX {
            let what = format!("path longer than {PATH_BYTES_MAX} bytes");
            return Err(OpenError::RuntimeDir { path: dir, source: std::io::Error::other(what) });
        }
        let lock = open_folder(&dir)?;
        let mut host = Self { dir, lock, listens: false, guest, bound: None };
        host.try_take_over();
        Ok(host)
    }

    /// Returns the folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns true if the folder belongs to this user.
    pub(crate) const fn is_own(&self) -> bool {
        self.lock.is_some()
    }

    /// Returns true if this process is the host's node.
    pub(crate) const fn listens(&self) -> bool {
        self.listens
    }

    /// Becomes the host's node if there is none; returns true on success.
    ///
    /// The lock belongs to the open file: the kernel releases it when its process ends for any
    /// reason.
    pub(crate) fn try_take_over(&mut self) -> bool {
        if !self.listens && !self.guest && self.has_lock_file() && self.try_lock() {
            // Files of the previous host's node would prevent listening.
            for left in [SOCKET, KEPT] {
                let _ = std::fs::remove_file(self.dir.join(left));
            }
            self.listens = true;
            return true;
        }
        false
    }

    /// Records the socket file after listening has started, and creates its second hard link.
    pub(crate) fn note_bound(&mut self) {
        self.bound = symlink_metadata(self.socket()).ok().map(|file| identity(&file));
        let kept = self.dir.join(KEPT);
        let _ = std::fs::remove_file(&kept);
        // Not every file system has hard links. Without one, a deleted socket is bound again.
        let _ = std::fs::hard_link(self.socket(), kept);
    }

    /// Checks the files of the host's node, and restores the socket if possible.
    pub(crate) fn look_after(&mut self) -> Upkeep {
        if !self.has_lock_file() {
            return Upkeep::Kept;
        }
        if !self.try_lock() {
            (self.listens, self.bound) = (false, None);
            return Upkeep::Connect;
        }
        if self.bound.is_some() && self.file(SOCKET) == self.bound {
            return Upkeep::Kept;
        }
        if self.bound.is_some() && self.file(KEPT) == self.bound && self.restore().is_ok() {
            return Upkeep::Restored;
        }
        let _ = std::fs::remove_file(self.socket());
        Upkeep::Listen
    }

    /// Restores the socket file atomically.
    fn restore(&self) -> std::io::Result<()> {
        let next = self.dir.join("node.sock.next");
        let _ = std::fs::remove_file(&next);
        std::fs::hard_link(self.dir.join(KEPT), &next)?;
        std::fs::rename(next, self.socket())
    }

    /// Returns the device and inode of a file in the folder.
    fn file(&self, name: &str) -> Option<(u64, u64)> {
        symlink_metadata(self.dir.join(name)).ok().map(|file| identity(&file))
    }

    /// Returns true if the open lock file is the one that new processes would lock. Creates the
    /// folder and the file again if they were deleted.
    fn has_lock_file(&mut self) -> bool {
        let ours = self.lock.as_ref().and_then(|lock| lock.metadata().ok());
        let ours = ours.map(|file| identity(&file));
        if ours.is_some() && self.file(LOCK) == ours {
            return true;
        }
        match open_folder(&self.dir) {
            Ok(lock) => self.lock = lock,
            Err(error) => {
                tracing::debug!("{error}");
                return false;
            }
        }
        self.lock.is_some()
    }

    /// Takes the lock; also returns true if this process has it already.
    fn try_lock(&self) -> bool {
        let take = |lock| flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        self.lock.as_ref().is_some_and(take)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join(SOCKET)
    }

    /// Returns the endpoint of the host link.
    pub(crate) fn endpoint(&self) -> String {
        format!("unix/{}", self.socket().display())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.listens && self.file(KEPT) == self.bound {
            let _ = std::fs::remove_file(self.dir.join(KEPT));
        }
    }
}

/// Returns true if only root can place files in this folder.
fn is_of_root(dir: &Path) -> bool {
    let found = std::fs::metadata(dir);
    found.is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0)
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Opens the lock file of a folder, and creates both if necessary. Returns `None` for the folder of another user's
/// node.
fn open_folder(dir: &Path) -> Result<Option<File>, OpenError> {
    let refuse = |source| OpenError::RuntimeDir { path: dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(refuse)?;
    if !check_folder(dir)? {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(dir.join(LOCK)).map(Some).map_err(refuse)
}

/// Refuses a folder in which other users could replace the socket. Returns false for the folder of another user's
/// node.
fn check_folder(dir: &Path) -> Result<bool, OpenError> {
    let refuse = |source| OpenError::RuntimeDir { path: dir.to_owned(), source };
    let found = symlink_metadata(dir).map_err(refuse)?;
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    let what = if found.is_symlink() {
        "is a symbolic link, which is not followed; use the folder that it points to".to_owned()
    } else if mode & 0o022 != 0 {
        let place = dir.display();
        format!("others can write to it (mode {mode:04o}); run chmod go-w '{place}'")
    } else if owner == rustix::process::geteuid().as_raw() {
        return Ok(true);
    } else if dir.parent().is_some_and(is_of_root) {
        return Ok(false);
    } else {
        format!(
            "belongs to another user (uid {owner}); use a folder that you own, or one in a folder of root such as /run"
        )
    };
    Err(OpenError::UnsafeRuntimeDir { path: dir.to_owned(), what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn the_second_process_attaches_and_takes_over_when_the_first_ends() {
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

    /// Returns an empty folder for this test.
    fn fresh(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("pl-host-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    fn refusal(dir: &Path) -> String {
        Host::join(dir.to_owned(), false).unwrap_err().to_string()
    }

    #[test]
    fn a_folder_writable_by_others_is_refused_with_a_fix() {
        let dir = fresh("open");
        std::fs::create_dir(&dir).unwrap();
        for mode in [0o777, 0o1777, 0o770, 0o702] {
            std::fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            let error = refusal(&dir);
            assert!(
                error.contains(&format!("others can write to it (mode {mode:04o})")),
                "{error}"
            );
            assert!(error.contains(&format!("chmod go-w '{}'", dir.display())), "{error}");
            assert!(!dir.join(LOCK).exists(), "nothing was created in it");
        }
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        assert!(Host::join(dir.clone(), false).unwrap().listens());
        std::fs::remove_dir_all(&dir).unwrap();
        drop(Host::join(dir.clone(), false).unwrap());
        assert_eq!(std::fs::metadata(&dir).unwrap().mode() & 0o777, 0o700, "as it is created");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn symbolic_links_and_folders_of_other_users_are_refused() {
        let (dir, link) = (fresh("real"), fresh("link"));
        let _ = std::fs::remove_file(&link);
        std::fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(refusal(&link).contains("is a symbolic link, which is not followed"));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing was created behind it");
        std::fs::remove_file(link).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&dir, Some(65_534), None).unwrap();
            assert!(refusal(&dir).contains("belongs to another user (uid 65534)"));
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_deleted_or_replaced_socket_is_restored() {
        let dir = fresh("socket");
        let mut host = Host::join(dir.clone(), false).unwrap();
        let listener = UnixListener::bind(host.socket()).unwrap();
        host.note_bound();
        assert_eq!(host.look_after(), Upkeep::Kept);
        std::fs::remove_file(host.socket()).unwrap();
        assert_eq!(host.look_after(), Upkeep::Restored);
        std::fs::remove_file(host.socket()).unwrap();
        std::fs::write(host.socket(), "not a socket").unwrap();
        assert_eq!((host.look_after(), host.look_after()), (Upkeep::Restored, Upkeep::Kept));
        let _client = UnixStream::connect(host.socket()).unwrap();
        assert!(listener.accept().is_ok());
        for name in [SOCKET, KEPT] {
            std::fs::remove_file(dir.join(name)).unwrap();
        }
        assert_eq!(host.look_after(), Upkeep::Listen, "no name is left");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn one_process_becomes_the_host_after_the_folder_is_deleted() {
        let dir = fresh("gone");
        let mut first = Host::join(dir.clone(), false).unwrap();
        let mut waiting = Host::join(dir.clone(), false).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(first.look_after(), Upkeep::Listen, "it recreates the folder, and stays");
        assert!(!waiting.try_take_over(), "it checks the current lock");
        std::fs::remove_dir_all(&dir).unwrap();
        let newcomer = Host::join(dir.clone(), false).unwrap();
        assert!(newcomer.listens());
        assert_eq!(first.look_after(), Upkeep::Connect, "a new process was faster");
        assert!(!first.listens() && !waiting.try_take_over());
        drop(newcomer);
        assert!(first.try_take_over());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_impossible_folder_is_named_in_the_error() {
        let err = Host::join(PathBuf::from("/proc/nowhere"), false).unwrap_err().to_string();
        assert!(err.contains("/proc/nowhere") && err.contains("PACELINE_RUNTIME_DIR"), "{err}");
        let long =
            Host::join(PathBuf::from(format!("/tmp/{}", "x".repeat(120))), false).unwrap_err();
        assert!(long.to_string().contains("longer than"), "{long}");
    }
}
