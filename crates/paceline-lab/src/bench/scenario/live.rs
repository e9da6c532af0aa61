//! Runs a scenario on real nodes and converts their notes to a record.

use super::net::{Net, link_name};
use super::road::Passed;
use crate::bench::child::Child;
use crate::bench::machine::{Load, Watch};
use crate::bench::protocol::{Message, PublisherKey, Report, Role, Scene};
use crate::bench::{clock, interrupt};
use anyhow::Result;
use paceline::status::{Drops, NodeId, PublisherId};
use paceline_sched::Instant;
use paceline_sim::impair::Impairment;
use paceline_sim::scenario::{
    Carried, Fault, FaultKind, Plan, Published, ReceivedSample, Record, Streamed, SubscriberRecord,
    Wiring,
};
use paceline_tool::scratch::Scratch;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A scenario with its source text.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) plan: Plan,
    pub(super) text: String,
    pub(super) file: String,
}

/// The result of a live run.
pub(super) struct Live {
    pub(super) record: Record,
    pub(super) load: Load,
}

/// The next action of the parent.
#[derive(Clone, Copy)]
enum Event {
    Begin,
    End,
    Break(usize),
    /// A change of the capacity by a fault.
    Capacity(usize, usize),
    Recover(usize),
}

/// The state of a run.
struct Stage<'s> {
    script: &'s Script,
    net: Net<'s>,
    scratch: Scratch,
    dirs: Vec<PathBuf>,
    /// The child processes by node; `None` while a node is down after a crash.
    children: Vec<Option<Child>>,
    /// By node, one report per instance: its id and its notes.
    reports: Vec<Vec<Report>>,
    start: u64,
    before: Option<(Watch, Vec<[Passed; 2]>)>,
    carried: Vec<[Passed; 2]>,
    load: Option<Load>,
}

/// Runs a scenario on child processes of this executable.
pub(super) fn run(script: &Script) -> Result<Live> {
    let plan = &script.plan;
    let mut stage = Stage::new(script)?;
    for node in 0..plan.nodes.len() {
        let mut child = stage.start(node)?;
        child.expect_ready()?;
        stage.children.push(Some(child));
    }
    stage.start = clock::now() + plan.warm_up.as_nanos();
    for child in stage.children.iter_mut().flatten() {
        child.go_at(stage.start)?;
    }
    for (at, event) in events(plan) {
        interrupt::sleep_until(stage.start + at)?;
        stage.handle(event)?;
    }
    interrupt::sleep_until(stage.start + plan.end().as_nanos())?;
    stage.finish()
}

/// Returns all actions of the parent, by their time after the warm-up.
fn events(plan: &Plan) -> Vec<(u64, Event)> {
    let mut events = vec![(0, Event::Begin), (plan.duration.as_nanos(), Event::End)];
    for (place, fault) in plan.faults.iter().enumerate() {
        events.push((fault.at.as_nanos(), Event::Break(place)));
        events.extend(fault.until.map(|until| (until.as_nanos(), Event::Recover(place))));
        if let FaultKind::Capacity(_, course) = &fault.what {
            let until = fault.until.unwrap_or(paceline_sched::Duration::MAX);
            for (change, (after, _)) in course.changes().iter().enumerate() {
                let at = fault.at.saturating_add(*after);
                events.extend(
                    (at < until).then_some((at.as_nanos(), Event::Capacity(place, change))),
                );
            }
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

impl<'s> Stage<'s> {
    fn new(script: &'s Script) -> Result<Self> {
        let net = Net::new(&script.plan)?;
        let scratch = Scratch::new("scenario")?;
        let nodes = script.plan.nodes.len();
        let dirs = (0..nodes).map(|_| scratch.host()).collect();
        Ok(Self {
            script,
            net,
            scratch,
            dirs,
            children: Vec::new(),
            reports: vec![Vec::new(); nodes],
            start: 0,
            before: None,
            carried: Vec::new(),
            load: None,
        })
    }

    fn start(&self, node: usize) -> Result<Child> {
        let plan = &self.script.plan;
        let crash = |fault: &Fault| matches!(fault.what, FaultKind::Crash(at) if at == node);
        let name = plan.node(node).to_owned();
        let role = Role::Scene(Scene {
            text: self.script.text.clone(),
            file: self.script.file.clone(),
            duration_ns: plan.duration.as_nanos(),
            node,
            name: name.clone(),
            links: self.net.links(node),
            access: self.net.policy(),
            crashes: plan.faults.iter().any(crash),
        });
        let dir = self.dirs.get(node).cloned().unwrap_or_else(|| self.scratch.host());
        Child::start(&name, &role, Some(self.net.namespace(node)?), &dir)
    }

    fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Begin => self.before = Some((Watch::begin()?, self.net.carried()?)),
            Event::End => {
                let now = self.net.carried()?;
                if let Some((watch, before)) = &self.before {
                    let since =
                        |([a, b], [c, d]): (&[Passed; 2], &[Passed; 2])| [a.since(*c), b.since(*d)];
                    self.carried = now.iter().zip(before).map(since).collect();
                    self.load = Some(watch.load()?);
                }
            }
            Event::Break(place) => self.fault(place, true)?,
            Event::Capacity(place, change) => self.change_capacity(place, change)?,
            Event::Recover(place) => self.fault(place, false)?,
        }
        Ok(())
    }

    fn fault(&mut self, place: usize, begins: bool) -> Result<()> {
        let script = self.script;
        let Some(fault) = script.plan.faults.get(place) else { return Ok(()) };
        match &fault.what {
            FaultKind::Cut(between) => self.net.cut(*between, begins),
            FaultKind::Impair(between, wire) => self.net.impair(*between, begins.then_some(wire)),
            // The changes of the course have events of their own.
            FaultKind::Capacity(..) if begins => Ok(()),
            FaultKind::Capacity(between, _) => self.net.impair(*between, None),
            FaultKind::Stall(node) => match self.children.get(*node) {
                Some(Some(child)) => child.stall(begins),
                Some(None) | None => Ok(()),
            },
            FaultKind::Crash(node) if begins => self.crash(*node),
            FaultKind::Crash(node) => {
                let mut child = self.start(*node)?;
                child.expect_ready()?;
                child.go_at(self.start)?;
                if let Some(slot) = self.children.get_mut(*node) {
                    *slot = Some(child);
                }
                Ok(())
            }
        }
    }

    /// Changes the rate of a wire. The nodes follow the plan by themselves.
    fn change_capacity(&self, fault: usize, change: usize) -> Result<()> {
        let plan = &self.script.plan;
        let Some(FaultKind::Capacity(between, course)) =
            plan.faults.get(fault).map(|fault| &fault.what)
        else {
            return Ok(());
        };
        let same = |link: &&Wiring| between.iter().all(|end| link.between.contains(end));
        let (Some((_, rate)), Some(link)) =
            (course.changes().get(change), plan.links.iter().find(same))
        else {
            return Ok(());
        };
        self.net.impair(*between, Some(&Impairment { rate: Some(*rate), ..link.wire }))
    }

    fn crash(&mut self, node: usize) -> Result<()> {
        let Some(slot) = self.children.get_mut(node) else { return Ok(()) };
        let Some(mut child) = slot.take() else { return Ok(()) };
        child.crash()?;
        for message in child.received() {
            if let (Message::Scene(report), Some(all)) = (message, self.reports.get_mut(node)) {
                all.push(report);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Live> {
        for (node, child) in self.children.iter_mut().enumerate() {
            let Some(child) = child else { continue };
            child.stall(false)?;
            child.stop()?;
            let mut reports = Vec::new();
            child.expect("result", PATIENCE, |message| {
                let done = matches!(message, Message::Done);
                if let Message::Scene(report) = message {
                    reports.push(report);
                }
                done.then_some(())
            })?;
            self.reports.get_mut(node).into_iter().for_each(|all| all.append(&mut reports));
        }
        let load = match self.load {
            Some(load) => load,
            None => Watch::begin()?.load()?,
        };
        Ok(Live { record: self.record(), load })
    }

    fn record(&self) -> Record {
        let plan = &self.script.plan;
        let mut record = Record {
            start: Instant::from_nanos(self.start),
            received: vec![SubscriberRecord::default(); plan.subscribers.len()],
            links: self.carried.iter().map(|both| both.map(carried)).collect(),
            ..Record::default()
        };
        for report in self.reports.iter().flatten() {
            note(&mut record, report);
        }
        for received in &mut record.received {
            received.arrivals.sort_by_key(|arrival| arrival.at);
        }
        record.streams = self.streams(&record);
        record.dropped = self.dropped(&record);
        record
    }

    /// Returns the samples that links did not send, from streams open at the end and from closed
    /// ones.
    fn dropped(&self, record: &Record) -> Vec<[Drops; 2]> {
        let plan = &self.script.plan;
        let mut all = vec![<[Drops; 2]>::default(); plan.links.len()];
        for stream in &record.streams {
            let directions = all.get_mut(stream.link);
            if let Some(drops) =
                directions.and_then(|directions| directions.get_mut(stream.direction))
            {
                drops.merge(&stream.counters.drops);
            }
        }
        for (name, reasons) in self.reports.iter().flatten().flat_map(|report| &report.closed) {
            for (directions, wiring) in all.iter_mut().zip(&plan.links) {
                let [a, b] = wiring.between;
                for (drops, (from, to)) in directions.iter_mut().zip([(a, b), (b, a)]) {
                    if *name == link_name(plan, from, to) {
                        add(drops, reasons);
                    }
                }
            }
        }
        all
    }

    fn streams(&self, record: &Record) -> Vec<Streamed> {
        let mut streams: Vec<Streamed> = Vec::new();
        let named = |id: u64| {
            self.reports.iter().position(|lives| lives.iter().any(|life| life.node == id && id > 0))
        };
        for (from, report) in self
            .reports
            .iter()
            .enumerate()
            .flat_map(|(node, all)| all.iter().map(move |r| (node, r)))
        {
            for stream in &report.streams {
                let Some(to) = named(stream.hop) else { continue };
                let links = self.script.plan.links.iter().enumerate();
                let direction = links.filter_map(|(link, wiring)| match wiring.between {
                    [a, b] if (a, b) == (from, to) => Some((link, 0)),
                    [a, b] if (b, a) == (from, to) => Some((link, 1)),
                    _ => None,
                });
                let life = record.published.iter().find(|life| life.id == id(stream.publisher));
                for ((link, direction), life) in direction.zip(life) {
                    let mut counters = paceline_proto::StreamCounters {
                        offered: stream.offered,
                        sent: stream.sent,
                        bytes: stream.bytes,
                        late: stream.late,
                        violations: stream.violations,
                        ..paceline_proto::StreamCounters::default()
                    };
                    add(&mut counters.drops, &stream.drops);
                    let publisher = life.publisher;
                    let same = |one: &&mut Streamed| {
                        (one.link, one.direction, one.publisher) == (link, direction, publisher)
                    };
                    match streams.iter_mut().find(same) {
                        Some(one) => one.counters.merge(&counters),
                        None => streams.push(Streamed { link, direction, publisher, counters }),
                    }
                }
            }
        }
        streams.sort_by_key(|one| (one.link, one.direction, one.publisher));
        streams
    }
}

fn add(drops: &mut Drops, reasons: &[(usize, u64)]) {
    for (reason, samples) in reasons {
        let reason = paceline::status::DropReason::from_index(*reason);
        reason.into_iter().for_each(|reason| drops.add(reason, *samples));
    }
}

const fn carried(passed: Passed) -> Carried {
    Carried { bytes: passed.bytes, lost: passed.lost }
}

const fn id((node, index): PublisherKey) -> PublisherId {
    PublisherId { node: NodeId(node), index }
}

/// Adds a node's notes to the record.
fn note(record: &mut Record, report: &Report) {
    for life in &report.lives {
        let at = life.at.iter().copied().map(Instant::from_nanos);
        match record.published.iter_mut().find(|known| known.id == id(life.id)) {
            Some(known) => known.at.extend(at),
            None => {
                let (publisher, id) = (life.publisher, id(life.id));
                record.published.push(Published { publisher, id, at: at.collect() });
            }
        }
    }
    for arrived in &report.arrived {
        let arrival = ReceivedSample {
            from: id(arrived.from),
            seq: arrived.seq,
            at: Instant::from_nanos(arrived.at),
            bytes: arrived.bytes,
        };
        let received = record.received.get_mut(arrived.subscriber);
        received.into_iter().for_each(|received| received.arrivals.push(arrival));
    }
    for (subscriber, reason, samples) in &report.drops {
        let reason = paceline::status::DropReason::from_index(*reason);
        if let (Some(reason), Some(received)) = (reason, record.received.get_mut(*subscriber)) {
            received.drops.add(reason, *samples);
        }
    }
    for (subscriber, steps) in &report.steps {
        if let Some(received) = record.received.get_mut(*subscriber) {
            received.steps.merge(steps);
        }
    }
    for (subscriber, publisher, why) in &report.refusals {
        if let Some(received) = record.received.get_mut(*subscriber) {
            received.refusals.push((id(*publisher), why.clone()));
        }
    }
}
