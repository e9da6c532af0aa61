//! Checks the sizes of files and functions, file names, and markers of unfinished work.

use super::scan::{self, Layers};
use super::{Findings, files};
use std::fs;
use std::path::Path;

/// A file with more code lines than this, without tests and comments, gets a note.
const FILE_NOTE: usize = 300;
/// A file with more code lines than this needs a reason in [`LARGE`].
const FILE_MAX: usize = 500;
/// The maximum number of lines of a function.
const FUNCTION_MAX: usize = 70;
/// Files that exceed [`FILE_MAX`], with the reason.
const LARGE: &[(&str, &str)] = &[];

pub(super) fn check(root: &Path, findings: &mut Findings) {
    for path in files::with_extension(root, "rs") {
        let name = files::relative(root, &path);
        findings.files += 1;
        match fs::read_to_string(&path) {
            Ok(text) => check_file(&name, &text, findings),
            Err(error) => findings.error(format!("{name}: {error}")),
        }
    }
}

fn check_file(name: &str, text: &str, findings: &mut Findings) {
    if name.ends_with("/mod.rs") {
        findings.error(format!(
            "{name}: name it after its folder and move it next to the folder (foo.rs and foo/)"
        ));
    }
    let layers = scan::layers(text);
    for function in scan::functions(&layers.code) {
        if function.lines > FUNCTION_MAX {
            let (line, lines, function) = (function.line, function.lines, function.name);
            findings.error(format!(
                "{name}:{line}: fn {function} has {lines} lines, at most {FUNCTION_MAX}: split it"
            ));
        }
    }
    check_markers(name, &layers, findings);
    if is_test(name) || name.contains(".gen.") {
        return;
    }
    let lines = scan::code_lines(&scan::without_tests(&layers.code));
    let excused = LARGE.iter().any(|(large, _)| *large == name);
    if lines > FILE_MAX && !excused {
        findings.error(format!("{name}: {lines} code lines, at most {FILE_MAX}: split it"));
    } else if lines > FILE_NOTE {
        findings.note(format!("{name}: {lines} code lines, more than {FILE_NOTE}"));
    }
}

fn is_test(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

fn check_markers(name: &str, layers: &Layers, findings: &mut Findings) {
    let in_comments = ["TODO", "FIXME", "XXX"];
    let in_code = ["todo!", "unimplemented!", "dbg!"];
    for (text, markers) in [(&layers.comments, in_comments), (&layers.code, in_code)] {
        for (number, line) in text.lines().enumerate() {
            for marker in markers.iter().filter(|marker| has_word(line, marker)) {
                let number = number + 1;
                findings.error(format!("{name}:{number}: {marker}: finish it or file an issue"));
            }
        }
    }
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !is_letter(before) && !is_letter(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(name: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check_file(name, text, &mut findings);
        findings.errors
    }

    #[test]
    fn long_functions_and_files_are_errors() {
        let body = "    a();\n".repeat(FUNCTION_MAX);
        assert_eq!(errors("a.rs", &format!("fn f() {{\n{body}}}\n")).len(), 1);
        let file = "const A: u8 = 1;\n".repeat(FILE_MAX + 1);
        assert_eq!(errors("a.rs", &file).len(), 1);
        assert_eq!(errors("x/tests/a.rs", &file).len(), 0);
        assert_eq!(errors("x/mod.rs", "").len(), 1);
    }

    #[test]
    fn markers_count_as_words_outside_of_strings() {
        assert_eq!(errors("a.rs", "// TODO later\n").len(), 1);
        assert_eq!(errors("a.rs", "fn f() { todo!() }\n").len(), 1);
        assert_eq!(errors("a.rs", "// TODOS\nlet a = \"TODO todo!\";\n").len(), 0);
    }
}
