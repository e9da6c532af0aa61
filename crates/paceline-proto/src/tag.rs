//! Tags and patterns.

use crate::text::{escape, is_unprintable};
use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

/// The longest tag or pattern, in bytes.
pub const TAG_BYTES_MAX: usize = 255;

/// The name of a channel: chunks joined by `/`, without wildcards. It has any number of publishers and
/// subscribers.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Tag(Arc<str>);

/// The tags that a subscription matches: a tag in which the chunk `*` stands for one chunk and `**` for any
/// number of them, including none.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pattern(Arc<str>);

/// The reason why a text is no tag or pattern.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// The text or one of its chunks is empty.
    #[error(
        "tag '{}' has an empty chunk: write chunks joined by single '/', like robot/camera", escape(.0)
    )]
    EmptyChunk(String),
    /// The text is longer than [`TAG_BYTES_MAX`].
    #[error("tag of {0} bytes is too long: at most {TAG_BYTES_MAX}")]
    TooLong(usize),
    /// The text has a character that tags must not contain.
    #[error(
        "tag '{}' contains '{}': use letters, digits and punctuation other than # ? $ * and spaces",
        escape(.0), escape(.1.encode_utf8(&mut [0; 4]))
    )]
    BadCharacter(String, char),
    /// A publisher's tag has a wildcard.
    #[error(
        "tag '{}' has a wildcard: a publisher needs a full name; only subscribers use patterns", escape(.0)
    )]
    Wildcard(String),
    /// A `*` that is not a whole chunk.
    #[error(
        "pattern '{}': '*' stands for a whole part between slashes: write '{}', and name the tags one by one if it \
         matches too many", escape(.0), escape(&whole_wildcards(.0))
    )]
    PartialWildcard(String),
}

impl FromStr for Tag {
    type Err = TagError;

    fn from_str(text: &str) -> Result<Self, TagError> {
        Self::new(text)
    }
}

fn check(text: &str) -> Result<(), TagError> {
    if text.len() > TAG_BYTES_MAX {
        return Err(TagError::TooLong(text.len()));
    }
    if text.split('/').any(str::is_empty) {
        return Err(TagError::EmptyChunk(text.to_owned()));
    }
    let bad = |c: char| matches!(c, '#' | '?' | '$') || c.is_whitespace() || is_unprintable(c);
    match text.chars().find(|&c| bad(c)) {
        Some(c) => Err(TagError::BadCharacter(text.to_owned(), c)),
        None => Ok(()),
    }
}

/// Returns the nearest valid pattern: each part with a wildcard becomes one.
fn whole_wildcards(text: &str) -> String {
    let parts = text.split('/').map(|part| match part {
        "**" => part,
        part if part.contains('*') => "*",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

impl Tag {
    /// Parses a tag.
    ///
    /// # Errors
    /// [`TagError`] names the problem and the correct form.
    pub fn new(text: &str) -> Result<Self, TagError> {
        check(text)?;
        if text.contains('*') {
            return Err(TagError::Wildcard(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// Returns the tag as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the tag begins with `@`: the nodes' internal traffic. Only patterns that also begin
    /// with `@` match it, and its streams are background.
    #[must_use]
    pub fn is_private(&self) -> bool {
        is_private(&self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    /// Parses a pattern. Every tag is also a pattern that matches only itself.
    ///
    /// # Errors
    /// [`TagError`] names the problem and the correct form.
    pub fn new(text: &str) -> Result<Self, TagError> {
        check(text)?;
        if text.split('/').any(|chunk| chunk.contains('*') && chunk != "*" && chunk != "**") {
            return Err(TagError::PartialWildcard(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// Returns the pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the pattern has no wildcard and thus matches only one tag.
    #[must_use]
    pub fn is_tag(&self) -> bool {
        !self.0.contains('*')
    }

    /// Returns true if the pattern begins with `@`: the nodes' internal traffic.
    #[must_use]
    pub fn is_private(&self) -> bool {
        is_private(&self.0)
    }

    /// Returns true if the pattern matches `tag`. Takes time linear in the number of chunks for each `**`.
    #[must_use]
    pub fn matches(&self, tag: &Tag) -> bool {
        if self.is_tag() {
            return self.0 == tag.0;
        }
        matches_from(&self.0, &tag.0, is_private)
    }

    /// Returns true if a right on this pattern includes `tag`. Here wildcards also match chunks that begin with
    /// `@`, such as those of rules for plain Zenoh programs.
    #[must_use]
    pub fn covers(&self, tag: &Tag) -> bool {
        matches_from(&self.0, &tag.0, |_| false)
    }

    /// Returns true if a right on this pattern includes at least one tag that `other` matches. Takes time in
    /// proportion to the product of their numbers of chunks.
    #[must_use]
    pub fn covers_part_of(&self, other: &Self) -> bool {
        let (one, two): (Vec<&str>, Vec<&str>) =
            (self.0.split('/').collect(), other.0.split('/').collect());
        meet(&one, &two)
    }
}

impl Pattern {
    /// Returns true if a right on this pattern includes every tag that `other` matches. May return false for a
    /// pattern that does so only by several `**` together.
    #[must_use]
    pub fn covers_all_of(&self, other: &Self) -> bool {
        // A wildcard of `other` is matched as a chunk: `*` by `*` or `**`, and `**` only by `**`.
        fn from(one: &[&str], other: &[&str]) -> bool {
            match (one.split_first(), other.split_first()) {
                (None, None) => true,
                (Some((&"**", rest)), _) if from(rest, other) => true,
                (Some((&"**", _)), Some((_, of))) => from(one, of),
                (Some((&"*", rest)), Some((chunk, of))) => *chunk != "**" && from(rest, of),
                (Some((chunk, rest)), Some((other, of))) => chunk == other && from(rest, of),
                (Some(_), None) | (None, Some(_)) => false,
            }
        }
        let (one, two): (Vec<&str>, Vec<&str>) =
            (self.0.split('/').collect(), other.0.split('/').collect());
        from(&one, &two)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Splits off the first chunk; returns `None` if no text is left.
fn chunk(text: Option<&str>) -> Option<(&str, Option<&str>)> {
    let text = text?;
    Some(match text.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    })
}

/// Returns true for a chunk that no wildcard matches: internal traffic is not part of `**`.
fn is_private(chunk: &str) -> bool {
    chunk.starts_with('@')
}

/// Returns true if a right on `one` covers a tag that `other` matches, given their chunks. This is dynamic
/// programming over their suffixes.
fn meet(one: &[&str], other: &[&str]) -> bool {
    // `after[j]` is true if the chunks of `one` after the current one and those of `other` from `j` on meet.
    let mut after: Vec<bool> = Vec::new();
    for i in (0..=one.len()).rev() {
        let a = one.get(i);
        let mut row = vec![false; other.len() + 1];
        let below = |j: usize| after.get(j).copied().unwrap_or(false);
        for j in (0..=other.len()).rev() {
            let b = other.get(j);
            let right = row.get(j + 1).copied().unwrap_or(false);
            let met = match (a.copied(), b.copied()) {
                (None, None) => true,
                (None, Some(b)) => b == "**" && right,
                (Some("**"), b) => below(j) || right && b.is_some(),
                (Some(a), Some("**")) => right || below(j) && !is_private(a),
                (Some(_), None) => false,
                (Some("*"), Some(_)) => below(j + 1),
                (Some(chunk), Some("*")) => !is_private(chunk) && below(j + 1),
                (Some(a), Some(b)) => a == b && below(j + 1),
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = met;
            }
        }
        after = row;
    }
    after.first().copied().unwrap_or(false)
}

/// Matches with one remembered `**`: after a mismatch the last `**` consumes one more chunk. No wildcard
/// matches a `hidden` chunk.
fn matches_from(pattern: &str, tag: &str, hidden: fn(&str) -> bool) -> bool {
    let (mut p, mut t) = (Some(pattern), Some(tag));
    let mut retry: Option<(Option<&str>, Option<&str>)> = None;
    loop {
        match (chunk(p), chunk(t)) {
            (Some(("**", rest)), _) => {
                retry = Some((rest, t));
                p = rest;
                continue;
            }
            (Some((want, p_rest)), Some((have, t_rest)))
                if want == have || want == "*" && !hidden(have) =>
            {
                (p, t) = (p_rest, t_rest);
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after, from)) = retry else { return false };
        let Some((_, further)) = chunk(from).filter(|(first, _)| !hidden(first)) else {
            return false;
        };
        retry = Some((after, further));
        (p, t) = (after, further);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(pattern: &str, tag: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(&Tag::new(tag).unwrap())
    }

    #[test]
    fn wildcards_match_whole_chunks() {
        assert!(hit("robot/camera", "robot/camera"));
        assert!(!hit("robot/camera", "robot/camera/left"));
        assert!(hit("robot/*", "robot/camera"));
        assert!(!hit("robot/*", "robot"));
        assert!(!hit("robot/*", "robot/arm/camera"));
        assert!(hit("robot/**", "robot"));
        assert!(hit("robot/**", "robot/arm/camera"));
        assert!(hit("**", "anything/at/all"));
        assert!(hit("**/camera", "camera"));
        assert!(hit("a/**/b/*/c", "a/x/b/y/b/z/c"));
        assert!(!hit("a/**/b/*/c", "a/x/b/y/z/c"));
    }

    #[test]
    fn wildcards_do_not_match_private_chunks() {
        assert!(hit("@pull/a/**", "@pull/a/b"));
        for pattern in ["**", "*/a/b", "**/b", "@pull/**"] {
            assert_eq!(hit(pattern, "@pull/a/b"), pattern.starts_with('@'), "{pattern}");
        }
        assert!(!hit("a/**", "a/@b/c"));
    }

    #[test]
    fn invalid_names_are_explained() {
        assert_eq!(Tag::new("a//b"), Err(TagError::EmptyChunk("a//b".into())));
        assert_eq!(Tag::new(""), Err(TagError::EmptyChunk(String::new())));
        assert_eq!(Tag::new("a/*"), Err(TagError::Wildcard("a/*".into())));
        assert_eq!(Tag::new("a b"), Err(TagError::BadCharacter("a b".into(), ' ')));
        assert_eq!(Pattern::new("a/b*"), Err(TagError::PartialWildcard("a/b*".into())));
        assert_eq!(Tag::new(&"x".repeat(256)), Err(TagError::TooLong(256)));
        for (partial, whole) in [("vehicle_*", "*"), ("a/b*/**/c**d", "a/*/**/*")] {
            let error = Pattern::new(partial).unwrap_err().to_string();
            assert!(error.contains(&format!("write '{whole}'")), "{error}");
            assert!(Pattern::new(whole).is_ok());
        }
    }

    #[test]
    fn names_and_their_errors_contain_no_terminal_escapes() {
        for bad in ["a\x1b[2J", "a\nb", "a\u{9b}b", "cam\u{202e}gpj", "a\u{200b}", "\u{feff}a"] {
            let error = Tag::new(bad).unwrap_err();
            assert!(matches!(error, TagError::BadCharacter(..)), "{bad:?}: {error:?}");
            assert!(crate::text::is_plain(&error.to_string()), "{error:?}");
            assert!(Pattern::new(bad).is_err(), "{bad:?}");
        }
        let error = Tag::new("a//\x1b").unwrap_err().to_string();
        assert!(error.contains("'a//\\u{1b}' has an empty chunk"), "{error}");
    }
}
