//! The ledger of a manager.

use super::{
    Allotment, Allotments, DETECTION, Holding, LinkKey, MEDIUM_LINKS_MAX, allottable, least_rate,
};
use crate::ids::NodeId;
use paceline_sched::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The least part of its least rate that a link without contracts keeps.
const IDLE_PARTS: u64 = 16;
/// The time in which a new manager learns of the links whose nodes it does not know yet. It is not longer for slow links.
const HEARING: Duration = Duration::from_secs(1);
/// The most terms that links wait for: a wrong announcement does not use up their numbers.
const WAITED_MOST: u64 = 1 << 32;
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
    /// False for a link beyond [`MEDIUM_LINKS_MAX`]: its rate counts, but nothing is given to it.
    member: bool,
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

    /// Follows the announcements of the links that are reachable, on a medium of `capacity` bits per second. Nothing is given to
    /// those beyond [`MEDIUM_LINKS_MAX`], but their rates count.
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

    /// Notes the links that are there. Members that join begin a new term, and so do those that wait for one.
    fn note(&mut self, now: Instant, links: &BTreeMap<LinkKey, Holding>) {
        for (key, entry) in &mut self.links {
            if !links.contains_key(key) {
                entry.lost.get_or_insert(now);
            }
        }
        self.links.retain(|_, entry| entry.lost.is_none_or(|since| now < since + DETECTION));
        let (mut joins, mut waited) = (false, 0);
        for (key, holding) in links {
            let given = Allotment::default();
            let new = Entry { holding: *holding, given, lost: Some(now), member: false };
            let entry = self.links.entry(*key).or_insert(new);
            joins |= entry.member && entry.lost.is_some();
            (entry.lost, entry.holding) = (None, *holding);
            if holding.manager == self.me && holding.term < self.term.saturating_add(WAITED_MOST) {
                waited = holding.term.max(waited);
            }
        }
        joins |= self.accept(now);
        if joins || waited > self.term {
            (self.term, self.begun) = (waited.max(self.term.saturating_add(1)), now);
            // Links that announce this term have not applied what they did not follow before, and never will.
            self.links.values_mut().for_each(|entry| entry.given.number = 0);
        }
    }

    /// Makes links members while there are less than [`MEDIUM_LINKS_MAX`]: those with the highest rates first, which another
    /// manager has given to them. Nobody keeps its place before all links are known. Returns true if there is a new member.
    fn accept(&mut self, now: Instant) -> bool {
        let hears = now < self.hears_until;
        let is_open = |entry: &Entry| entry.lost.is_none() && (hears || !entry.member);
        let kept = self.links.values().filter(|entry| entry.member && !is_open(entry)).count();
        let open = self.links.iter().filter(|(_, entry)| is_open(entry));
        let mut open: Vec<(Reverse<u64>, LinkKey)> =
            open.map(|(key, entry)| (Reverse(entry.holding.holds), *key)).collect();
        open.sort_unstable();
        let mut joins = false;
        for (place, (_, key)) in (kept..).zip(open) {
            let Some(entry) = self.links.get_mut(&key) else { continue };
            let member = place < MEDIUM_LINKS_MAX;
            joins |= member && !entry.member;
            entry.member = member;
        }
        joins
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
        let silent = |entry: &Entry| entry.member && entry.lost.is_none() && !self.follows(entry);
        now < self.hears_until || now < self.begun + DETECTION && self.links.values().any(silent)
    }

    /// Returns the rate that each link should have, and true if its contracts may need more.
    fn targets(&self, capacity: u64) -> BTreeMap<LinkKey, (u64, bool)> {
        let is_present = |entry: &Entry| entry.member && self.follows(entry);
        let present = || self.links.iter().filter(|(_, entry)| is_present(entry));
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
        let beyond = self.links.values().filter(|entry| !entry.member);
        let beyond = beyond.fold(0, |sum: u64, entry| sum.saturating_add(self.counted(entry)));
        let taken = needs.saturating_add(beyond).saturating_add(least_rate(capacity));
        let room = capacity.saturating_sub(taken);
        let kept = idles.min(room.max(idles / IDLE_PARTS));
        let least = |entry: &Entry| need(entry) + part(idle(entry), kept, idles);
        // Links that are gone, those that do not answer, and those beyond the limit.
        let others = self.links.values().filter(|entry| !is_present(entry));
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
