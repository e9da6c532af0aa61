//! Rights of nodes: the tags on which they may publish, subscribe, pull, set and observe, and the quality of
//! service that they may request.
//!
//! An [`AccessPolicy`] is a list of [`AccessRule`]s. Rules only grant: a node has the rights of all rules that
//! name it, and no others. [`Control`](crate::control::Control) checks them where a request enters the network
//! and on each node that reserves. A request that arrives through another node needs the rights of both, so
//! delegation can only narrow.

mod policy;

pub use policy::{AccessPolicy, AccessRule, PeerName, RESERVED_NAMES};

use crate::tag::{Pattern, Tag};
use core::fmt;
use paceline_sched::{Capacity, Duration};
use std::sync::Arc;

/// An action that a rule can grant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Right {
    /// Publish samples on a tag.
    Publish,
    /// Subscribe to a tag.
    Subscribe,
    /// Fetch samples of a tag from pull buffers.
    Pull,
    /// Change other nodes' subscriptions to a tag.
    Set,
    /// Read the status of a node: its streams, times and pictures. Applies to whole nodes, not to tags.
    Observe,
    /// Carry streams and requests of other nodes. Applies to whole nodes, not to tags.
    Relay,
}

impl Right {
    /// All rights, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Publish, Self::Subscribe, Self::Pull, Self::Set, Self::Observe, Self::Relay];

    /// Returns the name of the right in policy files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
            Self::Pull => "pull",
            Self::Set => "set",
            Self::Observe => "observe",
            Self::Relay => "relay",
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Publish => 0,
            Self::Subscribe => 1,
            Self::Pull => 2,
            Self::Set => 3,
            Self::Observe => 4,
            Self::Relay => 5,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// A part of the quality of service that a rule limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quota {
    /// The rate of a stream, in millihertz.
    Rate,
    /// The bytes per second of all streams together.
    Bytes,
    /// The part of a link's capacity for contracts, in percent.
    Share,
    /// The delay bound of a stream, in microseconds.
    Within,
    /// The number of streams.
    Streams,
    /// The importance of a contract.
    Importance,
}

impl Quota {
    const ALL: [Self; 6] =
        [Self::Rate, Self::Bytes, Self::Share, Self::Within, Self::Streams, Self::Importance];

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Rate => 0,
            Self::Bytes => 1,
            Self::Share => 2,
            Self::Within => 3,
            Self::Streams => 4,
            Self::Importance => 5,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    fn show(self, value: u64) -> String {
        match self {
            Self::Rate => format!("a rate of {}.{} Hz", value / 1_000, value % 1_000 / 100),
            Self::Bytes => match Capacity::from_bytes_per_s(value) {
                Ok(capacity) => capacity.to_string(),
                Err(_) => "0 bit/s".to_owned(),
            },
            Self::Share => format!("{value} % of the link"),
            Self::Within => format!("a delay bound of {}", Duration::from_micros(value)),
            Self::Streams => format!("{value} streams"),
            Self::Importance => format!("an importance of {value}"),
        }
    }
}

/// The reason why a request exceeds the rights of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lack {
    /// No rule grants the right.
    Right(Right),
    /// A rule grants the right up to a limit.
    Quota {
        /// The right.
        right: Right,
        /// The limited part.
        quota: Quota,
        /// The requested value; `None` if it is unknown.
        asked: Option<u64>,
        /// The limit: the greatest value allowed, or the least for [`Quota::Within`].
        limit: u64,
    },
}

impl Lack {
    /// Returns the missing or limited right.
    #[must_use]
    pub const fn right(self) -> Right {
        match self {
            Self::Right(right) | Self::Quota { right, .. } => right,
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Right(right) => write!(f, "the right '{}' is missing", right.name()),
            Self::Quota { right, quota, asked, limit } => {
                let bound = if quota == Quota::Within { "at least" } else { "at most" };
                write!(f, "the right '{}' allows {bound} {}", right.name(), quota.show(limit))?;
                match asked {
                    Some(asked) => write!(f, ", and the request needs {}", quota.show(asked)),
                    None => f.write_str(", and the request has none"),
                }
            }
        }
    }
}

/// The limits of a rule. `None` does not limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Quotas {
    /// The greatest rate of each stream, in millihertz.
    pub max_millihertz: Option<u64>,
    /// The greatest sum of bytes per second: of contracts, and of best-effort streams with a known rate and
    /// size.
    pub bytes_per_s: Option<u64>,
    /// The greatest sum of contracts, in percent of a link's capacity.
    pub share_percent: Option<u8>,
    /// The least delay bound of a contract.
    pub within_min: Option<Duration>,
    /// The greatest number of streams.
    pub streams: Option<u32>,
    /// The greatest importance of a contract.
    pub importance_max: Option<u8>,
}

/// The demand of one stream, which [`Quotas`] limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamQuality {
    /// The rate in millihertz, if known.
    pub millihertz: Option<u64>,
    /// The bytes per second: of the contract, or of a best-effort stream with a known rate and size.
    pub bytes_per_s: Option<u64>,
    /// True if the stream requests a contract.
    pub contract: bool,
    /// The requested delay bound.
    pub within: Option<Duration>,
    /// The capacity of the link to the next node, in bytes per second.
    pub link_bytes_per_s: Option<u64>,
    /// The importance of the contract.
    pub importance: u8,
}

/// The streams that already use a rule's quotas.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UsedQuota {
    /// The number of streams.
    pub streams: u32,
    /// Their bytes per second.
    pub bytes_per_s: u64,
    /// The bytes per second of their contracts.
    pub contract_bytes_per_s: u64,
}

impl UsedQuota {
    fn with(self, asked: &StreamQuality) -> Self {
        let bytes = asked.bytes_per_s.unwrap_or(0);
        let contract = if asked.contract { bytes } else { 0 };
        Self {
            streams: self.streams.saturating_add(1),
            bytes_per_s: self.bytes_per_s.saturating_add(bytes),
            contract_bytes_per_s: self.contract_bytes_per_s.saturating_add(contract),
        }
    }
}

impl Quotas {
    /// Adds a stream to those in `used`.
    ///
    /// # Errors
    /// Returns the exceeded limit. An unknown rate exceeds each limit of the rate, and a contract of unknown
    /// size each limit of bytes.
    fn take(
        &self,
        right: Right,
        used: UsedQuota,
        asked: &StreamQuality,
    ) -> Result<UsedQuota, Lack> {
        let over = |quota, asked, limit| Err(Lack::Quota { right, quota, asked, limit });
        let after = used.with(asked);
        if let Some(limit) = self.max_millihertz
            && asked.millihertz.is_none_or(|rate| rate > limit)
        {
            return over(Quota::Rate, asked.millihertz, limit);
        }
        if let Some(limit) = self.bytes_per_s
            && (after.bytes_per_s > limit || asked.contract && asked.bytes_per_s.is_none())
        {
            return over(Quota::Bytes, asked.bytes_per_s.map(|_| after.bytes_per_s), limit);
        }
        if let (Some(percent), Some(link)) = (self.share_percent, asked.link_bytes_per_s)
            && asked.contract
        {
            let part = after.contract_bytes_per_s.saturating_mul(100).div_ceil(link.max(1));
            if part > percent.into() {
                return over(Quota::Share, Some(part), percent.into());
            }
        }
        if let (Some(limit), Some(within)) = (self.within_min, asked.within)
            && within < limit
        {
            let micros = |bound: Duration| bound.as_nanos() / 1_000;
            return over(Quota::Within, Some(micros(within)), micros(limit));
        }
        if let Some(limit) = self.importance_max
            && asked.contract
            && asked.importance > limit
        {
            return over(Quota::Importance, Some(asked.importance.into()), limit.into());
        }
        if let Some(limit) = self.streams
            && after.streams > limit
        {
            return over(Quota::Streams, Some(after.streams.into()), limit.into());
        }
        Ok(after)
    }
}

/// The tags of each right in a rule.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GrantedTags {
    /// Tags to publish on.
    pub publish: Vec<Pattern>,
    /// Tags to subscribe to.
    pub subscribe: Vec<Pattern>,
    /// Tags to pull.
    pub pull: Vec<Pattern>,
    /// Tags of other nodes' subscriptions to change.
    pub set: Vec<Pattern>,
}

/// One rule of an [`AccessPolicy`], without the nodes that it names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RuleRights {
    /// The tags of each right.
    pub tags: GrantedTags,
    /// True if [`Right::Observe`] is granted.
    pub observe: bool,
    /// True if [`Right::Relay`] is granted.
    pub relay: bool,
    /// The limits of published and subscribed streams, counted separately.
    pub quotas: Quotas,
}

impl RuleRights {
    /// Returns every right, without a limit.
    ///
    /// # Panics
    /// Never: `**` is a valid pattern.
    #[must_use]
    pub fn all() -> Self {
        let all: Vec<Pattern> = Pattern::new("**").into_iter().collect();
        let tags = GrantedTags {
            publish: all.clone(),
            subscribe: all.clone(),
            pull: all.clone(),
            set: all,
        };
        Self { tags, observe: true, relay: true, quotas: Quotas::default() }
    }

    fn patterns(&self, right: Right) -> &[Pattern] {
        match right {
            Right::Publish => &self.tags.publish,
            Right::Subscribe => &self.tags.subscribe,
            Right::Pull => &self.tags.pull,
            Right::Set => &self.tags.set,
            Right::Observe | Right::Relay => &[],
        }
    }

    fn grants(&self, right: Right, tag: &Tag) -> bool {
        self.patterns(right).iter().any(|pattern| pattern.covers(tag))
    }

    fn is_empty(&self) -> bool {
        let all = Right::ALL.iter().all(|right| self.patterns(*right).is_empty());
        all && !self.observe && !self.relay
    }
}

/// The use of each rule's quotas by one identity. Its nodes may have further rules by tokens, so a rule is known by
/// its content, and not by its place.
#[derive(Clone, Debug, Default)]
pub struct RuleUse(Vec<(Arc<RuleRights>, UsedQuota)>);

impl RuleUse {
    fn of(&self, rule: &Arc<RuleRights>) -> UsedQuota {
        let known = self.0.iter().find(|(known, _)| known == rule);
        known.map(|(_, used)| *used).unwrap_or_default()
    }

    fn set(&mut self, rule: &Arc<RuleRights>, used: UsedQuota) {
        match self.0.iter_mut().find(|(known, _)| known == rule) {
            Some((_, known)) => *known = used,
            None => self.0.push((rule.clone(), used)),
        }
    }
}

/// The rights of one node: those of all rules that name it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rights(Vec<Arc<RuleRights>>);

impl Rights {
    /// Returns the rights of `rules` together.
    #[must_use]
    pub fn of(rules: impl IntoIterator<Item = Arc<RuleRights>>) -> Self {
        Self(rules.into_iter().collect())
    }

    /// Returns the rights of both.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().map(Arc::clone));
        self
    }

    /// Returns the greatest rate of a stream on `tag`, in millihertz, and the bytes per second of all streams together, by the
    /// rules that grant the right; `None` does not limit. Returns the places of these rules as well: streams of the same
    /// rules share their bytes.
    #[must_use]
    pub fn limits(&self, right: Right, tag: &Tag) -> (Option<u64>, Option<u64>, Vec<usize>) {
        let granting = self.0.iter().enumerate().filter(|(_, rule)| rule.grants(right, tag));
        let (places, rules): (Vec<usize>, Vec<&Arc<RuleRights>>) = granting.unzip();
        let rates: Option<Vec<u64>> = rules.iter().map(|rule| rule.quotas.max_millihertz).collect();
        let bytes: Option<Vec<u64>> = rules.iter().map(|rule| rule.quotas.bytes_per_s).collect();
        let sum = |bytes: Vec<u64>| bytes.into_iter().fold(0, u64::saturating_add);
        (rates.and_then(|rates| rates.into_iter().max()), bytes.map(sum), places)
    }

    /// Returns true if no rule grants anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|rule| rule.is_empty())
    }

    /// Returns true if the right is granted for the whole node ([`Right::Observe`], [`Right::Relay`]).
    #[must_use]
    pub fn grants_node(&self, right: Right) -> bool {
        self.0.iter().any(|rule| match right {
            Right::Observe => rule.observe,
            Right::Relay => rule.relay,
            Right::Publish | Right::Subscribe | Right::Pull | Right::Set => false,
        })
    }

    /// Returns true if the right is granted on `tag`.
    #[must_use]
    pub fn grants(&self, right: Right, tag: &Tag) -> bool {
        self.0.iter().any(|rule| rule.grants(right, tag))
    }

    /// Returns true if the right is granted on at least one tag that `pattern` matches.
    #[must_use]
    pub fn grants_part_of(&self, right: Right, pattern: &Pattern) -> bool {
        let granted = self.0.iter().flat_map(|rule| rule.patterns(right));
        granted.into_iter().any(|granted| granted.covers_part_of(pattern))
    }

    /// Returns true if the right is granted on every tag that `pattern` matches, by one pattern of a rule that
    /// contains it.
    #[must_use]
    pub fn grants_all_of(&self, right: Right, pattern: &Pattern) -> bool {
        let granted = self.0.iter().flat_map(|rule| rule.patterns(right));
        granted.into_iter().any(|granted| granted.covers_all_of(pattern))
    }

    /// Adds a stream to those that use the quotas of the rules.
    ///
    /// # Errors
    /// Returns [`Lack::Right`] if no rule grants the right on `tag`. Otherwise returns the limit of the first
    /// rule that does.
    pub fn take(
        &self,
        (right, tag): (Right, &Tag),
        asked: &StreamQuality,
        used: &mut RuleUse,
    ) -> Result<(), Lack> {
        let mut lack = Lack::Right(right);
        for rule in self.0.iter().filter(|rule| rule.grants(right, tag)) {
            match rule.quotas.take(right, used.of(rule), asked) {
                Ok(after) => {
                    used.set(rule, after);
                    return Ok(());
                }
                Err(exceeded) if lack == Lack::Right(right) => lack = exceeded,
                Err(_) => {}
            }
        }
        Err(lack)
    }
}

#[cfg(test)]
#[path = "rights/tests.rs"]
mod tests;
