//! A source that a node publishes itself, as its configuration names it.

use paceline::Tag;
use std::fmt;

/// A source in the words of `paceline pub`.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct SourceSpec {
    /// The tag of its samples.
    pub(crate) tag: Tag,
    /// The options.
    pub(crate) options: Vec<String>,
}

impl fmt::Debug for SourceSpec {
    /// Leaves the options out: an address may contain more than a log should.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SourceSpec").field(&self.tag).finish()
    }
}
