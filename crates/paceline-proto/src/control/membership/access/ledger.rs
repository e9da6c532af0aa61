//! The use of rights by the pairs of this node.

use super::{Access, Missing, PassingStream};
use crate::control::data::ids::PairKey;
use crate::control::membership::registry::Registry;
use crate::entry::EntryLimit;
use crate::ids::NodeId;
use crate::plan::SourceKey;
use crate::rights::{Lack, Right, Rights, RuleUse, StreamQuality};
use crate::tag::Tag;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The identity that uses rights, as a rule names it. A certificate, an account or the processes of this host use each quota
/// once, however many nodes they start; so do all peers without an identity together.
type Identity = Arc<str>;

/// The use of each rule's quotas, by identity and right.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    used: BTreeMap<(Identity, Right), RuleUse>,
    /// The published sources that are counted. Their streams are shared by all subscriptions.
    sources: BTreeSet<(Identity, SourceKey)>,
    /// The pairs that are counted, with the revision of their requests.
    pairs: BTreeMap<PairKey, u64>,
}

/// The use of quotas after one more pair: the changed entries of a [`Ledger`].
type Taken = Vec<((Identity, Right), RuleUse)>;

/// The rights of the nodes that one pass over the pairs has looked up, and their identities; `None` if nothing is restricted.
pub(super) type RightsByNode = BTreeMap<NodeId, Option<(Identity, Rights)>>;

impl Ledger {
    /// Returns true if the pair is counted.
    pub(super) fn counts(&self, key: PairKey) -> bool {
        self.pairs.contains_key(&key)
    }

    /// Returns true if the pair is counted with this revision of its request.
    pub(super) fn counts_request(&self, pair: &impl PassingStream) -> bool {
        self.pairs.get(&pair.key()) == Some(&pair.request().revision)
    }

    /// Counts a pair that was checked with [`Access::check_pair`].
    pub(super) fn add(&mut self, pair: &impl PassingStream, taken: Taken) {
        for (key, used) in taken {
            if key.1 == Right::Publish {
                self.sources.insert((key.0.clone(), pair.source()));
            }
            self.used.insert(key, used);
        }
        self.pairs.insert(pair.key(), pair.request().revision);
    }
}

impl Access {
    /// Returns the limits of the samples of a publisher that arrive from these neighbours: its own limits, and the limits of
    /// each relay. With `contracted`, they leave this node under a contract.
    pub(in crate::control) fn entry_limits(
        &self,
        registry: &Registry,
        (publisher, tag): (NodeId, &Tag),
        (from, contracted): (&BTreeSet<NodeId>, bool),
    ) -> Vec<EntryLimit> {
        if self.policy.is_none() || tag.is_private() {
            return Vec::new();
        }
        let ends = |&via: &NodeId| [via, self.origin(registry, via, publisher)];
        let all: BTreeSet<NodeId> = from.iter().flat_map(ends).collect();
        let of = |of: NodeId| {
            let limits = self.rights(registry, of)?.limits(Right::Publish, tag);
            let (millihertz, bytes_per_s, rules) = limits;
            millihertz.or(bytes_per_s)?;
            let payer = format!("{} {rules:?}", self.rule_name(registry, of)).into();
            Some(EntryLimit { payer, millihertz, bytes_per_s, contracted })
        };
        all.into_iter().filter_map(of).collect()
    }

    /// Checks that all nodes concerned have the rights for a pair, besides the pairs that `ledger` counts.
    pub(super) fn check_pair(
        &self,
        registry: &Registry,
        (ledger, rights): (&Ledger, &mut RightsByNode),
        pair: &impl PassingStream,
        [arriving, leaving]: &[StreamQuality; 2],
    ) -> Result<Taken, Missing> {
        let (source, tag, place) = (pair.source(), &pair.spec().tag, pair.place());
        let (subscription, publisher) = pair.key();
        let mut taken = Taken::new();
        for (right, end, neighbour, quality) in [
            (Right::Publish, publisher.node, place.before, arriving),
            (Right::Subscribe, subscription.node, place.next, leaving),
        ] {
            let Some(neighbour) = neighbour else { continue };
            let end = self.origin(registry, neighbour, end);
            for of in BTreeSet::from([neighbour, end]) {
                let known = rights.entry(of).or_insert_with(|| {
                    Some((self.rule_name(registry, of).into(), self.rights(registry, of)?))
                });
                let Some((identity, rights)) = known else { continue };
                if of == neighbour && neighbour != end && !rights.grants_node(Right::Relay) {
                    return Err((of, Lack::Right(Right::Relay)));
                }
                if tag.is_private() {
                    own_pull(pair, rights).map_err(|lack| (of, lack))?;
                    continue;
                }
                let key = (identity.clone(), source);
                if right == Right::Publish && ledger.sources.contains(&key) {
                    continue;
                }
                let key = (key.0, right);
                let mut used = ledger.used.get(&key).cloned().unwrap_or_default();
                rights.take((right, tag), quality, &mut used).map_err(|lack| (of, lack))?;
                // The node and its neighbour may be the same identity, which uses its quota once.
                if taken.iter().all(|(counted, _)| *counted != key) {
                    taken.push((key, used));
                }
            }
        }
        Ok(taken)
    }
}

/// Checks a stream of pulled samples: the holder has checked the pull itself, and only the puller may
/// subscribe.
fn own_pull(pair: &impl PassingStream, rights: &Rights) -> Result<(), Lack> {
    let own = format!("@pull/{}/", pair.key().0.node);
    let allowed = pair.spec().tag.as_str().starts_with(&own) && !rights.is_empty();
    if allowed { Ok(()) } else { Err(Lack::Right(Right::Pull)) }
}
