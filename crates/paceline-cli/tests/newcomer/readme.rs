//! The README: the commands that it shows, and its lines of Rust and Python.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What the README shows that is no step of the first quarter of an hour, and who tests it.
const ELSEWHERE: &[&str] = &[
    "paceline bench",    // measures
    "paceline schedule", // tests/cli/schedule.rs
    "paceline node",     // tests/cli/http.rs
];

/// The README, and which of its commands were done.
pub(crate) struct Readme {
    text: String,
    commands: BTreeSet<String>,
    done: BTreeSet<String>,
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Readme {
    pub(crate) fn read() -> Self {
        let text = std::fs::read_to_string(root().join("README.md")).expect("a README");
        let lines = text.lines().filter_map(|line| line.split("  #").next());
        let mut commands: BTreeSet<String> = lines.map(joined).collect();
        // Every other piece between backquotes is code.
        let prose = text.replace("```", "");
        commands.extend(prose.split('`').skip(1).step_by(2).map(joined));
        commands.retain(|command| command.starts_with("paceline "));
        Self { text, commands, done: BTreeSet::new() }
    }

    /// The words of the command that begins so, as a shell takes them.
    pub(crate) fn command(&mut self, begin: &str) -> Vec<String> {
        let found = self.commands.iter().find(|command| command.starts_with(begin));
        let command = found.unwrap_or_else(|| panic!("the README has no '{begin}'")).clone();
        let words = command.split(' ').skip(1).map(|word| word.replace('\'', "")).collect();
        self.done.insert(command);
        words
    }

    /// The README has this piece of text.
    pub(crate) fn says(&self, part: &str) {
        assert!(joined(&self.text).contains(part), "the README has no '{part}'");
    }

    /// The lines of its only block of this language.
    pub(crate) fn block(&self, language: &str) -> String {
        let begin = format!("```{language}\n");
        let blocks: Vec<&str> = self.text.split(begin.as_str()).skip(1).collect();
        let [block] = blocks[..] else { panic!("{} blocks of {language}", blocks.len()) };
        block.split("```").next().expect("a block that ends").to_owned()
    }

    /// Nothing that it shows was left out.
    pub(crate) fn all_was_done(&self) {
        let here = |command: &&String| !ELSEWHERE.iter().any(|begin| command.starts_with(begin));
        let left: Vec<_> = self.commands.difference(&self.done).filter(here).collect();
        assert!(left.is_empty(), "the README shows what nobody tries here: {left:?}");
    }
}

/// With one blank between words, across lines.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
