//! The ledger of a manager.

use super::{
    Allotment, Allotments, DETECTION, Holding, LinkKey, MEDIUM_LINKS_MAX, allottable, least_rate,
};
use crate::ids::NodeId;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The least part of its least rate that a link without contracts keeps.
const IDLE_PARTS: u64 = 16;
/// The time in which a new manager learns of the links whose nodes it does not know yet.
const HEARING: Duration = Duration::from_secs(1);
/// Rates are shared in steps of the fraction 1/`STEPS` of the capacity, so that small changes move nothing.
const STEPS: u64 = 256;

/// The allotments of all links of a medium.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    me: NodeId,
    term: u64,
    /// The beginning of the term.
    begun: Instant,
    /// The end of the time in which a new manager learns of the other links.
    hears_until: Instant,
    /// The number of the last allotment.
    number: u64,
    links: BTreeMap<LinkKey, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    holding: Holding,
    given: Allotment,
    /// The time at which the link was gone.
    lost: Option<Instant>,
}

impl Ledger {
    /// Creates the ledger of the node `me`, which becomes the manager. `after` is [`Self::last`] of its last time as manager; 0
    /// for the first one.
    pub(crate) fn new(now: Instant, me: NodeId, after: u64) -> Self {
        let hears_until = now + HEARING;
        Self { me, term: after, begun: now, hears_until, number: after, links: BTreeMap::new() }
    }

    /// Returns a number that no term or allotment exceeds.
    pub(crate) const fn last(&self) -> u64 {
        if self.number > self.term { self.number } else { self.term }
    }

    /// Follows the announcements of the links that are reachable, on a medium of `capacity` bits per second. Those beyond
    /// [`MEDIUM_LINKS_MAX`] are left out.
    pub(crate) fn follow(
        &mut self,
        now: Instant,
        capacity: u64,
        links: &BTreeMap<LinkKey, Holding>,
    ) {
        self.note(now, links);
        if !self.is_collecting(now) {
            let targets = self.targets(capacity);
            let room = self.lower(capacity, &targets);
            self.raise(capacity, &targets, room);
        }
    }

    /// Returns the announcement.
    pub(crate) fn allotments(&self) -> Allotments {
        let given = self.links.iter().filter(|(_, entry)| entry.given.number > 0);
        Allotments {
            term: self.term,
            links: given.map(|(key, entry)| (*key, entry.given)).collect(),
        }
    }

    /// Returns the instant at which to call [`Self::follow`] again without news; [`Instant::FAR`] if never.
    pub(crate) fn wake_at(&self, now: Instant) -> Instant {
        let lost = self.links.values().filter_map(|entry| entry.lost);
        let collects = self.is_collecting(now).then_some(self.begun);
        let hears = Some(self.hears_until).filter(|until| now < *until);
        let ends = lost.chain(collects).map(|since| since + DETECTION).chain(hears);
        ends.filter(|at| now < *at).min().unwrap_or(Instant::FAR)
    }

    /// Notes the links that are there. Members that join begin a new term.
    fn note(&mut self, now: Instant, links: &BTreeMap<LinkKey, Holding>) {
        for (key, entry) in &mut self.links {
            if !links.contains_key(key) {
                entry.lost.get_or_insert(now);
            }
        }
        self.links.retain(|_, entry| entry.lost.is_none_or(|since| now < since + DETECTION));
        let mut joins = false;
        for (key, holding) in links.iter().take(MEDIUM_LINKS_MAX) {
            let new = Entry { holding: *holding, given: Allotment::default(), lost: Some(now) };
            let entry = self.links.entry(*key).or_insert(new);
            joins |= entry.lost.take().is_some();
            entry.holding = *holding;
        }
        if joins {
            (self.term, self.begun) = (self.term + 1, now);
        }
    }

    const fn follows(&self, entry: &Entry) -> bool {
        let Holding { manager, term, .. } = entry.holding;
        entry.lost.is_none() && manager.0 == self.me.0 && term == self.term
    }

    /// Returns true if the link has announced the rate of its last allotment.
    const fn is_settled(&self, entry: &Entry) -> bool {
        self.follows(entry) && entry.holding.seen >= entry.given.number
    }

    /// Returns the highest rate that the link may have now.
    const fn counted(&self, entry: &Entry) -> u64 {
        let (holds, given) = (entry.holding.holds, entry.given.bits);
        if self.is_settled(entry) || holds > given { holds } else { given }
    }

    /// Returns true while links may have more than they have announced, or may be unknown.
    fn is_collecting(&self, now: Instant) -> bool {
        let silent = |entry: &Entry| entry.lost.is_none() && !self.follows(entry);
        now < self.hears_until || now < self.begun + DETECTION && self.links.values().any(silent)
    }

    /// Returns the rate that each link should have, and true if its contracts may need more.
    fn targets(&self, capacity: u64) -> BTreeMap<LinkKey, (u64, bool)> {
        let present = || self.links.iter().filter(|(_, entry)| self.follows(entry));
        let need = |entry: &Entry| entry.holding.need.min(entry.holding.holds);
        let all = allottable(capacity);
        let needs = present().fold(0, |sum: u64, (_, entry)| sum.saturating_add(need(entry)));
        // Links that join may find all of it in use: they share the part that was kept for them, and leave room for one more.
        let idle = |entry: &Entry| {
            let least = least_rate(capacity).min(entry.holding.most);
            least.saturating_sub(need(entry))
        };
        let idles: u64 = present().map(|(_, entry)| idle(entry)).sum();
        // Contracts may use the part for joining links that they got as such.
        if needs.saturating_add(idles / IDLE_PARTS) > capacity {
            let needs = present().map(|(key, entry)| (*key, need(entry))).collect();
            return forced(all, least_rate(capacity), needs);
        }
        let room = capacity.saturating_sub(needs).saturating_sub(least_rate(capacity));
        let kept = idles.min(room.max(idles / IDLE_PARTS));
        let least = |entry: &Entry| need(entry) + part(idle(entry), kept, idles);
        // Links that are gone, and those that do not answer.
        let others = self.links.values().filter(|entry| !self.follows(entry));
        let others = others.fold(0, |sum: u64, entry| sum.saturating_add(self.counted(entry)));
        let mut rest = all.saturating_sub(others).saturating_sub(needs + kept);
        let mut targets = BTreeMap::new();
        for (key, entry) in present() {
            let Holding { wants, most, .. } = entry.holding;
            let more = wants.min(most).saturating_sub(least(entry));
            let more = if more <= rest { more } else { 0 };
            rest -= more;
            targets.insert(*key, (least(entry) + more, most));
        }
        let step = (capacity / STEPS).max(1);
        let share = rest / (targets.len() as u64).max(1) / step * step;
        let shared =
            |(key, (bits, most)): (LinkKey, (u64, u64))| (key, ((bits + share).min(most), false));
        targets.into_iter().map(shared).collect()
    }

    fn give(&mut self, key: LinkKey, bits: u64, forced: bool) {
        self.number += 1;
        if let Some(entry) = self.links.get_mut(&key) {
            entry.given = Allotment { number: self.number, bits, forced };
        }
    }

    /// Lowers the links above their targets. Returns the rate that no link has.
    fn lower(&mut self, capacity: u64, targets: &BTreeMap<LinkKey, (u64, bool)>) -> u64 {
        let keys: Vec<LinkKey> = self.links.keys().copied().collect();
        let mut sum: u64 = 0;
        for key in keys {
            let Some(entry) = self.links.get(&key).copied() else { continue };
            sum = sum.saturating_add(self.counted(&entry));
            let Some(&(target, forced)) = targets.get(&key) else { continue };
            if self.is_settled(&entry) && target < entry.holding.holds {
                self.give(key, target, forced);
            }
        }
        allottable(capacity).saturating_sub(sum)
    }

    /// Raises the links below their targets, as far as `room` allows.
    fn raise(&mut self, capacity: u64, targets: &BTreeMap<LinkKey, (u64, bool)>, mut room: u64) {
        for (&key, &(target, forced)) in targets {
            let Some(entry) = self.links.get(&key).copied() else { continue };
            let Holding { holds, wants, .. } = entry.holding;
            let more = target.saturating_sub(holds);
            // A waiting request needs all of it; a little more best effort is worth no message.
            let worth = if holds < wants { 1 } else { capacity / STEPS };
            if self.is_settled(&entry) && (worth.max(1)..=room).contains(&more) {
                room -= more;
                self.give(key, target, forced);
            }
        }
    }
}

/// Returns the fraction `of`/`whole` of `bits`.
fn part(bits: u64, of: u64, whole: u64) -> u64 {
    let part = u128::from(bits) * u128::from(of) / u128::from(whole.max(1));
    u64::try_from(part).unwrap_or(bits)
}

/// Returns the rates of links that need more than `all` together. The first ones keep what they need; `least` remains for each.
fn forced(all: u64, least: u64, needs: BTreeMap<LinkKey, u64>) -> BTreeMap<LinkKey, (u64, bool)> {
    let count = needs.len() as u64;
    let least = least.min(all / count.max(1));
    let mut rest = all.saturating_sub(least * count);
    let mut share = |(key, need): (LinkKey, u64)| {
        let more = need.saturating_sub(least).min(rest);
        rest -= more;
        (key, (least + more, true))
    };
    needs.into_iter().map(&mut share).collect()
}
