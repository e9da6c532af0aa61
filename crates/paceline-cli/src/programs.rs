//! Finds the programs that some commands run.

use std::path::PathBuf;

/// Returns the folders of `PATH`.
pub(crate) fn folders() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Returns the path of a program in the first folder that has it.
pub(crate) fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
