//! Samples and loss reports that arrive before the outputs of their stream are installed.
//!
//! Control messages pass through the control of a node, so the first samples of a stream can be faster.

use super::item::{ArrivedItem, Outputs};
use paceline_proto::memory::Charge;
use paceline_proto::plan::SourceKey;
use paceline_proto::receive::Lost;
use paceline_proto::{DropReason, Drops, NodeId, PublisherId};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The limit of buffered samples: slightly more than a neighbour sends at once for a new publisher.
pub(super) const SAMPLES_MAX: usize = 512;
/// The limit of buffered bytes, within the memory for neighbours. One sample of any length always fits.
pub(super) const BYTES_MAX: usize = 64 << 20;
/// The limit of sources with dropped samples that can still be reported to subscribers.
pub(super) const CROWDED_MAX: usize = 64;
/// The longest buffering.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(1);

/// A buffered item.
#[derive(Debug)]
pub(super) struct EarlyItem {
    pub(super) at: Instant,
    pub(super) from: NodeId,
    pub(super) key: SourceKey,
    pub(super) item: ArrivedItem,
    /// The memory of the sample.
    #[expect(dead_code, reason = "counts the memory until the item is dropped")]
    pub(super) charge: Charge,
}

/// The samples of one source that were dropped for lack of room.
#[derive(Debug)]
struct Crowded {
    /// The time of the last drop.
    at: Instant,
    drops: Drops,
}

/// The buffered items, oldest first.
#[derive(Debug, Default)]
pub(super) struct EarlyItems {
    waiting: VecDeque<EarlyItem>,
    bytes: usize,
    /// Drops that are counted at subscriptions which start in time, and otherwise at the node.
    crowded: BTreeMap<SourceKey, Crowded>,
}

impl EarlyItems {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.crowded.is_empty()
    }

    /// Buffers an item. If there is no room, drops the oldest item of the neighbour with the most
    /// items, or with the most bytes if those are too many.
    pub(super) fn push<P>(&mut self, early: EarlyItem, driver: &mut impl Outputs<P>) {
        self.bytes += early.item.bytes();
        self.waiting.push_back(early);
        while self.waiting.len() > 1 && (self.waiting.len() > SAMPLES_MAX || self.bytes > BYTES_MAX)
        {
            let Some(gone) = self.makes_room().and_then(|place| self.remove(place)) else { break };
            self.crowd_out(gone, driver);
        }
    }

    /// Drops items of a neighbour, oldest first, until at least `bytes` are free or none is left. Returns the bytes
    /// that it has freed.
    pub(super) fn give_back<P>(
        &mut self,
        from: NodeId,
        bytes: usize,
        driver: &mut impl Outputs<P>,
    ) -> usize {
        let before = self.bytes;
        let next = |it: &EarlyItem| it.from == from && it.item.bytes() > 0;
        while before - self.bytes < bytes
            && let Some(place) = self.waiting.iter().position(next)
            && let Some(gone) = self.remove(place)
        {
            self.crowd_out(gone, driver);
        }
        before - self.bytes
    }

    /// Records an item dropped for lack of room.
    pub(super) fn crowd_out<P>(&mut self, gone: EarlyItem, driver: &mut impl Outputs<P>) {
        if !self.crowded.contains_key(&gone.key) && self.crowded.len() >= CROWDED_MAX {
            return gone.item.count(gone.key, driver);
        }
        let new = || Crowded { at: gone.at, drops: Drops::default() };
        let its = self.crowded.entry(gone.key).or_insert_with(new);
        its.at = its.at.max(gone.at);
        match gone.item {
            ArrivedItem::Sample(_) => its.drops.add(DropReason::QueueFull, 1),
            ArrivedItem::Lost(lost) => its.drops.add(lost.reason, lost.samples),
        }
    }

    /// Drops and counts expired items.
    pub(super) fn expire<P>(&mut self, now: Instant, driver: &mut impl Outputs<P>) {
        while self.waiting.front().is_some_and(|it| now.since(it.at) > WAIT_MAX) {
            self.remove(0).iter().for_each(|gone| gone.item.count(gone.key, driver));
        }
        self.crowded.retain(|key, its| {
            let waits = now.since(its.at) <= WAIT_MAX;
            if !waits {
                let publisher = key.publisher;
                its.drops.iter().for_each(|(reason, samples)| {
                    driver.count_unrouted(publisher, reason, samples);
                });
            }
            waits
        });
    }

    /// Removes and returns the items of a source from accepted neighbours, in order, preceded by loss
    /// reports for dropped ones. Counts the items of others.
    pub(super) fn take<P>(
        &mut self,
        key: SourceKey,
        accepts: impl Fn(NodeId, &ArrivedItem) -> bool,
        driver: &mut impl Outputs<P>,
    ) -> Vec<ArrivedItem> {
        if self.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.waiting);
        let (its, others): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|it| it.key == key);
        self.waiting = others;
        self.bytes -= its.iter().map(|it| it.item.bytes()).sum::<usize>();
        let crowded = self.crowded.remove(&key).map(|its| its.drops).unwrap_or_default();
        let lost = crowded
            .iter()
            .map(|(reason, samples)| ArrivedItem::Lost(Lost::unseen(samples, reason)));
        let (its, forged): (VecDeque<_>, VecDeque<_>) =
            its.into_iter().partition(|it| accepts(it.from, &it.item));
        forged.iter().for_each(|it| it.item.count(key, driver));
        lost.chain(its.into_iter().map(|it| it.item)).collect()
    }

    /// Returns the number of samples of a publisher, and of those reported as lost.
    pub(super) fn waiting(&self, publisher: PublisherId) -> u64 {
        let its = self.waiting.iter().filter(|it| it.key.publisher == publisher);
        let crowded = self.crowded.iter().filter(|(key, _)| key.publisher == publisher);
        its.map(|it| it.item.samples()).sum::<u64>()
            + crowded.map(|(_, its)| its.drops.total()).sum::<u64>()
    }

    /// Returns the time at which the first item has waited too long.
    pub(super) fn expires_at(&self) -> Instant {
        let first = self.waiting.front().map(|it| it.at);
        let first = first.into_iter().chain(self.crowded.values().map(|its| its.at)).min();
        // It may wait for exactly the longest time.
        first.map_or(Instant::FAR, |at| at + WAIT_MAX + Duration::from_nanos(1))
    }

    /// Returns the item to drop: the oldest of the neighbour with the most items, or bytes.
    fn makes_room(&self) -> Option<usize> {
        let by_bytes = self.bytes > BYTES_MAX;
        let mut counts: Vec<(NodeId, usize)> = Vec::new();
        for it in &self.waiting {
            let weight = if by_bytes { it.item.bytes() } else { 1 };
            match counts.iter_mut().find(|(node, _)| *node == it.from) {
                Some((_, count)) => *count += weight,
                None => counts.push((it.from, weight)),
            }
        }
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let frees = |it: &EarlyItem| it.from == most && (!by_bytes || it.item.bytes() > 0);
        self.waiting.iter().position(frees)
    }

    fn remove(&mut self, place: usize) -> Option<EarlyItem> {
        let gone = self.waiting.remove(place)?;
        self.bytes -= gone.item.bytes();
        Some(gone)
    }
}
