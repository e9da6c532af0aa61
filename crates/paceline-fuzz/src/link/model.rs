//! What a link's scheduler does, said plainly: every question looks at every stream.

use super::Setup;
use super::frame::on_wire;
use super::line::{Head, Line};
use paceline_proto::link::StreamSpec;
use paceline_proto::wire::segment::{Place, SampleHead};
use paceline_proto::{DropReason, NodeId, Sample};
use paceline_sched::{Instant, Policy};
use std::collections::BTreeMap;

/// A sample whose sending had begun when it was given up: the other end must be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Aborted {
    pub(super) hop: NodeId,
    pub(super) id: u32,
    pub(super) number: u64,
}

/// A piece of a sample, as a frame has it.
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
}

impl Model {
    pub(super) const fn new(setup: Setup) -> Self {
        Self { setup, lines: BTreeMap::new(), generations: BTreeMap::new(), serial: 0 }
    }

    /// False if the index is in use.
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

    pub(super) fn offer(&mut self, now: Instant, index: u32, sample: Sample) -> bool {
        let line = self.lines.get_mut(&index);
        line.is_some_and(|line| line.offer(now, sample, &mut self.serial))
    }

    pub(super) fn take_up(&mut self, hop: NodeId) {
        self.lines.values_mut().filter(|line| line.spec.hop == hop).for_each(|line| line.up = true);
    }

    pub(super) fn take_down(&mut self, hop: NodeId) {
        self.lines.values_mut().filter(|line| line.spec.hop == hop).for_each(Line::take_down);
    }

    /// Heads that can no longer end in time, the one that had to start first before the others.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Aborted> {
        let mut aborted = Vec::new();
        loop {
            let starts = self
                .lines
                .iter()
                .filter_map(|(index, line)| Some((line.latest_start(&self.setup)?, *index)));
            let missed = starts.min().filter(|(start, _)| *start < now);
            let Some(line) = missed.and_then(|(_, index)| self.lines.get_mut(&index)) else {
                return aborted;
            };
            if line.miss(now, &self.setup) {
                line.counts.drops.push(DropReason::DeadlineMissed);
                let (hop, id) = (line.spec.hop, line.id);
                let number = line.pop(now, &mut self.serial);
                aborted.extend(number.map(|number| Aborted { hop, id, number }));
            }
        }
    }

    /// A frame that leaves for `hop` at `now` has this piece: is it the one whose turn it is?
    pub(super) fn serve(&mut self, now: Instant, hop: NodeId, piece: &Piece<'_>) {
        let index = piece.id % 4_096;
        assert_eq!(
            self.lines.get(&index).map(|line| (line.id, line.spec.hop)),
            Some((piece.id, hop))
        );
        if self.setup.ordered() {
            self.check_order(now, index);
        }
        let Self { setup, lines, serial, .. } = self;
        let line = lines.get_mut(&index).unwrap();
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
        assert!(piece.last || !piece.payload.is_empty(), "an empty piece brings nothing on");
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

    fn check_order(&mut self, now: Instant, index: u32) {
        if self.setup.policy == Policy::Fifo {
            let first = self.heads().min_by_key(|(_, _, head)| (head.arrived, head.serial));
            let first = first.map(|(index, ..)| index);
            assert_eq!(Some(index), first, "in order of arrival");
            return;
        }
        // Before whom it goes: those whose period has come, then those whose will within a deadline.
        let class = |line: &Line, head: &Head| match line.spec.contract {
            Some(_) if head.release <= now => 0,
            Some(contract) if head.release - contract.deadline <= now => 1,
            _ => 2,
        };
        let in_turn = |line: &Line, head: &Head| class(line, head) == 2;
        let mine = self.heads().find(|(other, ..)| *other == index).unwrap();
        let (mine, release) = (class(mine.1, &mine.2), mine.2.release);
        if mine == 0 {
            return;
        }
        let before = self.heads().find(|(_, line, head)| class(line, head) < mine);
        assert_eq!(before.map(|(other, ..)| other), None, "contracted go before stream {index}");
        if mine == 1 {
            let sooner = |(_, line, head): &(u32, &Line, Head)| {
                class(line, head) == 1 && head.release < release
            };
            let before = self.heads().find(sooner);
            assert_eq!(
                before.map(|(other, ..)| other),
                None,
                "its period comes before that of stream {index}"
            );
            return;
        }
        for (other, line) in self.lines.iter_mut().filter(|(other, _)| **other != index) {
            if line.up && line.head.is_some_and(|head| in_turn(line, &head)) {
                assert!(line.passed.insert(index), "{index} served twice while {other} waits");
            }
        }
    }
}

fn check_head(now: Instant, head: &SampleHead, sample: &Sample, setup: &Setup) {
    assert_eq!((head.total, head.seq), (sample.payload.len(), sample.seq));
    assert_eq!((head.kind, &head.encoding), (sample.kind, &sample.encoding));
    assert_eq!((head.captured, &head.attachment), (sample.captured, &sample.attachment));
    let age = now.since(sample.born).as_micros();
    // At least as old as it is; with a capacity as old as it will be when it has left the wire.
    assert!(head.age.as_micros() >= age, "{} µs old, says {}", age, head.age);
    let on_wire = setup.wire_time(on_wire(setup.frame_bytes())).as_micros() + 1;
    assert!(head.age.as_micros() <= age + on_wire, "{} µs old, says {}", age, head.age);
}
