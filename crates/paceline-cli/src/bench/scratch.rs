//! A folder for the runtime folders of a benchmark's hosts, removed with it.

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder, for as long as this lives.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    next: AtomicU32,
}

impl Scratch {
    pub(super) fn new(name: &str) -> Result<Self> {
        let folder = format!("paceline-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&path).with_context(|| format!("folder {}", path.display()))?;
        Ok(Self { path, next: AtomicU32::new(0) })
    }

    /// A folder that was not used before.
    pub(super) fn host(&self) -> PathBuf {
        self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the system's temporary folder is the system's to remove.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
