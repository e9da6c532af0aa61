//! The record of one run, in virtual time or on live nodes, from which summaries are computed.

use paceline_proto::control::Cause;
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::{Drops, StreamCounters};
use paceline_sched::Instant;
use serde::{Deserialize, Serialize};

/// The record of one run of a [`Plan`](super::Plan).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The end of the warm-up.
    pub start: Instant,
    /// The published samples, one entry per incarnation of a publisher.
    pub published: Vec<Published>,
    /// The received samples, by subscriber.
    pub received: Vec<SubscriberRecord>,
    /// The traffic by link: from the first of its two nodes to the second, and back.
    pub links: Vec<[Carried; 2]>,
    /// Samples that a link did not send over the whole run, by link and direction.
    pub dropped: Vec<[Drops; 2]>,
    /// Counters of the streams on each link, for publishers with any.
    pub streams: Vec<Streamed>,
}

/// The samples of one incarnation of a publisher, which ends with it or with a crash of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The index of the publisher in the plan.
    pub publisher: usize,
    /// The id of this incarnation.
    pub id: PublisherId,
    /// The publication instant of each sample, by sequence number.
    pub at: Vec<Instant>,
}

/// The samples that a subscriber received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubscriberRecord {
    /// The samples, in the order of their arrival.
    pub arrivals: Vec<ReceivedSample>,
    /// Losses at its node, reported to the subscriber over the whole run.
    pub drops: Drops,
    /// The steps of its contracts, if they are elastic.
    pub steps: Steps,
    /// Publishers for which the subscriber was refused, each with the reason and the numbers.
    pub refusals: Vec<(PublisherId, String)>,
}

/// The steps of elastic contracts over the whole run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Steps {
    /// Steps down.
    pub reduced: u64,
    /// Steps up.
    pub restored: u64,
    /// Forecasts of steps down.
    pub warned: u64,
}

impl Steps {
    /// Adds the steps of another part of the run.
    pub const fn merge(&mut self, other: &Self) {
        self.reduced += other.reduced;
        self.restored += other.restored;
        self.warned += other.warned;
    }

    /// Counts a step for a reason.
    pub fn add(&mut self, cause: &Cause) {
        match cause {
            Cause::Room => self.restored += 1,
            Cause::Refused(_) | Cause::MoreImportant { .. } => self.reduced += 1,
        }
    }
}

/// A received sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivedSample {
    /// The publisher.
    pub from: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// The instant of delivery.
    pub at: Instant,
    /// Payload bytes.
    pub bytes: u64,
}

/// The traffic in one direction of a link, from the end of the warm-up to the end of the duration.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Carried {
    /// Bytes on the wire, including the headers of all layers.
    pub bytes: u64,
    /// Frames lost; `None` if unknown.
    pub lost: Option<u64>,
}

/// The counters of a publisher's samples in one direction of a link, over the whole run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Streamed {
    /// The index of the link in the plan.
    pub link: usize,
    /// The direction: 0 from the first of its two nodes to the second, 1 back.
    pub direction: usize,
    /// The index of the publisher in the plan.
    pub publisher: usize,
    /// The counters of its samples.
    pub counters: StreamCounters,
}
