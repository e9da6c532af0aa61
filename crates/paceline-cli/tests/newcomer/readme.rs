//! The README: its commands, and its Rust and Python examples.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Commands of the README that are not part of this test, and the tests that cover them.
const ELSEWHERE: &[&str] = &[
    "paceline node", // tests/cli/http.rs
];

/// The README, and the set of its commands that have run.
pub(crate) struct Readme {
    text: String,
    commands: BTreeSet<String>,
    done: BTreeSet<String>,
}

/// Returns the workspace folder.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Readme {
    pub(crate) fn read() -> Self {
        let text = std::fs::read_to_string(root().join("README.md")).expect("a README");
        let lines = text.lines().filter_map(|line| line.split("  #").next());
        let mut commands: BTreeSet<String> = lines.map(joined).collect();
        // Text between alternate backquotes is code.
        let prose = text.replace("```", "");
        commands.extend(prose.split('`').skip(1).step_by(2).map(joined));
        commands.retain(|command| command.starts_with("paceline "));
        Self { text, commands, done: BTreeSet::new() }
    }

    /// Returns the words of the command that starts with `begin`, split as by a shell.
    pub(crate) fn command(&mut self, begin: &str) -> Vec<String> {
        let found = self.commands.iter().find(|command| command.starts_with(begin));
        let command = found.unwrap_or_else(|| panic!("the README has no '{begin}'")).clone();
        let words = command.split(' ').skip(1).map(|word| word.replace('\'', "")).collect();
        self.done.insert(command);
        words
    }

    /// Checks that the README contains this text.
    pub(crate) fn contains(&self, part: &str) {
        assert!(joined(&self.text).contains(part), "the README has no '{part}'");
    }

    /// Returns the content of the only code block in this language.
    pub(crate) fn block(&self, language: &str) -> String {
        let begin = format!("```{language}\n");
        let blocks: Vec<&str> = self.text.split(begin.as_str()).skip(1).collect();
        let [block] = blocks[..] else { panic!("{} blocks of {language}", blocks.len()) };
        block.split("```").next().expect("a block that ends").to_owned()
    }

    /// Checks that every command of the README has run.
    pub(crate) fn all_was_done(&self) {
        let here = |command: &&String| !ELSEWHERE.iter().any(|begin| command.starts_with(begin));
        let left: Vec<_> = self.commands.difference(&self.done).filter(here).collect();
        assert!(left.is_empty(), "the README shows what nobody tries here: {left:?}");
    }
}

/// Joins words with single spaces across lines.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
