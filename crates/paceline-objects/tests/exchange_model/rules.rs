//! The rules that every message has to obey, checked without the machinery of the exchange list.

use paceline_objects::contract::{ContractTraffic, PromisedService};
use paceline_objects::exchange::{Exchange, ExchangeClass, ExchangeUpdate, UpdateKind};
use paceline_objects::semantic::ExchangeTerms;
use paceline_objects::{GroupMask, ObjectIndex, PeerId};
use paceline_sched::Instant;
use std::collections::BTreeMap;

pub(crate) type Version = u64;

#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectModel {
    pub(crate) bytes: Vec<u32>,
    pub(crate) versions: Vec<Version>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PeerModel {
    pub(crate) service: Option<PromisedService>,
    /// The terms of each object with interest.
    pub(crate) terms: BTreeMap<ObjectIndex, ExchangeTerms>,
    /// The terms of objects whose interest ended.
    pub(crate) ended: BTreeMap<ObjectIndex, ExchangeTerms>,
    last: BTreeMap<ObjectIndex, Instant>,
    /// The times of promised updates since the contract was set.
    promised: Vec<Instant>,
    /// The times and bytes of promised messages since the contract was set.
    messages: Vec<(Instant, u64)>,
}

impl PeerModel {
    pub(crate) fn promise(&mut self, service: Option<PromisedService>) {
        if self.service != service {
            self.service = service;
            self.promised.clear();
            self.messages.clear();
        }
    }
}

impl PeerModel {
    /// Checks that promised messages are within the reserved traffic over every time that ends now.
    fn conforms(&self) {
        let ContractTraffic { burst, bytes_per_s, spacing, .. } =
            self.service.expect("a contract").traffic;
        let now = self.messages.last().map_or(Instant::ZERO, |(at, _)| *at);
        let mut sum = 0;
        for (number, (at, bytes)) in self.messages.iter().rev().take(100).enumerate() {
            sum += bytes;
            let time = now.since(*at);
            let messages = u64::try_from(number).unwrap();
            assert!(time >= spacing.mul_div(messages, 1), "{number} messages in {time}");
            let allowed = u128::from(bytes_per_s) * u128::from(time.as_nanos()) / 1_000_000_000;
            assert!(u128::from(sum) <= u128::from(burst) + allowed + 1, "{sum} bytes in {time}");
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) objects: BTreeMap<ObjectIndex, ObjectModel>,
    pub(crate) peers: BTreeMap<PeerId, PeerModel>,
    pub(crate) checked: u64,
}

impl Rules {
    /// Checks a message and returns the versions of its objects' groups.
    pub(crate) fn check(
        &mut self,
        message: &Exchange,
        budget: u64,
        largest: u64,
        now: Instant,
    ) -> Vec<Vec<Version>> {
        assert!(!message.updates.is_empty(), "an empty message");
        assert!(message.bytes <= largest || message.updates.len() == 1, "a message too large");
        if message.class == ExchangeClass::BestEffort {
            let allowed =
                message.bytes <= budget || (budget >= largest && message.updates.len() == 1);
            assert!(allowed, "{} bytes with a budget of {budget}", message.bytes);
        }
        if message.class == ExchangeClass::Promised {
            let peer = self.peers.get_mut(&message.peer).expect("a peer that joined");
            peer.messages.push((now, message.bytes));
            peer.conforms();
        }
        for update in &message.updates {
            self.update(message, update, now);
            self.checked += 1;
        }
        let objects = message.updates.iter().map(|update| self.objects.get(&update.object));
        objects
            .map(|object| object.map_or_else(Vec::new, |object| object.versions.clone()))
            .collect()
    }

    fn update(&mut self, message: &Exchange, update: &ExchangeUpdate, now: Instant) {
        let object = self.objects.get(&update.object);
        let peer = self.peers.get_mut(&message.peer).expect("a peer that joined");
        let terms = match update.kind {
            UpdateKind::Delete | UpdateKind::Withdraw => {
                assert_eq!(object.is_none(), update.kind == UpdateKind::Delete);
                peer.ended.get(&update.object).expect("interest that ended")
            }
            UpdateKind::Introduce | UpdateKind::Change | UpdateKind::Refresh => {
                peer.terms.get(&update.object).expect("an observer with interest")
            }
        };
        let (gap, fidelity) = match message.class {
            ExchangeClass::Promised => {
                let PromisedService { each, .. } = peer.service.expect("a contract");
                promise(peer, &self.objects, update.object, now);
                assert_ne!(update.kind, UpdateKind::Introduce, "no room is reserved for a path");
                let waited = now.since(update.due);
                assert!(waited <= each.spread(), "a promised update waited for {waited}");
                (each.gap(), each.fidelity_permille)
            }
            ExchangeClass::BestEffort => (terms.gap, terms.fidelity_permille),
        };
        if let Some(last) = peer.last.insert(update.object, now) {
            assert!(
                now.since(last) >= gap,
                "{} after {}, gap {gap}",
                now.since(last),
                update.object
            );
        }
        assert!(update.due <= now);
        assert_eq!(update.fidelity_permille, fidelity);
        match update.kind {
            UpdateKind::Introduce | UpdateKind::Change => {
                let object = object.expect("an object");
                let carried = bytes(object, update.groups);
                let all = bytes(object, GroupMask(u32::MAX));
                assert!(carried * 1_000 >= all * u64::from(fidelity), "{carried} of {all} bytes");
            }
            UpdateKind::Refresh | UpdateKind::Withdraw | UpdateKind::Delete => {
                assert!(update.groups.is_empty());
            }
        }
        peer.promised.extend((message.class == ExchangeClass::Promised).then_some(now));
    }
}

/// Checks that an object has a promised place by right, and that the places keep their reservation.
fn promise(
    peer: &PeerModel,
    objects: &BTreeMap<ObjectIndex, ObjectModel>,
    index: ObjectIndex,
    now: Instant,
) {
    let service = peer.service.expect("a contract");
    let (contract, count) = (service.each, service.objects);
    let object = objects.get(&index).expect("deletions are not promised");
    assert!(service.covers(&object.bytes), "a larger object");
    if let Some(earlier) = peer.promised.len().checked_sub(count) {
        let since = now.since(peer.promised[earlier]);
        assert!(since >= contract.gap(), "{count} places and {since} for one more update");
    }
    let own = peer.terms[&index].weight;
    let heavier = peer.terms.iter().filter(|(_, terms)| terms.weight > own * 1.25);
    // Objects too large for the contract have no place, whatever their weight.
    let heavier = heavier.filter(|(object, _)| service.covers(&objects[object].bytes)).count();
    assert!(heavier < count, "{heavier} heavier objects, {count} places");
}

fn bytes(object: &ObjectModel, groups: GroupMask) -> u64 {
    let sizes = object.bytes.iter().enumerate().filter(|(group, _)| groups.has(*group));
    sizes.map(|(_, bytes)| u64::from(*bytes)).sum()
}
