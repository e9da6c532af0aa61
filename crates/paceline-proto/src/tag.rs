//! Tags and patterns.

use crate::text::{escape, is_unprintable};
use core::fmt;
use std::sync::Arc;

/// The longest tag or pattern, in bytes.
pub const TAG_BYTES_MAX: usize = 255;

/// The name of a channel: chunks joined by `/`, without wildcards; any number of publishers and
/// subscribers.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Tag(Arc<str>);

/// What a subscription asks for: a tag in which the chunk `*` stands for one chunk and `**` for any
/// number of them, none included.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pattern(Arc<str>);

/// Why a text is no tag or pattern.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// It is empty, or one of its chunks is.
    #[error(
        "tag '{}' has an empty chunk: write chunks joined by single '/', like robot/camera", escape(.0)
    )]
    EmptyChunk(String),
    /// It is longer than [`TAG_BYTES_MAX`].
    #[error("tag of {0} bytes is too long: at most {TAG_BYTES_MAX}")]
    TooLong(usize),
    /// It has a character that no tag may have.
    #[error(
        "tag '{}' contains '{}': use letters, digits and marks other than # ? $ * and blanks",
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
        "pattern '{}': '*' and '**' must be whole chunks, like robot/*/camera or robot/**", escape(.0)
    )]
    PartialWildcard(String),
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

impl Tag {
    /// Reads a tag.
    ///
    /// # Errors
    /// [`TagError`] names what is wrong and how to write it.
    pub fn new(text: &str) -> Result<Self, TagError> {
        check(text)?;
        if text.contains('*') {
            return Err(TagError::Wildcard(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// The tag as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the tag begins with `@`: what nodes say among themselves. Patterns match it only if
    /// they begin in the same way, and its streams are background.
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
    /// Reads a pattern; every tag is a pattern that matches itself alone.
    ///
    /// # Errors
    /// [`TagError`] names what is wrong and how to write it.
    pub fn new(text: &str) -> Result<Self, TagError> {
        check(text)?;
        if text.split('/').any(|chunk| chunk.contains('*') && chunk != "*" && chunk != "**") {
            return Err(TagError::PartialWildcard(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the pattern holds no wildcard: it can match one tag only.
    #[must_use]
    pub fn is_tag(&self) -> bool {
        !self.0.contains('*')
    }

    /// True if the pattern begins with `@`: it is for what nodes say among themselves.
    #[must_use]
    pub fn is_private(&self) -> bool {
        is_private(&self.0)
    }

    /// True if the pattern matches `tag`. Time is linear in the chunks for each `**`.
    #[must_use]
    pub fn matches(&self, tag: &Tag) -> bool {
        if self.is_tag() {
            return self.0 == tag.0;
        }
        matches_from(&self.0, &tag.0)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Splits the first chunk off; `None` when nothing is left.
fn chunk(text: Option<&str>) -> Option<(&str, Option<&str>)> {
    let text = text?;
    Some(match text.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    })
}

/// Chunks that no wildcard stands for: what the system says to itself is not for `**`.
fn is_private(chunk: &str) -> bool {
    chunk.starts_with('@')
}

/// Glob matching with one remembered `**`: on a mismatch the last `**` takes one chunk more.
fn matches_from(pattern: &str, tag: &str) -> bool {
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
                if want == have || want == "*" && !is_private(have) =>
            {
                (p, t) = (p_rest, t_rest);
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after, from)) = retry else { return false };
        let Some((_, further)) = chunk(from).filter(|(first, _)| !is_private(first)) else {
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
    fn wildcards_stand_for_whole_chunks() {
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
    fn wildcards_do_not_stand_for_private_chunks() {
        assert!(hit("@pull/a/**", "@pull/a/b"));
        for pattern in ["**", "*/a/b", "**/b", "@pull/**"] {
            assert_eq!(hit(pattern, "@pull/a/b"), pattern.starts_with('@'), "{pattern}");
        }
        assert!(!hit("a/**", "a/@b/c"));
    }

    #[test]
    fn bad_names_say_what_is_wrong() {
        assert_eq!(Tag::new("a//b"), Err(TagError::EmptyChunk("a//b".into())));
        assert_eq!(Tag::new(""), Err(TagError::EmptyChunk(String::new())));
        assert_eq!(Tag::new("a/*"), Err(TagError::Wildcard("a/*".into())));
        assert_eq!(Tag::new("a b"), Err(TagError::BadCharacter("a b".into(), ' ')));
        assert_eq!(Pattern::new("a/b*"), Err(TagError::PartialWildcard("a/b*".into())));
        assert_eq!(Tag::new(&"x".repeat(256)), Err(TagError::TooLong(256)));
    }

    #[test]
    fn names_act_on_no_terminal_and_neither_do_their_errors() {
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
