//! What the links of this node have promised, kept from round to round of decisions.

use super::registry::PairKey;
use super::spec::{HopInfo, SourceKey, Target};
use crate::form::Form;
use crate::ids::NodeId;
use crate::link::frame_on_wire;
use paceline_admit::{Admission, Demand, Holder, LinkSpec, Rule, Trunk, Verdict};
use paceline_sched::{Capacity, Policy};
use std::collections::{BTreeMap, BTreeSet};

/// A stream of this node: what is promised to all who share it is promised once.
pub(super) type Stream = (SourceKey, Target, Form);

/// What a pair asks of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) stream: Stream,
    /// `None` for a contract that owes nothing.
    pub(super) demand: Option<Demand>,
}

/// What one link has promised, and to whom.
#[derive(Debug)]
pub(super) struct Promised {
    capacity: Capacity,
    policy: Policy,
    /// The discipline looks at deadlines; of others the rate alone is tested.
    timed: bool,
    test: Admission,
    trunks: BTreeMap<Stream, Trunk>,
    held: BTreeMap<PairKey, Wanted>,
    next_trunk: u128,
}

/// The part of a link that streams may be promised: 5 % stay for control.
fn for_streams(capacity: Capacity) -> Capacity {
    let bits = capacity.bits_per_s();
    Capacity::from_bits_per_s(bits - bits.div_ceil(20)).unwrap_or(capacity)
}

fn holder((subscription, publisher): PairKey) -> Holder {
    let origin = u128::from(subscription.node.0) << 64 | u128::from(publisher.node.0);
    let number = u64::from(subscription.index) << 32 | u64::from(publisher.index);
    Holder { origin, number }
}

impl Promised {
    fn new(capacity: Capacity, policy: Policy) -> Self {
        let rule = Rule::of(policy);
        let other = frame_on_wire(capacity);
        let spec = LinkSpec::new(for_streams(capacity), rule.unwrap_or(Rule::Edf), other);
        Self {
            capacity,
            policy,
            timed: rule.is_some(),
            test: Admission::new(spec),
            trunks: BTreeMap::new(),
            held: BTreeMap::new(),
            next_trunk: 0,
        }
    }

    /// True if it is promised, or could be.
    pub(super) fn fits(&self, key: PairKey, wanted: &Wanted) -> bool {
        let Some(demand) = &wanted.demand else { return true };
        let fits = || self.test.fits(self.trunk(&wanted.stream), holder(key), &self.seen(demand));
        self.held.get(&key) == Some(wanted) || fits()
    }

    /// As the discipline looks at it.
    fn seen(&self, demand: &Demand) -> Demand {
        if self.timed {
            return *demand;
        }
        demand.with_deadline(Demand::DEADLINE_MAX).unwrap_or(*demand)
    }

    fn trunk(&self, stream: &Stream) -> Trunk {
        self.trunks.get(stream).copied().unwrap_or(Trunk(self.next_trunk))
    }

    /// Why it can't be promised, and what could; `None` if it can.
    pub(super) fn ask(&self, key: PairKey, wanted: &Wanted) -> Option<paceline_admit::Refusal> {
        let demand = self.seen(wanted.demand.as_ref()?);
        match self.test.ask(self.trunk(&wanted.stream), holder(key), &demand) {
            Verdict::Granted(_) => None,
            Verdict::Refused(refusal) => Some(refusal),
        }
    }

    /// Promises it; it [fits](Self::fits).
    pub(super) fn hold(&mut self, key: PairKey, wanted: Wanted) {
        if let Some(demand) = &wanted.demand {
            let (trunk, demand) = (self.trunk(&wanted.stream), self.seen(demand));
            if self.trunks.insert(wanted.stream, trunk).is_none() {
                self.next_trunk += 1;
            }
            self.test.hold(trunk, holder(key), &demand);
            self.test.commit(trunk, holder(key), None);
        }
        self.held.insert(key, wanted);
    }

    /// Gives back what is not wanted any more, or wanted otherwise.
    fn retain(&mut self, wanted: impl Fn(PairKey) -> Option<Wanted>) {
        let Self { held, trunks, test, .. } = self;
        held.retain(|&key, has| {
            let stays = wanted(key).as_ref() == Some(has);
            if !stays && let Some(&trunk) = trunks.get(&has.stream) {
                test.release(trunk, holder(key));
            }
            stays
        });
        let streams: BTreeSet<Stream> = held.values().map(|has| has.stream).collect();
        trunks.retain(|stream, _| streams.contains(stream));
    }
}

/// The links with a capacity, by name; hops that share a link share its promises.
#[derive(Debug, Default)]
pub(super) struct Promises {
    links: BTreeMap<String, Promised>,
}

impl Promises {
    /// Follows the links as they are now: one that carries something else begins anew. Gives back what
    /// the pairs of the link do not want any more.
    pub(super) fn update(
        &mut self,
        hops: &BTreeMap<NodeId, HopInfo>,
        policies: &BTreeMap<String, Policy>,
        wanted: impl Fn(&str, PairKey) -> Option<Wanted>,
    ) {
        let mut now: BTreeMap<&str, Capacity> = BTreeMap::new();
        for hop in hops.values() {
            let Some(capacity) = hop.capacity else { continue };
            let least = now.entry(&hop.link_name).or_insert(capacity);
            *least = (*least).min(capacity);
        }
        self.links.retain(|name, _| now.contains_key(name.as_str()));
        for (name, capacity) in now {
            let policy = policies.get(name).copied().unwrap_or_default();
            let same = |link: &Promised| (link.capacity, link.policy) == (capacity, policy);
            match self.links.get_mut(name).filter(|link| same(link)) {
                Some(link) => link.retain(|key| wanted(name, key)),
                None => {
                    self.links.insert(name.to_owned(), Promised::new(capacity, policy));
                }
            }
        }
    }

    pub(super) fn get(&self, link: &str) -> Option<&Promised> {
        self.links.get(link)
    }

    pub(super) fn get_mut(&mut self, link: &str) -> Option<&mut Promised> {
        self.links.get_mut(link)
    }
}
