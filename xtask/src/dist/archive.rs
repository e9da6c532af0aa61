//! The two archive formats of a Debian package: `tar` (POSIX.1-1988, "ustar") and `ar`. The same
//! input gives the same bytes: owner, order and time are fixed.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

/// The size of a block of a tar file in bytes.
const BLOCK: usize = 512;
/// The longest path of an entry in bytes.
const PATH_MAX: usize = 100;

/// A tar file of regular files that belong to root. Folders are added before their files.
pub(super) struct Tar {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    /// The modification time of every entry in seconds since 1970.
    time: u64,
}

impl Tar {
    pub(super) fn new(time: u64) -> Result<Self> {
        let mut tar = Self { bytes: Vec::new(), folders: BTreeSet::new(), time };
        tar.entry("./", 0o755, b'5', &[])?;
        Ok(tar)
    }

    /// Adds a file, such as `usr/bin/paceline`.
    pub(super) fn add(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        for (end, _) in path.match_indices('/') {
            let folder = format!("./{}/", path.get(..end).unwrap_or_default());
            if self.folders.insert(folder.clone()) {
                self.entry(&folder, 0o755, b'5', &[])?;
            }
        }
        self.entry(&format!("./{path}"), mode, b'0', content)
    }

    /// Returns the file, which ends with two empty blocks.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, kind: u8, content: &[u8]) -> Result<()> {
        ensure!(path.len() <= PATH_MAX, "{path}: longer than {PATH_MAX} bytes");
        let mut header = Vec::with_capacity(BLOCK);
        field(&mut header, path, 100);
        // Mode, user, group, size, time; numbers are octal.
        for (number, length) in [(u64::from(mode), 8), (0, 8), (0, 8)] {
            field(&mut header, &format!("{number:0width$o}", width = length - 1), length);
        }
        for number in [u64::try_from(content.len())?, self.time] {
            field(&mut header, &format!("{number:011o}"), 12);
        }
        // The sum of all bytes of the header is computed as if its own field were spaces.
        let (before, mut after) = (header, Vec::with_capacity(BLOCK));
        after.push(kind);
        field(&mut after, "", 100);
        field(&mut after, "ustar\x0000", 8);
        field(&mut after, "root", 32);
        field(&mut after, "root", 32);
        after.resize(BLOCK - 8 - before.len(), 0);
        let sum: u32 = before.iter().chain(&after).map(|byte| u32::from(*byte)).sum();
        let sum = format!("{:06o}\0 ", sum + 8 * u32::from(b' '));
        for part in [&before[..], sum.as_bytes(), &after, content] {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }
}

/// Appends a text, filled with zeros to `length` bytes.
fn field(header: &mut Vec<u8>, text: &str, length: usize) {
    let end = header.len() + length;
    header.extend_from_slice(text.as_bytes());
    header.resize(end, 0);
}

/// Returns an `ar` archive of files that belong to root.
pub(super) fn ar(files: &[(&str, &[u8])], time: u64) -> Result<Vec<u8>> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in files {
        ensure!(name.len() <= 16, "{name}: longer than 16 bytes");
        // Name, time, user, group, mode, size.
        let (mode, size) = ("100644", content.len());
        writeln!(bytes, "{name:<16}{time:<12}{:<6}{:<6}{mode:<8}{size:<10}`", 0, 0)?;
        bytes.extend_from_slice(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    Ok(bytes)
}

/// Compresses bytes with `gzip` or `xz`, given with their arguments.
pub(super) fn compress(program: &str, args: &[&str], bytes: &[u8]) -> Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let input = child.stdin.take();
    let (written, output) = thread::scope(|scope| {
        // The program writes before it has read everything.
        let writer = scope.spawn(|| input.map_or(Ok(()), |mut input| input.write_all(bytes)));
        let output = child.wait_with_output();
        (writer.join(), output)
    });
    let output = output.with_context(|| format!("{program} has no output"))?;
    let written = matches!(written, Ok(Ok(())));
    ensure!(written && output.status.success(), "{program}: {}", output.status);
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;
    use std::fs;

    fn tar() -> Vec<u8> {
        let mut tar = Tar::new(1_700_000_000).unwrap();
        tar.add("usr/bin/paceline", 0o755, b"program").unwrap();
        tar.add("usr/share/doc/paceline/copyright", 0o644, &[b'x'; BLOCK]).unwrap();
        tar.finish()
    }

    fn octal(bytes: &[u8]) -> u32 {
        let text = std::str::from_utf8(bytes).unwrap();
        u32::from_str_radix(text.trim_matches(['\0', ' ']), 8).unwrap()
    }

    #[test]
    fn folders_are_listed_once_before_their_files() {
        let tar = tar();
        let mut names = Vec::new();
        let mut at = 0;
        while tar[at] != 0 {
            let header = &tar[at..at + BLOCK];
            names.push(String::from_utf8_lossy(&header[..100]).trim_matches('\0').to_owned());
            let sum = octal(&header[148..156]);
            let spaces = 8 * u32::from(b' ');
            let expected: u32 = header.iter().map(|byte| u32::from(*byte)).sum::<u32>() + spaces
                - header[148..156].iter().map(|byte| u32::from(*byte)).sum::<u32>();
            assert_eq!(sum, expected, "{names:?}");
            assert_eq!(&header[257..265], b"ustar\x0000");
            at +=
                BLOCK + usize::try_from(octal(&header[124..136])).unwrap().next_multiple_of(BLOCK);
        }
        let expected = [
            "./",
            "./usr/",
            "./usr/bin/",
            "./usr/bin/paceline",
            "./usr/share/",
            "./usr/share/doc/",
            "./usr/share/doc/paceline/",
            "./usr/share/doc/paceline/copyright",
        ];
        assert_eq!(names, expected);
        assert_eq!(tar.len() - at, 2 * BLOCK, "the end");
    }

    #[test]
    fn too_long_names_are_errors() {
        let mut tar = Tar::new(0).unwrap();
        assert!(tar.add(&"a".repeat(PATH_MAX), 0o644, b"").is_err());
        assert!(ar(&[("seventeen-letters", b"")], 0).is_err());
    }

    #[test]
    fn contents_of_odd_length_are_padded() {
        let archive = ar(&[("a", b"123"), ("b", b"4")], 7).unwrap();
        let expected = "!<arch>\n\
            a               7           0     0     100644  3         `\n123\n\
            b               7           0     0     100644  1         `\n4\n";
        assert_eq!(String::from_utf8(archive).unwrap(), expected);
    }

    #[test]
    fn tar_and_ar_read_the_archives() {
        let folder = std::env::temp_dir().join(format!("paceline-archive-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let read = |program: &str, file: &str, args: &[&str]| {
            if setup::find(program).is_none() {
                println!("skipped: {program} is not installed");
                return None;
            }
            let output = Command::new(program).args(args).arg(folder.join(file)).output().unwrap();
            assert!(output.status.success(), "{program}: {output:?}");
            Some(String::from_utf8(output.stdout).unwrap())
        };
        fs::write(folder.join("a.tar"), tar()).unwrap();
        let list = read("tar", "a.tar", &["--utc", "--numeric-owner", "-tvf"]);
        let program = "-rwxr-xr-x 0/0               7 2023-11-14 22:13 ./usr/bin/paceline";
        assert!(list.is_none_or(|list| list.lines().any(|line| line == program)));
        fs::write(folder.join("a.ar"), ar(&[("a", b"123"), ("b", b"4")], 7).unwrap()).unwrap();
        let list = read("ar", "a.ar", &["t"]);
        assert!(list.is_none_or(|list| list == "a\nb\n"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn input_larger_than_a_pipe_is_compressed() {
        let bytes = vec![b'x'; 1 << 20];
        let packed = compress("gzip", &["-9n"], &bytes).unwrap();
        assert!(packed.starts_with(&[0x1f, 0x8b]) && packed.len() < bytes.len() / 100);
        assert!(compress("false", &[], &bytes).is_err());
    }
}
