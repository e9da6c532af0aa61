//! Key expressions of plain programs, tags, and templates that convert one into the other.

use core::fmt;
use zenoh::key_expr::{OwnedKeyExpr, keyexpr};

/// The number of wildcards that a template can refer to: `{1}` to `{9}`.
const WILDCARDS_MAX: usize = 9;

/// An invalid key expression or template.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Zenoh rejects the text as a key expression.
    #[error(
        "'{0}' is not a key expression of Zenoh: {1}; write chunks joined by single '/', with * \
         for one and ** for any number, like robot/**"
    )]
    NoKey(String, String),
    /// More than one `**`: the parts of a key could be assigned to them in several ways.
    #[error("'{0}' has more than one **; a pattern may have at most one")]
    TwoDoubleStars(String),
    /// A brace that is not part of a placeholder.
    #[error(
        "'{text}': {{{name}}} is not known: write {{{whole}}} for the whole, {{1}} to {{9}} for wildcards"
    )]
    Placeholder {
        /// The template.
        text: String,
        /// The text between the braces, or after an open brace.
        name: String,
        /// The name of the placeholder for the whole key or tag.
        whole: &'static str,
    },
    /// The template refers to a wildcard that the pattern does not have.
    #[error("'{text}' names {{{number}}}, but {pattern} has {wildcards} wildcards: count * and **")]
    NoSuchWildcard {
        /// The template.
        text: String,
        /// The number of the wildcard.
        number: usize,
        /// The pattern.
        pattern: String,
        /// The number of wildcards in the pattern.
        wildcards: usize,
    },
    /// The result of the template is not a valid key or tag.
    #[error("'{text}' produces '{made}': {what}")]
    Makes {
        /// The template.
        text: String,
        /// The result of the template for the pattern itself.
        made: String,
        /// The reason why the result is invalid.
        what: String,
    },
}

/// A pattern of keys or tags. A wildcard is a whole chunk: `*` matches one chunk, `**` any number
/// of chunks. In keys, `$*` may match a part of a chunk; it has no number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyPattern {
    /// The original text, in which the wildcards are counted.
    text: String,
    /// Zenoh's canonical form, which writes `**/*` as `*/**`.
    canon: OwnedKeyExpr,
}

impl KeyPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`KeyError`] names the invalid part and the correct notation.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let canon = OwnedKeyExpr::autocanonize(text.to_owned()).map_err(|error| {
            // The rest of the message is a position in Zenoh's source code.
            let error = error.to_string();
            let what = error.split(" at /").next().unwrap_or(&error).to_owned();
            KeyError::NoKey(text.to_owned(), what)
        })?;
        if text.split('/').filter(|chunk| *chunk == "**").count() > 1 {
            return Err(KeyError::TwoDoubleStars(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), canon })
    }

    /// Returns the pattern in Zenoh's canonical form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.canon.as_str()
    }

    /// Returns the pattern as a key expression.
    pub(crate) fn as_keyexpr(&self) -> &keyexpr {
        &self.canon
    }

    /// Returns true if at least one key matches both patterns.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.canon.intersects(&other.canon)
    }

    /// Returns the intersection of `key` and this pattern if one of them includes the other.
    pub(crate) fn narrowed(&self, key: &keyexpr) -> Option<OwnedKeyExpr> {
        if self.canon.includes(key) {
            return Some(key.into());
        }
        key.includes(&self.canon).then(|| self.canon.clone())
    }

    fn wildcards(&self) -> impl Iterator<Item = &str> {
        self.text.split('/').filter(|chunk| matches!(*chunk, "*" | "**"))
    }

    /// Returns the part of `key` that each wildcard matches; `key` must match the pattern. The
    /// match of `**` may be empty. Returns `None` if the key has too few chunks to give each
    /// wildcard its own.
    fn captures<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let mut rest = Some(key);
        let mut found = Vec::new();
        let mut chunks = self.text.split('/');
        while let Some(chunk) = chunks.next() {
            if chunk == "**" {
                // There is at most one `**`, so the chunks after it are matched from the end.
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

/// Converts keys to tags, or tags to keys. `{key}` or `{tag}` stands for the whole input, `{1}` to
/// `{9}` for the match of the first to ninth wildcard of the pattern.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    text: String,
    from: KeyPattern,
    parts: Vec<Part>,
}

impl Template {
    /// Parses a template for inputs that match `from`. `whole` is the name of the placeholder for
    /// the whole input.
    ///
    /// # Errors
    /// [`KeyError`]: an unknown placeholder, or one without its wildcard.
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

    /// Returns the template as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the result for `name`, which must match the pattern, or `None` if the result would
    /// be empty. An empty match of `**` also removes one adjacent slash.
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

    /// Returns the template that converts a result back to the input. Returns `None` if the
    /// conversion loses information, such as a wildcard without a placeholder.
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
        // The match of `$*` has no number, so it cannot be restored.
        let text = text.join("/");
        if text.contains('$') {
            return None;
        }
        Self::new(&text, "key", &makes).ok()
    }

    /// Returns a pattern that matches every result of this template.
    ///
    /// # Errors
    /// [`KeyError`] if no such pattern exists.
    pub fn makes(&self) -> Result<KeyPattern, KeyError> {
        let wildcards: Vec<_> = self.from.wildcards().collect();
        let made = self.make(&self.from.text, &wildcards).unwrap_or_default();
        // Zenoh writes a wildcard next to other text in its chunk as `$*`.
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
