//! The pairs that leaves cause. Each pair costs a node processor time at each decision, so those of one identity are limited
//! where it is a neighbour.

use super::registry::REFUSALS_MAX;
use crate::control::data::ids::PairKey;
use crate::control::data::route::WantedStream;
use crate::control::data::spec::SubscriptionSpec;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::rights::{Lack, Quota, Right, Rights};
use crate::tag::Tag;
use core::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The most pairs of one identity. Each takes about 3 us of a decision.
const PAIRS_MAX: usize = 16_384;
/// The most pairs of one identity for which an end lacks a right, and of two identities with each other.
const FEW_MAX: usize = 4_096;
/// The most pairs of a round that are refused because of their number, each by name.
pub(in crate::control) const NAMED_MAX: usize = REFUSALS_MAX / 2;

pub(in crate::control) type Asked<'a> = (SubscriptionId, &'a SubscriptionSpec);

/// The ends and the tag of pairs.
pub(in crate::control) struct PairOf<'a> {
    pub(in crate::control) subscription: NodeId,
    pub(in crate::control) publisher: NodeId,
    pub(in crate::control) tag: &'a Tag,
}

impl<'a> PairOf<'a> {
    pub(in crate::control) fn of(stream: &WantedStream<'a>) -> Self {
        let (subscription, publisher) = (stream.key.0.node, stream.key.1.node);
        Self { subscription, publisher, tag: &stream.spec.tag }
    }
}

/// An identity whose neighbours are leaves.
#[derive(Debug)]
struct Identity {
    rights: Rights,
    /// True if it had too many pairs in the last round. Then it gets pairs again below 7/8 of the limit.
    was_over: bool,
}

/// The pairs that are counted together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Account {
    /// The pairs of an identity with this node and those that are not limited.
    Own(usize),
    /// The pairs of two identities, so that none of them costs the other its other pairs.
    Between(usize, usize),
    /// The pairs for which an identity lacks a right, so that nobody loses streams by matches that it did not ask for.
    Lacking(usize, Right),
}

/// The pairs of each account in one round of decisions.
#[derive(Debug, Default)]
pub(in crate::control) struct Allowance {
    identities: Vec<Identity>,
    /// The leaves and the processes of their hosts, each with a neighbour and its identity.
    nodes: BTreeMap<NodeId, (NodeId, usize)>,
    used: RefCell<BTreeMap<Account, usize>>,
    /// True if an account has used more than its limit.
    exceeded: Cell<bool>,
    /// The pairs with a contract at this node: they stay.
    reserved: BTreeSet<PairKey>,
}

impl Allowance {
    pub(in crate::control) fn new(reserved: BTreeSet<PairKey>) -> Self {
        Self { reserved, ..Self::default() }
    }

    /// Adds an identity, and returns its place.
    pub(in crate::control) fn add_identity(&mut self, rights: Rights, was_over: bool) -> usize {
        self.identities.push(Identity { rights, was_over });
        self.identities.len() - 1
    }

    /// Adds the neighbour `leaf` or a process of its host.
    pub(in crate::control) fn add_node(&mut self, leaf: NodeId, node: NodeId, identity: usize) {
        self.nodes.entry(node).or_insert((leaf, identity));
    }

    /// Returns true if no pairs are limited.
    pub(in crate::control) fn is_unlimited(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the account of the pairs of two nodes with a tag; `None` if they are not limited.
    fn account(&self, of: &PairOf<'_>) -> Option<Account> {
        let identity = |node: &NodeId| self.nodes.get(node).map(|(_, identity)| *identity);
        let [asks, sends] = [&of.subscription, &of.publisher].map(identity);
        if asks.or(sends).is_none() || of.tag.is_private() {
            return None;
        }
        let lacks = |identity: usize, right| {
            let rights = self.identities.get(identity).map(|identity| &identity.rights);
            rights.is_some_and(|rights| !rights.grants(right, of.tag))
        };
        let ends = [(asks, Right::Subscribe), (sends, Right::Publish)];
        let mut ends = ends.into_iter().filter_map(|(identity, right)| Some((identity?, right)));
        if let Some((identity, right)) = ends.find(|(identity, right)| lacks(*identity, *right)) {
            return Some(Account::Lacking(identity, right));
        }
        Some(match (asks, sends) {
            (Some(one), Some(other)) if one != other => {
                Account::Between(one.min(other), one.max(other))
            }
            _ => Account::Own(asks.or(sends)?),
        })
    }

    fn limit(&self, account: Account) -> usize {
        match account {
            Account::Own(identity) => {
                let was_over = self.identities.get(identity).is_some_and(|it| it.was_over);
                if was_over { PAIRS_MAX / 8 * 7 } else { PAIRS_MAX }
            }
            Account::Between(..) | Account::Lacking(..) => FEW_MAX,
        }
    }

    /// Passes the subscriptions of one node to `add`, which returns true if it adds a pair with the publisher, until their
    /// account has exceeded its limit. Those with a contract are always passed.
    pub(in crate::control) fn take<'a>(
        &self,
        (publisher, tag): (PublisherId, &Tag),
        asked: &[Asked<'a>],
        add: &mut impl FnMut(Asked<'a>) -> bool,
    ) {
        let Some(first) = asked.first() else { return };
        let of = PairOf { subscription: first.0.node, publisher: publisher.node, tag };
        let account = self.account(&of);
        for &it in asked {
            match account {
                Some(account) if self.is_over(account) => {
                    if self.reserved.contains(&(it.0, publisher)) {
                        add(it);
                    }
                }
                Some(account) => {
                    if add(it) {
                        self.count(account);
                    }
                }
                None => _ = add(it),
            }
        }
    }

    /// Returns true if an account has exceeded its limit.
    pub(in crate::control) const fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// Counts a pair of this account.
    fn count(&self, account: Account) {
        *self.used.borrow_mut().entry(account).or_default() += 1;
        if self.is_over(account) {
            self.exceeded.set(true);
        }
    }

    /// Returns true if the pairs of this account have exceeded their limit.
    fn is_over(&self, account: Account) -> bool {
        self.used.borrow().get(&account).is_some_and(|used| *used > self.limit(account))
    }

    /// Returns true if a pair that was counted is not carried, because its account has exceeded its limit.
    pub(in crate::control) fn drops(
        &self,
        key: PairKey,
        of: &PairOf<'_>,
    ) -> Option<(NodeId, Lack)> {
        if self.reserved.contains(&key) {
            return None;
        }
        let account = self.account(of).filter(|account| self.is_over(*account))?;
        Some(match account {
            Account::Lacking(identity, right) => {
                (self.end(of, identity, right), Lack::Right(right))
            }
            Account::Own(identity) | Account::Between(identity, _) => {
                let asks = self.nodes.get(&of.subscription).is_some_and(|(_, it)| *it == identity);
                let right = if asks { Right::Subscribe } else { Right::Publish };
                let limit = self.limit(account) as u64;
                let quota = Quota::Streams;
                let lack = Lack::Quota { right, quota, asked: Some(limit + 1), limit };
                (self.end(of, identity, right), lack)
            }
        })
    }

    /// Returns the neighbour of the identity at the end of a pair that needs the right.
    fn end(&self, of: &PairOf<'_>, identity: usize, right: Right) -> NodeId {
        let end = if right == Right::Publish { of.publisher } else { of.subscription };
        let node = self.nodes.get(&end).filter(|(_, it)| *it == identity);
        node.map_or(end, |(leaf, _)| *leaf)
    }

    /// Returns the neighbours whose identities have too many pairs of their own.
    pub(in crate::control) fn over(&self) -> BTreeSet<NodeId> {
        let over = |(_, identity): &&(NodeId, usize)| self.is_over(Account::Own(*identity));
        self.nodes.values().filter(over).map(|(leaf, _)| *leaf).collect()
    }
}
