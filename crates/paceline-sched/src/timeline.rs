//! A link in virtual time: who is sent when, and what becomes of every sample.
//!
//! [`Timeline`] runs one discipline on one link from the instant 0 on, for streams whose samples are
//! written down beforehand, and tells its decisions one by one. It is the model of the papers (unit
//! slots, backlogged streams, first deadline one period after 0) made wider: samples of any size over a
//! capacity, cut into segments, arrivals at any instant, streams without a contract.
//!
//! Memory does not grow with time: of each stream its head is kept, never a queue, since what waits
//! behind the head can be counted from what was written down.

mod delays;
mod doubt;
mod policed;
mod stream;
mod tally;

pub use delays::Delays;
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

/// How long the link needs for a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Link {
    /// The slots of the papers: a segment takes one, whatever its size.
    Slots(Duration),
    /// By its bytes, rounded up to whole nanoseconds.
    Capacity(Capacity),
}

impl Link {
    /// How long a segment of `bytes` keeps the link; at least a nanosecond, so that time goes on.
    #[must_use]
    pub fn time_for(self, bytes: u32) -> Duration {
        let time = match self {
            Self::Slots(slot) => slot,
            Self::Capacity(capacity) => capacity.time_for(bytes.into()),
        };
        time.max(Duration::from_nanos(1))
    }
}

/// What becomes of a contracted head that is ahead of its period.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ahead {
    /// It waits for its period, and if nobody else is there the link stays empty: the papers' model
    /// that is not work-conserving. A backlogged stream then has its samples one period apart.
    #[default]
    Waits,
    /// It takes turns with best effort until its period is no further than its deadline, and goes before it
    /// from then on: what the links of a node do.
    Shares,
    /// It competes as if its period had come: the papers' work-conserving model.
    Competes,
}

impl Ahead {
    /// How often a contracted stream may use its rank.
    #[must_use]
    pub const fn eligibility(self) -> Eligibility {
        match self {
            Self::Waits | Self::Shares => Eligibility::OncePerPeriod,
            Self::Competes => Eligibility::WorkConserving,
        }
    }
}

/// What a run is about, the streams aside.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Who is sent next; with classes, [`Policy::Hfsc`].
    pub policy: Policy,
    /// Whether samples may be sent ahead of their period.
    pub ahead: Ahead,
    /// How fast the link is.
    pub link: Link,
    /// The most bytes of a segment; longer samples are cut. At least 1.
    pub segment: u32,
    /// Nothing arrives and nothing begins from this instant on.
    pub end: Instant,
}

impl Setup {
    /// How long the link needs for a sample of `bytes`, all its segments.
    #[must_use]
    pub fn service(&self, bytes: u32) -> Duration {
        let segment = self.segment.max(1);
        let whole = self.link.time_for(segment).mul_div(u64::from(bytes / segment), 1);
        match bytes % segment {
            0 => whole,
            rest => whole.saturating_add(self.link.time_for(rest)),
        }
    }
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// It was sent by its deadline, or has none.
    OnTime,
    /// It was sent after its deadline.
    Late,
    /// It was given up: it could no longer end by its deadline, or was demoted and made way.
    Dropped,
    /// It was more than its stream's policers allow, and never took part.
    Policed,
}

impl Outcome {
    /// Its name.
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

/// One sample and what became of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// When that was decided: when its last segment was chosen, or when it was given up; of a policed
    /// one when it arrived, or when one came that it made way for.
    pub at: Instant,
    /// Whose sample: the place of its stream.
    pub stream: StreamIndex,
    /// Which sample of the stream, from 0.
    pub seq: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// When its last segment ended; `None` if it was given up.
    pub finish: Option<Instant>,
    /// From its arrival to `finish`. Of a backlogged stream, whose samples were all there at 0: from
    /// the beginning of its period, or without a contract from when it came to the head.
    pub delay: Option<Duration>,
    /// Its bytes that were sent, also of a sample that was given up after its first segments.
    pub bytes: u32,
    /// How long they kept the link.
    pub busy: Duration,
    /// The window after this decision; `None` without a contract.
    pub window: Option<WindowState>,
}

/// The segment that is about to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pick {
    /// When.
    pub at: Instant,
    /// Whose: the place of its stream.
    pub stream: StreamIndex,
    /// Which sample of the stream, from 0.
    pub seq: u64,
    /// Its bytes.
    pub bytes: u32,
}

/// What happens next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// A segment was chosen and has not been sent: [`Timeline::window`] and [`Timeline::deadline`]
    /// still say what the choice was made from.
    Chosen(Pick),
    /// A sample's fate is known.
    Decided(Decision),
}

/// When and of whom something is due.
type Due = Reverse<(Instant, u32)>;

/// The run. It is an iterator over [`Step`]s, and ends when nothing can happen before its end.
#[derive(Clone, Debug)]
pub struct Timeline {
    setup: Setup,
    discipline: Discipline,
    lines: Vec<Line>,
    now: Instant,
    pick: Option<Pick>,
    /// The next arrivals of streams without a head.
    arrivals: BinaryHeap<Due>,
    /// The next arrivals of policed streams.
    offers: BinaryHeap<Due>,
    /// A stream of which a sample came, and then: what was demoted may make way for it.
    making_way: Option<(Instant, StreamIndex)>,
    /// When the periods of heads begin that wait for theirs.
    releases: BinaryHeap<Due>,
}

impl Timeline {
    /// A run of `streams`; each is named by its place. At most 2³² of them.
    #[must_use]
    pub fn new(setup: Setup, streams: Vec<Spec>) -> Self {
        Self::run(setup, Discipline::new(setup.policy, setup.ahead.eligibility()), streams)
    }

    /// A run of `streams`, each in the leaf of `tree` that it names as its [`Spec::class`]. The tree has
    /// no streams yet. A stream that names no leaf is never sent.
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

    /// The present instant: when the last segment ended, or the link last waited to.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What a class and those below it were served; `None` without classes, or if there is none such.
    #[must_use]
    pub fn service(&self, class: ClassIndex) -> Option<hfsc::Service> {
        let Discipline::Hierarchy(tree) = &self.discipline else { return None };
        tree.service(class)
    }

    /// Where a stream stands in its window; `None` without a contract.
    #[must_use]
    pub fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        self.discipline.window(stream)
    }

    /// By when the next sample of a stream must end; `None` without a contract, or if no sample is there
    /// and none is announced.
    #[must_use]
    pub fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        self.discipline.deadline(stream).or_else(|| {
            let line = self.lines.get(stream.0 as usize)?;
            let contract = line.spec.terms.contract()?;
            let next = line.arrival().filter(|_| line.is_periodic(contract.period))?;
            Some(next + contract.deadline)
        })
    }

    /// Samples of a stream that have arrived before the end and met no fate; of a backlogged one at most
    /// its head.
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

    fn line(&mut self, stream: StreamIndex) -> Option<&mut Line> {
        self.lines.get_mut(stream.0 as usize)
    }

    /// Announces the next sample of a stream that has no head, or notes when it comes.
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
        let left = Left { service: setup.service(bytes), segment: bytes.min(setup.segment) };
        let head = Head { arrived, left };
        if demoted {
            self.discipline.handle_demoted(stream, head);
            return;
        }
        self.discipline.handle_head(stream, head);
        self.hold(stream);
    }

    /// A head ahead of its period is held back until it comes, where that is asked for.
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

    /// Whatever comes by now, comes.
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

    /// The next sample that is given up by now.
    fn miss(&mut self) -> Option<Decision> {
        while let Some(miss) = self.discipline.poll_missed(self.now) {
            if miss.dropped {
                return self.decide(miss.stream, None, Outcome::Dropped);
            }
        }
        None
    }

    /// Sends the segment that was chosen; the fate of its sample if it was the last one.
    fn send(&mut self, pick: Pick) -> Option<Decision> {
        let (setup, time) = (self.setup, self.setup.link.time_for(pick.bytes));
        let finish = self.now + time;
        let head = self.line(pick.stream)?.head.as_mut()?;
        head.left -= pick.bytes.min(head.left);
        head.sent = head.sent.saturating_add(pick.bytes);
        head.busy = head.busy.saturating_add(time);
        if head.left > 0 {
            let bytes = head.left;
            let left = Left { service: setup.service(bytes), segment: bytes.min(setup.segment) };
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

    /// Ends the head of a stream, and announces the next sample.
    fn decide(
        &mut self,
        stream: StreamIndex,
        finish: Option<Instant>,
        outcome: Outcome,
    ) -> Option<Decision> {
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
        Some(Decision { at, stream, seq, outcome, finish, delay, bytes, busy, window })
    }

    fn choose(&mut self) -> Option<Pick> {
        let (at, segment) = (self.now, self.setup.segment);
        let stream = self.discipline.pick(at)?;
        let line = self.line(stream)?;
        let bytes = line.head.as_ref()?.left.min(segment);
        Some(Pick { at, stream, seq: line.seq, bytes })
    }

    /// When something may happen if there is nobody to send.
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
            // Later than now: everything up to now has been dealt with.
            self.now = self.next_wake().unwrap_or(self.setup.end).min(self.setup.end);
            // Deadlines of late heads that passed meanwhile, which is all there can be, or the windows of
            // samples that are refused next would not show them.
            let missed = self.discipline.poll_missed(self.now - Duration::from_nanos(1));
            debug_assert!(missed.is_none(), "{missed:?} before {:?}", self.now);
        }
    }
}

/// The next stream of `heap` that is due by `now`.
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
