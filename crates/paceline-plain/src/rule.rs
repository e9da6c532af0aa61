//! Rules: what of the plain side enters, and what leaves to it.

use crate::key::{KeyPattern, Template};
use paceline::{Encoding, Form, Kind, LossTolerance, Proxy, Retransmit};
use std::time::Duration;

/// Rules of each kind that a node takes.
pub const RULES_MAX: usize = 64;
/// Keys that an import rule takes if it does not say how many, and the most that it can say. Each costs a
/// publisher that every node of the network knows.
pub const KEYS_DEFAULT: usize = 256;
/// The most keys of one rule.
pub const KEYS_MAX: usize = 4_096;

/// What plain programs put on matching keys is published by the node, each key on a tag of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportRule {
    /// The keys.
    pub key: KeyPattern,
    /// The tag that a key becomes.
    pub tag: Template,
    /// Takes the liveliness tokens with these keys in place of samples; the tag has no wildcard then.
    pub tokens: bool,
    /// How many keys it takes; what comes on others is dropped.
    pub keys: usize,
    /// The largest payload that it takes; larger samples are dropped.
    pub bytes_max: Option<u64>,
    /// The least time between two samples of a key, over time; what comes faster is dropped.
    pub spacing: Option<Duration>,
    /// The time between two samples, which deadlines are spaced by.
    pub period: Option<Duration>,
    /// What samples are; by their encoding if not said.
    pub kind: Option<Kind>,
    /// The media type that stands for theirs, whatever they say: plain programs seldom say one.
    pub encoding: Option<Encoding>,
    /// For subscribers that state a delay bound and no loss tolerance of their own.
    pub loss: Option<LossTolerance>,
}

impl ImportRule {
    /// Everything on `key`, on the tags that `tag` makes.
    #[must_use]
    pub const fn new(key: KeyPattern, tag: Template) -> Self {
        Self {
            key,
            tag,
            tokens: false,
            keys: KEYS_DEFAULT,
            bytes_max: None,
            spacing: None,
            period: None,
            kind: None,
            encoding: None,
            loss: None,
        }
    }
}

/// A subscription of the node whose samples are put on keys for plain programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportRule {
    /// The tag or pattern.
    pub tag: KeyPattern,
    /// The key that a tag becomes.
    pub key: Template,
    /// Declares the liveliness tokens that imports of other nodes tell of on these tags, under the keys that
    /// they have.
    pub tokens: bool,
    /// Subscribes although no plain program is known to listen.
    pub always: bool,
    /// Answers queries for its keys from the pull buffers that hold its tags.
    pub queries: bool,
    /// The rate and size asked for.
    pub form: Form,
    /// The delay bound asked for.
    pub within: Option<Duration>,
    /// The loss tolerance asked for.
    pub loss: Option<LossTolerance>,
    /// Where scaling is done.
    pub proxy: Proxy,
    /// What is done about what links over UDP lose.
    pub retransmit: Retransmit,
}

impl ExportRule {
    /// Everything on `tag`, on the keys that `key` makes, while somebody listens.
    #[must_use]
    pub const fn new(tag: KeyPattern, key: Template) -> Self {
        Self {
            tag,
            key,
            tokens: false,
            always: false,
            queries: false,
            form: Form::FULL,
            within: None,
            loss: None,
            proxy: Proxy::Publisher,
            retransmit: Retransmit::Selective,
        }
    }
}

/// Queries of plain programs at one node are answered by queryables of plain programs at others that have a
/// rule with the same tag.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRule {
    /// The keys that may be asked for, and asked.
    pub key: KeyPattern,
    /// The tag below which nodes tell each other what can be asked, ask and answer.
    pub tag: String,
    /// Programs here may ask those at other nodes.
    pub asks: bool,
    /// Programs here answer those at other nodes.
    pub answers: bool,
    /// How long a query may take.
    pub patience: Duration,
    /// The largest query and the largest answer, with what is beside the payload.
    pub bytes_max: u64,
    /// How many queries of programs here wait at a time, and how many of each other node are answered.
    pub at_once: usize,
    /// The delay bound asked for, of a query and of an answer each.
    pub within: Option<Duration>,
    /// The time between two of them, which deadlines are spaced by.
    pub period: Option<Duration>,
}

/// The tag of a [`QueryRule`] that says none.
pub const QUERY_TAG_DEFAULT: &str = "queries";
/// How long a query may take if its rule does not say: Zenoh's own programs wait for as long.
pub const QUERY_PATIENCE_DEFAULT: Duration = Duration::from_secs(10);
/// The largest query and answer if its rule does not say.
pub const QUERY_BYTES_DEFAULT: u64 = 1_000_000;
/// Queries at a time if their rule does not say, and the most that it can say.
pub const QUERIES_DEFAULT: usize = 64;
/// The most queries at a time of one rule.
pub const QUERIES_MAX: usize = 4_096;

impl QueryRule {
    /// Queries for `key` both ways, with every default.
    #[must_use]
    pub fn new(key: KeyPattern) -> Self {
        Self {
            key,
            tag: QUERY_TAG_DEFAULT.to_owned(),
            asks: true,
            answers: true,
            patience: QUERY_PATIENCE_DEFAULT,
            bytes_max: QUERY_BYTES_DEFAULT,
            at_once: QUERIES_DEFAULT,
            within: None,
            period: None,
        }
    }
}

/// The rules of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// What enters.
    pub imports: Vec<ImportRule>,
    /// What leaves.
    pub exports: Vec<ExportRule>,
    /// What is asked across the node.
    pub queries: Vec<QueryRule>,
}

impl Rules {
    /// True if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.imports.is_empty() && self.exports.is_empty() && self.queries.is_empty()
    }
}
