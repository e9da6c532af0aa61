//! One process of a benchmark: what it is told, and what it tells.
//!
//! The parent gives a [`Role`] as an argument. The role prints one [`Message`] per line, waits on its
//! input for `go`, and ends at `stop` or when its input is closed, so that none outlives its parent.

mod engine;
mod fanout;
mod flood;
mod forward;
mod ping;
mod publish;
mod router;
mod scene;
mod schedule;
mod subscribe;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::process::ExitCode;

/// Which system carries the samples.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Engine {
    Paceline,
    Plain,
}

/// Where a process stands in the network.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Place {
    pub(super) engine: Engine,
    pub(super) name: String,
    pub(super) listen: Option<String>,
    pub(super) connect: Option<String>,
    /// The link's capacity in bits per second, for the engine that uses it.
    pub(super) capacity: Option<u64>,
    /// The name of the link's discipline.
    pub(super) policy: String,
}

/// What the samples of a source hold.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) enum Content {
    /// This many bytes that nobody can compress.
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
    /// Commands: never dropped for being late, and the highest priority where there are some.
    pub(super) urgent: bool,
}

/// A subscription.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Want {
    pub(super) tag: String,
    pub(super) max_hz: Option<f64>,
    pub(super) size: Option<(u32, u32)>,
    pub(super) within_ms: Option<u64>,
    pub(super) loss: Option<(u32, u32)>,
}

/// What a process does.
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
    /// Publishes and waits for each sample to come back.
    Ping {
        place: Place,
        warm_up: u32,
        count: u32,
    },
    /// Publishes every sample that comes.
    Pong {
        place: Place,
    },
    /// Hands on what others of its host publish.
    Forward,
    /// Publishes samples of this size as fast as they are taken.
    Flood {
        place: Place,
        bytes: usize,
    },
    /// Publishes to many subscribers of this process.
    Fanout {
        subscriptions: u32,
        seconds: u32,
        queues: bool,
    },
    /// Streams under a policy, for their memory.
    Streams {
        policy: String,
        streams: u32,
    },
    /// Decisions of a scheduler, to be counted from outside.
    Decide(super::schedule::Decisions),
    /// Routes for plain Zenoh programs until `stop`.
    Router {
        listen: String,
    },
    /// Counts samples from `go` to `stop`.
    Sink {
        place: Place,
    },
    /// A node of a scenario; waits for `go` and the end of the warm-up.
    Scene(Scene),
}

impl Role {
    /// True if it is a plain Zenoh program.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Publish { place, .. }
            | Self::Subscribe { place, .. }
            | Self::Ping { place, .. }
            | Self::Pong { place }
            | Self::Flood { place, .. }
            | Self::Sink { place } => place.engine == Engine::Plain,
            Self::Router { .. } => true,
            Self::Forward
            | Self::Fanout { .. }
            | Self::Streams { .. }
            | Self::Decide(_)
            | Self::Scene(_) => false,
        }
    }
}

/// A node of a scenario.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Scene {
    /// The scenario as it is written, and where.
    pub(super) text: String,
    pub(super) file: String,
    /// What it is squeezed to.
    pub(super) duration_ns: u64,
    /// The node, by its place and name.
    pub(super) node: usize,
    pub(super) name: String,
    pub(super) links: Vec<super::scenario::NetLink>,
    /// True if it will be killed: then it tells what it notes at once.
    pub(super) crashes: bool,
}

/// A publisher's id.
pub(super) type Who = (u64, u32);

/// What a node of a scenario noted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Report {
    /// The node's id; 0 before the end.
    pub(super) node: u64,
    pub(super) lives: Vec<Life>,
    pub(super) arrived: Vec<Arrived>,
    /// Subscriber, place of the reason, samples.
    pub(super) drops: Vec<(usize, usize, u64)>,
    /// Subscriber, publisher, why.
    pub(super) refusals: Vec<(usize, Who, String)>,
    pub(super) streams: Vec<Stream>,
    /// Of each link what its streams that are gone did not send: place of the reason, samples.
    pub(super) closed: Vec<(String, Vec<(usize, u64)>)>,
}

/// What a publisher published, and when.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Life {
    pub(super) publisher: usize,
    pub(super) id: Who,
    pub(super) at: Vec<u64>,
}

/// A sample as a subscriber of a scenario got it.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Arrived {
    pub(super) subscriber: usize,
    pub(super) from: Who,
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// What a link made of a publisher's samples.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Stream {
    pub(super) hop: u64,
    pub(super) publisher: Who,
    pub(super) offered: u64,
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) late: u64,
    pub(super) violations: u64,
    pub(super) drops: Vec<(usize, u64)>,
}

/// A sample as it arrived.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Arrival {
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// Width and height, of a picture.
    pub(super) size: Option<(u32, u32)>,
}

/// What a role tells its parent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Message {
    /// It is connected, or trying to, and waits for `go`.
    Ready,
    /// It has begun.
    Started,
    /// The first sample of one of its subscriptions arrived.
    First { want: usize },
    /// When each sample was published, by source and sequence number.
    Published { sent: Vec<Vec<u64>>, violations: u64, drops: String },
    /// A publisher could not be heard, and the size of samples that would be promised instead.
    Refused { want: usize, bytes: Option<u64> },
    /// What arrived, by subscription.
    Received { arrivals: Vec<Vec<Arrival>>, wrong: u64, refusals: Vec<String> },
    /// Round trips in nanoseconds.
    RoundTrips { nanos: Vec<u64> },
    /// What many subscribers cost.
    Fanout { cpu_percent: f64, bytes_each: f64, delivered: u64, published: u64 },
    /// What a stream takes of memory under a policy.
    Streams { bytes_each: f64 },
    /// What a node of a scenario noted since it last told.
    Scene(Report),
    /// It has told everything.
    Done,
    /// What it has taken of the processors since it started.
    Spent { nanos: u64 },
    /// Samples counted in a time.
    Counted { samples: u64, nanos: u64 },
}

/// The hidden command.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The role, as JSON
    role: String,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let role: Role = serde_json::from_str(&args.role).context("role")?;
    match role {
        Role::Publish { place, sources } => publish::run(&place, &sources)?,
        Role::Subscribe { place, wants } => subscribe::run(&place, &wants)?,
        Role::Ping { place, warm_up, count } => ping::ping(&place, warm_up, count)?,
        Role::Pong { place } => ping::pong(&place)?,
        Role::Flood { place, bytes } => flood::flood(&place, bytes)?,
        Role::Forward => forward::run()?,
        Role::Fanout { subscriptions, seconds, queues } => {
            fanout::run(subscriptions, seconds, queues)?;
        }
        Role::Streams { policy, streams } => schedule::streams(&policy, streams)?,
        Role::Decide(decisions) => schedule::decide(&decisions)?,
        Role::Router { listen } => router::run(&listen)?,
        Role::Sink { place } => flood::sink(&place)?,
        Role::Scene(scene) => scene::run(&scene)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the parent; a parent that is gone ends the role by closing its input.
fn tell(message: &Message) {
    if let Ok(line) = serde_json::to_string(message) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Waits for the parent's `go`.
fn wait_for_go() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("input of the role")?;
    if line.trim() != "go" {
        bail!("the benchmark ended before it began");
    }
    Ok(())
}

/// Waits until the parent says `stop` or is gone.
fn wait_for_stop() {
    let _ = std::io::stdin().read_line(&mut String::new());
}
