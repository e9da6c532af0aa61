//! The errors in a file, with their line numbers.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeSet;

/// The longest value that a message shows, in characters.
const SHOWN_MAX: usize = 60;

/// All errors in a scenario, one per line: `FILE:LINE: error, valid range, advice`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problems {
    found: Vec<String>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found.join("\n"))
    }
}

impl core::error::Error for Problems {}

/// A file that is being checked.
pub(super) struct Checked<'t> {
    file: &'t str,
    text: &'t str,
    found: BTreeSet<(usize, String)>,
}

impl<'t> Checked<'t> {
    pub(super) const fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, found: BTreeSet::new() }
    }

    /// Reports an error at `span`.
    pub(super) fn add(&mut self, span: &Range<usize>, what: impl Into<String>) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        self.found.insert((before.matches('\n').count() + 1, what.into()));
    }

    /// Reports that the value at `span` violates `rule`, which states the valid range and advice.
    pub(super) fn refuse(&mut self, span: &Range<usize>, place: &str, field: &str, rule: &str) {
        let what = format!("{place}{field} = {}: {rule}", self.shown(span));
        self.add(span, what);
    }

    /// Returns the first line of the text at `span`, truncated if it is long.
    fn shown(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        match line.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
            None if line.len() < text.trim_end().len() => format!("{line} …"),
            None => line.to_owned(),
        }
    }

    /// Returns `value` if there are no errors.
    pub(super) fn done<T>(self, value: T) -> Result<T, Problems> {
        if self.found.is_empty() { Ok(value) } else { Err(self.problems()) }
    }

    /// Returns the errors, in the order of their lines.
    pub(super) fn problems(self) -> Problems {
        let to_text = |(line, what)| format!("{}:{line}: {what}", self.file);
        Problems { found: self.found.into_iter().map(to_text).collect() }
    }
}
