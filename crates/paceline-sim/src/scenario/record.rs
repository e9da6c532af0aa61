//! What happened in one run, in virtual time or on live nodes: what summaries are made of.

use paceline_proto::ids::PublisherId;
use paceline_proto::reason::{Drops, StreamCounters};
use paceline_sched::Instant;

/// One run of a [`Plan`](super::Plan).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The end of the warm-up.
    pub start: Instant,
    /// Everything that was published; one of each life of a publisher.
    pub published: Vec<Published>,
    /// By subscriber.
    pub received: Vec<Received>,
    /// By link: from the first of its two nodes to the second, and back.
    pub links: Vec<[Carried; 2]>,
    /// By link and way: samples that it did not send, over the whole run.
    pub dropped: Vec<[Drops; 2]>,
    /// What links made of the samples of publishers, those that have had any.
    pub streams: Vec<Streamed>,
}

/// What a publisher published from its start to its end or its node's crash.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The publisher's place in the plan.
    pub publisher: usize,
    /// Who it was in this life.
    pub id: PublisherId,
    /// When it published each sample, by sequence number.
    pub at: Vec<Instant>,
}

/// What a subscriber got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// Its samples, in the order in which they came.
    pub arrivals: Vec<Arrival>,
    /// What was lost at its node and told to it, over the whole run.
    pub drops: Drops,
    /// Publishers that it was refused, with the numbers that did not fit.
    pub refusals: Vec<(PublisherId, String)>,
}

/// A sample as a subscriber got it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Who published it.
    pub from: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// When it came.
    pub at: Instant,
    /// Bytes of its payload.
    pub bytes: u64,
}

/// What one direction of a link carried from the end of the warm-up to that of the duration.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Carried {
    /// Bytes on the wire, headers of all layers counted.
    pub bytes: u64,
    /// Frames that were lost on it; `None` where nobody counts them.
    pub lost: Option<u64>,
}

/// What one direction of a link made of a publisher's samples over the whole run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Streamed {
    /// The link's place in the plan.
    pub link: usize,
    /// 0 from the first of its two nodes to the second, 1 back.
    pub way: usize,
    /// The publisher's place in the plan.
    pub publisher: usize,
    /// What became of its samples.
    pub counters: StreamCounters,
}
