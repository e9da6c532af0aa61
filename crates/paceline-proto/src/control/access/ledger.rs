//! The use of rights by the pairs of this node.

use super::{Access, Missing};
use crate::control::booking::wanted;
use crate::control::pair::Pair;
use crate::control::registry::{PairKey, Registry};
use crate::ids::NodeId;
use crate::plan::SourceKey;
use crate::rights::{Lack, Right, Rights, StreamQuality, UsedQuota};
use std::collections::{BTreeMap, BTreeSet};

/// The use of each rule's quotas, by node and right.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    used: BTreeMap<(NodeId, Right), Vec<UsedQuota>>,
    /// The published sources that are counted. Their streams are shared by all subscriptions.
    sources: BTreeSet<(NodeId, SourceKey)>,
    /// The pairs that are counted, with the revision of their requests.
    pub(super) pairs: BTreeMap<PairKey, u64>,
    rights: BTreeMap<NodeId, Option<Rights>>,
}

impl Access {
    /// Counts a pair, if all nodes concerned have the rights for it.
    pub(super) fn take(
        &self,
        registry: &Registry,
        ledger: &mut Ledger,
        pair: &Pair<'_>,
        quality: StreamQuality,
    ) -> Result<(), Missing> {
        let (source, tag) = (pair.source(), &pair.spec.tag);
        let mut taken = Vec::new();
        for (right, end, beside) in [
            (Right::Publish, pair.publisher.node, pair.place.before),
            (Right::Subscribe, pair.subscription.node, pair.place.next),
        ] {
            let Some(beside) = beside else { continue };
            let end = self.origin(registry, beside, end);
            for of in BTreeSet::from([beside, end]) {
                let rights = ledger.rights.entry(of).or_insert_with(|| self.rights(registry, of));
                let Some(rights) = rights else { continue };
                if of == beside && beside != end && !rights.grants_node(Right::Relay) {
                    return Err((of, Lack::Right(Right::Relay)));
                }
                if tag.is_private() {
                    own_pull(pair, rights).map_err(|lack| (of, lack))?;
                    continue;
                }
                if right == Right::Publish && ledger.sources.contains(&(of, source)) {
                    continue;
                }
                let mut used = ledger.used.get(&(of, right)).cloned().unwrap_or_default();
                rights.take((right, tag), &quality, &mut used).map_err(|lack| (of, lack))?;
                taken.push((of, right, used));
            }
        }
        for (of, right, used) in taken {
            ledger.used.insert((of, right), used);
            if right == Right::Publish {
                ledger.sources.insert((of, source));
            }
        }
        ledger.pairs.insert(pair.key(), pair.request.revision);
        Ok(())
    }
}

/// Checks a stream of pulled samples: the holder has checked the pull itself, and only the puller may
/// subscribe.
fn own_pull(pair: &Pair<'_>, rights: &Rights) -> Result<(), Lack> {
    let own = format!("@pull/{}/", pair.subscription.node);
    let allowed = pair.spec.tag.as_str().starts_with(&own) && !rights.is_empty();
    if allowed { Ok(()) } else { Err(Lack::Right(Right::Pull)) }
}

/// Returns the demand of a pair's stream on the links of its path.
pub(super) fn quality(pair: &Pair<'_>) -> StreamQuality {
    let form = pair.travelling();
    let period = form.rate.period(pair.spec.period).filter(|period| !period.is_zero());
    let millihertz = period.map(|period| 1_000_000_000_000 / period.as_nanos());
    let contract = pair.request.wants_contract();
    let promised = contract.then(|| wanted(pair.publisher, pair.spec, pair.request, pair.split()));
    let promised = promised.flatten().map(|(wanted, _)| wanted.traffic.rate().div_ceil(8));
    let plain = pair.spec.bytes_max.filter(|_| form.size.is_none() && form.audio.is_none());
    let plain =
        plain.zip(millihertz).map(|(bytes, rate)| bytes.saturating_mul(rate).div_ceil(1_000));
    StreamQuality {
        millihertz,
        bytes_per_s: promised.or(plain),
        contract,
        within: pair.request.within,
        link_bytes_per_s: None,
    }
}
