//! One measured interval: a publishing robot, and listeners at both ends of the link.

use crate::bench::child::Child;
use crate::bench::machine::{Load, Watch};
use crate::bench::netns::{ROBOT_ADDRESS, Rig, Side, WireBytes};
use crate::bench::protocol::{Arrival, Engine, Message, Place, Role, Source, Want};
use crate::bench::stats::{Samples, count, float};
use crate::bench::{clock, interrupt};
use anyhow::{Context as _, Result, anyhow};
use paceline::class::Policy;
use paceline_tool::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// The time from the first sample of every listener to the interval, in nanoseconds.
const WARM_UP: u64 = 2 * SECOND;
/// The time after the interval in which a sample may still arrive, in nanoseconds; later ones count
/// as lost.
const COOL_DOWN: u64 = 4 * SECOND;
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest interval of a short run in seconds, and the replacement for the other two durations.
const SHORT_SECONDS: f64 = 1.5;
const SHORT: u64 = SECOND;

/// The environment of the measurements.
pub(super) struct Stage<'a> {
    rig: &'a Rig,
    scratch: &'a Scratch,
    short: bool,
}

/// A subscribing process.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) name: &'static str,
    pub(super) side: Side,
    pub(super) want: Vec<Want>,
}

/// The specification of a measurement.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) engine: Engine,
    /// The discipline of every link.
    pub(super) policy: Policy,
    pub(super) sources: Vec<Source>,
    pub(super) listeners: Vec<Listener>,
    pub(super) seconds: f64,
}

/// The runtime folders of the two hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) robot: PathBuf,
    pub(super) operator: PathBuf,
}

/// Additional actions during a measurement.
pub(super) struct Actions<'a> {
    /// Runs before the interval, once every listener has its first sample.
    pub(super) before: &'a dyn Fn(&Hosts) -> Result<()>,
    /// Runs during the interval.
    pub(super) meanwhile: &'a (dyn Fn(&Hosts) -> Result<()> + Sync),
}

/// The results of a measurement.
#[derive(Debug, Default)]
pub(super) struct Measured {
    from: u64,
    to: u64,
    /// The link's capacity in each direction.
    bits_per_s: u64,
    /// Publication times by source and sequence number.
    sent: Vec<Vec<u64>>,
    /// Received samples by listener and subscription.
    arrivals: Vec<Vec<Vec<Arrival>>>,
    pub(super) wire_to_operator: f64,
    pub(super) wire_to_robot: f64,
    pub(super) load: Option<Load>,
    /// Violated windows, as the robot's node counts them.
    pub(super) violations: u64,
    /// Unexpected events, in words.
    pub(super) remarks: Vec<String>,
}

/// One source's samples at one subscription.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// The number of samples published in the interval.
    pub(super) sent: usize,
    /// The sequence number of the first of them.
    pub(super) first: u64,
    /// The delays of those that arrived, by sequence number, in nanoseconds.
    pub(super) delays: BTreeMap<u64, u64>,
    /// The samples that arrived in the interval, regardless of their publication time.
    pub(super) arrived: Vec<Arrival>,
}

impl<'a> Stage<'a> {
    /// Creates a stage. With `short` no interval is longer than 1.5 s: next to other
    /// work on the host, the first whole picture may take more than half a second.
    pub(super) fn new(rig: &'a Rig, scratch: &'a Scratch, short: bool) -> Self {
        Self { rig, scratch, short }
    }

    /// Returns the duration of an interval of `seconds`, which is limited in a short run.
    pub(super) fn seconds(&self, seconds: f64) -> f64 {
        if self.short { seconds.min(SHORT_SECONDS) } else { seconds }
    }

    /// Runs a plan in child processes.
    pub(super) fn measure(&self, plan: &Plan) -> Result<Measured> {
        self.measure_with(plan, &Actions { before: &|_| Ok(()), meanwhile: &|_| Ok(()) })
    }

    /// Runs a plan and additional actions on its hosts.
    pub(super) fn measure_with(&self, plan: &Plan, actions: &Actions<'_>) -> Result<Measured> {
        let hosts = Hosts { robot: self.scratch.host(), operator: self.scratch.host() };
        let (mut robot, mut listeners) = self.begin(plan, &hosts)?;
        for (child, listener) in listeners.iter_mut().zip(&plan.listeners) {
            wait_for_first(child, listener)?;
        }
        (actions.before)(&hosts)?;
        interrupt::sleep_until(clock::now() + if self.short { SHORT } else { WARM_UP })?;
        let mut measured = std::thread::scope(|scope| {
            let other = scope.spawn(|| (actions.meanwhile)(&hosts));
            let measured = self.watch(plan.seconds);
            other.join().unwrap_or_else(|_| Err(anyhow!("the concurrent task panicked")))?;
            measured
        })?;
        interrupt::sleep_until(clock::now() + if self.short { SHORT } else { COOL_DOWN })?;
        measured.collect(&mut robot, &mut listeners)?;
        Ok(measured)
    }

    /// Returns the largest samples that would be admitted for subscription `want` of the first
    /// listener. `want` must request more than is available. Subscriptions are admitted in order,
    /// so the earlier ones keep their reservations.
    pub(super) fn offered(&self, plan: &Plan, want: usize) -> Result<usize> {
        let hosts = Hosts { robot: self.scratch.host(), operator: self.scratch.host() };
        let (_robot, mut listeners) = self.begin(plan, &hosts)?;
        let listener = listeners.first_mut().context("a plan without a listener")?;
        let offer = listener.expect("refusal", PATIENCE, |message| {
            let Message::Refused { want: refused, bytes } = message else { return None };
            (refused == want).then_some(bytes)
        })?;
        let bytes =
            offer.context("no sample size can be granted next to the other subscriptions")?;
        Ok(usize::try_from(bytes)?)
    }

    /// Starts all processes of a plan and sends them `go`.
    fn begin(&self, plan: &Plan, hosts: &Hosts) -> Result<(Child, Vec<Child>)> {
        let (robot_dir, operator_dir) = (&hosts.robot, &hosts.operator);
        let place = self.place_of(plan, Side::Robot, "robot", true);
        let publish = Role::Publish { place, sources: plan.sources.clone() };
        let mut robot = self.start("robot", Side::Robot, &publish, robot_dir)?;
        let mut listeners = Vec::new();
        for Listener { name, side, want } in &plan.listeners {
            let place = self.place_of(plan, *side, name, false);
            let role = Role::Subscribe { place, wants: want.clone() };
            let dir = if *side == Side::Robot { robot_dir } else { operator_dir };
            listeners.push(self.start(name, *side, &role, dir)?);
        }
        for child in listeners.iter_mut().chain([&mut robot]) {
            child.go()?;
        }
        Ok((robot, listeners))
    }

    /// Returns the place of a process. The robot listens. The operator and plain sessions on the
    /// robot's host connect to it; Paceline processes on that host find it by themselves.
    fn place_of(&self, plan: &Plan, side: Side, name: &str, listens: bool) -> Place {
        let engine = plan.engine;
        let endpoint = format!("tcp/{ROBOT_ADDRESS}:7600");
        let attaches = engine == Engine::Paceline && side == Side::Robot && !listens;
        Place {
            engine,
            name: name.to_owned(),
            listen: listens.then(|| endpoint.clone()),
            connect: (!listens && !attaches).then_some(endpoint),
            capacity: Some(self.rig.bits_per_s()),
            policy: plan.policy.name().to_owned(),
        }
    }

    fn start(&self, name: &str, side: Side, role: &Role, dir: &Path) -> Result<Child> {
        let mut child = Child::start(name, role, Some(self.rig.namespace(side)), dir)?;
        child.expect_ready()?;
        Ok(child)
    }

    /// Waits for the interval and records the kernel's counters.
    fn watch(&self, seconds: f64) -> Result<Measured> {
        let (watch, before) = (Watch::begin()?, self.rig.wire_bytes()?);
        let from = clock::now();
        let seconds = self.seconds(seconds);
        interrupt::sleep_until(from + u64::try_from(Duration::from_secs_f64(seconds).as_nanos())?)?;
        let to = clock::now();
        let (load, wire): (Load, WireBytes) = (watch.load()?, self.rig.wire_bytes()?);
        Ok(Measured {
            from,
            to,
            bits_per_s: self.rig.bits_per_s(),
            wire_to_operator: float(wire.to_operator - before.to_operator),
            wire_to_robot: float(wire.to_robot - before.to_robot),
            load: Some(load),
            ..Measured::default()
        })
    }
}

/// Waits until every subscription has its first sample; otherwise the error names the refusals. If
/// some subscriptions have a delay bound, the others are not waited for: those with a bound may
/// request the whole link.
fn wait_for_first(child: &mut Child, listener: &Listener) -> Result<()> {
    let tags: Vec<_> = listener.want.iter().map(|want| want.tag.as_str()).collect();
    let bounded = listener.want.iter().any(|want| want.within_ms.is_some());
    let mut missing: Vec<usize> = (0..)
        .zip(&listener.want)
        .filter(|(_, want)| want.within_ms.is_some() || !bounded)
        .map(|(index, _)| index)
        .collect();
    let arrived = child.expect("first sample", PATIENCE, |message| {
        if let Message::First { want } = message {
            missing.retain(|index| *index != want);
        }
        missing.is_empty().then_some(())
    });
    let Err(error) = arrived else { return Ok(()) };
    interrupt::check()?;
    child.stop()?;
    let refusals = child.expect("result", PATIENCE, |message| {
        if let Message::Received { refusals, .. } = message { Some(refusals) } else { None }
    })?;
    Err(error.context(format!("subscriptions to {}: {}", tags.join(", "), refusals.join("; "))))
}

impl Measured {
    /// Stops all processes and collects their results.
    fn collect(&mut self, robot: &mut Child, listeners: &mut [Child]) -> Result<()> {
        robot.stop()?;
        let drops = robot.expect("result", PATIENCE, |message| {
            let Message::Published { sent, violations, drops } = message else { return None };
            (self.sent, self.violations) = (sent, violations);
            Some(drops)
        })?;
        if !drops.is_empty() {
            self.remarks.push(format!("dropped on the robot's links over the whole run: {drops}"));
        }
        for listener in listeners {
            listener.stop()?;
            let (wrong, refusals) = listener.expect("result", PATIENCE, |message| {
                let Message::Received { arrivals, wrong, refusals } = message else { return None };
                self.arrivals.push(arrivals);
                Some((wrong, refusals))
            })?;
            if wrong > 0 {
                self.remarks.push(format!("{wrong} samples arrived with wrong content"));
            }
            self.remarks.extend(refusals.into_iter().map(|why| format!("refused: {why}")));
        }
        Ok(())
    }

    pub(super) fn seconds(&self) -> f64 {
        float(self.to - self.from) / 1e9
    }

    /// Returns the wire bytes towards the operator in percent of the link's capacity.
    pub(super) fn fill_percent(&self) -> f64 {
        800.0 * self.wire_to_operator / self.seconds() / float(self.bits_per_s)
    }

    /// Returns the samples of `source` at a listener's subscription. Only the first `limit` samples
    /// published in the interval count.
    pub(super) fn flow(&self, source: usize, at: (usize, usize), limit: usize) -> Flow {
        let sent = self.sent.get(source).map(Vec::as_slice).unwrap_or_default();
        let arrivals = self.arrivals.get(at.0).and_then(|listener| listener.get(at.1));
        let arrivals = arrivals.map(Vec::as_slice).unwrap_or_default();
        let inside = |instant: u64| (self.from..self.to).contains(&instant);
        let first = sent.partition_point(|instant| *instant < self.from);
        let published = sent.iter().skip(first).take_while(|instant| inside(**instant));
        let published = published.take(limit).count();
        let mut delays = BTreeMap::new();
        for arrival in arrivals {
            let Ok(index) = usize::try_from(arrival.seq) else { continue };
            if let Some(instant) = sent.get(index).filter(|_| index < first + published)
                && index >= first
            {
                delays.entry(arrival.seq).or_insert(arrival.at.saturating_sub(*instant));
            }
        }
        let arrived = arrivals.iter().filter(|arrival| inside(arrival.at)).copied().collect();
        Flow { sent: published, first: first as u64, delays, arrived }
    }
}

impl Flow {
    pub(super) fn delays(&self) -> Samples {
        Samples::new(self.delays.values().copied().collect())
    }

    pub(super) fn lost(&self) -> usize {
        self.sent - self.delays.len()
    }

    /// Returns the arrivals per second, from the first to the last of the interval.
    pub(super) fn hertz(&self) -> f64 {
        match (self.arrived.first(), self.arrived.last()) {
            (Some(first), Some(last)) if last.at > first.at => {
                count(self.arrived.len() - 1) * 1e9 / float(last.at - first.at)
            }
            _ => 0.0,
        }
    }

    pub(super) fn bytes(&self) -> f64 {
        float(self.arrived.iter().map(|arrival| arrival.bytes).sum())
    }

    /// Returns the misses beyond x in each y consecutive samples of a stream that takes one in
    /// `step`. A sample misses if it is absent or its delay exceeds `bound`.
    pub(super) fn misses_beyond(&self, step: u64, bound: u64, (x, y): (usize, usize)) -> usize {
        let mut missed = Vec::new();
        let mut before = None;
        for (&seq, &delay) in &self.delays {
            let gap = before.map_or(step, |before| seq - before);
            let absent = (gap + step / 2) / step.max(1);
            missed.extend((1..absent).map(|_| true));
            missed.push(delay > bound);
            before = Some(seq);
        }
        let misses = |window: &[bool]| window.iter().filter(|missed| **missed).count();
        missed.chunks(y.max(1)).map(|window| misses(window).saturating_sub(x)).sum()
    }
}

#[cfg(test)]
mod tests;
