//! What the disciplines share: who has a head, who may use its rank, who missed. A discipline adds how
//! heads rank and how a window changes.
//!
//! Two tournaments hold all order there is. One ranks the heads, class before class, so its winner is
//! whom to serve. The other knows when time alone next changes something of a stream: its period comes,
//! or its head can no longer end in time.

use super::stream::{Place, Stream};
use super::{Eligibility, Head, Left, Miss, Scheduler, Service, StreamIndex, Terms, WindowState};
use crate::contract::{Late, LossTolerance};
use crate::time::Instant;
use crate::tournament::{Key, Tournament};
use alloc::vec::Vec;
use core::fmt::Debug;

/// The two highest bits of a rank are the class, the others are the discipline's within its classes.
const CLASS: u32 = 126;
/// The class that the round robin of best effort and early heads forms.
const ROUND: u128 = 2 << CLASS;
/// The class after all others.
const BACKGROUND: u128 = 3 << CLASS;

/// A rank in class 0: heads that are owed service. `order` has 126 bits.
pub(super) const fn owed(order: u128) -> u128 {
    order & ((1 << CLASS) - 1)
}

/// A rank in class 1: heads that are owed nothing now.
pub(super) const fn spare(order: u128) -> u128 {
    owed(order) | 1 << CLASS
}

/// How a head came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Whose head it is.
    pub(super) index: StreamIndex,
    /// The head before it left just now: the stream has been backlogged without a break.
    pub(super) follows: bool,
    pub(super) arrived: Instant,
    /// How many heads were announced on this link before it.
    pub(super) serial: u64,
}

/// The rules of one discipline. Whatever is not said does nothing.
pub(super) trait Rules: Debug {
    /// What the discipline keeps of each stream.
    type Own: Clone + Debug;

    /// There may be the streams 0 to `streams` − 1.
    fn reserve(&mut self, _streams: usize) {}
    /// A stream joins.
    fn open(&mut self, terms: &Terms) -> Self::Own;
    /// A head is announced, before it is ranked for the first time.
    fn announced(&mut self, _stream: &mut Stream<Self::Own>, _arrival: Arrival) {}
    /// The rank of a head that competes from now on, or competes already and has changed: [`owed`] or
    /// [`spare`]. `None` sends it to round robin.
    fn rank(&mut self, stream: &mut Stream<Self::Own>) -> Option<u128>;
    /// The head was served by its deadline.
    fn met(&mut self, _own: &mut Self::Own, _loss: LossTolerance) {}
    /// As many `deadlines` of the head passed, one or more.
    fn missed(&mut self, _own: &mut Self::Own, _loss: LossTolerance, _deadlines: u64) {}
    /// A segment of `bytes` of a ranked head left; another rank, if the head goes on and has one.
    /// [`Stream::has_head`] tells whether it goes on.
    fn sent(&mut self, _stream: &mut Stream<Self::Own>, _bytes: u32) -> Option<u128> {
        None
    }
    /// The stream has no head any more, and none followed at once.
    fn emptied(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The stream's heads are not picked from now on. It has one, or not.
    fn suspended(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The stream takes part again; its head, if it has one, is ranked next.
    fn resumed(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The stream leaves, and its head with it.
    fn closed(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The winner is about to be served: `Some` ranks it anew, and who wins then is asked next.
    fn reconsider(&mut self, _stream: &mut Stream<Self::Own>) -> Option<u128> {
        None
    }
    /// Whoever may be ranked otherwise before a pick, is.
    fn prepare(
        &mut self,
        _now: Instant,
        _streams: &mut [Option<Stream<Self::Own>>],
        _ranks: &mut Tournament<u128>,
    ) {
    }
    /// When time alone next changes who is picked, beside releases and misses.
    fn next_change(&self, _now: Instant) -> Option<Instant> {
        None
    }
    /// The window, for whoever asks.
    fn window(&self, stream: &Stream<Self::Own>) -> WindowState {
        stream.account.state(stream.loss())
    }
}

/// A link under the rules `R`.
#[derive(Clone, Debug)]
pub(super) struct Core<R: Rules> {
    rules: R,
    eligibility: Eligibility,
    streams: Vec<Option<Stream<R::Own>>>,
    ranks: Tournament<u128>,
    /// When time alone changes something of a stream.
    events: Tournament<u64>,
    announced: u64,
    turns: u64,
    /// A stream whose head left last and that is still listed: if its next head follows at once, as it
    /// mostly does, it is listed anew in one step.
    vacated: Option<StreamIndex>,
}

impl<R: Rules> Core<R> {
    pub(super) fn new(rules: R, eligibility: Eligibility) -> Self {
        Self {
            rules,
            eligibility,
            streams: Vec::new(),
            ranks: Tournament::new(),
            events: Tournament::new(),
            announced: 0,
            turns: 0,
            vacated: None,
        }
    }

    /// The head of `index` left; it stays listed until another follows or somebody looks.
    fn vacate(&mut self, index: StreamIndex) {
        if self.vacated != Some(index) {
            self.settle();
            self.vacated = Some(index);
        }
    }

    /// Nobody is listed without a head.
    #[inline]
    fn settle(&mut self) {
        let Some(index) = self.vacated.take() else { return };
        self.ranks.set(index.0, Key::ABSENT);
        self.events.set(index.0, Key::ABSENT);
        if let Some(stream) = find(&mut self.streams, index) {
            self.rules.emptied(stream);
        }
    }

    /// Lists the head of `index` where it belongs.
    fn list(&mut self, index: StreamIndex) {
        let Some(stream) = find(&mut self.streams, index) else { return };
        let mut event = stream.missed_at();
        let rank = if stream.place == Place::Early {
            event = event.min(stream.release());
            None
        } else if stream.background {
            stream.place = Place::Background;
            None
        } else {
            let rank = self.rules.rank(stream);
            stream.place = if rank.is_some() { Place::Ranked } else { Place::Round };
            rank
        };
        let rank = rank.unwrap_or_else(|| {
            self.turns += 1;
            turn(stream.place, self.turns)
        });
        if stream.suspended {
            self.ranks.set(index.0, Key::ABSENT);
            event = stream.missed_at();
        } else {
            self.ranks.set(index.0, rank);
        }
        self.events.set(index.0, event.as_nanos());
    }

    /// The head of `index`, which is ranked, ranks otherwise.
    fn rank_anew(&mut self, index: StreamIndex) {
        let Some(stream) = find(&mut self.streams, index) else { return };
        if stream.suspended || stream.place != Place::Ranked {
            return;
        }
        if let Some(rank) = self.rules.rank(stream) {
            self.ranks.set(index.0, rank);
        }
    }

    /// Ranks the heads whose period has come, up to the first head that is missed at `now`: that one.
    #[inline]
    fn release(&mut self, now: Instant) -> Option<StreamIndex> {
        self.settle();
        loop {
            let (at, slot) = self.events.best();
            if at > now.as_nanos() || at == Key::ABSENT {
                return None;
            }
            let index = StreamIndex(slot);
            let stream = find(&mut self.streams, index)?;
            let released =
                stream.place == Place::Early && !stream.suspended && stream.release() <= now;
            if !released {
                return Some(index);
            }
            stream.place = Place::Ranked;
            self.list(index);
        }
    }

    /// A head that cannot end in time and is worth nothing late.
    fn drop_missed(&mut self, index: StreamIndex) -> Option<Miss> {
        let violated = self.charge(index, 1);
        find(&mut self.streams, index)?.place = Place::Nowhere;
        self.vacate(index);
        Some(Miss { stream: index, dropped: true, violated })
    }

    /// A head that cannot end in time and is sent late: a miss if this is its first deadline.
    fn postpone_missed(&mut self, index: StreamIndex, now: Instant) -> Option<Miss> {
        let stream = find(&mut self.streams, index)?;
        let first = !stream.charged;
        let periods = stream.postpone(now);
        let mut event = stream.missed_at();
        if stream.place == Place::Early && !stream.suspended {
            event = event.min(stream.release());
        }
        self.events.set(index.0, event.as_nanos());
        let violated = self.charge(index, periods);
        self.rank_anew(index);
        first.then_some(Miss { stream: index, dropped: false, violated })
    }

    /// Rule (B) for each of the `deadlines` that passed, but one judgement per sample; true if that
    /// violated the window.
    fn charge(&mut self, index: StreamIndex, deadlines: u64) -> bool {
        let Some(stream) = find(&mut self.streams, index) else { return false };
        let loss = stream.loss();
        self.rules.missed(&mut stream.own, loss, deadlines);
        if stream.charged {
            return false;
        }
        stream.charged = true;
        stream.account.record_missed(loss)
    }

    fn find(&self, index: StreamIndex) -> Option<&Stream<R::Own>> {
        self.streams.get(index.0 as usize)?.as_ref()
    }
}

impl<R: Rules> Scheduler for Core<R> {
    fn reserve(&mut self, streams: usize) {
        let more = streams.saturating_sub(self.streams.len());
        self.streams.reserve_exact(more);
        self.streams.resize_with(self.streams.len() + more, || None);
        self.ranks.grow(streams);
        self.events.grow(streams);
        self.rules.reserve(streams);
    }

    fn join(&mut self, index: StreamIndex, terms: impl Into<Terms>) {
        let terms = terms.into();
        self.leave(index);
        let slots = index.0 as usize + 1;
        if self.streams.len() < slots {
            self.reserve(slots + slots / 12);
        }
        let own = self.rules.open(&terms);
        if let Some(slot) = self.streams.get_mut(index.0 as usize) {
            *slot = Some(Stream::new(&terms, own));
        }
    }

    fn leave(&mut self, index: StreamIndex) {
        self.settle();
        let Some(slot) = self.streams.get_mut(index.0 as usize) else { return };
        let Some(mut stream) = slot.take() else { return };
        self.ranks.set(index.0, Key::ABSENT);
        self.events.set(index.0, Key::ABSENT);
        self.rules.closed(&mut stream);
    }

    #[inline]
    fn handle_head(&mut self, index: StreamIndex, head: Head) {
        let Some(stream) = find(&mut self.streams, index) else { return };
        if stream.has_head() {
            return;
        }
        let follows = self.vacated == Some(index);
        if follows {
            self.vacated = None;
        }
        stream.set_left(head.left);
        let early = stream.contracted && stream.begin(head.arrived);
        let waits = early && self.eligibility == Eligibility::OncePerPeriod;
        stream.place = if waits { Place::Early } else { Place::Ranked };
        let (arrived, serial) = (head.arrived, self.announced);
        self.rules.announced(stream, Arrival { index, follows, arrived, serial });
        self.announced += 1;
        self.list(index);
    }

    fn suspend(&mut self, index: StreamIndex) {
        self.settle();
        let Some(stream) = find(&mut self.streams, index) else { return };
        if !core::mem::replace(&mut stream.suspended, true) {
            self.rules.suspended(stream);
        }
        if stream.has_head() {
            self.ranks.set(index.0, Key::ABSENT);
            self.events.set(index.0, stream.missed_at().as_nanos());
        }
    }

    fn resume(&mut self, index: StreamIndex) {
        self.settle();
        let Some(stream) = find(&mut self.streams, index) else { return };
        if core::mem::take(&mut stream.suspended) {
            self.rules.resumed(stream);
            if stream.has_head() {
                self.list(index);
            }
        }
    }

    #[inline]
    fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        // A head that is missed and was not polled stays where it is.
        self.release(now);
        self.rules.prepare(now, &mut self.streams, &mut self.ranks);
        loop {
            let (rank, slot) = self.ranks.best();
            if rank == Key::ABSENT {
                return None;
            }
            let index = StreamIndex(slot);
            let stream = find(&mut self.streams, index)?;
            let again = match stream.place {
                Place::Ranked => self.rules.reconsider(stream),
                Place::Nowhere | Place::Early | Place::Round | Place::Background => None,
            };
            match again {
                Some(rank) => self.ranks.set(slot, rank),
                None => return Some(index),
            }
        }
    }

    fn handle_segment(&mut self, index: StreamIndex, bytes: u32, left: Left) {
        let Some(stream) = find(&mut self.streams, index).filter(|s| s.has_head()) else { return };
        stream.set_left(left);
        let rank = match stream.place {
            Place::Ranked => self.rules.sent(stream, bytes),
            Place::Early | Place::Round | Place::Background => {
                self.turns += 1;
                Some(turn(stream.place, self.turns))
            }
            Place::Nowhere => None,
        };
        let mut event = stream.missed_at();
        if stream.place == Place::Early && !stream.suspended {
            event = event.min(stream.release());
        }
        self.events.set(index.0, event.as_nanos());
        if let Some(rank) = rank.filter(|_| !stream.suspended) {
            self.ranks.set(index.0, rank);
        }
    }

    #[inline]
    fn handle_served(&mut self, index: StreamIndex, bytes: u32, finish: Instant) -> Service {
        let nothing_promised = Service { on_time: true, violated: false };
        let Some(stream) = find(&mut self.streams, index).filter(|s| s.has_head()) else {
            return nothing_promised;
        };
        if core::mem::replace(&mut stream.place, Place::Nowhere) == Place::Ranked {
            let _ = self.rules.sent(stream, bytes);
        }
        let service = if !stream.contracted {
            nothing_promised
        } else if finish > stream.deadline {
            Service { on_time: false, violated: self.charge(index, 1) }
        } else if stream.charged {
            // Judged at its first deadline and adjusted by (B) then: (A) is for service in time.
            Service { on_time: false, violated: false }
        } else {
            let loss = stream.loss();
            self.rules.met(&mut stream.own, loss);
            stream.account.record_met(loss);
            nothing_promised
        };
        self.vacate(index);
        service
    }

    #[inline]
    fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        // Each head is reported or moved past `now`, so the loop ends after one visit to each.
        while let Some(index) = self.release(now) {
            let late = find(&mut self.streams, index)?.late;
            let miss = match late {
                Late::Drop => self.drop_missed(index),
                Late::Send => self.postpone_missed(index, now),
            };
            if miss.is_some() {
                return miss;
            }
        }
        None
    }

    fn remove_head(&mut self, index: StreamIndex) -> bool {
        let Some(stream) = find(&mut self.streams, index).filter(|s| s.has_head()) else {
            return false;
        };
        stream.place = Place::Nowhere;
        let judged = !stream.contracted || stream.charged;
        let violated = !judged && self.charge(index, 1);
        self.vacate(index);
        violated
    }

    fn handle_skipped(&mut self, index: StreamIndex) -> bool {
        self.settle();
        let Some(stream) = find(&mut self.streams, index) else { return false };
        if !stream.contracted {
            return false;
        }
        let loss = stream.loss();
        self.rules.missed(&mut stream.own, loss, 1);
        let violated = stream.account.record_missed(loss);
        self.rank_anew(index);
        violated
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        let (at, slot) = self.events.best();
        let soonest = now.as_nanos().saturating_add(1);
        if self.vacated == Some(StreamIndex(slot)) {
            // What it was listed for is over; who is next shows when somebody looks.
            return Some(Instant::from_nanos(soonest));
        }
        let at = (at < Key::ABSENT).then(|| Instant::from_nanos(at.max(soonest)));
        let other = self.rules.next_change(now);
        at.into_iter().chain(other).min()
    }

    fn window(&self, index: StreamIndex) -> Option<WindowState> {
        let stream = self.find(index).filter(|stream| stream.contracted)?;
        Some(self.rules.window(stream))
    }

    fn deadline(&self, index: StreamIndex) -> Option<Instant> {
        let stream = self.find(index).filter(|stream| stream.contracted && stream.has_head())?;
        Some(stream.deadline)
    }
}

/// The rank of a head that waits in round robin: the turns count up, so a new one is the last.
const fn turn(place: Place, turn: u64) -> u128 {
    match place {
        Place::Background => BACKGROUND | turn as u128,
        Place::Nowhere | Place::Ranked | Place::Early | Place::Round => ROUND | turn as u128,
    }
}

#[inline]
fn find<O>(streams: &mut [Option<Stream<O>>], index: StreamIndex) -> Option<&mut Stream<O>> {
    streams.get_mut(index.0 as usize)?.as_mut()
}
