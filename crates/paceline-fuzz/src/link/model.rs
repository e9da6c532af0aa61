//! The reference model of a link's scheduler: every decision scans every stream.

use super::Setup;
use super::frame::on_wire;
use super::line::{Head, Line};
use paceline_proto::link::StreamSpec;
use paceline_proto::wire::segment::{Place, SampleHead};
use paceline_proto::{DropReason, NodeId, RawSample};
use paceline_sched::{Instant, Policy};
use std::collections::BTreeMap;

/// A sample dropped after its transmission had begun. The other end must be notified.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Aborted {
    pub(super) hop: NodeId,
    pub(super) id: u32,
    pub(super) number: u64,
}

/// A piece of a sample in a frame.
pub(super) struct Piece<'a> {
    pub(super) id: u32,
    pub(super) number: u64,
    pub(super) place: &'a Place,
    pub(super) last: bool,
    pub(super) payload: &'a [u8],
}

pub(super) struct Model {
    setup: Setup,
    pub(super) lines: BTreeMap<u32, Line>,
    generations: BTreeMap<u32, u32>,
    serial: u64,
    /// Aborts to send to the other ends.
    pub(super) aborted: Vec<Aborted>,
    /// Heads of each stream that the link dropped for being late.
    pub(super) given_up: BTreeMap<u32, u64>,
}

impl Model {
    pub(super) const fn new(setup: Setup) -> Self {
        Self {
            setup,
            lines: BTreeMap::new(),
            generations: BTreeMap::new(),
            serial: 0,
            aborted: Vec::new(),
            given_up: BTreeMap::new(),
        }
    }

    /// Returns false if the index is in use.
    pub(super) fn open(&mut self, index: u32, spec: StreamSpec, up: bool) -> bool {
        if self.lines.contains_key(&index) {
            return false;
        }
        let generation = self.generations.entry(index).or_default();
        self.lines.insert(index, Line::new(spec, index + *generation * 4_096, up));
        *generation += 1;
        true
    }

    pub(super) fn close(&mut self, index: u32) -> Option<Line> {
        let mut line = self.lines.remove(&index)?;
        let waiting = line.queue.len();
        line.counts.drops.extend((0..waiting).map(|_| DropReason::NoRoute));
        Some(line)
    }

    pub(super) fn update(&mut self, now: Instant, index: u32, spec: StreamSpec) {
        if let Some(line) = self.lines.get_mut(&index) {
            line.update(now, spec, &mut self.serial);
        }
    }

    pub(super) fn offer(&mut self, now: Instant, index: u32, sample: RawSample) -> bool {
        let Some(line) = self.lines.get_mut(&index) else { return false };
        let (hop, id) = (line.spec.hop, line.id);
        let begun = line.give_way();
        self.aborted.extend(begun.map(|number| Aborted { hop, id, number }));
        line.offer(now, sample, &mut self.serial)
    }

    pub(super) fn take_up(&mut self, hop: NodeId) {
        self.lines.values_mut().filter(|line| line.spec.hop == hop).for_each(|line| line.up = true);
    }

    pub(super) fn take_down(&mut self, hop: NodeId) {
        self.lines.values_mut().filter(|line| line.spec.hop == hop).for_each(Line::take_down);
    }

    /// Expires heads that can no longer end in time, in the order of their latest start.
    pub(super) fn expire(&mut self, now: Instant) {
        loop {
            let starts = self
                .lines
                .iter()
                .filter_map(|(index, line)| Some((line.latest_start(&self.setup)?, *index)));
            let missed = starts.min().filter(|(start, _)| *start < now);
            let Some(line) = missed.and_then(|(_, index)| self.lines.get_mut(&index)) else {
                return;
            };
            if line.miss(now, &self.setup) {
                line.counts.drops.push(DropReason::DeadlineMissed);
                let (hop, id) = (line.spec.hop, line.id);
                let number = line.pop(now, &mut self.serial);
                self.aborted.extend(number.map(|number| Aborted { hop, id, number }));
            }
        }
    }

    /// Drops a hopeless head if the link did so too. Returns false if it did not.
    pub(super) fn give_up(&mut self, now: Instant, index: u32) -> bool {
        let known = self.given_up.get(&index).copied().unwrap_or_default();
        let Some(line) = self.lines.get_mut(&index) else { return false };
        if line.given_up() >= known || !line.is_hopeless(now, &self.setup) {
            return false;
        }
        let (hop, id) = (line.spec.hop, line.id);
        let number = line.give_up(now, &mut self.serial);
        self.aborted.extend(number.map(|number| Aborted { hop, id, number }));
        true
    }

    /// Checks the start of an iteration of the link. It must have dropped all hopeless heads among the known
    /// late ones, unless it is `behind` its budget.
    pub(super) fn begin_turn(&mut self, now: Instant, behind: bool) {
        for (index, line) in self.lines.iter_mut().filter(|(_, line)| line.noted) {
            assert!(behind || !line.is_hopeless(now, &self.setup), "stream {index} keeps its head");
            line.noted = !behind && line.is_late(now, &self.setup);
        }
    }

    /// Returns true if the stream of this number on the wire has a contract.
    pub(super) fn is_promised(&self, id: u32) -> bool {
        self.lines.get(&(id % 4_096)).is_some_and(Line::is_promised)
    }

    /// Checks that `piece`, in a frame that leaves for `hop` at `now`, is the one to serve next.
    pub(super) fn serve(&mut self, now: Instant, hop: NodeId, piece: &Piece<'_>) {
        let index = piece.id % 4_096;
        assert_eq!(
            self.lines.get(&index).map(|line| (line.id, line.spec.hop)),
            Some((piece.id, hop))
        );
        while self.give_up(now, index) {}
        if self.setup.ordered() {
            // The link may have dropped heads with precedence over this one.
            while let Some((other, what)) = self.before(now, index) {
                assert!(self.give_up(now, other), "{what}: {other} before stream {index}");
            }
            self.note_turn(now, index);
        }
        let Self { setup, lines, serial, .. } = self;
        let line = lines.get_mut(&index).unwrap();
        assert!(!line.is_hopeless(now, setup), "stream {index}: too late at its destination");
        let sample = &line.queue[0];
        assert!(line.up && piece.number == line.number, "{index}: number {}", piece.number);
        match (piece.place, line.begun) {
            (Place::First(head), None) => check_head(now, head, sample, setup),
            (Place::At(offset), Some(sent)) => assert_eq!(*offset, sent, "stream {index}"),
            (place, begun) => panic!("stream {index}: {place:?} after {begun:?}"),
        }
        let begin = line.begun.unwrap_or(0);
        let end = begin + piece.payload.len();
        assert_eq!(sample.payload.get(begin..end), Some(piece.payload), "stream {index}");
        assert_eq!(piece.last, end == sample.payload.len(), "stream {index}: {begin}..{end}");
        assert!(piece.last || !piece.payload.is_empty(), "an empty piece makes no progress");
        line.counts.bytes += piece.payload.len() as u64;
        line.begun = Some(end);
        line.passed.clear();
        if piece.last {
            line.serve(now);
            line.pop(now, serial);
        }
    }

    fn heads(&self) -> impl Iterator<Item = (u32, &Line, Head)> + '_ {
        let up = self.lines.iter().filter(|(_, line)| line.up);
        up.filter_map(|(index, line)| Some((*index, line, line.head?)))
    }

    /// Returns a head that precedes the head of stream `index`, and the reason.
    fn before(&self, now: Instant, index: u32) -> Option<(u32, &'static str)> {
        if self.setup.policy == Policy::Fifo {
            let ordered = self.heads().filter(|(_, _, head)| !head.demoted);
            let first = ordered.min_by_key(|(_, _, head)| (head.arrived, head.serial));
            if let Some((first, ..)) = first {
                return (first != index).then_some((first, "in order of arrival"));
            }
        }
        let mine = self.heads().find(|(other, ..)| *other == index).unwrap();
        let (mine, release) = (turn(now, mine.1, &mine.2), mine.2.release);
        let contracted = self.heads().find(|(_, line, head)| turn(now, line, head) < mine);
        if let Some((other, ..)) = contracted {
            return Some((other, "contracted"));
        }
        let unfair = |(_, line, head): &(u32, &Line, Head)| match turn(now, line, head) {
            1 => mine == 1 && head.release < release,
            2 => mine == 2 && line.passed.contains(&index),
            _ => false,
        };
        self.heads().find(unfair).map(|(other, ..)| (other, "it waits for its turn"))
    }

    /// Records for the streams in round robin that stream `index` was served.
    fn note_turn(&mut self, now: Instant, index: u32) {
        let orders = self.setup.policy == Policy::Fifo;
        let takes_turns =
            |line: &Line, head: Head| turn(now, line, &head) == 2 && (head.demoted || !orders);
        let in_turn = |line: &Line| line.up && line.head.is_some_and(|it| takes_turns(line, it));
        if !self.lines.get(&index).is_some_and(in_turn) {
            return;
        }
        let others =
            self.lines.iter_mut().filter(|(other, line)| **other != index && in_turn(line));
        others.for_each(|(_, line)| {
            line.passed.insert(index);
        });
    }
}

/// Returns the precedence class of a head: 0 if its period has begun, 1 if it begins within a deadline,
/// otherwise 2, which is served in round robin.
fn turn(now: Instant, line: &Line, head: &Head) -> u8 {
    match line.spec.contract.filter(|_| !head.demoted) {
        Some(_) if head.release <= now => 0,
        Some(contract) if head.release - contract.deadline <= now => 1,
        _ => 2,
    }
}

fn check_head(now: Instant, head: &SampleHead, sample: &RawSample, setup: &Setup) {
    assert_eq!((head.total, head.seq), (sample.payload.len(), sample.seq));
    assert_eq!((head.kind, &head.encoding), (sample.kind, &sample.encoding));
    assert_eq!((head.captured, &head.attachment), (sample.captured, &sample.attachment));
    let age = now.since(sample.published_at).as_micros();
    // The stated age is never too small. With a capacity it may include the frame's transmission time.
    assert!(head.age.as_micros() >= age, "{} µs old, says {}", age, head.age);
    let on_wire = setup.wire_time(on_wire(setup.frame_bytes())).as_micros() + 1;
    assert!(head.age.as_micros() <= age + on_wire, "{} µs old, says {}", age, head.age);
}
