//! The announced refusals for lack of rights.
//!
//! A refusal is part of this node's record, so all nodes get it. A node that repeats refused requests causes only
//! [`BURST`] of them at once, and [`PER_S`] per second for long. The others are announced later if their requests still stand.

use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{ANY, Refusal, RefusalReason};
use crate::control::membership::registry::{Change, EntryKey};
use crate::control::{Control, ControlOutput};
use crate::ids::NodeId;
use crate::rights::Right;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The refusals of one node that are announced at once, and those per second for long.
const BURST: u64 = 256;
const PER_S: u64 = 20;
/// The time after which further ones are announced: each time costs a decision.
const AGAIN: Duration = Duration::from_secs(1);
/// The most nodes whose refusals are counted; the others had none lately.
const NODES_MAX: usize = 4_096;

/// The announced refusals, and the budgets of the nodes that lack rights.
#[derive(Debug)]
pub(super) struct Announced {
    refused: BTreeMap<PairKey, Refusal>,
    /// The instant at which the announced refusals of a node are paid for.
    paid: BTreeMap<NodeId, Instant>,
    /// The instant at which to announce more.
    wake: Instant,
}

impl Default for Announced {
    fn default() -> Self {
        Self { refused: BTreeMap::new(), paid: BTreeMap::new(), wake: Instant::FAR }
    }
}

fn time_of(refusals: u64) -> Duration {
    Duration::from_secs(1).mul_div(refusals, PER_S)
}

impl Announced {
    pub(super) const fn wake_at(&self) -> Instant {
        self.wake
    }

    /// Charges a refusal to a node. Returns the instant at which to try again if the node has used its budget.
    fn charge(&mut self, now: Instant, node: NodeId) -> Result<(), Instant> {
        if self.paid.len() >= NODES_MAX {
            self.paid.retain(|_, paid| *paid > now);
        }
        let paid = self.paid.entry(node).or_default();
        if paid.since(now) > time_of(BURST) {
            return Err(now + AGAIN);
        }
        *paid = (*paid).max(now) + time_of(1);
        Ok(())
    }

    /// Replaces the refusals. Returns the changes of the record, and the new refusals.
    fn follow(
        &mut self,
        now: Instant,
        refused: BTreeMap<PairKey, Refusal>,
    ) -> (Vec<Change>, Vec<Refusal>) {
        let (mut changes, mut new) = (Vec::new(), Vec::new());
        let mut before = core::mem::take(&mut self.refused);
        for key in before.keys().filter(|key| !refused.contains_key(key)) {
            changes.push(Change::Remove(EntryKey::Refusal(*key)));
        }
        self.wake = Instant::FAR;
        for (key, refusal) in refused {
            let earlier = before.remove(&key);
            if earlier.as_ref() == Some(&refusal) {
                self.refused.insert(key, refusal);
                continue;
            }
            let of = if let RefusalReason::Rights { of, .. } = refusal.reason {
                of
            } else {
                refusal.subscription.node
            };
            match self.charge(now, of) {
                Ok(()) => {
                    changes.push(Change::Refuse(refusal.clone()));
                    new.push(refusal.clone());
                    self.refused.insert(key, refusal);
                }
                Err(again) => {
                    self.wake = self.wake.min(again);
                    // The earlier refusal stays.
                    self.refused.extend(earlier.map(|earlier| (key, earlier)));
                }
            }
        }
        (changes, new)
    }
}

impl Control {
    /// Announces the changes of the refusals for lack of rights.
    pub(in crate::control) fn announce_rights(&mut self, refused: BTreeMap<PairKey, Refusal>) {
        let (changes, new) = self.membership.access.announced.follow(self.now, refused);
        changes.into_iter().for_each(|change| self.announce(change, None));
        new.iter().for_each(|refusal| self.report_denied(refusal));
    }

    fn report_denied(&mut self, refusal: &Refusal) {
        let RefusalReason::Rights { of, lack } = refusal.reason else { return };
        let (subscription, publisher) = (refusal.subscription, refusal.publisher);
        let wanted = || self.subscription(subscription).map(|spec| spec.pattern.to_string());
        let sent = || {
            let spec =
                self.membership.registry.record(publisher.node)?.publishers.get(&publisher)?;
            Some(spec.tag.to_string())
        };
        let publishes = lack.right() == Right::Publish || subscription.index == ANY;
        let (node, tag) = match publishes {
            true => (publisher.node, sent()),
            false => (subscription.node, wanted()),
        };
        let tag = tag.unwrap_or_default();
        self.outputs.push_back(ControlOutput::Denied { node, of, lack, tag });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::membership::blank::blank;
    use crate::control::membership::registry::Registry;
    use crate::ids::{PublisherId, SubscriptionId};
    use crate::rights::Lack;

    const HOSTILE: NodeId = NodeId(3);

    fn refusals(of: NodeId, indices: core::ops::Range<u32>) -> BTreeMap<PairKey, Refusal> {
        let registry = Registry::new(NodeId(1), String::new());
        let one = |index| {
            let subscription = SubscriptionId { node: of, index };
            let key = (subscription, PublisherId { node: NodeId(1), index: ANY });
            let reason = RefusalReason::Rights { of, lack: Lack::Right(Right::Subscribe) };
            (key, blank(key, of, &registry, reason))
        };
        indices.map(one).collect()
    }

    #[test]
    fn repeated_refusals_are_announced_within_the_budget_of_their_node() {
        let (mut announced, start) = (Announced::default(), Instant::from_millis(10_000));
        let mut changes = 0;
        for ms in 0..10_000u32 {
            let now = start + Duration::from_millis(ms.into());
            changes += announced.follow(now, refusals(HOSTILE, ms..ms + 1)).0.len();
        }
        // Each refusal is announced and removed.
        let most = usize::try_from(2 * (BURST + 10 * PER_S + 2)).unwrap();
        assert!((most / 2..=most).contains(&changes), "{changes}");
        let honest = refusals(NodeId(4), 0..100);
        assert_eq!(
            announced.follow(start, honest).1.len(),
            100,
            "others have budgets of their own"
        );
    }

    #[test]
    fn requests_that_stand_are_refused_later() {
        let (mut announced, mut now) = (Announced::default(), Instant::from_millis(10_000));
        let all = refusals(HOSTILE, 0..1_000);
        let mut found = announced.follow(now, all.clone()).1.len();
        assert!((250..260).contains(&found), "{found}");
        while announced.wake_at() < Instant::FAR {
            now = announced.wake_at();
            found += announced.follow(now, all.clone()).1.len();
        }
        assert_eq!(found, 1_000);
        assert!(now.since(Instant::from_millis(10_000)) < Duration::from_secs(40));
    }
}
