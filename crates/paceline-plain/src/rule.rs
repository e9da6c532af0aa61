//! Rules: the keys and tags that pass between the plain side and the node.

use crate::key::{KeyPattern, Template};
use paceline::contract::{Form, Proxy, Retransmit};
use paceline::{Encoding, Kind, LossTolerance};
use std::time::Duration;

/// The number of rules of each kind that a node accepts.
pub const RULES_MAX: usize = 64;
/// The default number of keys of an import rule. Each key costs a publisher that is announced to
/// every node of the network.
pub const KEYS_DEFAULT: usize = 256;
/// The greatest number of keys of one rule.
pub const KEYS_MAX: usize = 4_096;

/// Publishes samples of plain programs on matching keys, each key on its own tag.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportRule {
    /// The keys.
    pub key: KeyPattern,
    /// The conversion from key to tag.
    pub tag: Template,
    /// Imports the liveliness tokens with these keys instead of samples. The tag then has no
    /// wildcard.
    pub tokens: bool,
    /// The number of keys accepted. Samples on further keys are dropped.
    pub keys: usize,
    /// The largest payload in bytes. Larger samples are dropped.
    pub bytes_max: Option<u64>,
    /// The minimum average time between two samples of a key. Faster samples are dropped.
    pub spacing: Option<Duration>,
    /// The declared period, which spaces the deadlines.
    pub period: Option<Duration>,
    /// The kind of the samples. By default it follows from their encoding.
    pub kind: Option<Kind>,
    /// The media type, in place of the samples' own: plain programs seldom set one.
    pub encoding: Option<Encoding>,
    /// The loss tolerance of subscribers that state a delay bound and none of their own.
    pub loss: Option<LossTolerance>,
}

impl ImportRule {
    /// Creates a rule that imports all samples on `key` to the tags of `tag`.
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

/// Subscribes to tags and puts their samples on keys for plain programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportRule {
    /// The tag or pattern.
    pub tag: KeyPattern,
    /// The conversion from tag to key.
    pub key: Template,
    /// Declares the liveliness tokens that other nodes import to these tags, under their original
    /// keys.
    pub tokens: bool,
    /// Subscribes even if no plain program is known to subscribe.
    pub always: bool,
    /// Answers queries for its keys from the pull buffers of its tags.
    pub queries: bool,
    /// The requested rate and size.
    pub form: Form,
    /// The requested delay bound.
    pub within: Option<Duration>,
    /// The requested loss tolerance.
    pub loss: Option<LossTolerance>,
    /// The age limit of commands.
    pub fresh: Option<FreshRule>,
    /// The place of the scaling.
    pub proxy: Proxy,
    /// The repair of losses on QUIC links.
    pub retransmit: Retransmit,
}

/// The age limit of the commands of an [`ExportRule`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FreshRule {
    /// The largest age at which a command is put on its key, from 1 µs to 1 h.
    pub limit: Duration,
    /// Puts one sample of zeros when the last command has reached the limit.
    pub zero: bool,
}

impl ExportRule {
    /// Creates a rule that exports all samples of `tag` to the keys of `key`, while a plain program
    /// subscribes.
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
            fresh: None,
            proxy: Proxy::Publisher,
            retransmit: Retransmit::Selective,
        }
    }
}

/// Forwards queries of plain programs at one node to queryables of plain programs at others that
/// have a rule with the same tag.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRule {
    /// The keys of the queries and queryables.
    pub key: KeyPattern,
    /// The prefix of the tags on which nodes exchange announcements, queries and answers.
    pub tag: String,
    /// Forwards queries of programs here to other nodes.
    pub asks: bool,
    /// Forwards queries of other nodes to programs here.
    pub answers: bool,
    /// The time limit of a query.
    pub patience: Duration,
    /// The largest query and the largest answer in bytes, including attachment and encoding.
    pub bytes_max: u64,
    /// The number of queries of programs here that wait at a time, and of queries answered at a
    /// time for each other node.
    pub at_once: usize,
    /// The requested delay bound, for a query and for an answer each.
    pub within: Option<Duration>,
    /// The declared period of queries and answers, which spaces the deadlines.
    pub period: Option<Duration>,
}

/// The default tag of a [`QueryRule`].
pub const QUERY_TAG_DEFAULT: &str = "queries";
/// The default time limit of a query, which is that of Zenoh.
pub const QUERY_PATIENCE_DEFAULT: Duration = Duration::from_secs(10);
/// The default limit of queries and answers, in bytes.
pub const QUERY_BYTES_DEFAULT: u64 = 1_000_000;
/// The default number of queries at a time.
pub const QUERIES_DEFAULT: usize = 64;
/// The greatest number of queries at a time of one rule.
pub const QUERIES_MAX: usize = 4_096;

impl QueryRule {
    /// Creates a rule that forwards queries for `key` in both directions, with all defaults.
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
    /// Rules for samples from plain programs.
    pub imports: Vec<ImportRule>,
    /// Rules for samples to plain programs.
    pub exports: Vec<ExportRule>,
    /// Rules for queries across nodes.
    pub queries: Vec<QueryRule>,
}

impl Rules {
    /// Returns true if there is no rule.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.imports.is_empty() && self.exports.is_empty() && self.queries.is_empty()
    }
}
