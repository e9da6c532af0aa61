//! Default names of nodes: a label, such as the name of the program, that is unique among the processes of a host.

use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions, symlink_metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest label in bytes; the rest is cut.
const LABEL_BYTES_MAX: usize = 40;
/// The most nodes of one label on a host that get a small number.
const NUMBER_MAX: u32 = 1_000;
/// The folder of the claimed names, in the runtime folder.
const FOLDER: &str = "names";

/// A name that no other process of this host has while this value exists.
///
/// It is a locked file in the runtime folder. The kernel releases the lock when the process ends for any reason.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
    path: PathBuf,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns `label` if it is free among the processes that share `dir`, else `label-2`, `label-3` and so on. Without a
/// folder that can be written, the process number makes the name unique.
pub(crate) fn unique(label: &str, dir: Option<&Path>) -> (String, Option<Claim>) {
    let label = plain(label);
    let by_process = format!("{label}-{}", std::process::id());
    let Some(folder) = dir.map(|dir| dir.join(FOLDER)) else { return (by_process, None) };
    for number in 1..=NUMBER_MAX {
        let name = if number == 1 { label.clone() } else { format!("{label}-{number}") };
        match claim(&folder, &name) {
            Ok(Some(claim)) => return (name, Some(claim)),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    (by_process, None)
}

/// Locks the file of a name. Returns `None` if another process has it.
fn claim(folder: &Path, name: &str) -> io::Result<Option<Claim>> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(name);
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    // The previous owner may have removed the file in between.
    let (ours, found) = (lock.metadata()?, symlink_metadata(&path));
    let same = found.is_ok_and(|found| (found.dev(), found.ino()) == (ours.dev(), ours.ino()));
    Ok(same.then_some(Claim { _lock: lock, path }))
}

/// Returns the label of letters, digits and `.`, `_` and `-` only, which is also a file name.
fn plain(label: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let label: String = label.chars().map(|c| if kept(c) { c } else { '-' }).collect();
    let label = label.get(..LABEL_BYTES_MAX).unwrap_or(&label).trim_matches(['-', '.']);
    if label.is_empty() { "node".to_owned() } else { label.to_owned() }
}

/// Returns the name of this program without its folder and extension.
pub(crate) fn program() -> String {
    let name = std::env::args_os().next().map(PathBuf::from);
    let stem = name.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy());
    stem.map(|stem| stem.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_free_again() {
        let dir = std::env::temp_dir().join(format!("pl-label-{}", std::process::id()));
        let (one, first) = unique("sub-camera", Some(&dir));
        let (two, second) = unique("sub-camera", Some(&dir));
        assert_eq!((one.as_str(), two.as_str()), ("sub-camera", "sub-camera-2"));
        drop(first);
        let (again, third) = unique("sub-camera", Some(&dir));
        assert_eq!(again, "sub-camera");
        drop((second, third));
        assert_eq!(std::fs::read_dir(dir.join(FOLDER)).unwrap().count(), 0, "no file is left");
        std::fs::remove_dir_all(&dir).unwrap();
        let (numbered, none) = unique("sub-camera", Some(Path::new("/proc/nowhere")));
        assert_eq!(numbered, format!("sub-camera-{}", std::process::id()));
        assert!(none.is_none() && unique("a", None).1.is_none());
    }

    #[test]
    fn labels_are_plain_and_short() {
        assert_eq!(plain("../a b/\u{1b}é"), "a-b");
        assert_eq!((plain("").as_str(), plain("...").as_str()), ("node", "node"));
        assert_eq!(plain(&"x".repeat(300)).len(), LABEL_BYTES_MAX);
    }
}
