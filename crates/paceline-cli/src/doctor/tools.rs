//! Checks the programs that some commands run.

use super::row::{Row, ok_if};
use crate::programs;
use std::path::PathBuf;

/// The programs, their purpose and the fix if they are missing.
const TOOLS: [(&str, &str, &str); 4] = [
    ("ffmpeg", "for cameras and videos of other formats", "apt-get install ffmpeg"),
    ("ffplay", "only for sub --play", "apt-get install ffmpeg"),
    ("ip", "only for benches that need root", "apt-get install iproute2"),
    ("tc", "only for benches that need root", "apt-get install iproute2"),
];
/// The folders of system programs, which a user's PATH may omit.
const MORE: [&str; 2] = ["/usr/sbin", "/sbin"];

pub(super) fn rows() -> Vec<Row> {
    let mut folders = programs::folders();
    folders.extend(MORE.iter().map(PathBuf::from));
    TOOLS.iter().map(|(name, wanted, fix)| row(name, wanted, fix, &folders)).collect()
}

fn row(name: &'static str, wanted: &'static str, fix: &str, folders: &[PathBuf]) -> Row {
    let found = programs::find(name, folders);
    let shown = found.as_ref().map_or_else(|| "not found".to_owned(), |p| p.display().to_string());
    Row::new(name, &shown, wanted, ok_if(found.is_some()), fix)
}

#[cfg(test)]
mod tests {
    use super::super::row::State;
    use super::*;

    #[test]
    fn a_program_is_found_on_the_path() {
        let there = row("sh", "x", "y", &["/nowhere".into(), "/bin".into(), "/usr/bin".into()]);
        assert_eq!((there.state, there.found.ends_with("/sh")), (State::Ok, true));
        let gone = row("no-such-program", "x", "apt-get install it", &["/bin".into()]);
        assert_eq!((gone.state, gone.fix.as_deref()), (State::Lack, Some("apt-get install it")));
    }
}
