//! Files that the user names with an option such as `--out`.
//!
//! An existing file is replaced only with `--force`. Symbolic links are never followed: in a folder that others can
//! write to, a link could lead the output to any file of this user.

use anyhow::{Context as _, anyhow};
use paceline_tool::exit;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Links of the system to the files that a process has opened, such as `/dev/fd/63` of a shell's `>(command)`.
const OPENED: [&str; 4] = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc/self/fd"];

/// Creates the file that `option` names. Devices and pipes are opened as they are.
///
/// # Errors
/// Errors with the path and a fix if the file exists and `force` is false, if it is a symbolic link, or if it cannot be
/// created.
pub(crate) fn create(option: &str, path: &Path, force: bool) -> anyhow::Result<File> {
    let name = path.display();
    let failed = |error: io::Error| {
        let fix = match error.kind() == io::ErrorKind::NotFound {
            true => format!("create the folder first, or give another {option}"),
            false => "give a file that can be written".to_owned(),
        };
        anyhow!("{option} {name}: cannot create it: {error}; {fix}")
    };
    if OPENED.iter().any(|opened| path.starts_with(opened)) {
        return File::options().write(true).open(path).map_err(failed);
    }
    let created = File::options().write(true).create_new(true).open(path);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created.map_err(failed),
    }
    let kind = fs::symlink_metadata(path).map_err(failed)?.file_type();
    if kind.is_symlink() {
        return Err(exit::usage(format!(
            "{option} {name}: it is a symbolic link, which is not followed; give the path of its target, or another \
             {option}"
        )));
    }
    if kind.is_file() && !force {
        return Err(exit::usage(format!(
            "{option} {name}: it already exists; give --force to replace it, or another {option}"
        )));
    }
    let opened = unfollowed().write(true).open(path).map_err(failed)?;
    // The file may have been replaced since the check.
    let is_file = opened.metadata().map_err(failed)?.is_file();
    if is_file && !force {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    if is_file {
        opened.set_len(0).map_err(failed)?;
    }
    Ok(opened)
}

/// Creates the file that `option` names with this text.
///
/// # Errors
/// As [`create`], or if it cannot be written.
pub(crate) fn write(option: &str, path: &Path, force: bool, text: &str) -> anyhow::Result<()> {
    let mut file = create(option, path, force)?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("{option} {}: cannot write", path.display()))
}

/// Replaces a file at once, so that readers always see a whole one. A symbolic link at `path` is replaced, too.
///
/// # Errors
/// Returns the error of the file system.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut next = name.to_owned();
    next.push(format!(".part-{}", std::process::id()));
    let next = path.with_file_name(next);
    // An earlier process with this number may have left a file.
    let _ = fs::remove_file(&next);
    let mut file = File::options().write(true).create_new(true).open(&next)?;
    let replaced = file.write_all(bytes).and_then(|()| fs::rename(&next, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&next);
    }
    replaced
}

/// Returns options that do not follow a symbolic link.
fn unfollowed() -> OpenOptions {
    let mut options = File::options();
    let flag = rustix::fs::OFlags::NOFOLLOW.bits();
    options.custom_flags(flag.cast_signed());
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("pl-out-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir(&dir).unwrap();
            Self(dir)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: &Path, force: bool) -> String {
        create("--out", path, force).unwrap_err().to_string()
    }

    #[test]
    fn an_existing_file_is_replaced_only_with_force() {
        let dir = Folder::new("force");
        let file = dir.file("x.txt");
        write("--out", &file, false, "a long text").unwrap();
        let error = refusal(&file, false);
        assert!(error.contains("x.txt: it already exists; give --force"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "a long text");
        write("--out", &file, true, "short").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "short");
        let error = refusal(&dir.file("none/x"), false);
        assert!(error.contains("create the folder first"), "{error}");
        assert!(refusal(&dir.0, true).contains("give a file that can be written"));
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let dir = Folder::new("links");
        let (target, link, dangling) = (dir.file("target"), dir.file("link"), dir.file("dangling"));
        fs::write(&target, "mine").unwrap();
        symlink(&target, &link).unwrap();
        symlink(dir.file("new"), &dangling).unwrap();
        for path in [&link, &dangling] {
            for force in [false, true] {
                let error = refusal(path, force);
                assert!(error.contains("it is a symbolic link"), "{error}");
            }
        }
        assert!(!dir.file("new").exists());
        replace(&link, b"other").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&link).unwrap(), "other");
        assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
        // Nor is a link at the place of the part.
        let part = dir.file(&format!("still.jpg.part-{}", std::process::id()));
        symlink(&target, part).unwrap();
        replace(&dir.file("still.jpg"), b"picture").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    }

    #[test]
    fn devices_and_opened_files_are_used_as_they_are() {
        for path in ["/dev/null", "/dev/full"] {
            assert!(create("--out", Path::new(path), false).is_ok(), "{path}");
        }
        let dir = Folder::new("opened");
        let file = File::create(dir.file("x")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        let opened = format!("/dev/fd/{number}");
        create("--out", Path::new(&opened), false).unwrap().write_all(b"1").unwrap();
        assert_eq!(fs::read_to_string(dir.file("x")).unwrap(), "1");
    }
}
