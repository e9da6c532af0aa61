//! What a browser learns about its subscriptions and publishers.

use paceline_proto::capacity::CapacityState;
use paceline_proto::control::{BestEffort, Grant, Refusal, Warning};
use paceline_proto::reason::Drops;
use paceline_proto::{Form, PublisherId};
use paceline_sched::Duration;

/// An event of a browser's subscription or publisher, by the number that the browser gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum BrowserEvent {
    /// The publishers that a subscription receives, with their tags and media types.
    Publishers(u32, Vec<(PublisherId, String, String)>),
    /// The path has granted the request of a subscription.
    Granted(u32, Grant),
    /// A path refused the request.
    Refused(u32, Refusal),
    /// A grant or a refusal is no longer valid.
    Withdrawn(u32, PublisherId),
    /// The samples are best effort although a contract was requested.
    BestEffort(u32, PublisherId, BestEffort),
    /// The capacity of a link of the path falls, and will soon be too little.
    Warned(u32, PublisherId, Warning),
    /// The request has changed: an elastic contract was reduced or restored, or the change was refused.
    Changed(u32, Form),
    /// A publisher's first subscription has come, or its last one has left.
    Matching(u32, bool),
    /// The path to a subscription of another node has granted its request for a publisher of the browser.
    PublisherGranted(u32, Grant),
    /// The link to the browser, once per second.
    Link(BrowserLink),
    /// Samples of a subscription were dropped at the browser's node since its begin, by reason.
    Dropped(u32, Drops),
}

/// The link to a browser.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BrowserLink {
    /// The state of the measurement.
    pub state: CapacityState,
    /// The measured capacity in bits per second; 0 if nothing is known.
    pub estimate: u64,
    /// The part that contracts may use, in bits per second.
    pub contracts: u64,
    /// The rate that contracts have reserved, in bits per second.
    pub reserved: u64,
}

/// The subscriptions that receive the samples of a stream, by the numbers that the browser gave them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamReaders {
    /// The stream's number in messages.
    pub stream: u32,
    /// The publisher.
    pub publisher: PublisherId,
    /// The time for which a sample waits for lost ones before it.
    pub hold: Duration,
    /// The subscriptions.
    pub subscriptions: Vec<u32>,
}
