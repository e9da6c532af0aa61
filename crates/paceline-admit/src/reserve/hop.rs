//! Message handling at the nodes of a path.

use super::legs::Here;
use super::message::{
    Accept, Admit, Deny, Key, NAMES_MAX, Name, NodeIndex, PATH_MAX, Reason, Refresh, ReserveMessage,
};
use super::state::{CLOSING_MAX, Closing, Entry, Freed, Past, Version};
use super::{Decision, Reservations, ReserveOutput};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// Returns the index of this node in a path. Returns `None` if the path is invalid or `from` is not
/// the previous node.
fn place(path: &[NodeIndex], me: NodeIndex, from: Option<NodeIndex>) -> Option<usize> {
    if path.len() < 2 || path.len() > PATH_MAX {
        return None;
    }
    let twice = path
        .iter()
        .enumerate()
        .any(|(at, node)| path.iter().skip(at + 1).any(|other| other == node));
    let at = path.iter().position(|node| *node == me)?;
    let before = at.checked_sub(1).and_then(|before| path.get(before)).copied();
    (!twice && before == from).then_some(at)
}

impl Reservations {
    pub(super) fn handle_admit(&mut self, from: NodeIndex, ask: Admit, here: Here) {
        let Name { key, stamp } = ask.name;
        let at = place(&ask.path, self.me, Some(from))
            .filter(|_| ask.is_weighed() && ask.scales_between());
        let (Some(at), true) = (at, ask.path.first() == Some(&key.origin)) else {
            self.ignored += 1;
            return;
        };
        if self.repeat_past(from, ask.name) {
            return;
        }
        self.forget_older(key.origin, stamp.epoch, from);
        let newest = self.entries.get(&key).and_then(Entry::newest_name);
        match newest.map(|newest| newest.stamp) {
            Some(newest) if stamp < newest => {
                self.ignored += 1;
                return;
            }
            Some(newest) if stamp == newest => return self.repeat(key, from),
            Some(newest) if newest.epoch < stamp.epoch => self.drop_entry(key),
            Some(_) => _ = self.cancel_tentative(key),
            None if self.entries.len() >= Self::MAX => {
                return self.refuse(from, ask.name, Reason::Full);
            }
            None => {}
        }
        let same = match (&ask.forward, &ask.backward) {
            (None, None) => true,
            (Some(forward), Some(backward)) => forward.trunk == backward.trunk,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if same {
            return self.refuse(from, ask.name, Reason::Impossible);
        }
        let name = ask.name;
        match self.reserve(ask, at, here) {
            Ok(version) => self.pass_on(key, version),
            Err(reason) => self.refuse(from, name, reason),
        }
        self.rearm(key);
    }

    /// Repeats the denial of a past version. Returns true if the request needs no further handling.
    fn repeat_past(&mut self, from: NodeIndex, name: Name) -> bool {
        let Some(past) = self.past.get_mut(&name.key) else { return false };
        let blocked = past.blocked_until > self.now && past.stamp.epoch == name.stamp.epoch;
        let over = name.stamp <= past.stamp;
        if !over && !blocked {
            return false;
        }
        let said = past.denied.filter(|_| name.stamp >= past.stamp);
        past.stamp = past.stamp.max(name.stamp);
        let Some(deny) = said else {
            self.ignored += 1;
            return true;
        };
        let retry = past.blocked_until.since(self.now);
        let deny = Deny { name, retry, ..deny };
        past.denied = Some(deny);
        self.send(from, ReserveMessage::Deny(deny));
        true
    }

    /// Forwards a tentative version to the next node, or asks for a decision at the other end.
    fn pass_on(&mut self, key: Key, version: Version) {
        match version.next() {
            Some(next) => self.send(next, ReserveMessage::Admit(Box::new(version.onward.clone()))),
            None => self.outputs.push_back(ReserveOutput::Asked {
                name: version.ask.name,
                label: version.ask.label.clone(),
                forward: version.ask.forward,
                backward: version.ask.backward,
            }),
        }
        let entry = self.entries.entry(key).or_insert_with(|| Entry::new(None));
        entry.tentative = Some(version);
    }

    /// Handles a repeated request, sent because an answer or a forwarded request was lost.
    fn repeat(&mut self, key: Key, from: NodeIndex) {
        let Some(version) = self.entries.get(&key).and_then(Entry::newest) else { return };
        if version.previous() != Some(from) {
            self.ignored += 1;
            return;
        }
        let again = match (&version.answer, version.next()) {
            (Some(answer), _) => Some((from, ReserveMessage::Accept(answer.clone()))),
            (None, Some(next)) => {
                Some((next, ReserveMessage::Admit(Box::new(version.onward.clone()))))
            }
            (None, None) => None,
        };
        if let Some((to, message)) = again {
            self.send(to, message);
        }
    }

    /// Denies a request and remembers the denial.
    fn refuse(&mut self, to: NodeIndex, name: Name, reason: Reason) {
        let refusals = self.past.get(&name.key).map_or(0, |past| past.refusals);
        // After a refused change the installed version remains, and may request another change at
        // once.
        let change = self.entries.contains_key(&name.key);
        let backoff = match reason {
            Reason::Refused { .. } if !change => self.timing.backoff_after(refusals),
            Reason::Refused { .. } => Duration::ZERO,
            Reason::Timeout
            | Reason::PeerLost
            | Reason::Unknown
            | Reason::Declined
            | Reason::NoRoute
            | Reason::Full
            | Reason::Impossible
            | Reason::Contradiction => Duration::ZERO,
        };
        let deny = Deny { name, node: self.me, reason, retry: backoff };
        self.send(to, ReserveMessage::Deny(deny));
        if !change {
            let blocked_until = self.now + backoff;
            let past = self.remember(name);
            (past.denied, past.blocked_until) = (Some(deny), blocked_until);
            past.refusals = refusals.saturating_add(1);
        }
        self.rearm(name.key);
    }

    /// Returns the past entry of a reservation, created if needed. Above the limit, the entry with
    /// the least key is removed.
    pub(super) fn remember(&mut self, name: Name) -> &mut Past {
        if self.past.len() >= Self::MAX
            && !self.past.contains_key(&name.key)
            && let Some((least, _)) = self.past.pop_first()
        {
            self.rearm(least);
        }
        let until = self.now + self.timing.memory;
        let past = self.past.entry(name.key).or_insert_with(|| Past {
            stamp: name.stamp,
            until,
            denied: None,
            blocked_until: Instant::ZERO,
            refusals: 0,
            closing: Vec::new(),
        });
        if name.stamp >= past.stamp {
            past.stamp = name.stamp;
            past.denied = None;
        }
        past.until = until;
        past
    }

    /// Drops the reservations of older incarnations of `origin` that arrived from the same
    /// neighbour.
    fn forget_older(&mut self, origin: NodeIndex, epoch: u64, from: NodeIndex) {
        let known = self.epochs.get(&(origin, from)).copied();
        if known.is_some_and(|known| known >= epoch) {
            return;
        }
        if self.epochs.len() >= Self::MAX {
            // A forgotten epoch only costs one more search.
            self.epochs.pop_first();
        }
        self.epochs.insert((origin, from), epoch);
        let keys = Key { origin, number: 0 }..=Key { origin, number: u64::MAX };
        let older = |entry: &Entry| {
            let version = entry.newest();
            version.is_some_and(|it| it.stamp().epoch < epoch && it.previous() == Some(from))
        };
        let gone: Vec<Key> = self
            .entries
            .range(keys)
            .filter(|(_, entry)| older(entry))
            .map(|(key, _)| *key)
            .collect();
        for key in gone {
            self.drop_entry(key);
        }
    }

    /// Releases a reservation and closes it at the next nodes.
    fn drop_entry(&mut self, key: Key) {
        if let Some(Freed { name, onward, .. }) = self.free(key) {
            self.close_all(&onward, name);
        }
        self.rearm(key);
    }

    /// Releases all resources of an entry and removes it.
    pub(super) fn free(&mut self, key: Key) -> Option<Freed> {
        let entry = self.entries.remove(&key)?;
        let newest = entry.newest()?;
        let (mut name, previous) = (newest.ask.name, newest.previous());
        if let Some(origin) = entry.origin {
            // Nodes further on may have installed a later version that was given up here.
            name.stamp.seq = name.stamp.seq.max(origin.seq);
        }
        let freed = Freed { name, previous, onward: entry.onward() };
        if let Some(tentative) = &entry.tentative {
            self.cancel(tentative);
        }
        if let Some(installed) = &entry.installed {
            self.release(installed, None);
        }
        self.remember(name);
        Some(freed)
    }

    pub(super) fn close_all(&mut self, nodes: &[NodeIndex], name: Name) {
        for &to in nodes {
            self.close_to(to, name);
        }
    }

    /// Sends CLOSE, and retransmits it until it is answered or the retries are exhausted.
    pub(super) fn close_to(&mut self, to: NodeIndex, name: Name) {
        let at = self.now + self.timing.retry_after(0);
        let closing = &mut self.remember(name).closing;
        closing.retain(|before| before.to != to);
        if closing.len() >= CLOSING_MAX {
            closing.remove(0);
        }
        closing.push(Closing { to, name, at, tries: 0 });
        self.send(to, ReserveMessage::Close(name));
        self.rearm(name.key);
    }

    pub(super) fn cancel_tentative(&mut self, key: Key) -> Option<Version> {
        let entry = self.entries.get_mut(&key)?;
        let tentative = entry.tentative.take()?;
        let empty = entry.installed.is_none();
        self.cancel(&tentative);
        if empty {
            self.entries.remove(&key);
        }
        Some(tentative)
    }

    /// Decides on a request for which this node is the other end.
    ///
    /// Returns false if the request is no longer pending: it timed out, was closed or was replaced.
    pub fn answer(&mut self, now: Instant, name: Name, decision: Decision) -> bool {
        self.advance(now);
        let tentative = self.entries.get(&name.key).and_then(|entry| entry.tentative.as_ref());
        let Some(version) = tentative.filter(|it| it.ask.name == name && it.next().is_none())
        else {
            return false;
        };
        let Some(previous) = version.previous() else { return false };
        match decision {
            Decision::Accept { slack } => {
                let backward = version.ask.backward.map(|wanted| wanted.bunched);
                let unused = version.ask.forward.map_or(Duration::ZERO, |wanted| {
                    wanted.within.saturating_sub(version.ask.spent)
                });
                let slack = slack.saturating_add(unused);
                self.commit(name.key, &Accept { name, slack, backward, hops: Vec::new() });
            }
            Decision::Decline => {
                self.cancel_tentative(name.key);
                self.refuse(previous, name, Reason::Declined);
            }
        }
        self.rearm(name.key);
        true
    }

    pub(super) fn handle_accept(&mut self, from: NodeIndex, accept: Accept) {
        let Name { key, stamp } = accept.name;
        let Some(entry) = self.entries.get(&key) else {
            // The reservation has ended here, so close it at the sender.
            self.ignored += 1;
            return self.send(from, ReserveMessage::Close(accept.name));
        };
        let waits = entry.tentative.as_ref().filter(|it| it.stamp() == stamp);
        if waits.is_none_or(|version| version.next() != Some(from)) {
            self.ignored += 1;
            // A version given up here has replaced the installed one at the sender.
            let replaced = |version: &Version| stamp > version.stamp();
            if entry.origin.is_some() && entry.installed.as_ref().is_some_and(replaced) {
                self.ask_again(key);
            }
            return;
        }
        self.commit(key, &accept);
        self.rearm(key);
    }

    /// Installs the tentative version and forwards the answer.
    fn commit(&mut self, key: Key, accept: &Accept) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Some(mut version) = entry.tentative.take() else { return };
        let before = entry.installed.take();
        let accepted = self.install(&mut version, accept);
        if let Some(before) = &before {
            self.release(before, Some(&version));
            // If the new path leaves the old one here, close the rest of the old path.
            if let Some(old) = before.next().filter(|old| version.next() != Some(*old)) {
                self.close_to(old, before.ask.name);
            }
        }
        let (previous, life) = (version.previous(), self.timing.life(version.ask.period));
        let last = version.next().is_none();
        let end = self.now + life;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.up_until = if previous.is_some() { end } else { Instant::FAR };
            entry.down_until = if last { Instant::FAR } else { end };
            entry.installed = Some(version);
        }
        match previous {
            Some(previous) => self.send(previous, ReserveMessage::Accept(accepted)),
            None => self.granted(key, accepted),
        }
    }

    pub(super) fn handle_deny(&mut self, from: NodeIndex, deny: Deny) {
        let Name { key, stamp } = deny.name;
        let Some(entry) = self.entries.get(&key) else {
            self.ignored += 1;
            return;
        };
        let of = |version: &Option<Version>| {
            version.as_ref().is_some_and(|it| it.stamp() == stamp && it.next() == Some(from))
        };
        let (pending, held) = (of(&entry.tentative), of(&entry.installed));
        let own = entry.origin.is_some();
        let previous = entry.newest().and_then(Version::previous);
        if pending {
            self.cancel_tentative(key);
            self.denied(key, previous, deny);
        } else if held && matches!(deny.reason, Reason::PeerLost | Reason::Refused { .. }) {
            self.end(key, deny.reason, Some(from), deny.node);
        } else if held && deny.reason == Reason::Unknown {
            match previous {
                _ if own => self.ask_again(key),
                Some(previous) => self.send(previous, ReserveMessage::Deny(deny)),
                None => {}
            }
        } else {
            self.ignored += 1;
        }
        self.rearm(key);
    }

    /// Notifies the requester that a tentative version has ended.
    pub(super) fn denied(&mut self, key: Key, previous: Option<NodeIndex>, deny: Deny) {
        match previous {
            None => self.answer_denied(key, deny),
            Some(previous) => self.send(previous, ReserveMessage::Deny(deny)),
        }
        if !self.entries.contains_key(&key) {
            self.remember(deny.name).denied = Some(deny);
        }
    }

    pub(super) fn handle_close(&mut self, from: NodeIndex, name: Name) {
        let key = name.key;
        if let Some(entry) = self.entries.get(&key) {
            let versions = [&entry.tentative, &entry.installed];
            let part = versions.iter().any(|it| it.as_ref().is_some_and(|it| it.touches(from)));
            let newest = entry.newest();
            let over = newest.is_some_and(|newest| newest.stamp() > name.stamp);
            let ends = newest.is_some_and(|it| it.previous().is_none() || it.next().is_none());
            if !part || over {
                // The sender is not on the path, or the version is already replaced.
                self.ignored += 1;
                return if part {
                    self.send(from, ReserveMessage::Closed(name))
                };
            }
            if let Some(Freed { previous, onward, .. }) = self.free(key) {
                let others = previous.into_iter().chain(onward).filter(|other| *other != from);
                self.close_all(&others.collect::<Vec<_>>(), name);
            }
            if ends {
                self.outputs.push_back(ReserveOutput::Ended { key, reason: None, node: from });
            }
        }
        // Remember unknown reservations, too: a CLOSE may overtake the ADMIT that it closes.
        self.remember(name);
        self.send(from, ReserveMessage::Closed(name));
        self.rearm(key);
    }

    pub(super) fn handle_closed(&mut self, from: NodeIndex, name: Name) {
        let past = self.past.get_mut(&name.key);
        let of = |closing: &Closing| closing.to == from && closing.name == name;
        match past.filter(|it| it.closing.iter().any(of)) {
            Some(past) => past.closing.retain(|closing| !of(closing)),
            None => self.ignored += 1,
        }
        self.rearm(name.key);
    }

    pub(super) fn handle_refresh(&mut self, from: NodeIndex, refresh: &Refresh) {
        let mut onward: BTreeMap<NodeIndex, Vec<Name>> = BTreeMap::new();
        let mut echo = Vec::new();
        for &name in &refresh.names {
            let life = self.now + self.timing.life(refresh.period);
            let entry = self.entries.get_mut(&name.key);
            let known = entry.as_ref().and_then(|entry| {
                let version = entry.installed.as_ref().filter(|it| it.ask.name == name)?;
                let sides = (version.previous(), version.next());
                let side = if refresh.back { sides.1 } else { sides.0 };
                (side == Some(from)).then_some(sides)
            });
            let (Some(entry), Some((previous, next))) = (entry, known) else {
                self.ignored += 1;
                if !refresh.back {
                    self.unknown(from, name);
                }
                continue;
            };
            if refresh.back {
                entry.down_until = life;
            } else {
                entry.up_until = life;
            }
            match (refresh.back, previous, next) {
                (true, Some(to), _) | (false, _, Some(to)) => {
                    onward.entry(to).or_default().push(name)
                }
                (false, _, None) => echo.push(name),
                (true, None, _) => {}
            }
            self.rearm(name.key);
        }
        let period = refresh.period;
        if !echo.is_empty() {
            self.send(from, ReserveMessage::Refresh(Refresh { back: true, period, names: echo }));
        }
        for (to, names) in onward {
            self.send(to, ReserveMessage::Refresh(Refresh { back: refresh.back, period, names }));
        }
        debug_assert!(refresh.names.len() <= NAMES_MAX, "the codec bounds them");
    }

    /// Handles a refresh of a version that is not installed here. The origin has to request it
    /// again, unless it is pending here.
    pub(super) fn unknown(&mut self, to: NodeIndex, name: Name) {
        let newer = self.entries.get(&name.key).and_then(Entry::newest_name);
        if newer.is_some_and(|newer| newer.stamp.epoch > name.stamp.epoch) {
            return;
        }
        let deny = Deny { name, node: self.me, reason: Reason::Unknown, retry: Duration::ZERO };
        self.send(to, ReserveMessage::Deny(deny));
    }
}
