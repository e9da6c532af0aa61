//! A simulated link in virtual time, with one decision per sample.
//!
//! [`Timeline`] runs one discipline on one link from instant 0, for streams whose samples are specified
//! in advance, and yields its decisions one by one. It extends the model of the papers (unit slots,
//! backlogged streams, first deadline one period after 0). Samples have any size over a capacity, are
//! cut into segments and arrive at any instant, and streams may have no contract.
//!
//! Memory does not grow with time. The run stores each stream's head but no queue, because the backlog
//! can be computed from the specification.

mod delays;
mod doubt;
mod policed;
mod stream;
mod tally;

pub use delays::DelayDistribution;
pub use doubt::{Doubt, Load};
pub use stream::{Arrivals, Spec};
pub use tally::Tally;

use self::stream::{HeadState, Line};
use crate::capacity::Capacity;
use crate::discipline::{
    Discipline, Eligibility, Head, Hierarchy, Left, Policy, Scheduler, StreamIndex, WindowState,
};
use crate::hfsc::{self, ClassIndex};
use crate::time::{Duration, Instant};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The transmission time of a segment on the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkTiming {
    /// The slots of the papers: a segment takes one slot, whatever its size.
    Slots(Duration),
    /// Transmission time by bytes, rounded up to whole nanoseconds.
    Capacity(Capacity),
}

impl LinkTiming {
    /// Returns the transmission time of a segment of `bytes`, at least 1 ns, so that time advances.
    #[must_use]
    pub fn time_for(self, bytes: u32) -> Duration {
        let time = match self {
            Self::Slots(slot) => slot,
            Self::Capacity(capacity) => capacity.time_for(bytes.into()),
        };
        time.max(Duration::from_nanos(1))
    }
}

/// The treatment of a contracted head that is ahead of its period.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ahead {
    /// It waits for its period, and the link stays idle if no other head is there.
    ///
    /// This is the papers' model that is not work-conserving. The samples of a backlogged stream then
    /// arrive one period apart.
    #[default]
    Waits,
    /// It is served in round robin with best effort until its period is at most one relative deadline
    /// away. From then on it precedes best effort. The links of a node use this rule.
    Shares,
    /// It competes as if its period had begun: the papers' work-conserving model.
    Competes,
}

impl Ahead {
    /// Returns the rule that limits how often a contracted stream may use its rank.
    #[must_use]
    pub const fn eligibility(self) -> Eligibility {
        match self {
            Self::Waits | Self::Shares => Eligibility::OncePerPeriod,
            Self::Competes => Eligibility::WorkConserving,
        }
    }
}

/// The parameters of a run, apart from the streams.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The discipline; with classes, [`Policy::Hfsc`].
    pub policy: Policy,
    /// The treatment of samples ahead of their period.
    pub ahead: Ahead,
    /// The speed of the link.
    pub link: LinkTiming,
    /// The largest segment in bytes, at least 1; longer samples are cut.
    pub segment: u32,
    /// The end of the run: nothing arrives or begins from this instant on.
    pub end: Instant,
}

impl Setup {
    /// Returns the transmission time of a sample of `bytes`, the sum of its segments.
    #[must_use]
    pub fn service(&self, bytes: u32) -> Duration {
        let segment = self.segment.max(1);
        let whole = self.link.time_for(segment).mul_div(u64::from(bytes / segment), 1);
        match bytes % segment {
            0 => whole,
            rest => whole.saturating_add(self.link.time_for(rest)),
        }
    }

    /// Returns the unsent part of a sample, which has `bytes`.
    fn left(&self, bytes: u32) -> Left {
        let service = self.service(bytes);
        Left { service, segment: bytes.min(self.segment), last: bytes <= self.segment.max(1) }
    }
}

/// The outcome of a sample.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// It was sent by its deadline, or has none.
    OnTime,
    /// It was sent after its deadline.
    Late,
    /// It was dropped, because it could no longer end by its deadline or because a demoted sample was
    /// replaced.
    Dropped,
    /// Its stream's policers rejected it.
    Policed,
}

impl Outcome {
    /// Returns the name of the outcome.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnTime => "on_time",
            Self::Late => "late",
            Self::Dropped => "dropped",
            Self::Policed => "policed",
        }
    }
}

/// A sample and its outcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SampleDecision {
    /// The instant of the decision: when its last segment was chosen, or when it was dropped.
    ///
    /// For a policed sample, its arrival. For a demoted one, the arrival of the sample that replaced it.
    pub at: Instant,
    /// The position of the sample's stream.
    pub stream: StreamIndex,
    /// The sequence number of the sample in its stream, from 0.
    pub seq: u64,
    /// The outcome of the sample.
    pub outcome: Outcome,
    /// The end of its last segment; `None` if it was dropped.
    pub finish: Option<Instant>,
    /// The time from its arrival to `finish`.
    ///
    /// The samples of a backlogged stream all arrive at 0. Their delay counts from the beginning of the
    /// period, or without a contract from when the sample became the head.
    pub delay: Option<Duration>,
    /// The bytes sent, including the bytes of a sample that was dropped after its first segments.
    pub bytes: u32,
    /// The transmission time of these bytes.
    pub busy: Duration,
    /// The window after this decision; `None` without a contract.
    pub window: Option<WindowState>,
}

/// The segment that is about to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChosenSegment {
    /// The instant of the choice.
    pub at: Instant,
    /// The position of the segment's stream.
    pub stream: StreamIndex,
    /// The sequence number of the sample in its stream, from 0.
    pub seq: u64,
    /// The size of the segment in bytes.
    pub bytes: u32,
}

/// One step of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// A segment was chosen but not sent yet. [`Timeline::window`] and [`Timeline::deadline`] still
    /// return the state on which the choice was based.
    Chosen(ChosenSegment),
    /// The outcome of a sample is decided.
    Decided(SampleDecision),
}

/// A due time and the position of a stream.
type Due = Reverse<(Instant, u32)>;

/// A run. It is an iterator over [`Step`]s, and ends when nothing can happen before the end.
#[derive(Clone, Debug)]
pub struct Timeline {
    setup: Setup,
    discipline: Discipline,
    lines: Vec<Line>,
    now: Instant,
    pick: Option<ChosenSegment>,
    /// The next arrivals of streams without a head.
    arrivals: BinaryHeap<Due>,
    /// The next arrivals of policed streams.
    offers: BinaryHeap<Due>,
    /// The instant and the stream of an arrival that may replace demoted samples of that stream.
    making_way: Option<(Instant, StreamIndex)>,
    /// The release instants of heads that wait for their periods.
    releases: BinaryHeap<Due>,
}

impl Timeline {
    /// Returns a run of `streams`, each identified by its position. At most 2³² of them.
    #[must_use]
    pub fn new(setup: Setup, streams: Vec<Spec>) -> Self {
        Self::run(setup, Discipline::new(setup.policy, setup.ahead.eligibility()), streams)
    }

    /// Returns a run of `streams`, each in the leaf of `tree` given by its [`Spec::class`].
    ///
    /// The tree must not have streams yet. A stream without a leaf is never sent.
    #[must_use]
    pub fn with_classes(setup: Setup, tree: Hierarchy, streams: Vec<Spec>) -> Self {
        Self::run(setup, tree.into(), streams)
    }

    fn run(setup: Setup, mut discipline: Discipline, streams: Vec<Spec>) -> Self {
        discipline.reserve(streams.len());
        let waits = setup.ahead == Ahead::Waits;
        let lines: Vec<Line> = streams.into_iter().map(|spec| Line::new(spec, waits)).collect();
        for (place, line) in (0..).zip(&lines) {
            let Spec { class, terms, .. } = line.spec;
            if let (Discipline::Hierarchy(tree), Some(class)) = (&mut discipline, class) {
                tree.seat(StreamIndex(place), class);
            }
            discipline.join(StreamIndex(place), terms);
        }
        let mut timeline = Self {
            setup: Setup { segment: setup.segment.max(1), ..setup },
            discipline,
            lines,
            now: Instant::ZERO,
            pick: None,
            arrivals: BinaryHeap::new(),
            offers: BinaryHeap::new(),
            making_way: None,
            releases: BinaryHeap::new(),
        };
        for place in (0..).take(timeline.lines.len()) {
            timeline.expect(StreamIndex(place), Instant::ZERO);
            timeline.announce(StreamIndex(place));
        }
        timeline
    }

    /// Returns the present instant: the end of the last segment, or of the last idle time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the service of a class and its descendants; `None` without classes, or for an unknown
    /// class.
    #[must_use]
    pub fn service(&self, class: ClassIndex) -> Option<hfsc::ServedBytes> {
        let Discipline::Hierarchy(tree) = &self.discipline else { return None };
        tree.service(class)
    }

    /// Returns the position of a stream in its window; `None` without a contract.
    #[must_use]
    pub fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        self.discipline.window(stream)
    }

    /// Returns the instant by which the next sample of a stream must end.
    ///
    /// Returns `None` without a contract, or if there is no sample and none is scheduled.
    #[must_use]
    pub fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        self.discipline.deadline(stream).or_else(|| {
            let line = self.lines.get(stream.0 as usize)?;
            let contract = line.spec.terms.contract()?;
            let next = line.arrival().filter(|_| line.is_periodic(contract.period))?;
            Some(next + contract.deadline)
        })
    }

    /// Returns the number of a stream's samples that arrived before the end and have no outcome; for a
    /// backlogged stream at most its head.
    #[must_use]
    pub fn waiting(&self, stream: StreamIndex) -> u64 {
        let Some(line) = self.lines.get(stream.0 as usize) else { return 0 };
        match line.spec.arrivals {
            Arrivals::Backlogged => u64::from(line.head.is_some()),
            Arrivals::Every { .. } | Arrivals::At(_) => {
                line.spec.arrivals.before(self.setup.end).saturating_sub(line.decided)
            }
        }
    }

    /// Counts the next `samples` of a stream as missed before they reached the link. Its arrivals are the samples after
    /// them.
    pub fn handle_skipped(&mut self, stream: StreamIndex, samples: u32) {
        (0..samples).for_each(|_| _ = self.discipline.handle_skipped(stream));
    }

    fn line(&mut self, stream: StreamIndex) -> Option<&mut Line> {
        self.lines.get_mut(stream.0 as usize)
    }

    /// Announces the next sample of a stream without a head, or schedules its arrival.
    fn announce(&mut self, stream: StreamIndex) {
        let (setup, now) = (self.setup, self.now);
        let Some(line) = self.line(stream) else { return };
        let Some(arrived) = line.arrival().filter(|at| *at < setup.end) else { return };
        if arrived > now {
            self.arrivals.push(Reverse((arrived, stream.0)));
            return;
        }
        let demoted = line.advance();
        let bytes = line.spec.size(line.seq);
        line.head = Some(HeadState::new(bytes, line.since(now), demoted));
        let head = Head { arrived, left: setup.left(bytes) };
        if demoted {
            self.discipline.handle_demoted(stream, head);
            return;
        }
        self.discipline.handle_head(stream, head);
        self.hold(stream);
    }

    /// Suspends a head ahead of its period until its release, if [`Ahead::Waits`] is set.
    fn hold(&mut self, stream: StreamIndex) {
        let (now, waits) = (self.now, self.setup.ahead == Ahead::Waits);
        let Some(deadline) = self.discipline.deadline(stream) else { return };
        let Some(line) = self.line(stream) else { return };
        let Some(contract) = line.spec.terms.contract() else { return };
        let release = deadline - contract.deadline;
        if let Some(head) =
            line.head.as_mut().filter(|_| line.spec.arrivals == Arrivals::Backlogged)
        {
            head.since = release;
        }
        let held = (waits && release > now).then_some(release);
        match (line.held, held) {
            (None, Some(_)) => self.discipline.suspend(stream),
            (Some(_), None) => self.discipline.resume(stream),
            (None, None) | (Some(_), Some(_)) => {}
        }
        if let Some(line) = self.line(stream) {
            line.held = held;
        }
        if let Some(release) = held {
            self.releases.push(Reverse((release, stream.0)));
        }
    }

    /// Processes all arrivals and releases that are due.
    fn arrive(&mut self) {
        while let Some(stream) = due(&mut self.arrivals, self.now) {
            self.announce(stream);
        }
        while let Some(&Reverse((at, place))) =
            self.releases.peek().filter(|due| due.0.0 <= self.now)
        {
            self.releases.pop();
            let stream = StreamIndex(place);
            if let Some(line) = self.line(stream).filter(|line| line.held == Some(at)) {
                line.held = None;
                self.discipline.resume(stream);
            }
        }
    }

    /// Returns the decision about the next sample that is dropped by now.
    fn miss(&mut self) -> Option<SampleDecision> {
        while let Some(miss) = self.discipline.poll_missed(self.now) {
            if miss.dropped {
                return self.decide(miss.stream, None, Outcome::Dropped);
            }
        }
        None
    }

    /// Sends the chosen segment. Returns the decision if it was the last of its sample.
    fn send(&mut self, pick: ChosenSegment) -> Option<SampleDecision> {
        let (setup, time) = (self.setup, self.setup.link.time_for(pick.bytes));
        let finish = self.now + time;
        let head = self.line(pick.stream)?.head.as_mut()?;
        head.left -= pick.bytes.min(head.left);
        head.sent = head.sent.saturating_add(pick.bytes);
        head.busy = head.busy.saturating_add(time);
        if head.left > 0 {
            let left = setup.left(head.left);
            self.discipline.handle_segment(pick.stream, pick.bytes, left);
            self.now = finish;
            return None;
        }
        let service = self.discipline.handle_served(pick.stream, pick.bytes, finish);
        let outcome = if service.on_time { Outcome::OnTime } else { Outcome::Late };
        let decision = self.decide(pick.stream, Some(finish), outcome);
        self.now = finish;
        decision
    }

    /// Decides the head of a stream, and announces the next sample.
    fn decide(
        &mut self,
        stream: StreamIndex,
        finish: Option<Instant>,
        outcome: Outcome,
    ) -> Option<SampleDecision> {
        let (at, window) = (self.now, self.discipline.window(stream));
        let line = self.line(stream)?;
        let head = line.head.take()?;
        let seq = line.seq;
        line.seq += 1;
        line.decided += 1;
        if let Some(finish) = finish {
            self.now = finish;
        }
        self.announce(stream);
        let delay = finish.map(|finish| finish.since(head.since));
        let (bytes, busy) = (head.sent, head.busy);
        Some(SampleDecision { at, stream, seq, outcome, finish, delay, bytes, busy, window })
    }

    fn choose(&mut self) -> Option<ChosenSegment> {
        let (at, segment) = (self.now, self.setup.segment);
        let stream = self.discipline.pick(at)?;
        let line = self.line(stream)?;
        let bytes = line.head.as_ref()?.left.min(segment);
        Some(ChosenSegment { at, stream, seq: line.seq, bytes })
    }

    /// Returns the next instant at which something may happen on an idle link.
    fn next_wake(&self) -> Option<Instant> {
        let first = |heap: &BinaryHeap<Due>| heap.peek().map(|Reverse((at, _))| *at);
        let (arrival, release) = (first(&self.arrivals), first(&self.releases));
        let (offer, change) = (first(&self.offers), self.discipline.next_wake(self.now));
        [arrival, release, offer, change].into_iter().flatten().min()
    }
}

impl Iterator for Timeline {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(decision) = self.pick.take().and_then(|pick| self.send(pick)) {
            return Some(Step::Decided(decision));
        }
        loop {
            if let Some(decision) = self.police() {
                return Some(Step::Decided(decision));
            }
            self.arrive();
            if let Some(decision) = self.miss() {
                return Some(Step::Decided(decision));
            }
            if self.now >= self.setup.end {
                return None;
            }
            if let Some(pick) = self.choose() {
                self.pick = Some(pick);
                return Some(Step::Chosen(pick));
            }
            // Later than now, because everything up to now has been processed.
            self.now = self.next_wake().unwrap_or(self.setup.end).min(self.setup.end);
            // Process the further deadlines of late heads that passed in between; no other events are
            // possible. Otherwise the windows of samples that are rejected next would not include them.
            let missed = self.discipline.poll_missed(self.now - Duration::from_nanos(1));
            debug_assert!(missed.is_none(), "{missed:?} before {:?}", self.now);
        }
    }
}

/// Returns the next stream of `heap` that is due by `now`.
fn due(heap: &mut BinaryHeap<Due>, now: Instant) -> Option<StreamIndex> {
    let &Reverse((at, place)) = heap.peek()?;
    if at > now {
        return None;
    }
    heap.pop();
    Some(StreamIndex(place))
}

#[cfg(test)]
mod tests;
