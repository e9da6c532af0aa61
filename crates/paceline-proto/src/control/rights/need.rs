//! The rights that a question needs. Each node on its way with a policy checks them, whoever is asked: a node behind it may
//! have no policy of its own.

use crate::control::contracts::change::pattern_of_change;
use crate::control::contracts::outcome::subscription_of_outcome;
use crate::control::contracts::survey::pairs_of_room;
use crate::control::membership::registry::Registry;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::pull::Question;
use crate::rights::{Lack, Right, Rights};
use crate::tag::{Pattern, Tag};
use crate::topic::Topic;
use crate::wire::WireError;
use bytes::Bytes;

/// The rights that a question needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    /// A right of any kind: the question concerns its sender's own streams, or is public among members.
    Any,
    /// [`Right::Observe`].
    Observe,
    /// [`Right::Pull`] on the tag.
    Pull(Tag),
    /// [`Right::Set`] on all tags of the pattern.
    Set(Pattern),
    /// A right to publish, to subscribe or to change streams of each pattern.
    Streams(Vec<Pattern>),
}

impl Need {
    /// Returns what a question to `asked` needs.
    ///
    /// # Errors
    /// Returns [`WireError`] if the question names its topic and cannot be read: its need is unknown.
    pub(super) fn of(registry: &Registry, asked: NodeId, body: &Bytes) -> Result<Self, WireError> {
        Ok(match Topic::split(body.clone()) {
            Some((Topic::Status | Topic::Feedback | Topic::Passages, _)) => Self::Observe,
            Some((Topic::Change, rest)) => Self::Set(pattern_of_change(rest)?),
            Some((Topic::Outcome, rest)) => {
                let id = SubscriptionId { node: asked, index: subscription_of_outcome(rest)? };
                let record = registry.record(asked);
                let spec = record.and_then(|record| record.subscriptions.get(&id));
                spec.map_or(Self::Any, |spec| Self::Set(spec.pattern.clone()))
            }
            Some((Topic::Pull, rest)) => match Question::decode(rest)?.tag() {
                Some(tag) => Self::Pull(tag.clone()),
                None => Self::Any,
            },
            Some((Topic::Room, rest)) => {
                let pairs = pairs_of_room(rest)?;
                let pattern = |(publisher, pattern)| tag_of(registry, publisher).unwrap_or(pattern);
                Self::Streams(pairs.into_iter().map(pattern).collect())
            }
            // The receiver accepts them only from the nodes on the paths of its streams.
            Some((
                Topic::Excess | Topic::Refused | Topic::Time | Topic::Relax | Topic::Warning,
                _,
            ))
            | None => Self::Any,
        })
    }

    /// Checks that `rights` suffice.
    ///
    /// # Errors
    /// Returns the missing right.
    pub(super) fn check(&self, rights: &Rights) -> Result<(), Lack> {
        let granted = match self {
            Self::Any => !rights.is_empty(),
            Self::Observe => rights.grants_node(Right::Observe),
            Self::Pull(tag) => rights.grants(Right::Pull, tag),
            Self::Set(pattern) => rights.grants_all_of(Right::Set, pattern),
            Self::Streams(patterns) => patterns.iter().all(|pattern| concern(rights, pattern)),
        };
        if granted { Ok(()) } else { Err(Lack::Right(self.right())) }
    }

    /// Returns the right that the question uses.
    pub(super) const fn right(&self) -> Right {
        match self {
            Self::Any | Self::Observe => Right::Observe,
            Self::Pull(_) => Right::Pull,
            Self::Set(_) => Right::Set,
            Self::Streams(_) => Right::Subscribe,
        }
    }

    /// Returns true if somebody wants it, and not the system itself: then each use is recorded.
    pub(super) const fn is_use(&self) -> bool {
        match self {
            Self::Observe | Self::Pull(_) | Self::Set(_) => true,
            Self::Any | Self::Streams(_) => false,
        }
    }

    /// Returns the tag or pattern; an empty text if it concerns the whole node.
    pub(super) fn tag(&self) -> String {
        match self {
            Self::Any | Self::Observe => String::new(),
            Self::Pull(tag) => tag.to_string(),
            Self::Set(pattern) => pattern.to_string(),
            Self::Streams(patterns) => {
                patterns.first().map(ToString::to_string).unwrap_or_default()
            }
        }
    }
}

/// Returns true if a node with these rights may have streams of a pattern, or may change some.
fn concern(rights: &Rights, pattern: &Pattern) -> bool {
    let streams = [Right::Publish, Right::Subscribe];
    pattern.is_private() && !rights.is_empty()
        || streams.iter().any(|&right| rights.grants_part_of(right, pattern))
        || rights.grants_all_of(Right::Set, pattern)
        || rights.grants_node(Right::Observe)
}

/// Returns the tag of a known publisher, as a pattern.
fn tag_of(registry: &Registry, publisher: PublisherId) -> Option<Pattern> {
    let spec = registry.record(publisher.node)?.publishers.get(&publisher)?;
    Pattern::new(spec.tag.as_str()).ok()
}
