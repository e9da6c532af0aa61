//! What the disciplines share: who has a head, who may use its rank, who missed. A discipline adds how
//! heads rank and how a window changes.

use super::queues::{Place, Queues};
use super::stream::{Promise, Queued, Stream};
use super::{Class, Eligibility, Head, Miss, Service, StreamIndex, WindowState};
use crate::contract::{Late, LossTolerance};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use core::fmt::Debug;

/// When a head arrived, and its place among all heads announced on the link.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Arrival {
    arrived: Instant,
    serial: u64,
}

/// The rules of one discipline.
pub(super) trait Ranking {
    /// The order of heads, least first. It may depend on the promise, not on time.
    type Key: Copy + Debug + Ord;
    /// What the discipline keeps of a contracted stream.
    type Window: Copy + Debug;

    /// A new window.
    fn open(loss: LossTolerance) -> Self::Window;
    /// The rank of a head; `None` sends it to round robin.
    fn rank(arrival: Arrival, promise: Option<&Promise<Self::Window>>) -> Option<Self::Key>;
    /// The head was served by its deadline.
    fn met(_window: &mut Self::Window, _loss: LossTolerance) {}
    /// As many `deadlines` of the head passed, one or more.
    fn missed(_window: &mut Self::Window, _loss: LossTolerance, _deadlines: u64) {}
    /// The window, for whoever asks.
    fn state(promise: &Promise<Self::Window>) -> WindowState;
}

type StreamOf<R> = Stream<<R as Ranking>::Key, <R as Ranking>::Window>;

/// A link under the rules `R`.
#[derive(Clone, Debug)]
pub(super) struct Scheduler<R: Ranking> {
    eligibility: Eligibility,
    streams: Vec<Option<StreamOf<R>>>,
    queues: Queues<R::Key>,
    announced: u64,
}

impl<R: Ranking> Scheduler<R> {
    pub(super) fn new(eligibility: Eligibility) -> Self {
        Self { eligibility, streams: Vec::new(), queues: Queues::new(), announced: 0 }
    }

    pub(super) fn join(&mut self, index: StreamIndex, class: Class) {
        self.leave(index);
        let slot = index.0 as usize;
        if self.streams.len() <= slot {
            self.streams.resize_with(slot + 1, || None);
        }
        let promise = match class {
            Class::Contracted(contract) => Some(Promise::new(contract, R::open(contract.loss))),
            Class::BestEffort | Class::Background => None,
        };
        let background = class == Class::Background;
        if let Some(stream) = self.streams.get_mut(slot) {
            *stream = Some(Stream { promise, background, head: None, suspended: false });
        }
    }

    pub(super) fn leave(&mut self, index: StreamIndex) {
        self.take_head(index);
        if let Some(stream) = self.streams.get_mut(index.0 as usize) {
            *stream = None;
        }
    }

    pub(super) fn handle_head(&mut self, index: StreamIndex, sample: Head) {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return };
        if stream.head.is_some() {
            return;
        }
        let arrival = Arrival { arrived: sample.arrived, serial: self.announced };
        self.announced += 1;
        if let Some(promise) = &mut stream.promise {
            promise.begin(sample.arrived);
        }
        let place = place::<R>(&mut self.queues, self.eligibility, arrival, stream);
        stream.head = Some(Queued { sample, serial: arrival.serial, place });
        self.queues.put(index, place);
        self.queues.watch(index, stream.latest_start());
    }

    pub(super) fn suspend(&mut self, index: StreamIndex) {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return };
        stream.suspended = true;
        if let Some(head) = &mut stream.head {
            self.queues.take(index, head.place);
            head.place = Place::Aside;
        }
    }

    pub(super) fn resume(&mut self, index: StreamIndex) {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return };
        if !core::mem::take(&mut stream.suspended) {
            return;
        }
        let Some(head) = &stream.head else { return };
        let arrival = Arrival { arrived: head.sample.arrived, serial: head.serial };
        let place = place::<R>(&mut self.queues, self.eligibility, arrival, stream);
        self.queues.put(index, place);
        if let Some(head) = &mut stream.head {
            head.place = place;
        }
    }

    pub(super) fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        while let Some(index) = self.queues.released(now) {
            self.rank(index);
        }
        self.queues.first()
    }

    pub(super) fn handle_segment(&mut self, index: StreamIndex, service_left: Duration) {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return };
        self.queues.unwatch(index, stream.latest_start());
        let Some(head) = &mut stream.head else { return };
        head.sample.service = service_left;
        let place = match head.place {
            // No key depends on the service that is left.
            Place::Ranked(_) => head.place,
            Place::Turn(_) => Place::Turn(self.queues.last_turn()),
            Place::Early { release, .. } => Place::Early { turn: self.queues.last_turn(), release },
            Place::Background(_) => Place::Background(self.queues.last_turn()),
            Place::Aside => Place::Aside,
        };
        self.queues.take(index, head.place);
        head.place = place;
        self.queues.put(index, place);
        self.queues.watch(index, stream.latest_start());
    }

    pub(super) fn handle_served(&mut self, index: StreamIndex, finish: Instant) -> Service {
        let nothing_promised = Service { on_time: true, violated: false };
        if !self.take_head(index) {
            return nothing_promised;
        }
        let Some(promise) = self.promise(index) else { return nothing_promised };
        if finish > promise.deadline {
            return Service { on_time: false, violated: charge::<R>(promise, 1) };
        }
        if promise.charged {
            // Judged at its first deadline and adjusted by (B) then: (A) is for service in time.
            return Service { on_time: false, violated: false };
        }
        let loss = promise.contract.loss;
        R::met(&mut promise.window, loss);
        promise.account.record_met(loss);
        Service { on_time: true, violated: false }
    }

    pub(super) fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        // Each head is reported or moved past `now`, so the loop ends after one visit to each.
        while let Some(index) = self.queues.pop_missed(now) {
            let late = self.promise(index).map(|promise| promise.contract.late);
            let miss = match late {
                Some(Late::Drop) => self.drop_missed(index),
                Some(Late::Send) => self.postpone_missed(index, now),
                None => None,
            };
            if miss.is_some() {
                return miss;
            }
        }
        None
    }

    pub(super) fn remove_head(&mut self, index: StreamIndex) -> bool {
        let removed = self.take_head(index);
        let promise = self.promise(index).filter(|promise| removed && !promise.charged);
        promise.is_some_and(|promise| charge::<R>(promise, 1))
    }

    pub(super) fn handle_skipped(&mut self, index: StreamIndex) -> bool {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return false };
        let Some(promise) = &mut stream.promise else { return false };
        let loss = promise.contract.loss;
        R::missed(&mut promise.window, loss, 1);
        let violated = promise.account.record_missed(loss);
        let ranked = stream.head.as_ref().is_some_and(|h| matches!(h.place, Place::Ranked(_)));
        if ranked {
            self.rank(index);
        }
        violated
    }

    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        self.queues.next_change(now)
    }

    pub(super) fn window(&self, index: StreamIndex) -> Option<WindowState> {
        let stream = self.streams.get(index.0 as usize)?.as_ref()?;
        stream.promise.as_ref().map(R::state)
    }

    pub(super) fn deadline(&self, index: StreamIndex) -> Option<Instant> {
        let stream = self.streams.get(index.0 as usize)?.as_ref()?;
        stream.head.as_ref()?;
        stream.promise.as_ref().map(|promise| promise.deadline)
    }

    fn promise(&mut self, index: StreamIndex) -> Option<&mut Promise<R::Window>> {
        find::<R>(&mut self.streams, index)?.promise.as_mut()
    }

    /// A head that cannot end in time and is worth nothing late.
    fn drop_missed(&mut self, index: StreamIndex) -> Option<Miss> {
        self.take_head(index);
        let violated = charge::<R>(self.promise(index)?, 1);
        Some(Miss { stream: index, dropped: true, violated })
    }

    /// A head that cannot end in time and is sent late: a miss if this is its first deadline.
    fn postpone_missed(&mut self, index: StreamIndex, now: Instant) -> Option<Miss> {
        let stream = find::<R>(&mut self.streams, index)?;
        let service = stream.head.as_ref()?.sample.service;
        let promise = stream.promise.as_mut()?;
        let first = !promise.charged;
        let periods = promise.postpone(now, service);
        let violated = charge::<R>(promise, periods);
        let ranked = matches!(stream.head.as_ref()?.place, Place::Ranked(_));
        self.queues.watch(index, stream.latest_start());
        if ranked {
            self.rank(index);
        }
        first.then_some(Miss { stream: index, dropped: false, violated })
    }

    /// Takes the head from wherever it is to its rank of now.
    fn rank(&mut self, index: StreamIndex) {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return };
        let Some(head) = &mut stream.head else { return };
        self.queues.take(index, head.place);
        let arrival = Arrival { arrived: head.sample.arrived, serial: head.serial };
        if let Some(key) = R::rank(arrival, stream.promise.as_ref()) {
            head.place = Place::Ranked(key);
            self.queues.put(index, head.place);
        }
    }

    /// Takes the head out of the stream and of every queue; false if there is none.
    fn take_head(&mut self, index: StreamIndex) -> bool {
        let Some(stream) = find::<R>(&mut self.streams, index) else { return false };
        self.queues.unwatch(index, stream.latest_start());
        let Some(head) = stream.head.take() else { return false };
        self.queues.take(index, head.place);
        true
    }
}

/// Where a head belongs.
fn place<R: Ranking>(
    queues: &mut Queues<R::Key>,
    eligibility: Eligibility,
    arrival: Arrival,
    stream: &StreamOf<R>,
) -> Place<R::Key> {
    if stream.suspended {
        return Place::Aside;
    }
    if stream.background {
        return Place::Background(queues.last_turn());
    }
    let promise = stream.promise.as_ref();
    // A head is announced once it arrived, so one released on arrival is released.
    let early = promise.map(|p| p.release).filter(|&release| release > arrival.arrived);
    match (R::rank(arrival, promise), eligibility, early) {
        (None, _, _) => Place::Turn(queues.last_turn()),
        (Some(_), Eligibility::OncePerPeriod, Some(release)) => {
            Place::Early { turn: queues.last_turn(), release }
        }
        (Some(key), Eligibility::OncePerPeriod | Eligibility::WorkConserving, _) => {
            Place::Ranked(key)
        }
    }
}

fn find<R: Ranking>(
    streams: &mut [Option<StreamOf<R>>],
    index: StreamIndex,
) -> Option<&mut StreamOf<R>> {
    streams.get_mut(index.0 as usize)?.as_mut()
}

/// Rule (B) for each of the `deadlines` that passed, but one judgement per sample; true if that
/// violated the window.
fn charge<R: Ranking>(promise: &mut Promise<R::Window>, deadlines: u64) -> bool {
    let loss = promise.contract.loss;
    R::missed(&mut promise.window, loss, deadlines);
    if promise.charged {
        return false;
    }
    promise.charged = true;
    promise.account.record_missed(loss)
}
