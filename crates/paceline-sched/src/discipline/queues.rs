//! The ordered indexes of a link: ranks, turns, releases, latest starts. Each operation is O(log n).

use super::StreamIndex;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet};

/// The least length of time.
const TICK: Duration = Duration::from_nanos(1);

/// Where a head waits. The turns count up, so a new turn is the tail of its round.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<K> {
    /// In order of the discipline's key.
    Ranked(K),
    /// In round robin, for good.
    Turn(u64),
    /// In round robin until `release`, ranked from then on.
    Early { turn: u64, release: Instant },
    /// In the round robin of background streams.
    Background(u64),
    /// Nowhere: its stream is suspended.
    Aside,
}

/// Who waits where. Holds a stream at most once per index, and only while it has a head.
#[derive(Clone, Debug)]
pub(super) struct Queues<K> {
    ranked: BTreeSet<(K, StreamIndex)>,
    turns: BTreeMap<u64, StreamIndex>,
    background: BTreeMap<u64, StreamIndex>,
    next_turn: u64,
    releases: BTreeSet<(Instant, StreamIndex)>,
    latest_starts: BTreeSet<(Instant, StreamIndex)>,
}

impl<K: Copy + Ord> Queues<K> {
    pub(super) fn new() -> Self {
        Self {
            ranked: BTreeSet::new(),
            turns: BTreeMap::new(),
            background: BTreeMap::new(),
            next_turn: 0,
            releases: BTreeSet::new(),
            latest_starts: BTreeSet::new(),
        }
    }

    /// The turn after all others.
    pub(super) fn last_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    pub(super) fn put(&mut self, stream: StreamIndex, place: Place<K>) {
        match place {
            Place::Ranked(key) => {
                self.ranked.insert((key, stream));
            }
            Place::Turn(turn) => {
                self.turns.insert(turn, stream);
            }
            Place::Early { turn, release } => {
                self.turns.insert(turn, stream);
                self.releases.insert((release, stream));
            }
            Place::Background(turn) => {
                self.background.insert(turn, stream);
            }
            Place::Aside => {}
        }
    }

    pub(super) fn take(&mut self, stream: StreamIndex, place: Place<K>) {
        match place {
            Place::Ranked(key) => {
                self.ranked.remove(&(key, stream));
            }
            Place::Turn(turn) => {
                self.turns.remove(&turn);
            }
            Place::Early { turn, release } => {
                self.turns.remove(&turn);
                self.releases.remove(&(release, stream));
            }
            Place::Background(turn) => {
                self.background.remove(&turn);
            }
            Place::Aside => {}
        }
    }

    /// Whoever is first: by rank, else by turn, else by turn of the background.
    pub(super) fn first(&self) -> Option<StreamIndex> {
        let ranked = self.ranked.first().map(|&(_, stream)| stream);
        let turns = self.turns.values().chain(self.background.values());
        ranked.or_else(|| turns.copied().next())
    }

    /// A stream whose release has come, if any; it stays where it is until taken.
    pub(super) fn released(&self, now: Instant) -> Option<StreamIndex> {
        let &(release, stream) = self.releases.first()?;
        (release <= now).then_some(stream)
    }

    /// From now on the stream's head is missed after `latest_start`.
    pub(super) fn watch(&mut self, stream: StreamIndex, latest_start: Option<Instant>) {
        if let Some(at) = latest_start {
            self.latest_starts.insert((at, stream));
        }
    }

    pub(super) fn unwatch(&mut self, stream: StreamIndex, latest_start: Option<Instant>) {
        if let Some(at) = latest_start {
            self.latest_starts.remove(&(at, stream));
        }
    }

    /// The stream whose latest start passed longest ago, if any; it is watched no more.
    pub(super) fn pop_missed(&mut self, now: Instant) -> Option<StreamIndex> {
        let &(at, stream) = self.latest_starts.first()?;
        if at >= now {
            return None;
        }
        self.latest_starts.pop_first();
        Some(stream)
    }

    /// The first release or passing of a latest start after `now`.
    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        let least = StreamIndex(0);
        let missed = self.latest_starts.range((now, least)..).next().map(|&(at, _)| at + TICK);
        let released = self.releases.range((now + TICK, least)..).next().map(|&(at, _)| at);
        let first = match (missed, released) {
            (Some(missed), Some(released)) => missed.min(released),
            (at, None) | (None, at) => at?,
        };
        (first > now && first < Instant::FAR).then_some(first)
    }
}
