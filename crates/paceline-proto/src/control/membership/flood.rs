//! Keeps the registry equal on all nodes by deltas, digests and snapshots.

mod pace;

use super::graph::Tree;
use super::message::{Message, snapshot};
use super::registry::{Added, Applied, Change, EntryKey, NEIGHBOURS_MAX, NODES_MAX, Record};
use crate::control::Control;
use crate::ids::NodeId;
use crate::probes::ProbeInterval;
use crate::wire::WireError;
use crate::wire::record::RecordMessage;
use crate::wire::segment::CONTROL_BYTES_MAX;
use bytes::Bytes;
use pace::{Pace, Payer};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The interval of unconditional digests to each neighbour, in intervals of the hop's probes: 6 s, and longer on a slow
/// link. Any inconsistency is repaired after this time. A long digest is rarer, one in so many intervals as it has this
/// number of bytes, up to a limit: 60 s.
const DIGEST_INTERVALS: u64 = 10;
const DIGEST_BYTES: u64 = 25;
const DIGEST_INTERVALS_MAX: u64 = 100;
/// The shortest time between two digests to one neighbour, and between two requests for one record.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The time after which a record that was too long for its neighbour is requested again.
const ASK_AFTER_EXCESS: Duration = Duration::from_secs(10);
/// The shortest time between two versions above invented ones. With [`super::registry`]'s steps, nobody
/// exhausts the versions within years.
const OUTBID_EVERY: Duration = Duration::from_millis(100);
/// The limits of the messages buffered from a node that is not a neighbour yet: their number and bytes.
const EARLY_MAX: usize = 64;
const EARLY_BYTES_MAX: usize = 16_384;
/// The longest record of this node, which others get in one message, and the part of it for publishers and subscriptions.
const RECORD_BYTES_MAX: usize = CONTROL_BYTES_MAX - 65_536;
pub(in crate::control) const DECLARED_BYTES_MAX: usize = RECORD_BYTES_MAX - (1 << 20);

/// The times of recent digests and requests.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    digests: BTreeMap<NodeId, Digests>,
    /// The earliest time of the next request for each incomplete record.
    asked: BTreeMap<NodeId, Instant>,
    /// The time of the last version above an invented one.
    outbid: Option<Instant>,
    /// The intervals of the probes of hops with slow links.
    probes: BTreeMap<NodeId, ProbeInterval>,
    /// The messages of nodes whose hop is up only at their end, from their first digest on.
    early: BTreeMap<NodeId, Vec<Bytes>>,
    /// The encoded size of this node's record when it was last computed, and of each change since then.
    own_bytes: usize,
    /// The budgets of other nodes for changes, the number of changes that exceeded them, and the node of the last one.
    pace: Pace,
    dropped: u64,
    exceeded: Option<NodeId>,
}

/// The digests to one neighbour.
#[derive(Clone, Copy, Debug)]
struct Digests {
    last: Instant,
    next: Instant,
}

impl State {
    pub(in crate::control) fn digest_at(&self) -> Instant {
        self.digests.values().map(|digests| digests.next).min().unwrap_or(Instant::FAR)
    }

    pub(in crate::control) fn handle_hop_down(&mut self, hop: NodeId) {
        self.digests.remove(&hop);
        self.probes.remove(&hop);
        self.early.remove(&hop);
    }

    /// Buffers messages of a node that is not a neighbour yet, from its first digest on, up to a bound.
    ///
    /// The node would not repeat them soon, and its reservation requests follow right after the digest.
    pub(in crate::control) fn keep_early(&mut self, from: NodeId, message: Bytes) {
        let known = self.early.contains_key(&from);
        if !known && (self.early.len() >= NEIGHBOURS_MAX || !Message::is_digest(&message)) {
            return;
        }
        let kept = self.early.entry(from).or_default();
        let bytes: usize = kept.iter().map(Bytes::len).sum();
        if kept.is_empty() || kept.len() < EARLY_MAX && bytes + message.len() <= EARLY_BYTES_MAX {
            kept.push(message);
        }
    }

    /// Records a digest of so many bytes.
    fn sent(&mut self, now: Instant, hop: NodeId, bytes: usize) {
        let intervals = bytes as u64 / DIGEST_BYTES;
        let intervals = intervals.clamp(DIGEST_INTERVALS, DIGEST_INTERVALS_MAX);
        let next = now + self.probe_interval(hop).time().mul_div(intervals, 1);
        self.digests.insert(hop, Digests { last: now, next });
    }

    fn probe_interval(&self, hop: NodeId) -> ProbeInterval {
        self.probes.get(&hop).copied().unwrap_or_default()
    }

    /// Returns true if `node`'s record may be requested now.
    fn ask(&mut self, now: Instant, node: NodeId) -> bool {
        if self.asked.get(&node).is_some_and(|next| *next > now) {
            return false;
        }
        self.ask_after(node, now + ASK_EVERY);
        true
    }

    /// Lets `node`'s record be requested from `next` on.
    fn ask_after(&mut self, node: NodeId, next: Instant) {
        if self.asked.len() >= NODES_MAX {
            self.asked.clear();
        }
        self.asked.insert(node, next);
    }
}

impl Control {
    /// Returns the interval of the probes of the hop to a neighbour.
    #[must_use]
    pub fn probe_interval(&self, hop: NodeId) -> ProbeInterval {
        self.membership.flood.probe_interval(hop)
    }

    /// Sets the interval of the probes of the hop to a neighbour. Periodic messages follow it, from the next one on.
    pub fn set_probe_interval(&mut self, hop: NodeId, interval: ProbeInterval) {
        if self.membership.hops.contains_key(&hop) && self.probe_interval(hop) != interval {
            self.membership.flood.probes.insert(hop, interval);
            if let Some(digests) = self.membership.flood.digests.get_mut(&hop) {
                digests.next = digests.last + interval.time().mul_div(DIGEST_INTERVALS, 1);
            }
        }
    }

    /// Applies a change to this node's record and floods it to all neighbours except `except`.
    pub(in crate::control) fn announce(&mut self, change: Change, except: Option<NodeId>) {
        let version = self.membership.registry.version(self.me) + 1;
        let delta = Message::Delta { node: self.me, version, change: change.clone() }.encode();
        if !self.has_room(change.key(), delta.len()) && !matches!(change, Change::Remove(_)) {
            self.rejected += 1;
            return;
        }
        match self.membership.registry.apply((self.me, version), (change.clone(), 0)) {
            Ok(_) => self.flood_change((self.me, version), &change, (&delta, except)),
            Err(_) => self.rejected += 1,
        }
    }

    /// Returns true if this node's record has room for a change of `bytes`.
    fn has_room(&mut self, key: EntryKey, bytes: usize) -> bool {
        let most = match key {
            EntryKey::Publisher(_) | EntryKey::Subscription(_) => DECLARED_BYTES_MAX,
            EntryKey::Neighbour(_)
            | EntryKey::Refusal(_)
            | EntryKey::Mark(_)
            | EntryKey::Place(_)
            | EntryKey::Medium(_) => RECORD_BYTES_MAX,
        };
        self.membership.flood.own_bytes += bytes;
        if self.membership.flood.own_bytes > most
            && let Some(record) = self.membership.registry.record(self.me)
        {
            self.membership.flood.own_bytes = snapshot(self.me, record).len() + bytes;
        }
        self.membership.flood.own_bytes <= most
    }

    /// Sends a change of `node`'s record, encoded as `message`, to all neighbours except `except`. A leaf gets
    /// the change as it may see it.
    fn flood_change(
        &mut self,
        (node, version): (NodeId, u64),
        change: &Change,
        (message, except): (&Bytes, Option<NodeId>),
    ) {
        for &hop in self.membership.hops.keys().filter(|&&hop| Some(hop) != except) {
            let message = match self.membership.access.view(&self.membership.registry, hop) {
                None => message.clone(),
                Some(view) if view.shows(node) => {
                    let change = view.change(node, change.clone());
                    Message::Delta { node, version, change }.encode()
                }
                Some(_) => continue,
            };
            self.sends.push_back((hop, message));
        }
        (self.dirty, self.news) = (true, true);
    }

    /// Sends `node`'s record to all neighbours except `except`.
    fn flood_record(&mut self, node: NodeId, except: Option<NodeId>) {
        let hops: Vec<NodeId> =
            self.membership.hops.keys().copied().filter(|&hop| Some(hop) != except).collect();
        hops.into_iter().for_each(|hop| self.send_record(hop, node));
        (self.dirty, self.news) = (true, true);
    }

    /// Sends `node`'s record to a neighbour, as far as the neighbour may see it.
    fn send_record(&mut self, hop: NodeId, node: NodeId) {
        let Some(record) = self.membership.registry.record(node) else { return };
        let message = match self.membership.access.view(&self.membership.registry, hop) {
            None => snapshot(node, record),
            Some(view) if view.shows(node) => snapshot(node, &view.record(node, record)),
            Some(_) => return,
        };
        self.sends.push_back((hop, message));
    }

    /// Replaces the records that a neighbour has by those that it may see now.
    pub(in crate::control) fn show_again(&mut self, hop: NodeId) {
        self.send(hop, Message::Forget.encode());
        let tree = Tree::new(&self.membership.registry, self.me);
        let nodes: Vec<NodeId> =
            tree.records_outward(&self.membership.registry).map(|(node, _)| node).collect();
        nodes.into_iter().for_each(|node| self.send_record(hop, node));
    }

    pub(in crate::control) fn send(&mut self, hop: NodeId, message: Bytes) {
        self.sends.push_back((hop, message));
    }

    pub(in crate::control) fn receive(
        &mut self,
        from: NodeId,
        bytes: Bytes,
    ) -> Result<(), WireError> {
        if let Some(node) = self.too_frequent(from, &bytes) {
            self.membership.flood.dropped += 1;
            self.membership.flood.exceeded = Some(node);
            return Ok(());
        }
        self.check_record(from, &bytes)?;
        match Message::decode(bytes.clone())? {
            Message::Digest(versions) => self.receive_digest(from, versions),
            Message::Need(node) => self.send_record(from, node),
            // This node is the only authority on its own record.
            Message::Delta { node, version, .. } if node == self.me => self.outbid(version),
            Message::Snapshot { node, record } if node == self.me => self.outbid(record.version),
            Message::Delta { node, version, change } => {
                self.receive_delta((from, node), (version, change), &bytes)?;
            }
            Message::Snapshot { node, record } => {
                self.receive_snapshot((from, node), record, &bytes)?;
            }
            Message::Forget => {
                self.membership.registry.forget_from(from);
                self.membership.reach.topology_changed();
                (self.dirty, self.news) = (true, true);
            }
            Message::Token { node, token } => self.receive_token(from, node, token),
            Message::Question(errand, body) => self.receive_question(from, errand, body),
            // A leaf answers only for itself.
            Message::Answer(errand, _)
                if errand.from != from
                    && !self.membership.registry.is_own(from, errand.from)
                    && self.membership.access.is_leaf(&self.membership.registry, from) =>
            {
                self.contradictions += 1;
            }
            Message::Answer(errand, body) => self.receive_answer(errand, body),
            Message::Reserve(message) => self.receive_reservation(from, *message),
        }
        Ok(())
    }

    /// Returns the number of changes of other nodes' records that exceeded their budget and were dropped. Digests restore
    /// the newest state.
    #[must_use]
    pub const fn dropped_changes(&self) -> u64 {
        self.membership.flood.dropped
    }

    /// Returns the node whose record has exceeded its budget of changes since the last call.
    pub const fn take_exceeded(&mut self) -> Option<NodeId> {
        self.membership.flood.exceeded.take()
    }

    /// Returns the owner of the budget for a change of `node`'s record: a leaf pays for all processes of its host, and all
    /// leaves of one identity pay together.
    fn payer(&self, from: NodeId, node: NodeId) -> Payer {
        if !self.membership.access.is_leaf(&self.membership.registry, from) {
            return Payer::Node(node);
        }
        self.membership.access.proven(from).map_or(Payer::Node(from), Payer::Identity)
    }

    /// Returns the node that changes too often, if a message changes a record. Reads only its first bytes.
    fn too_frequent(&self, from: NodeId, bytes: &[u8]) -> Option<NodeId> {
        let change = RecordMessage::of(bytes)?;
        let node = change.changed().filter(|node| *node != self.me)?;
        let payer = self.payer(from, node);
        let is_over = self.membership.flood.pace.is_over(self.now, &payer);
        is_over.then_some(if payer == Payer::Node(node) { node } else { from })
    }

    fn receive_delta(
        &mut self,
        (from, node): (NodeId, NodeId),
        (version, change): (u64, Change),
        bytes: &Bytes,
    ) -> Result<(), WireError> {
        if !self.membership.access.may_deliver(&self.membership.registry, (from, node), None) {
            self.contradictions += 1;
            return Ok(());
        }
        let moves = matches!(change.key(), EntryKey::Neighbour(_));
        let kept = change.clone();
        if self.membership.registry.is_reachable(node)
            && !self.membership.reach.may_change(
                &self.membership.registry,
                self.me,
                (from, node),
                &change,
            )
        {
            // The node may have moved: its record then names a neighbour on the other side.
            self.ask_for(from, node);
            return Ok(());
        }
        let adds = !matches!(change, Change::Remove(_));
        if adds && version == self.membership.registry.version(node) + 1 {
            self.check_room((from, node), || Added::Change(bytes.len()))?;
        }
        match self.membership.registry.apply((node, version), (change, bytes.len()))? {
            Applied::New => {
                let payer = self.payer(from, node);
                self.membership.flood.pace.charge(self.now, payer, bytes.len());
                if moves {
                    self.membership.reach.topology_changed();
                }
                self.outputs.extend(Self::unread_change(node, &kept));
                self.flood_change((node, version), &kept, (bytes, Some(from)));
            }
            Applied::Old => {}
            Applied::Gap => self.ask_for(from, node),
        }
        Ok(())
    }

    /// Checks that a leaf with its identity has room for an addition to the registry. Otherwise its record is not requested
    /// again for a while, and the message is charged.
    fn check_room(
        &mut self,
        (from, node): (NodeId, NodeId),
        added: impl FnOnce() -> Added,
    ) -> Result<(), WireError> {
        if !self.membership.access.is_leaf(&self.membership.registry, from) {
            return Ok(());
        }
        let added = added();
        let checked = self.membership.registry.check_leaves(
            &self.membership.access.same_identity(from),
            node,
            added,
        );
        if checked.is_err() {
            self.membership.flood.ask_after(node, self.now + ASK_AFTER_EXCESS);
            let payer = self.payer(from, node);
            self.membership.flood.pace.charge(self.now, payer, added.bytes());
        }
        checked
    }

    /// Checks that a leaf has room for a whole record before its entries take memory.
    fn check_record(&mut self, from: NodeId, bytes: &Bytes) -> Result<(), WireError> {
        if !self.membership.access.is_leaf(&self.membership.registry, from) {
            return Ok(());
        }
        match Message::least_held(bytes)? {
            Some((node, held)) => self.check_room((from, node), || Added::Record(held)),
            None => Ok(()),
        }
    }

    fn ask_for(&mut self, from: NodeId, node: NodeId) {
        if self.membership.flood.ask(self.now, node) {
            self.send(from, Message::Need(node).encode());
        }
    }

    fn receive_snapshot(
        &mut self,
        (from, node): (NodeId, NodeId),
        record: Record,
        bytes: &Bytes,
    ) -> Result<(), WireError> {
        if record.version <= self.membership.registry.version(node)
            && !self.membership.registry.is_unconfirmed(self.now, (from, node))
        {
            return Ok(());
        }
        if !self.membership.access.may_deliver(
            &self.membership.registry,
            (from, node),
            Some(&record),
        ) {
            self.contradictions += 1;
            return Ok(());
        }
        // A node that nothing reaches may be on any side, and has no effect before it is linked.
        if self.membership.registry.is_reachable(node)
            && !self.membership.reach.may_deliver(
                &self.membership.registry,
                self.me,
                (from, node),
                &record,
            )
        {
            self.contradictions += 1;
            // If the topology changes just now, the neighbour repeats its records after the next digest.
            if let Some(digests) = self.membership.flood.digests.get_mut(&from) {
                digests.next = digests.next.min(self.now + ASK_EVERY);
            }
            return Ok(());
        }
        let held = || Added::Record(record.held_bytes().max(bytes.len()));
        self.check_room((from, node), held)?;
        let unread = self.unread_in(node, &record);
        let is_known = self.membership.registry.version(node) > 0;
        if self.membership.registry.replace(self.now, (from, node), (record, bytes.len()))?
            == Applied::New
        {
            let payer = self.payer(from, node);
            if is_known {
                self.membership.flood.pace.charge_again(self.now, payer, bytes.len());
            } else {
                self.membership.flood.pace.charge(self.now, payer, bytes.len());
            }
            self.outputs.extend(unread);
            self.membership.reach.topology_changed();
            self.membership.flood.asked.remove(&node);
            self.flood_record(node, Some(from));
        }
        Ok(())
    }

    /// Announces this node's record above a version that others claim to have.
    fn outbid(&mut self, version: u64) {
        // Each one costs a whole record, and a part of the versions that exist.
        let recent = self.membership.flood.outbid.is_some_and(|at| self.now < at + OUTBID_EVERY);
        if recent || self.membership.registry.outbid(version).is_none() {
            return;
        }
        self.membership.flood.outbid = Some(self.now);
        self.contradictions += 1;
        self.flood_record(self.me, None);
    }

    /// Sends the records that the neighbour lacks. If the neighbour has newer records, sends it a digest,
    /// unless it has just received one.
    ///
    /// Only records of reachable nodes are sent. Otherwise a dead node's record would pass for ever from
    /// nodes that still remember it to nodes that have forgotten it.
    fn receive_digest(&mut self, from: NodeId, versions: Vec<(NodeId, u64)>) {
        let theirs: BTreeMap<NodeId, u64> = versions.into_iter().collect();
        if let Some(&mine) = theirs.get(&self.me) {
            self.outbid(mine);
        }
        let tree = Tree::new(&self.membership.registry, self.me);
        // The neighbour accepts a node only behind nodes that it knows.
        let newer = |(node, record): (NodeId, &Record)| {
            (record.version > theirs.get(&node).copied().unwrap_or(0)).then_some(node)
        };
        let newer: Vec<NodeId> =
            tree.records_outward(&self.membership.registry).filter_map(newer).collect();
        newer.into_iter().for_each(|node| self.send_record(from, node));
        let behind = |(&node, &version): (&NodeId, &u64)| {
            node != self.me && version > self.membership.registry.version(node)
        };
        if theirs.iter().any(behind)
            && let Some(digests) = self.membership.flood.digests.get_mut(&from)
        {
            digests.next = digests.next.min(digests.last + ASK_EVERY);
            self.send_due_digests();
        }
    }

    /// Sends a digest of all records to a new neighbour, including those of unreachable nodes. These may be
    /// reachable through the neighbour, and then need not be sent again.
    pub(in crate::control) fn greet(&mut self, hop: NodeId) {
        let versions = self.membership.registry.all().map(|(node, record)| (node, record.version));
        let digest = self.digest(hop, versions);
        let bytes = digest.len();
        self.send(hop, digest);
        for (node, token) in self.membership.access.tokens(self.me).collect::<Vec<_>>() {
            self.send(hop, Message::Token { node, token }.encode());
        }
        self.membership.flood.sent(self.now, hop, bytes);
        for early in self.membership.flood.early.remove(&hop).unwrap_or_default() {
            self.rejected += u64::from(self.receive(hop, early).is_err());
        }
    }

    /// Returns the digest of `versions` for a neighbour: of the records that it may see.
    fn digest(&self, hop: NodeId, versions: impl Iterator<Item = (NodeId, u64)>) -> Bytes {
        let view = self.membership.access.view(&self.membership.registry, hop);
        let seen = versions.filter(|(node, _)| view.as_ref().is_none_or(|view| view.shows(*node)));
        Message::Digest(seen.collect()).encode()
    }

    pub(in crate::control) fn send_due_digests(&mut self) {
        let due =
            self.membership.flood.digests.iter().filter(|(_, digests)| digests.next <= self.now);
        let due: Vec<NodeId> = due.map(|(&hop, _)| hop).collect();
        if due.is_empty() {
            return;
        }
        let tree = Tree::new(&self.membership.registry, self.me);
        for hop in due {
            let records = tree.records(&self.membership.registry);
            let message = self.digest(hop, records.map(|(node, record)| (node, record.version)));
            self.membership.flood.sent(self.now, hop, message.len());
            self.send(hop, message);
        }
    }
}

#[cfg(test)]
#[path = "flood/tests.rs"]
mod tests;
