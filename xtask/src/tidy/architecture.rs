//! Checks ARCHITECTURE.md: its table of crates names exactly the members of the workspace with their dependencies on each
//! other, and every source file that it names exists.

use super::graph::{dependencies, members};
use super::{Findings, files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const FILE: &str = "ARCHITECTURE.md";
const HEAD: &str = "| crate | content | own dependencies |";
/// The prefix of names that the document leaves out.
const PREFIX: &str = "paceline-";

/// Crates with their dependencies on other crates of the workspace, without the dependencies of tests.
type Crates = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(root: &Path, findings: &mut Findings) {
    let text = fs::read_to_string(root.join(FILE)).unwrap_or_default();
    let sources = files::with_extension(root, "rs");
    let sources: Vec<String> = sources.iter().map(|path| files::relative(root, path)).collect();
    let problems =
        compare(&table(&text), &crates(root)).into_iter().chain(missing(&text, &sources));
    problems.for_each(|problem| findings.error(format!("{FILE}: {problem}")));
}

/// Returns the members of the workspace.
fn crates(root: &Path) -> Crates {
    let read =
        |folder: &str| fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap_or_default();
    let own = |folder: &str| {
        let used = dependencies(&read(folder)).into_iter();
        let used = used.filter(|used| !used.for_tests && used.name.starts_with("paceline"));
        used.map(|used| used.name).collect()
    };
    let name = |folder: &str| folder.rsplit('/').next().unwrap_or_default().to_owned();
    let folders = members(&read("")).into_iter();
    folders.map(|folder| (name(&folder), own(&folder))).collect()
}

/// Returns the crates of the table. A dash means that a crate has no dependencies.
fn table(text: &str) -> Crates {
    let rows = text.split_once(HEAD).map_or("", |(_, rows)| rows);
    // Skip the rest of the heading and the separator line.
    let rows = rows.lines().skip(2).take_while(|row| row.starts_with('|'));
    let cells = |row: &str| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        Some((cells.next()?, cells.next_back()?))
    };
    let full = |name: &str| match name {
        "paceline" => name.to_owned(),
        name => format!("{PREFIX}{name}"),
    };
    let used = |cell: &str| {
        let names = cell.split(',').map(str::trim).filter(|name| *name != "–");
        names.map(full).collect()
    };
    rows.filter_map(cells).map(|(name, cell)| (name, used(&cell))).collect()
}

/// Returns the differences between the table and the workspace.
fn compare(table: &Crates, workspace: &Crates) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, used) in workspace {
        let Some(said) = table.get(name) else {
            problems.push(format!("the table of crates lacks {name}"));
            continue;
        };
        let lacks = used.difference(said).map(|other| format!("{name} depends on {other}"));
        let invents = said.difference(used).map(|other| format!("{name} does not use {other}"));
        problems.extend(lacks.chain(invents));
    }
    let unknown = table.keys().filter(|name| !workspace.contains_key(*name));
    problems.extend(unknown.map(|name| format!("{name} is not a member of the workspace")));
    problems
}

/// Returns the source files in code spans that do not exist. A path may leave out its first folders, and the prefix of a
/// crate.
fn missing(text: &str, sources: &[String]) -> Vec<String> {
    let is = |source: &str, path: &str| {
        source == path || source.strip_suffix(path).is_some_and(|before| before.ends_with('/'))
    };
    let short = |source: &str| source.replacen(&format!("crates/{PREFIX}"), "crates/", 1);
    let exists =
        |path: &str| sources.iter().any(|source| is(source, path) || is(&short(source), path));
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| span.ends_with(".rs") && !span.contains(['*', ' ']));
    let wrong = paths.filter(|path| !exists(path));
    wrong.map(|path| format!("the file {path} does not exist")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(crates: &[(&str, &[&str])]) -> Crates {
        let owned = |used: &[&str]| used.iter().map(|&name| name.to_owned()).collect();
        crates.iter().map(|(name, used)| ((*name).to_owned(), owned(used))).collect()
    }

    const TABLE: &str = "# A\n\n| crate | content | own dependencies |\n| --- | --- | --- |\n\
        | paceline-sched | a | – |\n| paceline | b | sched |\n| paceline-cli | c | paceline, sched |\n\n| x | y |\n";

    #[test]
    fn the_table_is_read_to_its_end() {
        let expected = of(&[
            ("paceline-sched", &[]),
            ("paceline", &["paceline-sched"]),
            ("paceline-cli", &["paceline", "paceline-sched"]),
        ]);
        assert_eq!(table(TABLE), expected);
        assert_eq!(table("no table"), Crates::new());
    }

    #[test]
    fn each_difference_is_reported() {
        let workspace = of(&[
            ("paceline-sched", &[]),
            ("paceline", &["paceline-sched", "paceline-time"]),
            ("paceline-time", &[]),
        ]);
        let problems = compare(&table(TABLE), &workspace);
        let expected = [
            "paceline depends on paceline-time",
            "the table of crates lacks paceline-time",
            "paceline-cli is not a member of the workspace",
        ];
        assert_eq!(problems, expected);
        let invented =
            of(&[("paceline-sched", &[]), ("paceline", &[]), ("paceline-cli", &["paceline"])]);
        let problems = compare(&table(TABLE), &invented);
        let expected =
            ["paceline does not use paceline-sched", "paceline-cli does not use paceline-sched"];
        assert_eq!(problems, expected);
    }

    #[test]
    fn named_files_must_exist() {
        let sources = ["crates/paceline-proto/src/link/fill.rs", "crates/paceline/src/node.rs"];
        let sources = sources.map(str::to_owned);
        let text = "`proto/src/link/fill.rs`, `fill.rs`, `paceline/src/node.rs`, `put`";
        assert_eq!(missing(text, &sources), Vec::<String>::new());
        let text = "`proto/src/link/gone.rs` and `ill.rs`";
        let expected =
            ["the file proto/src/link/gone.rs does not exist", "the file ill.rs does not exist"];
        assert_eq!(missing(text, &sources), expected);
    }
}
