//! Timeouts, and the loss of neighbours.

use super::message::{Deny, Key, NodeIndex, Reason, ReserveMessage};
use super::state::{Entry, Freed, Leg, Version};
use super::{LinkId, Reservations, ReserveOutput};
use crate::link::{Holder, LinkParameters};
use paceline_sched::{Duration, Instant};

impl Reservations {
    /// Handles all timers that are due.
    pub(super) fn expire(&mut self) {
        let mut refreshes = Vec::new();
        while let Some(&(at, key)) = self.wakes.first() {
            if at > self.now {
                break;
            }
            self.wakes.pop_first();
            self.armed.remove(&key);
            self.time_out(key);
            self.tend(key, &mut refreshes);
            self.fade(key);
            self.rearm(key);
        }
        self.send_refreshes(refreshes);
    }

    fn time_out(&mut self, key: Key) {
        let now = self.now;
        let waited = |entry: &Entry| entry.tentative.as_ref().is_some_and(|it| it.until <= now);
        if self.entries.get(&key).is_some_and(waited) {
            self.give_up(key, Reason::Timeout, None);
        }
        let Some(entry) = self.entries.get(&key).filter(|entry| entry.installed.is_some()) else {
            return;
        };
        if entry.up_until <= now || entry.down_until <= now {
            self.end(key, Reason::PeerLost, None, self.me);
        }
    }

    /// Ends a tentative version that will not be answered.
    pub(super) fn give_up(&mut self, key: Key, reason: Reason, lost: Option<NodeIndex>) {
        let Some(version) = self.cancel_tentative(key) else { return };
        let name = version.ask.name;
        let deny = Deny { name, node: self.me, reason, retry: Duration::ZERO };
        let (previous, next) = (version.previous(), version.next());
        // The next node keeps the installed version after a failed change. Close there only if no
        // version was installed.
        if let (false, Some(next)) = (self.entries.contains_key(&key), next)
            && lost != Some(next)
        {
            self.close_to(next, name);
        }
        if previous.is_none() || previous != lost {
            self.denied(key, previous, deny);
        }
    }

    /// Ends an installed reservation. Notifies both sides, except the one that reported the end or
    /// was lost.
    pub(super) fn end(
        &mut self,
        key: Key,
        reason: Reason,
        said: Option<NodeIndex>,
        node: NodeIndex,
    ) {
        let installed =
            self.entries.get(&key).and_then(|it| it.installed.as_ref()).map(|it| it.ask.name);
        let Some(Freed { name, previous, mut onward }) = self.free(key) else { return };
        let ends = previous.is_none() || onward.is_empty();
        if let (Some(previous), Some(installed)) =
            (previous.filter(|it| Some(*it) != said), installed)
        {
            // A refusal is forwarded unchanged, because its cause is not a network failure.
            let reason = match reason {
                Reason::Refused { .. } => reason,
                Reason::Timeout
                | Reason::PeerLost
                | Reason::Unknown
                | Reason::Declined
                | Reason::NoRoute
                | Reason::Full
                | Reason::Impossible
                | Reason::Contradiction => Reason::PeerLost,
            };
            let deny = Deny { name: installed, node, reason, retry: Duration::ZERO };
            self.send(previous, ReserveMessage::Deny(deny));
        }
        onward.retain(|it| Some(*it) != said);
        self.close_all(&onward, name);
        if ends {
            self.outputs.push_back(ReserveOutput::Ended { key, reason: Some(reason), node });
        }
        self.rearm(key);
    }

    /// Ends a reservation on a path through this node that is no longer allowed. Both sides are notified.
    pub fn forbid(&mut self, now: Instant, key: Key) {
        self.advance(now);
        if self.entries.get(&key).is_some_and(|entry| entry.installed.is_some()) {
            self.end(key, Reason::Declined, None, self.me);
        } else {
            self.give_up(key, Reason::Declined, None);
        }
        self.rearm(key);
    }

    /// Lets the origin of an installed reservation request it again, because what it costs at this node has changed.
    pub fn ask_for_again(&mut self, now: Instant, key: Key) {
        self.advance(now);
        let Some(entry) = self.entries.get(&key).filter(|entry| entry.tentative.is_none()) else {
            return;
        };
        let Some(installed) = &entry.installed else { return };
        match installed.previous() {
            Some(previous) => self.unknown(previous, installed.ask.name),
            None => self.ask_again(key),
        }
        self.rearm(key);
    }

    /// Retransmits unanswered CLOSE messages, and removes expired past reservations.
    fn fade(&mut self, key: Key) {
        let (now, retries) = (self.now, self.timing.retries);
        let Some(past) = self.past.get_mut(&key) else { return };
        let mut again = Vec::new();
        for closing in past.closing.iter_mut().filter(|closing| closing.at <= now) {
            closing.tries += 1;
            closing.at = now + self.timing.retry_after(closing.tries);
            again.push((closing.to, closing.name));
        }
        past.closing.retain(|closing| closing.tries < retries);
        if past.closing.is_empty() && past.until.max(past.blocked_until) <= now {
            self.past.remove(&key);
        }
        for (to, name) in again {
            self.send(to, ReserveMessage::Close(name));
        }
    }

    /// Ends the reservations through a lost neighbour.
    pub(super) fn lose(&mut self, node: NodeIndex) {
        let touches =
            |version: &Option<Version>| version.as_ref().is_some_and(|it| it.touches(node));
        let touched: Vec<(Key, bool)> = self
            .entries
            .iter()
            .filter(|(_, entry)| touches(&entry.installed) || touches(&entry.tentative))
            .map(|(key, entry)| (*key, touches(&entry.installed)))
            .collect();
        for (key, installed) in touched {
            if installed {
                self.end(key, Reason::PeerLost, Some(node), node);
            } else {
                self.give_up(key, Reason::PeerLost, Some(node));
            }
            self.rearm(key);
        }
    }

    /// Changes the parameters of a link, for example its capacity after a reload. Reservations are
    /// tested again in order of `rank`, a function of their labels, and of trunks. Those that no
    /// longer fit end with the exceeded limit, and both sides are notified.
    pub fn change_link<R: Ord>(
        &mut self,
        now: Instant,
        link: LinkId,
        spec: LinkParameters,
        rank: impl Fn(&[u8]) -> Option<R>,
    ) {
        self.advance(now);
        let Some(before) = self.links.get(&link) else { return };
        let (after, lost) = before.rebuilt(spec, |holder| self.rank_of(holder, &rank));
        self.links.insert(link, after);
        self.share_host();
        for (trunk, holder, refusal) in lost {
            self.update_policer(link, trunk);
            let Some(key) = key_of(holder) else { continue };
            let leg =
                |leg: Option<Leg>| leg.is_some_and(|leg| (leg.link, leg.trunk) == (link, trunk));
            let Some(entry) = self.entries.get(&key) else { continue };
            let of = |version: &Option<Version>| {
                let version = version.as_ref();
                version.is_some_and(|it| leg(it.forward) || leg(it.backward))
            };
            let forward = entry.newest().is_some_and(|version| leg(version.forward));
            let reason = Reason::Refused { forward, refusal };
            let installed = of(&entry.installed);
            if installed || of(&entry.tentative) {
                self.end_version(key, installed, reason);
            }
        }
    }

    /// Returns the installed reservations that a link would lose with other parameters. They are tested as by
    /// [`Self::change_link`].
    pub fn lost_at<R: Ord>(
        &self,
        link: LinkId,
        spec: LinkParameters,
        rank: impl Fn(&[u8]) -> Option<R>,
    ) -> Vec<Key> {
        let Some(before) = self.links.get(&link) else { return Vec::new() };
        let (_, lost) = before.rebuilt(spec, |holder| self.rank_of(holder, &rank));
        let keys = lost.into_iter().filter_map(|(_, holder, _)| key_of(holder));
        keys.filter(|key| self.installed(*key).is_some()).collect()
    }

    fn rank_of<R>(&self, holder: Holder, rank: impl Fn(&[u8]) -> Option<R>) -> Option<R> {
        let version = self.entries.get(&key_of(holder)?)?.newest()?;
        rank(&version.ask.label)
    }

    /// Returns true if no reservation, timer or past reservation remains.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty() && self.past.is_empty() && self.next_wake() == Instant::FAR
    }
}

/// Returns the key of the reservation of a holder.
fn key_of(holder: Holder) -> Option<Key> {
    let origin = NodeIndex(u64::try_from(holder.origin).ok()?);
    Some(Key { origin, number: holder.number })
}
