//! Keys of plain programs and tags, and how the one is made of the other.

use core::fmt;
use zenoh::key_expr::{OwnedKeyExpr, keyexpr};

/// Wildcards that a template can name: `{1}` to `{9}`.
const WILDCARDS_MAX: usize = 9;

/// Why a key expression or a template is wrong.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Zenoh does not take it as a key expression.
    #[error(
        "'{0}' is no key expression of Zenoh: {1}; write chunks joined by single '/', with * for one \
         and ** for any number, like robot/**"
    )]
    NoKey(String, String),
    /// More than one `**`, so that nobody could say what each stands for.
    #[error("'{0}' has more than one **: the parts of a key are told apart by at most one")]
    TwoDoubleStars(String),
    /// A brace that is not part of a placeholder.
    #[error(
        "'{text}': {{{name}}} is not known: write {{{whole}}} for the whole, {{1}} to {{9}} for wildcards"
    )]
    Placeholder {
        /// The template.
        text: String,
        /// What stands between the braces, or after an open one.
        name: String,
        /// The name of the whole.
        whole: &'static str,
    },
    /// It names a wildcard that the pattern does not have.
    #[error("'{text}' names {{{number}}}, but {pattern} has {wildcards} wildcards: count * and **")]
    NoSuchWildcard {
        /// The template.
        text: String,
        /// Which one.
        number: usize,
        /// What it is filled from.
        pattern: String,
        /// How many that has.
        wildcards: usize,
    },
    /// What it makes is nothing that samples could be published on.
    #[error("'{text}' makes '{made}': {what}")]
    Makes {
        /// The template.
        text: String,
        /// What it makes of the pattern itself.
        made: String,
        /// What is wrong with that.
        what: String,
    },
}

/// Keys or tags with wildcards, each a whole chunk: `*` for one chunk, `**` for any number of them. In keys
/// `$*` may stand for a part of a chunk; it has no number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyPattern {
    /// As it was written: wildcards are counted in it.
    text: String,
    /// As Zenoh writes it, which has `*/**` for `**/*`.
    canon: OwnedKeyExpr,
}

impl KeyPattern {
    /// Reads one.
    ///
    /// # Errors
    /// [`KeyError`] names what is wrong and how to write it.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let canon = OwnedKeyExpr::autocanonize(text.to_owned()).map_err(|error| {
            // What follows says where in its source Zenoh found out.
            let error = error.to_string();
            let what = error.split(" at /").next().unwrap_or(&error).to_owned();
            KeyError::NoKey(text.to_owned(), what)
        })?;
        if text.split('/').filter(|chunk| *chunk == "**").count() > 1 {
            return Err(KeyError::TwoDoubleStars(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), canon })
    }

    /// It as Zenoh writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.canon.as_str()
    }

    /// True if some key matches both.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.canon.intersects(&other.canon)
    }

    /// What both `key` and this match: the narrower one of the two, none if that is neither.
    pub(crate) fn narrowed(&self, key: &keyexpr) -> Option<OwnedKeyExpr> {
        if self.canon.includes(key) {
            return Some(key.into());
        }
        key.includes(&self.canon).then(|| self.canon.clone())
    }

    fn wildcards(&self) -> impl Iterator<Item = &str> {
        self.text.split('/').filter(|chunk| matches!(*chunk, "*" | "**"))
    }

    /// What each wildcard stands for in `key`, which matches; none if it has fewer chunks than it would
    /// have then. What `**` stands for may be empty.
    fn captures<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let mut rest = Some(key);
        let mut found = Vec::new();
        let mut chunks = self.text.split('/');
        while let Some(chunk) = chunks.next() {
            if chunk == "**" {
                // There is one at most: what follows it is counted from the end.
                let mut behind = Vec::new();
                for chunk in chunks.rev() {
                    let (before, last) = last_chunk(rest?);
                    rest = before;
                    if chunk == "*" {
                        behind.push(last);
                    }
                }
                found.push(rest.unwrap_or_default());
                found.extend(behind.into_iter().rev());
                return Some(found);
            }
            let (first, after) = first_chunk(rest?);
            rest = after;
            if chunk == "*" {
                found.push(first);
            }
        }
        rest.is_none().then_some(found)
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn first_chunk(text: &str) -> (&str, Option<&str>) {
    text.split_once('/').map_or((text, None), |(first, after)| (first, Some(after)))
}

fn last_chunk(text: &str) -> (Option<&str>, &str) {
    text.rsplit_once('/').map_or((None, text), |(before, last)| (Some(before), last))
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Text(String),
    Whole,
    Wildcard(usize),
}

/// How a tag is made of a key, or a key of a tag: text in which `{key}` or `{tag}` stands for the whole and
/// `{1}` to `{9}` for what the first to ninth wildcard of the pattern stands for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    text: String,
    from: KeyPattern,
    parts: Vec<Part>,
}

impl Template {
    /// Reads a template that is filled from what matches `from`; `whole` is the name of the whole.
    ///
    /// # Errors
    /// [`KeyError`]: a placeholder that is not known, or one without its wildcard.
    pub fn new(text: &str, whole: &'static str, from: &KeyPattern) -> Result<Self, KeyError> {
        let wildcards = from.wildcards().count();
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(open);
            let unknown = |name: &str| {
                let (text, name) = (text.to_owned(), name.to_owned());
                KeyError::Placeholder { text, name, whole }
            };
            let inner = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let Some((name, after)) = inner else {
                return Err(unknown(after.get(1..).unwrap_or_default()));
            };
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(match name.parse::<usize>() {
                _ if name == whole => Part::Whole,
                Ok(number @ 1..=WILDCARDS_MAX) if number <= wildcards => Part::Wildcard(number - 1),
                Ok(number @ 1..=WILDCARDS_MAX) => {
                    let (text, pattern) = (text.to_owned(), from.text.clone());
                    return Err(KeyError::NoSuchWildcard { text, number, pattern, wildcards });
                }
                _ => return Err(unknown(name)),
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), from: from.clone(), parts })
    }

    /// It as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it makes of `name`, which matches the pattern; none if nothing can be made of it. What `**`
    /// stands for takes one of the slashes beside it along if it is empty.
    #[must_use]
    pub fn fill(&self, name: &str) -> Option<String> {
        let needs_captures = self.parts.iter().any(|part| matches!(part, Part::Wildcard(_)));
        let captures = if needs_captures { self.from.captures(name)? } else { Vec::new() };
        self.make(name, &captures)
    }

    fn make(&self, whole: &str, captures: &[&str]) -> Option<String> {
        let mut made = String::new();
        for part in &self.parts {
            let piece = match part {
                Part::Text(text) => text.as_str(),
                Part::Whole => whole,
                Part::Wildcard(number) => captures.get(*number)?,
            };
            let piece = if made.is_empty() || made.ends_with('/') {
                piece.strip_prefix('/').unwrap_or(piece)
            } else {
                piece
            };
            made.push_str(piece);
        }
        if made.ends_with('/') {
            made.pop();
        }
        (!made.is_empty()).then_some(made)
    }

    /// What makes of each key that this makes the name that it was made of; none if something is lost on the
    /// way, a wildcard that it does not name for example.
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        let wildcards = self.from.wildcards().count();
        let mut named = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(_) => {}
                Part::Whole => named.extend(0..wildcards),
                Part::Wildcard(number) => named.push(*number),
            }
        }
        let makes = self.makes().ok()?;
        if named.len() != wildcards || makes.wildcards().count() != wildcards {
            return None;
        }
        let mut number = 0;
        let mut text = Vec::new();
        for chunk in self.from.text.split('/') {
            if matches!(chunk, "*" | "**") {
                let place = named.iter().position(|named| *named == number)?;
                number += 1;
                text.push(format!("{{{}}}", place + 1));
            } else {
                text.push(chunk.to_owned());
            }
        }
        // A part of a chunk that a $* stands for has no number.
        let text = text.join("/");
        if text.contains('$') {
            return None;
        }
        Self::new(&text, "key", &makes).ok()
    }

    /// All that it can make, as a pattern.
    ///
    /// # Errors
    /// [`KeyError`] if that is none.
    pub fn makes(&self) -> Result<KeyPattern, KeyError> {
        let wildcards: Vec<_> = self.from.wildcards().collect();
        let made = self.make(&self.from.text, &wildcards).unwrap_or_default();
        // A wildcard beside other text in its chunk is Zenoh's $*.
        let chunk = |chunk: &str| match chunk {
            "*" | "**" => chunk.to_owned(),
            chunk if chunk.contains("**") || chunk.contains('$') => chunk.to_owned(),
            chunk => chunk.replace('*', "$*"),
        };
        let made = made.split('/').map(chunk).collect::<Vec<_>>().join("/");
        KeyPattern::new(&made).map_err(|error| {
            let (text, what) = (self.text.clone(), error.to_string());
            KeyError::Makes { text, made, what }
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
#[path = "key/tests.rs"]
mod tests;
