//! A temporary folder for the runtime folders of child processes, removed on drop.

use anyhow::{Context as _, Result};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder that is removed on drop.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    next: AtomicU32,
}

impl Scratch {
    /// Creates a folder whose name contains `name`.
    ///
    /// # Errors
    /// Returns an error if the system's temporary folder is not writable.
    pub fn new(name: &str) -> Result<Self> {
        let prefix = format!("paceline-{name}-");
        remove_leftovers(&prefix);
        let path = std::env::temp_dir().join(format!("{prefix}{}", std::process::id()));
        make(&path).with_context(|| format!("folder {}", path.display()))?;
        Ok(Self { path, next: AtomicU32::new(0) })
    }

    /// Returns the path of an unused subfolder.
    pub fn host(&self) -> PathBuf {
        self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

/// Creates a folder that only this user can access, independent of the umask: nodes reject any other.
pub fn make(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns true for a process that has ended, and for this process.
#[must_use]
pub fn is_gone(process: u32) -> bool {
    let own = process == std::process::id();
    own || !Path::new("/proc").join(process.to_string()).exists()
}

/// Removes the folders of processes that no longer run.
fn remove_leftovers(prefix: &str) {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_string_lossy().strip_prefix(prefix).and_then(|id| id.parse().ok());
        if process.is_some_and(is_gone) {
            // Removing another user's folder fails, which is intended.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system cleans its temporary folder if this fails.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
