//! The line protocol between a benchmark and its child processes.
//!
//! The parent passes a [`Role`] as an argument. The child prints one [`Message`] per line and waits
//! for `go` on its standard input. It ends at `stop` or when its input is closed, so that it does
//! not outlive its parent.

use paceline_sim::scenario::Steps;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The system that carries the samples.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Engine {
    Paceline,
    Plain,
}

/// The position of a process in the network.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Place {
    pub(super) engine: Engine,
    pub(super) name: String,
    pub(super) listen: Option<String>,
    pub(super) connect: Option<String>,
    /// The link's capacity in bits per second; plain Zenoh ignores it.
    pub(super) capacity: Option<u64>,
    /// The name of the link's discipline.
    pub(super) policy: String,
}

/// The content of a source's samples.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Content {
    /// This many incompressible bytes.
    Noise(usize),
    /// JPEG pictures of the test card.
    Card { width: u32, height: u32 },
}

/// A publisher with a fixed rate.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Source {
    pub(super) tag: String,
    pub(super) hz: f64,
    pub(super) content: Content,
    /// True for commands: never dropped for being late, with the highest priority if the engine has
    /// priorities.
    pub(super) urgent: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Want {
    pub(super) tag: String,
    pub(super) max_hz: Option<f64>,
    pub(super) size: Option<(u32, u32)>,
    pub(super) within_ms: Option<u64>,
    pub(super) loss: Option<(u32, u32)>,
}

/// The task of a process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Role {
    Publish {
        place: Place,
        sources: Vec<Source>,
    },
    Subscribe {
        place: Place,
        wants: Vec<Want>,
    },
    /// Publishes samples and waits for the reply to each.
    Ping {
        place: Place,
        warm_up: u32,
        count: u32,
    },
    /// Publishes every received sample again.
    Pong {
        place: Place,
    },
    /// Publishes samples of this size as fast as the engine accepts them.
    Flood {
        place: Place,
        bytes: usize,
    },
    /// Publishes to many subscribers in this process.
    Fanout {
        subscriptions: u32,
        seconds: u32,
        queues: bool,
    },
    /// Creates streams under a policy to measure their memory.
    Streams {
        policy: String,
        streams: u32,
    },
    /// Makes scheduling decisions for an external instruction counter.
    Decide(Decisions),
    /// Routes for plain Zenoh programs until `stop`.
    Router {
        listen: String,
    },
    /// Counts samples from `go` to `stop`.
    Sink {
        place: Place,
    },
    /// Receives as a member of a synchronised group, from `go` to `stop`.
    Playout(Playout),
    /// Runs a node on a path with a proxy.
    Proxied(Proxied),
    /// Runs a node of a scenario; waits for `go` and the end of the warm-up.
    Scene(Scene),
}

impl Role {
    /// Returns true if the process is a plain Zenoh program.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Publish { place, .. }
            | Self::Subscribe { place, .. }
            | Self::Ping { place, .. }
            | Self::Pong { place }
            | Self::Flood { place, .. }
            | Self::Sink { place } => place.engine == Engine::Plain,
            Self::Router { .. } => true,
            Self::Fanout { .. }
            | Self::Streams { .. }
            | Self::Decide(_)
            | Self::Playout(_)
            | Self::Proxied(_)
            | Self::Scene(_) => false,
        }
    }
}

/// A receiver of a synchronised group.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Playout {
    /// The endpoint of the publisher's node, and the address at which that serves time.
    pub(super) connect: String,
    pub(super) server: String,
    pub(super) delay_ms: u64,
    pub(super) realtime: bool,
}

/// A node of a scenario.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Scene {
    /// The scenario's text, and its file.
    pub(super) text: String,
    pub(super) file: String,
    /// The duration to which the scenario is compressed.
    pub(super) duration_ns: u64,
    /// The node's index and name.
    pub(super) node: usize,
    pub(super) name: String,
    pub(super) links: Vec<NetLink>,
    /// The policy file, if links use QUIC.
    pub(super) access: Option<PathBuf>,
    /// True if the node will be killed; it then reports its notes continuously.
    pub(super) crashes: bool,
}

/// A publisher's id: node and index.
pub(super) type PublisherKey = (u64, u32);

/// The notes of a scenario's node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Report {
    /// The node's id; 0 before the end.
    pub(super) node: u64,
    pub(super) lives: Vec<Life>,
    pub(super) arrived: Vec<Arrived>,
    /// Dropped samples: subscriber, index of the reason, number of samples.
    pub(super) drops: Vec<(usize, usize, u64)>,
    /// Refusals: subscriber, publisher, reason.
    pub(super) refusals: Vec<(usize, PublisherKey, String)>,
    /// The steps of elastic contracts, by subscriber.
    pub(super) steps: BTreeMap<usize, Steps>,
    pub(super) streams: Vec<Stream>,
    /// Samples that closed streams did not send, per link: index of the reason, number of samples.
    pub(super) closed: Vec<(String, Vec<(usize, u64)>)>,
}

/// The publication times of one publisher instance.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Life {
    pub(super) publisher: usize,
    pub(super) id: PublisherKey,
    pub(super) at: Vec<u64>,
}

/// A sample received by a subscriber of a scenario.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Arrived {
    pub(super) subscriber: usize,
    pub(super) from: PublisherKey,
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// A link's counters for one publisher's samples.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Stream {
    pub(super) hop: u64,
    pub(super) publisher: PublisherKey,
    pub(super) offered: u64,
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) late: u64,
    pub(super) violations: u64,
    pub(super) drops: Vec<(usize, u64)>,
}

/// A received sample.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Arrival {
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// Width and height of a picture.
    pub(super) size: Option<(u32, u32)>,
}

/// A message from a role to its parent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Message {
    /// The role is connected or connecting, and waits for `go`.
    Ready,
    /// The role has begun.
    Started,
    /// The first sample of a subscription arrived.
    First { want: usize },
    /// The publication time of each sample, by source and sequence number.
    Published { sent: Vec<Vec<u64>>, violations: u64, drops: String },
    /// A publisher was refused. `bytes` is the sample size that would be admitted instead.
    Refused { want: usize, bytes: Option<u64> },
    /// The received samples, by subscription.
    Received { arrivals: Vec<Vec<Arrival>>, wrong: u64, refusals: Vec<String> },
    /// Round-trip times in nanoseconds.
    RoundTrips { nanos: Vec<u64> },
    /// The cost of many subscribers.
    Fanout { cpu_percent: f64, bytes_each: f64, delivered: u64, published: u64 },
    /// The memory of a stream under a policy.
    Streams { bytes_each: f64 },
    /// The notes of a scenario's node since its last report.
    Scene(Report),
    /// The releases of a group's member: capture time, release and clock error of each; late samples, and the wake-up.
    Playout { released: Vec<(u64, u64, u64)>, late: u64, wakeup: u64 },
    /// The samples and the sum of their ages at a subscriber, and the bytes of the stream on each link.
    Proxied { samples: u64, age_ns: u64, links: Vec<u64> },
    /// The role has reported everything.
    Done,
    /// The number of samples counted in an interval.
    Counted { samples: u64, nanos: u64 },
}

/// A node on a path with a proxy.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Proxied {
    pub(super) name: String,
    /// True unless it joins the other processes of its host.
    pub(super) isolated: bool,
    /// True to reserve processors for the node's threads.
    pub(super) is_realtime: bool,
    pub(super) links: Vec<NetLink>,
    /// The policy file, if links use QUIC.
    pub(super) access: Option<PathBuf>,
    pub(super) task: ProxiedTask,
}

/// The task of a node on a path with a proxy.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum ProxiedTask {
    Relay,
    /// Publishes samples and waits for the echo of each.
    Ping {
        bytes: usize,
        warm_up: u32,
        count: u32,
    },
    /// Publishes every received sample again. The proxy is that of the received samples.
    Pong {
        proxy: Option<String>,
    },
    /// Publishes samples at a rate and measures the time to the echo of each.
    PacedPing {
        bytes: usize,
        count: u32,
        paced: Paced,
    },
    /// The other end.
    PacedPong {
        bytes: usize,
        proxy: Option<String>,
        paced: Paced,
    },
    /// Publishes samples of this size at a rate until `stop`.
    Publish {
        hz: f64,
        bytes: usize,
    },
    /// Receives one sample in `every` from `go` to `stop`, with a delay bound or best effort.
    Subscribe {
        every: u32,
        proxy: String,
        within_ms: Option<u64>,
        /// Begins when multicast groups carry this number of streams.
        grouped: usize,
    },
}

/// The conditions of round trips at a rate.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Paced {
    pub(crate) hz: f64,
    /// The delay bound of the contract in each direction; `None` requests best effort.
    pub(crate) within_ms: Option<u64>,
    /// Both ends publish another stream with this rate and these bytes per sample, by best effort.
    pub(crate) flood: Option<(f64, usize)>,
    /// A thread for each core of the publisher's host never sleeps.
    pub(crate) is_busy: bool,
}

/// The decisions that a child process makes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Decisions {
    pub(super) policy: String,
    pub(super) once_per_period: bool,
    pub(super) streams: u32,
    pub(super) decisions: u32,
}

/// A node's end of a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct NetLink {
    pub(super) name: String,
    pub(super) listen: Option<String>,
    pub(super) connect: Option<String>,
    /// The capacity as in a configuration.
    pub(super) capacity: Option<String>,
    pub(super) policy: String,
    /// The certificate, the key and the authority of the node, on links over QUIC.
    pub(super) tls: Option<[PathBuf; 3]>,
    /// The range of multicast groups.
    pub(super) multicast: Option<String>,
}
