//! A table of the file, read key by key. Unknown keys are errors.

use paceline_sched::units;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The longest value in a message, in characters.
const SHOWN_MAX: usize = 60;

/// The problems found in a file, each with its line.
pub(super) struct Problems<'t> {
    file: &'t str,
    text: &'t str,
    found: BTreeSet<(usize, String)>,
}

impl<'t> Problems<'t> {
    /// Creates an empty list for `text`, which was read from `file`.
    pub(super) const fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, found: BTreeSet::new() }
    }

    /// Adds a problem at `span`.
    pub(super) fn add(&mut self, span: &Range<usize>, what: String) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        self.found.insert((line, what));
    }

    /// Returns the first line of the text at `span`, truncated if it is long.
    pub(super) fn shown(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        match line.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
            None if line.len() < text.trim_end().len() => format!("{line} …"),
            None => line.to_owned(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Formats all problems, sorted by line.
    pub(super) fn render(self) -> String {
        let Self { file, found, .. } = self;
        let lines = found.iter().map(|(line, what)| format!("{file}:{line}: {what}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A table of the file.
pub(super) struct Section<'a, 'i> {
    /// The prefix of a key in messages: empty, or for example "link 2 ".
    pub(super) place: String,
    pub(super) span: Range<usize>,
    table: &'a DeTable<'i>,
}

impl<'a, 'i> Section<'a, 'i> {
    /// Opens the table at `span`. A key that is not in `keys` is a problem.
    pub(super) fn new(
        place: String,
        span: Range<usize>,
        table: &'a DeTable<'i>,
        keys: &[&str],
        problems: &mut Problems<'_>,
    ) -> Self {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                problems.add(&key.span(), unknown(&place, name, keys));
            }
        }
        Self { place, span, table }
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// Returns true if `key` is missing.
    pub(super) fn is_without(&self, key: &str) -> bool {
        self.value(key).is_none()
    }

    /// Returns the text of `key`; `None` if it is missing or no text.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.value(key)?.get_ref().as_str()
    }

    /// Returns the span of `key`'s value, or the table's own span if the key is missing.
    pub(super) fn span_of(&self, key: &str) -> Range<usize> {
        self.value(key).map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// Returns the value of `key` if it exists and is valid. An error of `read`, which names the
    /// range and a fix, is reported with the field and the value before it.
    pub(super) fn read<T>(
        &self,
        key: &str,
        problems: &mut Problems<'_>,
        read: impl FnOnce(&DeValue<'i>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.value(key)?;
        match read(value.get_ref()) {
            Ok(read) => Some(read),
            Err(rule) => {
                let shown = problems.shown(&value.span());
                problems.add(&value.span(), format!("{}{key} = {shown}: {rule}", self.place));
                None
            }
        }
    }

    /// Returns the valid values of the list `key`.
    pub(super) fn read_list<T>(
        &self,
        key: &str,
        max: usize,
        rule: &str,
        problems: &mut Problems<'_>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let list = value.get_ref().as_array().filter(|list| (1..=max).contains(&list.len()));
        let Some(list) = list else {
            let shown = problems.shown(&value.span());
            problems.add(&value.span(), format!("{}{key} = {shown}: {rule}", self.place));
            return Vec::new();
        };
        let mut right = Vec::new();
        for item in list.iter() {
            let text = item.get_ref().as_str().ok_or_else(|| rule.to_owned());
            match text.and_then(&read) {
                Ok(value) => right.push(value),
                Err(rule) => {
                    let shown = problems.shown(&item.span());
                    problems.add(&item.span(), format!("{}{key} has {shown}: {rule}", self.place));
                }
            }
        }
        right
    }

    /// Returns the table `[key]` if it exists; any other value is reported as `wrong`.
    pub(super) fn table(
        &self,
        key: &str,
        wrong: &str,
        keys: &[&str],
        problems: &mut Problems<'_>,
    ) -> Option<Self> {
        let value = self.value(key)?;
        let Some(table) = value.get_ref().as_table() else {
            problems.add(&value.span(), wrong.to_owned());
            return None;
        };
        let place = format!("{}{key}: ", self.place);
        Some(Self::new(place, value.span(), table, keys, problems))
    }

    /// Returns the tables `[[key]]`, each with its prefix for messages.
    pub(super) fn tables(
        &self,
        key: &str,
        keys: &[&str],
        problems: &mut Problems<'_>,
    ) -> Vec<Self> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let wrong =
            format!("{key} must be a list of tables: write [[{key}]] above the keys of each");
        let Some(list) = value.get_ref().as_array() else {
            problems.add(&value.span(), wrong);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (number, item) in (1..).zip(list.iter()) {
            let Some(table) = item.get_ref().as_table() else {
                problems.add(&item.span(), wrong.clone());
                continue;
            };
            let place = format!("{}{key} {number}: ", self.place);
            tables.push(Self::new(place, item.span(), table, keys, problems));
        }
        tables
    }
}

/// Formats the error for an unknown key and suggests the closest known one.
fn unknown(place: &str, name: &str, keys: &[&str]) -> String {
    if let Some((present, example)) = units::renamed(name, keys) {
        return format!("{place}{name} is not known: write {present} = \"{example}\", with a unit");
    }
    let near = keys.iter().map(|key| (distance(name, key), *key)).min();
    let meant = near.filter(|(steps, key)| *steps <= 2 && *steps < key.len());
    let meant = meant.map(|(_, key)| format!("did you mean {key}? ")).unwrap_or_default();
    format!("{place}{name} is not known: {meant}the keys here are {}", keys.join(", "))
}

/// Returns the edit distance: the number of inserted, deleted, replaced or transposed letters.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let at =
                |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX - 1);
            let mut least = (at(&row, j) + usize::from(a != b)).min(at(&row, j + 1) + 1);
            least = least.min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && from.get(i - 1) == Some(b) && to.get(j - 1) == Some(a);
            if swapped {
                least = least.min(at(&before, j - 1) + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_typing_errors() {
        for (from, to, steps) in [
            ("name", "name", 0),
            ("nmae", "name", 1),
            ("nam", "name", 1),
            ("capasity", "capacity", 1),
            ("", "log", 3),
            ("logs", "", 4),
            ("listen", "connect", 6),
        ] {
            assert_eq!(distance(from, to), steps, "{from} {to}");
        }
    }
}
