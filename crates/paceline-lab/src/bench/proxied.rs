//! Round trips and streams over paths with a proxy, each node a process on this machine, for the experiments of
//! Juvva 1999.

use super::child::Child;
use super::interrupt;
use super::machine::cpu_seconds;
use super::meet::free_port;
pub(crate) use super::protocol::Paced;
use super::protocol::{Message, NetLink, Proxied, ProxiedTask, Role};
use super::stats::{count as count_of, float};
use anyhow::{Context as _, Result};
use paceline::class::Policy;
use paceline_tool::scratch::Scratch;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const WARM_UP: u32 = 50;
/// The round trips of a mean, as in the paper.
pub(crate) const GROUP: usize = 100;
/// The node that neither publishes nor subscribes, between the others or connected to both.
pub(crate) const BETWEEN: &str = "m";

/// The path from the publisher to the subscriber.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Two processes of one host.
    OneHost,
    /// Separate hosts with this number of relays between them.
    Relays(usize),
    /// Two linked hosts, both also linked to a third one.
    Triangle,
}

/// The resources of a way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions {
    /// The capacity of each link in each direction; `None` for no limit.
    pub(crate) capacity_bits_per_s: Option<u64>,
    /// True to reserve processors for the threads of all nodes.
    pub(crate) is_realtime: bool,
}

/// Measured round trips at a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacedTrips {
    pub(crate) mean_micros: f64,
    pub(crate) p99_micros: f64,
    /// The part of samples without an echo, in percent.
    pub(crate) lost_percent: f64,
}

/// Measured round trips.
#[derive(Clone, Debug)]
pub(crate) struct RoundTrips {
    /// The least of the means of each [`GROUP`].
    pub(crate) mean_micros: f64,
    /// The processor time of each process per round trip: publisher, nodes between, subscriber.
    pub(crate) cpu_micros: Vec<f64>,
}

/// A measured stream.
#[derive(Clone, Debug)]
pub(crate) struct Streamed {
    pub(crate) age_micros: f64,
    /// The processor time of publisher, proxy's host and subscriber, in percent of one processor.
    pub(crate) cpu_percent: Vec<f64>,
    /// The payload bytes per second on the links from the publisher and to the subscriber.
    pub(crate) bytes_per_s: [f64; 2],
}

/// A link between two nodes of the list.
type Join = (usize, usize);

/// Starts the processes of a way, the publisher first and the subscriber last.
fn start(
    (way, conditions): (Way, Conditions),
    scratch: &Scratch,
    ends: [ProxiedTask; 2],
) -> Result<Vec<Child>> {
    interrupt::install()?;
    let (count, joins): (usize, Vec<Join>) = match way {
        Way::OneHost => (2, Vec::new()),
        Way::Relays(relays) => (relays + 2, (0..=relays).map(|at| (at, at + 1)).collect()),
        Way::Triangle => (3, vec![(0, 2), (0, 1), (1, 2)]),
    };
    let mut links: Vec<Vec<NetLink>> = vec![Vec::new(); count];
    for (number, (from, to)) in joins.into_iter().enumerate() {
        let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
        let link = NetLink {
            name: format!("link{number}"),
            listen: None,
            connect: None,
            capacity: conditions.capacity_bits_per_s.map(|bits| format!("{bits}bit")),
            policy: Policy::default().name().to_owned(),
            tls: None,
            multicast: None,
        };
        for (node, listens) in [(from, true), (to, false)] {
            let at = Some(endpoint.clone());
            let (listen, connect) = if listens { (at, None) } else { (None, at) };
            if let Some(links) = links.get_mut(node) {
                links.push(NetLink { listen, connect, ..link.clone() });
            }
        }
    }
    let [first, last] = ends;
    let mut tasks = vec![first];
    tasks.resize(count - 1, ProxiedTask::Relay);
    tasks.push(last);
    let shared = scratch.host();
    let mut children = Vec::new();
    for (number, (task, links)) in tasks.into_iter().zip(links).enumerate() {
        let name = match number {
            0 => "a".to_owned(),
            last if last + 1 == count => "z".to_owned(),
            1 => BETWEEN.to_owned(),
            other => format!("{BETWEEN}{other}"),
        };
        let isolated = !matches!(way, Way::OneHost);
        let dir = if isolated { scratch.host() } else { shared.clone() };
        let is_realtime = conditions.is_realtime;
        let task = Proxied { name: name.clone(), isolated, is_realtime, links, access: None, task };
        let mut child = Child::start(&name, &Role::Proxied(task), None, &dir)?;
        child.expect_ready()?;
        children.push(child);
    }
    // The publisher begins last.
    children.iter_mut().rev().try_for_each(Child::go)?;
    Ok(children)
}

/// Returns the processor times of all processes so far.
pub(super) fn used(children: &[Child]) -> Result<Vec<f64>> {
    children.iter().map(|child| cpu_seconds(child.id())).collect()
}

pub(super) fn wait_for(
    child: &mut Child,
    what: &str,
    is: impl Fn(&Message) -> bool,
) -> Result<Message> {
    child.expect(what, PATIENCE, |message| is(&message).then_some(message))
}

/// Measures round trips of `bytes` bytes: there with the proxy, and back without one.
pub(crate) fn round_trips(
    (way, proxy): (Way, Option<&str>),
    bytes: usize,
    trips: u32,
    scratch: &Scratch,
) -> Result<RoundTrips> {
    let ping = ProxiedTask::Ping { bytes, warm_up: WARM_UP, count: trips };
    let pong = ProxiedTask::Pong { proxy: proxy.map(str::to_owned) };
    let mut children = start((way, Conditions::default()), scratch, [ping, pong])?;
    let first = children.first_mut().context("the publisher")?;
    wait_for(first, "the path", |message| matches!(message, Message::Started))?;
    let before = used(&children)?;
    let first = children.first_mut().context("the publisher")?;
    let done = wait_for(first, "round trips", |it| matches!(it, Message::RoundTrips { .. }))?;
    let after = used(&children)?;
    let Message::RoundTrips { nanos } = done else { anyhow::bail!("no round trips") };
    children.iter_mut().try_for_each(Child::stop)?;
    let all = f64::from(trips + WARM_UP);
    let cpu = after.iter().zip(&before).map(|(after, before)| (after - before) * 1e6 / all);
    let mean = |group: &[u64]| float(group.iter().sum()) / count_of(group.len()) / 1e3;
    // Other programs can only add to a delay, so the least mean is the one with the least of them.
    let mean_micros = nanos.chunks(GROUP).map(mean).fold(f64::INFINITY, f64::min);
    Ok(RoundTrips { mean_micros, cpu_micros: cpu.collect() })
}

/// Measures `count` round trips of `bytes` bytes at a rate: there with the proxy, and back without one.
pub(crate) fn paced_trips(
    (way, proxy): (Way, Option<&str>),
    (bytes, count): (usize, u32),
    (paced, conditions): (Paced, Conditions),
    scratch: &Scratch,
) -> Result<PacedTrips> {
    let ping = ProxiedTask::PacedPing { bytes, count, paced };
    let pong = ProxiedTask::PacedPong { bytes, proxy: proxy.map(str::to_owned), paced };
    let mut children = start((way, conditions), scratch, [ping, pong])?;
    let first = children.first_mut().context("the publisher")?;
    wait_for(first, "the path", |message| matches!(message, Message::Started))?;
    let done = wait_for(first, "round trips", |it| matches!(it, Message::RoundTrips { .. }))?;
    let Message::RoundTrips { mut nanos } = done else { anyhow::bail!("no round trips") };
    children.iter_mut().try_for_each(Child::stop)?;
    nanos.sort_unstable();
    let (all, sum) = (nanos.len(), nanos.iter().sum());
    // Not a number if nothing arrived.
    let p99 = nanos.get(all * 99 / 100).map_or(f64::NAN, |nanos| float(*nanos));
    Ok(PacedTrips {
        mean_micros: float(sum) / count_of(all) / 1e3,
        p99_micros: p99 / 1e3,
        lost_percent: 100.0 * (1.0 - count_of(all) / f64::from(count)),
    })
}

/// Measures a stream over one node between publisher and subscriber, of which one sample in `every` is subscribed to.
pub(crate) fn stream(
    proxy: &str,
    (hz, bytes, every): (f64, usize, u32),
    time: Duration,
    scratch: &Scratch,
) -> Result<Streamed> {
    let publish = ProxiedTask::Publish { hz, bytes };
    let subscribe =
        ProxiedTask::Subscribe { every, proxy: proxy.to_owned(), within_ms: None, grouped: 0 };
    let mut children =
        start((Way::Relays(1), Conditions::default()), scratch, [publish, subscribe])?;
    let last = children.last_mut().context("the subscriber")?;
    wait_for(last, "the stream", |message| matches!(message, Message::Started))?;
    let (began, before) = (Instant::now(), used(&children)?);
    std::thread::sleep(time);
    let after = used(&children)?;
    let seconds = began.elapsed().as_secs_f64();
    let last = children.last_mut().context("the subscriber")?;
    last.stop()?;
    let found = wait_for(last, "its report", |it| matches!(it, Message::Proxied { .. }))?;
    let whole = began.elapsed().as_secs_f64();
    let Message::Proxied { samples, age_ns, links } = found else { anyhow::bail!("no report") };
    children.iter_mut().rev().skip(1).try_for_each(Child::stop)?;
    let cpu = after.iter().zip(&before).map(|(after, before)| (after - before) * 100.0 / seconds);
    // Both nodes of a link have counters of it. Only the sending ones of this direction are not zero.
    let mut sent = links.into_iter().filter(|bytes| *bytes > 0).map(|bytes| float(bytes) / whole);
    let bytes_per_s = [sent.next().unwrap_or_default(), sent.next().unwrap_or_default()];
    let age_micros = float(age_ns) / float(samples.max(1)) / 1e3;
    Ok(Streamed { age_micros, cpu_percent: cpu.collect(), bytes_per_s })
}
