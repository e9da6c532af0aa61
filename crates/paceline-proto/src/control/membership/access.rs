//! Rights: which pairs, reservations, questions and records this node allows, by its [`AccessPolicy`].
//!
//! Without a policy everything is allowed. With one, a node needs rights to use this node: as the neighbour
//! that a stream or message comes from or leads to, and as the publisher's or subscription's node behind it. A
//! neighbour without the right to relay is a *leaf*. Its records of other nodes are ignored, no path leads
//! through it, and it sees only what its rights concern ([`view`]).

mod announced;
mod leaves;
mod ledger;
#[cfg(test)]
mod tests;
mod view;

use super::blank::blank;
use super::message::{Message, TOKEN_BYTES_MAX};
use super::registry::{Change, REFUSALS_MAX, Record, Registry};
use crate::control::Control;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{ANY, Refusal, RefusalReason};
use crate::control::data::route::RoutedStream;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::rights::{AccessPolicy, Lack, PeerName, Right, Rights, StreamQuality};
use crate::tag::Tag;
use announced::Announced;
use bytes::Bytes;
use ledger::{Ledger, RightsByNode};
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most tokens of other nodes.
pub const TOKENS_MAX: usize = 1_024;

/// The missing right of a node.
pub(in crate::control) type Missing = (NodeId, Lack);

/// The node that asks a question, as the neighbour that delivered it knows it.
#[derive(Clone, Debug)]
pub(in crate::control) struct Asker {
    /// The neighbour; this node itself for its own questions.
    pub(in crate::control) via: NodeId,
    pub(in crate::control) node: NodeId,
    /// The identity of a node beyond the processes of this host, which a process of this host states.
    pub(in crate::control) who: Option<PeerName>,
}

/// The reason why this node does not carry a pair.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::control) enum Blocked {
    /// A node lacks a right.
    Rights(NodeId, Lack),
    /// This link of the pair's path is not encrypted, and the subscription requires it.
    Unencrypted(String),
}

/// A stream whose ends and relays need rights at this node.
pub(in crate::control) trait PassingStream: RoutedStream {
    /// Returns its demands on the hops to and from this node, which differ if this node scales it between the ends.
    fn qualities(&self, registry: &Registry) -> [StreamQuality; 2];
}

/// Returns the name of an unencrypted link of this node on the path of a pair that requires encryption.
fn open_link<'r>(registry: &'r Registry, pair: &impl PassingStream) -> Option<&'r str> {
    if !pair.request().encrypted {
        return None;
    }
    let mine = registry.record(registry.me())?;
    let hops = [pair.place().before, pair.place().next].into_iter().flatten();
    let open = |hop| mine.neighbours.get(&hop).filter(|hop| !hop.encrypted);
    hops.filter_map(open).map(|hop| hop.link_name.as_str()).next()
}

fn refusal(registry: &Registry, key: PairKey, blocked: &Blocked) -> Refusal {
    let name = |of| registry.record(of).map(|record| record.name.clone());
    let (reason, link) = match blocked {
        &Blocked::Rights(of, lack) => {
            (RefusalReason::Rights { of, lack }, name(of).unwrap_or_default())
        }
        Blocked::Unencrypted(link) => (RefusalReason::Unencrypted, link.clone()),
    };
    Refusal { link, ..blank(key, registry.me(), registry, reason) }
}

/// The rights of other nodes at this one, and their use.
#[derive(Debug, Default)]
pub(in crate::control) struct Access {
    policy: Option<AccessPolicy>,
    /// The identities of the neighbours.
    peers: BTreeMap<NodeId, PeerName>,
    /// The rights that nodes have by tokens, and the tokens.
    tokens: BTreeMap<NodeId, (Rights, Bytes)>,
    /// This node's own token.
    own_token: Option<Bytes>,
    /// The tokens that neighbours have shown, until [`Control::poll_token`] returns them; at most [`TOKENS_MAX`].
    shown: VecDeque<(NodeId, Bytes)>,
    announced: Announced,
    /// The use of quotas by the pairs of the last round.
    ledger: Ledger,
    /// The neighbours whose identities had too many pairs in the last round.
    over: BTreeSet<NodeId>,
}

impl Access {
    /// Returns the instant at which to announce further refusals.
    pub(in crate::control) const fn wake_at(&self) -> Instant {
        self.announced.wake_at()
    }

    /// Returns the rights of a node; `None` if nothing is restricted.
    pub(in crate::control) fn rights(&self, registry: &Registry, node: NodeId) -> Option<Rights> {
        let policy = self.policy.as_ref()?;
        if node == registry.me() {
            return None;
        }
        let granted = match self.peers.get(&node) {
            Some(peer) => policy.rights_of(peer),
            None => registry
                .record(node)
                .map_or_else(Rights::default, |record| policy.rights_of_name(&record.name)),
        };
        Some(self.with_token(node, granted))
    }

    /// Returns the name by which rules grant rights to a node.
    fn rule_name(&self, registry: &Registry, node: NodeId) -> String {
        match (self.peers.get(&node), registry.record(node)) {
            (Some(peer), _) => peer.rule_name(),
            (None, Some(record)) => record.name.clone(),
            (None, None) => PeerName::Unknown.rule_name(),
        }
    }

    /// Returns true if this node has a policy.
    pub(in crate::control) const fn is_restricted(&self) -> bool {
        self.policy.is_some()
    }

    /// Returns the node whose rights count for `node` behind the neighbour `via`: `via` itself if it is a
    /// process of this host, and the node of its host if `node` is one process of several there.
    fn origin(&self, registry: &Registry, via: NodeId, node: NodeId) -> NodeId {
        if self.is_host(via) {
            return via;
        }
        if self.peers.contains_key(&node) {
            return node;
        }
        let mut neighbours = registry.record(node).into_iter().flat_map(|it| it.neighbours.keys());
        neighbours.find(|&&host| registry.is_own(host, node)).copied().unwrap_or(node)
    }

    /// Forgets the identity of a former neighbour.
    pub(in crate::control) fn handle_hop_down(&mut self, node: NodeId) {
        self.peers.remove(&node);
    }

    /// Notes that a node becomes a neighbour. Without an identity it is unknown.
    pub(in crate::control) fn handle_hop_up(&mut self, node: NodeId) {
        self.peers.entry(node).or_insert(PeerName::Unknown);
    }

    /// Returns the tokens to show to neighbours, of this node and of others.
    pub(in crate::control) fn tokens(&self, me: NodeId) -> impl Iterator<Item = (NodeId, Bytes)> {
        let own = self.own_token.iter().map(move |token| (me, token.clone()));
        own.chain(self.tokens.iter().map(|(&node, (_, token))| (node, token.clone())))
    }

    /// Returns true if the node is restricted and may not relay.
    pub(in crate::control) fn is_leaf(&self, registry: &Registry, node: NodeId) -> bool {
        self.rights(registry, node).is_some_and(|rights| !rights.grants_node(Right::Relay))
    }

    /// Returns true if a neighbour may deliver `record` of `node`. A leaf delivers only its own record and
    /// those of the processes of its host, and the record of a neighbour with a certificate has the name in it.
    pub(in crate::control) fn may_deliver(
        &self,
        registry: &Registry,
        (from, node): (NodeId, NodeId),
        record: Option<&Record>,
    ) -> bool {
        let named = match (self.peers.get(&from), record) {
            (Some(PeerName::Certified(name)), Some(record)) if node == from => record.name == *name,
            _ => true,
        };
        let joins = |record: &Record| record.neighbours.contains_key(&from);
        let own = from == node
            || registry.is_own(from, node)
            || registry.claims(from, node) && record.is_some_and(joins);
        self.policy.is_none() || named && (own || !self.is_leaf(registry, from))
    }

    /// Checks the rights that a question needs: those of the neighbour that delivered it, and of the node that asks. Returns
    /// true if they are somebody else's, and not only those of this host's processes.
    ///
    /// # Errors
    /// Returns the node and the right that it lacks.
    pub(in crate::control) fn check(
        &self,
        registry: &Registry,
        asker: &Asker,
        needed: impl Fn(&Rights) -> Result<(), Lack>,
    ) -> Result<bool, Missing> {
        let Some(policy) = &self.policy else { return Ok(false) };
        let via = asker.via;
        let node = self.origin(registry, via, asker.node);
        for of in BTreeSet::from([via, node]) {
            let Some(rights) = self.rights(registry, of) else { continue };
            needed(&rights).map_err(|lack| (of, lack))?;
            if of == via && via != node && !rights.grants_node(Right::Relay) {
                return Err((via, Lack::Right(Right::Relay)));
            }
        }
        if !self.is_host(via) {
            return Ok(true);
        }
        let Some(who) = &asker.who else { return Ok(false) };
        let rights = self.with_token(asker.node, policy.rights_of(who));
        needed(&rights).map_err(|lack| (asker.node, lack))?;
        Ok(true)
    }

    /// Returns the identity to state for a question that is passed on. Nodes of other hosts know the nodes by their records,
    /// but for the processes of this host all come from this one.
    pub(in crate::control) fn identity(
        &self,
        registry: &Registry,
        asker: Asker,
    ) -> Option<PeerName> {
        let via = asker.via;
        if via == registry.me() {
            return None;
        }
        // A process without a policy lets in whom it likes: for the others of its host, they count as its own.
        if self.is_host(via) || self.policy.is_none() {
            return asker.who;
        }
        let node = self.origin(registry, via, asker.node);
        let known = self.peers.get(&node).filter(|peer| **peer != PeerName::Host);
        let named = || match registry.record(node) {
            Some(record) if node != via && !self.is_host(node) => {
                PeerName::Certified(record.name.clone())
            }
            // It claims to be a process of this host.
            Some(_) | None => self.peers.get(&via).cloned().unwrap_or(PeerName::Unknown),
        };
        Some(known.cloned().unwrap_or_else(named))
    }

    /// Returns true if the neighbour is a process of this host and user.
    fn is_host(&self, node: NodeId) -> bool {
        self.peers.get(&node) == Some(&PeerName::Host)
    }

    /// Returns the rights of a node together with those by its token.
    fn with_token(&self, node: NodeId, granted: Rights) -> Rights {
        match self.tokens.get(&node) {
            Some((token, _)) => granted.with(token),
            None => granted,
        }
    }

    /// Returns the pairs that this node does not allow, each with the reason.
    pub(in crate::control) fn blocked<'p, P: PassingStream + 'p>(
        &mut self,
        registry: &Registry,
        pairs: impl Iterator<Item = &'p P>,
    ) -> BTreeMap<PairKey, Blocked> {
        let mut ledger = Ledger::default();
        let mut rights = RightsByNode::new();
        let mut blocked = BTreeMap::new();
        for pair in pairs {
            if let Some(link) = open_link(registry, pair) {
                blocked.insert(pair.key(), Blocked::Unencrypted(link.to_owned()));
                continue;
            }
            let counted = ledger.counts(pair.key()) || blocked.contains_key(&pair.key());
            if self.policy.is_none() || counted {
                continue;
            }
            let qualities = pair.qualities(registry);
            match self.check_pair(registry, (&ledger, &mut rights), pair, &qualities) {
                Ok(taken) => ledger.add(pair, taken),
                Err((of, lack)) => _ = blocked.insert(pair.key(), Blocked::Rights(of, lack)),
            }
        }
        self.ledger = ledger;
        blocked
    }

    /// Returns the refusal that a pair would get if it were new.
    pub(in crate::control) fn prospect(
        &self,
        registry: &Registry,
        pair: &impl PassingStream,
    ) -> Option<Refusal> {
        let why = if let Some(link) = open_link(registry, pair) {
            Blocked::Unencrypted(link.to_owned())
        } else if self.policy.is_none() {
            return None;
        } else {
            let ledger = (&self.ledger, &mut RightsByNode::new());
            let checked = self.check_pair(registry, ledger, pair, &pair.qualities(registry));
            let (of, lack) = checked.err()?;
            Blocked::Rights(of, lack)
        };
        Some(refusal(registry, pair.key(), &why))
    }

    /// Checks a reservation of `bits_per_s` on the hops to and from this node, for a pair that the last round may not have
    /// seen.
    pub(in crate::control) fn admits(
        &self,
        registry: &Registry,
        pair: &impl PassingStream,
        bits_per_s: [u64; 2],
    ) -> Result<(), ()> {
        let over = |node: Option<NodeId>| node.is_some_and(|node| self.over.contains(&node));
        let too_many = over(pair.place().before) || over(pair.place().next);
        if open_link(registry, pair).is_some() || too_many && !self.ledger.counts_request(pair) {
            return Err(());
        }
        if self.policy.is_none() {
            return Ok(());
        }
        let [to, from] = pair.qualities(registry);
        let asked = bits_per_s.map(|bits| bits.div_ceil(8));
        let fits = |(declared, asked): (&StreamQuality, u64)| {
            declared.bytes_per_s.is_some_and(|declared| asked <= declared)
        };
        let within_declared = [&to, &from].into_iter().zip(asked).all(fits);
        if within_declared && self.ledger.counts_request(pair) {
            return Ok(());
        }
        let [bytes_to, bytes_from] = asked;
        let of = |declared, bytes| StreamQuality {
            bytes_per_s: Some(bytes),
            contract: true,
            ..declared
        };
        let ledger = (&self.ledger, &mut RightsByNode::new());
        let qualities = [of(to, bytes_to), of(from, bytes_from)];
        self.check_pair(registry, ledger, pair, &qualities).map(drop).map_err(drop)
    }

    /// Returns the refusals of `blocked` pairs, and of whole subscriptions and publishers of the neighbours
    /// `hops`.
    pub(in crate::control) fn refusals(
        &self,
        registry: &Registry,
        hops: impl Iterator<Item = NodeId>,
        blocked: &BTreeMap<PairKey, Blocked>,
    ) -> BTreeMap<PairKey, Refusal> {
        let mut refused = BTreeMap::new();
        let mut refuse = |key: PairKey, blocked: &Blocked, revision| {
            refused.insert(key, Refusal { revision, ..refusal(registry, key, blocked) });
        };
        for (&key, why) in blocked {
            let request = registry.record(key.0.node).and_then(|it| it.subscriptions.get(&key.0));
            refuse(key, why, request.map_or(0, |request| request.revision));
        }
        let own = |hop: NodeId| self.processes(registry, hop).chain([hop]);
        for (hop, node) in hops.flat_map(|hop| own(hop).map(move |node| (hop, node))) {
            let rights = self.rights(registry, hop);
            let Some((rights, record)) = rights.zip(registry.record(node)) else { continue };
            for (&id, spec) in &record.subscriptions {
                let granted = rights.grants_part_of(Right::Subscribe, &spec.pattern);
                if !granted && !spec.local && !spec.pattern.is_private() {
                    let every = PublisherId { node: registry.me(), index: ANY };
                    let missing = Blocked::Rights(hop, Lack::Right(Right::Subscribe));
                    refuse((id, every), &missing, spec.revision);
                }
            }
            for (&id, spec) in &record.publishers {
                if !rights.grants(Right::Publish, &spec.tag) && !spec.tag.is_private() {
                    let every = SubscriptionId { node: registry.me(), index: ANY };
                    refuse((every, id), &Blocked::Rights(hop, Lack::Right(Right::Publish)), 0);
                }
            }
        }
        while refused.len() > REFUSALS_MAX / 2 {
            refused.pop_last();
        }
        refused
    }
}

impl Control {
    /// Sets the rules by which this node carries streams, answers questions and shows records. Defaults to
    /// `None`, which allows everything.
    pub fn set_policy(&mut self, now: Instant, policy: Option<AccessPolicy>) {
        self.advance(now);
        if self.membership.access.policy != policy {
            let before = self.all_rights();
            self.membership.access.policy = policy;
            self.follow_rights(&before);
        }
    }

    /// Sets the identity of a neighbour. Call it before [`Self::handle_hop_up`]; a neighbour without one is
    /// [`PeerName::Unknown`].
    pub fn set_peer(&mut self, now: Instant, node: NodeId, peer: PeerName) {
        self.advance(now);
        if self.membership.access.peers.get(&node) != Some(&peer) {
            let before = self.all_rights();
            self.membership.access.peers.insert(node, peer);
            self.follow_rights(&before);
        }
    }

    /// Sets the token that this node shows to its neighbours, at most [`TOKEN_BYTES_MAX`] bytes; a longer one
    /// is counted in [`Self::rejected`].
    pub fn show_token(&mut self, now: Instant, token: Bytes) {
        self.advance(now);
        if token.len() > TOKEN_BYTES_MAX {
            self.rejected += 1;
            return;
        }
        self.membership.access.own_token = Some(token.clone());
        self.spread_token(self.me, &token, None);
    }

    /// Sets the rights that a node has by a token from [`Self::poll_token`], in addition to those by the
    /// policy, and passes the token on. `None` ends them. Beyond [`TOKENS_MAX`] tokens, a new one is counted
    /// in [`Self::rejected`].
    pub fn set_token(&mut self, now: Instant, node: NodeId, token: Option<(Rights, Bytes)>) {
        self.advance(now);
        if self.membership.access.tokens.get(&node) == token.as_ref() {
            return;
        }
        let before = self.all_rights();
        match token {
            Some((rights, token)) => {
                let known = self.membership.access.tokens.contains_key(&node);
                if !known && self.membership.access.tokens.len() >= TOKENS_MAX {
                    self.rejected += 1;
                    return;
                }
                self.membership.access.tokens.insert(node, (rights, token.clone()));
                self.spread_token(node, &token, Some(node));
            }
            None => _ = self.membership.access.tokens.remove(&node),
        }
        self.follow_rights(&before);
    }

    fn spread_token(&mut self, node: NodeId, token: &Bytes, except: Option<NodeId>) {
        let message = Message::Token { node, token: token.clone() }.encode();
        let hops: Vec<NodeId> =
            self.membership.hops.keys().copied().filter(|&hop| Some(hop) != except).collect();
        hops.into_iter().for_each(|hop| self.send(hop, message.clone()));
    }

    /// Handles a token that `from` delivered. A leaf delivers only its own.
    pub(in crate::control) fn receive_token(&mut self, from: NodeId, node: NodeId, token: Bytes) {
        let may = node == from || !self.membership.access.is_leaf(&self.membership.registry, from);
        let known =
            self.membership.access.tokens.get(&node).is_some_and(|(_, known)| *known == token);
        if !may || known || node == self.me || self.membership.access.policy.is_none() {
            return;
        }
        if self.membership.access.shown.len() >= TOKENS_MAX {
            self.rejected += 1;
            return;
        }
        self.membership.access.shown.push_back((node, token));
    }

    /// Returns the next token that a node shows, which its neighbour delivered. Verify it, and pass the result to
    /// [`Self::set_token`].
    ///
    /// Call this after each [`Self::handle_message`] and [`Self::handle_hop_up`] until it returns `None`, and before
    /// [`Self::poll_output`]. Otherwise the records of the node, which arrive after its token, are decided on without the
    /// rights of the token, and are passed on before it.
    pub fn poll_token(&mut self) -> Option<(NodeId, Bytes)> {
        self.membership.access.shown.pop_front()
    }

    /// Returns the accepted tokens of other nodes.
    pub fn tokens(&self) -> impl Iterator<Item = (NodeId, Bytes)> + '_ {
        self.membership.access.tokens.iter().map(|(&node, (_, token))| (node, token.clone()))
    }

    /// Returns the tag of a publisher of any known node.
    #[must_use]
    pub fn tag_of(&self, publisher: PublisherId) -> Option<&Tag> {
        Some(&self.membership.registry.record(publisher.node)?.publishers.get(&publisher)?.tag)
    }

    fn all_rights(&self) -> BTreeMap<NodeId, Option<Rights>> {
        self.membership
            .hops
            .keys()
            .map(|&hop| (hop, self.membership.access.rights(&self.membership.registry, hop)))
            .collect()
    }

    /// Applies changed rights to the links and to the view of each neighbour.
    fn follow_rights(&mut self, before: &BTreeMap<NodeId, Option<Rights>>) {
        self.dirty = true;
        let hops: Vec<NodeId> = self.membership.hops.keys().copied().collect();
        for hop in hops {
            let leaf = self.membership.access.is_leaf(&self.membership.registry, hop);
            let Some(info) = self.membership.hops.get_mut(&hop) else { continue };
            if info.leaf != leaf {
                info.leaf = leaf;
                let info = info.clone();
                self.announce(Change::HopUp(hop, info), None);
            }
            if before.get(&hop)
                != Some(&self.membership.access.rights(&self.membership.registry, hop))
            {
                self.show_again(hop);
            }
        }
    }
}
