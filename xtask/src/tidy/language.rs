//! Counts the patterns of plain English, per 10,000 words of each crate and of each group of
//! documents.
//!
//! The words are those of comments, doc comments and docstrings, of Markdown without its code
//! blocks, and of string literals that are sentences: help, errors and log lines.

mod patterns;
mod prose;
mod sentences;

use super::files;
use super::ratchet::{Limit, Measure};
use patterns::Counts;
use prose::{markdown, python, rust, rust_literals, script};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The maximum number of noun clauses with "what" per 10,000 words.
const WHAT_MAX: f64 = 10.0;
/// The maximum number of the words in [`patterns::REPORTING`] per 10,000 words.
const TOLD_MAX: f64 = 4.0;
/// The maximum number of pronouns such as "those of" per 10,000 words.
const PRONOUNS_MAX: f64 = 6.0;
/// The minimum number of "default", and of "returns", per 10,000 words.
const TERMS_MIN: f64 = 8.0;
/// The parts with a user's interface: their texts must name the defaults and the returned values.
const PUBLIC: &[&str] = &["paceline", "paceline-cli", "paceline-plain", "paceline-py", "python"];
const UNIT: &str = "per 10,000 words";

/// Returns the prose of a file's text.
type Reader = fn(&str) -> String;
type Groups = BTreeMap<String, Counts>;

/// Returns the measures of all groups. Prints their table if `show` is true.
pub(super) fn measures(root: &Path, show: bool) -> Vec<Measure> {
    let groups = groups(root);
    if show {
        print!("{}", table(&groups));
    }
    let mut measures: Vec<Measure> =
        groups.iter().flat_map(|(group, counts)| limits(group, counts)).collect();
    measures.extend(sentences::measures(root));
    measures
}

fn groups(root: &Path) -> Groups {
    let mut groups = Groups::new();
    let readers: [(&str, Reader); 6] = [
        ("rs", rust),
        ("py", python),
        ("pyi", python),
        ("ts", script),
        ("mjs", script),
        ("md", markdown),
    ];
    for (extension, read) in readers {
        for path in files::with_extension(root, extension) {
            let name = files::relative(root, &path);
            let text = fs::read_to_string(&path).unwrap_or_default();
            if !name.contains(".gen.") {
                groups.entry(group(&name)).or_default().add(&name, &read(&text));
            }
            if let Some(group) = group_of_literals(&name) {
                groups.entry(group.to_owned()).or_default().add(&name, &rust_literals(&text));
            }
        }
    }
    groups
}

/// Returns the group of a file: its crate or folder, or the kind of document.
fn group(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [file] if *file != "README.md" => "top-level".to_owned(),
        ["README.md"] => "README".to_owned(),
        ["docs", file] if file.starts_with("bench-") => "docs/benchmarks".to_owned(),
        ["docs", _] => "docs".to_owned(),
        ["docs", folder, ..] => format!("docs/{folder}"),
        [.., file] if file.ends_with(".md") => "other-pages".to_owned(),
        ["crates", name, ..] => (*name).to_owned(),
        ["examples", language, ..] => (*language).to_owned(),
        [folder, ..] => (*folder).to_owned(),
        [] => String::new(),
    }
}

/// Returns the group of a file's string literals. Tests print nothing that a user reads.
fn group_of_literals(name: &str) -> Option<&'static str> {
    let of_library = name.starts_with("crates/") && name.contains("/src/");
    let of_tool = ["paceline-cli", "paceline-http", "paceline-lab", "paceline-tool"];
    let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
    match name.ends_with(".rs") && of_library && !is_test {
        true if of_tool.iter().any(|tool| name.starts_with(&format!("crates/{tool}/"))) => {
            Some("help+messages")
        }
        true => Some("library-messages"),
        false => None,
    }
}

fn limits(group: &str, counts: &Counts) -> Vec<Measure> {
    let measure = |check, found: &[String], limit| Measure {
        check,
        group: group.to_owned(),
        value: counts.rate(found.len()),
        limit,
        unit: UNIT,
        places: found.to_vec(),
    };
    let mut measures = vec![
        measure("what-clauses", &counts.what, Limit::AtMost(WHAT_MAX)),
        measure("tells-told", &counts.told, Limit::AtMost(TOLD_MAX)),
        measure("pronouns", &counts.pronouns, Limit::AtMost(PRONOUNS_MAX)),
    ];
    if PUBLIC.contains(&group) {
        for (check, found) in [("defaults", counts.defaults), ("returns", counts.returns)] {
            let (value, limit) = (counts.rate(found), Limit::AtLeast(TERMS_MIN));
            measures.push(Measure { value, ..measure(check, &[], limit) });
        }
    }
    measures
}

fn table(groups: &Groups) -> String {
    let mut text = format!(
        "{:<18} {:>7} {:>12} {:>10} {:>8} {:>8} {:>7}  {UNIT}\n",
        "group", "words", "what-clauses", "tells-told", "pronouns", "defaults", "returns"
    );
    for (group, counts) in groups.iter().filter(|(_, counts)| counts.words > 0) {
        let Counts { words, what, told, pronouns, defaults, returns } = counts;
        let found = [what.len(), told.len(), pronouns.len(), *defaults, *returns];
        let [what, told, pronouns, defaults, returns] = found.map(|found| counts.rate(found));
        text += &format!(
            "{group:<18} {words:>7} {what:>12.1} {told:>10.1} {pronouns:>8.1} {defaults:>8.1} {returns:>7.1}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_group() {
        for (name, expected) in [
            ("README.md", "README"),
            ("CHANGELOG.md", "top-level"),
            ("docs/cli.md", "docs"),
            ("docs/bench-hop.md", "docs/benchmarks"),
            ("docs/guides/python.md", "docs/guides"),
            ("docs/decisions/0001-zenoh.md", "docs/decisions"),
            ("fuzz/README.md", "other-pages"),
            ("crates/paceline-py/README.md", "other-pages"),
            ("crates/paceline-cli/src/main.rs", "paceline-cli"),
            ("examples/python/hello.py", "python"),
            ("python/paceline/aio.py", "python"),
            ("web/src/api.ts", "web"),
            ("xtask/src/main.rs", "xtask"),
        ] {
            assert_eq!(group(name), expected, "{name}");
        }
    }

    #[test]
    fn only_the_literals_of_the_product_count() {
        assert_eq!(group_of_literals("crates/paceline-cli/src/ls.rs"), Some("help+messages"));
        assert_eq!(group_of_literals("crates/paceline/src/error.rs"), Some("library-messages"));
        assert_eq!(group_of_literals("crates/paceline/src/node/tests.rs"), None);
        assert_eq!(group_of_literals("crates/paceline/tests/live/main.rs"), None);
        assert_eq!(group_of_literals("xtask/src/main.rs"), None);
    }

    #[test]
    fn public_parts_have_five_limits() {
        let mut counts = Counts::default();
        counts.add("a.rs", "Returns what the caller told. Defaults to 1 s.");
        let checks = |group| {
            let measures = limits(group, &counts);
            measures.into_iter().map(|m| (m.check, m.places.len())).collect::<Vec<_>>()
        };
        let texts = [("what-clauses", 1), ("tells-told", 1), ("pronouns", 0)];
        assert_eq!(checks("web"), texts);
        let all = [&texts[..], &[("defaults", 0), ("returns", 0)]].concat();
        assert_eq!(checks("paceline"), all);
    }
}
