//! The links of this node and their classes, as admission sees them.

use super::booking::Label;
use crate::budget::{RepairShare, for_streams, in_the_way};
use crate::capacity::TRAIN_LONGEST;
use crate::carrier::Carrier;
use crate::classes::{ClassTree, Unguaranteed, refuses_contracts};
use crate::control::data::spec::HopInfo;
use crate::control::membership::registry::Registry;
use crate::ids::{NodeId, PublisherId};
use crate::plan::StreamNames;
use paceline_admit::cpu::{BestEffortRegulator, CpuBudget, CpuCost};
use paceline_admit::ledger::Amounts;
use paceline_admit::reserve::{LinkId, NodeIndex, Reservations};
use paceline_admit::{AdmissionTest, LinkParameters, QueueSpace};
use paceline_sched::curve::RATE_MAX;
use paceline_sched::{Capacity, Duration, Instant, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The assumed capacity of a link without one; every admission test on it succeeds.
const ENDLESS: Capacity = match Capacity::from_bits_per_s(RATE_MAX) {
    Ok(capacity) => capacity,
    Err(_) => panic!("it is not 0"),
};
/// The epoch of all neighbours. It is unused, because a neighbour that restarts is down in between.
const EPOCH: u64 = 0;

/// The default buffer of a link for contracts, in bytes.
pub const BUFFER_DEFAULT: u64 = 256_000_000;

/// The default buffer of a node for the contracts on all its links and of its subscribers, in bytes.
pub const HOST_BUFFER_DEFAULT: u64 = 1_000_000_000;

/// The link that stands for the subscribers of this node; the others count from 1.
pub(in crate::control) const DELIVERY: LinkId = LinkId(0);

/// The queue space of a link or of a node for contracts, in bytes on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferUse {
    /// The reserved part: the most bytes that all contracts together can have queued.
    pub held: u64,
    /// The size of the buffer.
    pub most: u64,
}

/// The guarantee of a class for contracts, in bits per second.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassUse {
    /// The name of the class.
    pub name: String,
    /// The rate that contracts have reserved.
    pub held: u64,
    /// The guaranteed rate; 0 for a class that guarantees nothing to contracts.
    pub most: u64,
}

/// The configuration of a link.
#[derive(Clone, Debug, Default)]
struct Settings {
    policy: Policy,
    carrier: Carrier,
    classes: Option<Arc<ClassTree>>,
    /// The queue space for contracts, in bytes on the wire.
    buffer: Option<u64>,
    /// Trains of probes measure its capacity.
    measured: bool,
    repairs: RepairShare,
    /// Its rate on a shared medium, and the longest wait of a frame for the medium.
    allotment: Option<Capacity>,
    access: Duration,
}

/// A link. Hops with the same link name share it.
#[derive(Debug)]
struct Line {
    id: LinkId,
    /// The capacity, bounded by the rate on a shared medium.
    capacity: Option<Capacity>,
    /// The capacity of the link itself.
    nominal: Option<Capacity>,
    settings: Settings,
    /// The classes by name, including those that were removed.
    classes: BTreeMap<String, LinkId>,
}

/// The place of a stream: a class of a link, or a link without classes.
#[derive(Clone, Debug)]
pub(in crate::control) struct Seat {
    pub(in crate::control) link: LinkId,
    /// The name of the class; empty for a link without classes.
    pub(in crate::control) class: String,
    /// The reason if the class guarantees nothing.
    pub(in crate::control) unguaranteed: Option<Unguaranteed>,
}

impl Seat {
    /// Returns the place of streams to the subscribers of this node.
    pub(in crate::control) const fn of_subscribers() -> Self {
        Self { link: DELIVERY, class: String::new(), unguaranteed: None }
    }
}

/// The links of this node, by name.
#[derive(Debug, Default)]
pub(in crate::control) struct Links {
    known: BTreeMap<String, Line>,
    settings: BTreeMap<String, Settings>,
    /// The number of links and classes so far.
    ids: u32,
    /// The processor time for promises on this host; `None` if the cost of samples was never measured.
    pub(in crate::control) processor: Option<CpuBudget>,
    /// Limits best effort to the rest of that time.
    pub(in crate::control) best_effort: Option<Arc<BestEffortRegulator>>,
    /// The queue space for contracts of all links and subscribers, in bytes on the wire.
    pub(in crate::control) host_buffer: Option<u64>,
}

impl Line {
    /// Returns the classes, if admission tests them. Without a capacity, a link promises nothing to any class.
    fn tree(&self) -> Option<&Arc<ClassTree>> {
        self.settings.classes.as_ref().filter(|_| self.capacity.is_some())
    }

    /// Returns the buffer that the classes share. A link without a capacity promises nothing about its queue.
    fn buffer(&self) -> Option<QueueSpace> {
        self.capacity?;
        let bytes = self.settings.buffer.unwrap_or(BUFFER_DEFAULT);
        Some(QueueSpace { bytes, number: self.id.0 })
    }

    /// Returns the admission parameters of the whole link. With classes, every contract is one of a class.
    fn parameters(&self, capacity: Option<Capacity>) -> LinkParameters {
        let Some(capacity) = capacity else {
            let endless = LinkParameters::new(ENDLESS, AdmissionTest::Vds { coincide: false }, 0);
            return LinkParameters { timed: false, ..endless };
        };
        let share = self.settings.repairs;
        let streams = for_streams(capacity, self.settings.carrier, share);
        if self.tree().is_some() || refuses_contracts(self.settings.policy) {
            return LinkParameters::new(streams, AdmissionTest::Unguaranteed, 0);
        }
        let train = if self.settings.measured { capacity.bytes_in(TRAIN_LONGEST) } else { 0 };
        let other = in_the_way(self.settings.policy, capacity, self.settings.carrier) + train;
        let spec = LinkParameters::new(streams, AdmissionTest::Edf, other);
        under(self.settings.policy, LinkParameters { latency: self.settings.access, ..spec })
    }

    /// Returns the admission parameters of a class; those of a removed class have no guarantee.
    fn class_parameters(&self, name: &str) -> LinkParameters {
        let whole = self.parameters(self.capacity);
        let found = self.tree().zip(self.capacity).and_then(|(tree, capacity)| {
            let place = tree.classes().iter().position(|class| class.name == name)?;
            tree.guarantee(place, (self.settings.policy, capacity, self.settings.carrier)).ok()
        });
        let Some(guarantee) = found else {
            return LinkParameters { rule: AdmissionTest::Unguaranteed, ..whole };
        };
        let spec = LinkParameters::new(guarantee.rate, AdmissionTest::Edf, guarantee.other);
        let latency = guarantee.latency;
        under(guarantee.policy, LinkParameters { latency, ..spec })
    }
}

/// Returns the parameters of a link or class with the test of its discipline.
fn under(policy: Policy, spec: LinkParameters) -> LinkParameters {
    let rule = AdmissionTest::of(policy);
    LinkParameters { rule: rule.unwrap_or(AdmissionTest::Edf), timed: rule.is_some(), ..spec }
}

impl Links {
    /// Sets the processor time of this host, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_processor(&mut self, budget: CpuBudget) {
        self.processor = Some(budget);
        self.best_effort = Some(Arc::new(BestEffortRegulator::new(budget)));
    }

    /// Sets the discipline and carrier of a link, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_discipline(
        &mut self,
        link: &str,
        policy: Policy,
        carrier: Carrier,
    ) {
        let settings = self.settings.entry(link.to_owned()).or_default();
        (settings.policy, settings.carrier) = (policy, carrier);
    }

    /// Sets whether a link is measured with trains of probes, which may precede any sample. Effective from the next
    /// [`Self::follow`].
    pub(in crate::control) fn set_measured(&mut self, link: &str, measured: bool) {
        self.settings.entry(link.to_owned()).or_default().measured = measured;
    }

    /// Sets the share of a link for repairs, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_repairs(&mut self, link: &str, share: RepairShare) {
        self.settings.entry(link.to_owned()).or_default().repairs = share;
    }

    /// Sets the rate of a link on a shared medium, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_allotment(&mut self, link: &str, capacity: Capacity) {
        self.settings.entry(link.to_owned()).or_default().allotment = Some(capacity);
    }

    /// Sets the longest wait of a frame for a shared medium, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_access(&mut self, link: &str, access: Duration) {
        self.settings.entry(link.to_owned()).or_default().access = access;
    }

    /// Returns the capacity of a link, bounded by its rate on a shared medium.
    pub(in crate::control) fn capacity(&self, link: &str) -> Option<Capacity> {
        self.known.get(link)?.capacity
    }

    /// Returns the capacity of a link itself.
    pub(in crate::control) fn nominal(&self, link: &str) -> Option<Capacity> {
        self.known.get(link)?.nominal
    }

    /// Returns true for a link with a capacity that no classes share.
    pub(in crate::control) fn is_whole(&self, link: &str) -> bool {
        let line = self.known.get(link).filter(|line| line.capacity.is_some());
        line.is_some_and(|line| line.settings.classes.is_none())
    }

    /// Returns the reservations of a link without classes.
    pub(in crate::control) fn reserved(&self, reservations: &Reservations, link: &str) -> Amounts {
        let link = self.known.get(link).and_then(|line| reservations.link(line.id));
        link.map_or(Amounts::default(), |link| link.ledger().held)
    }

    /// Returns the admission parameters of a link without classes at a capacity of `bits` per second.
    pub(in crate::control) fn parameters_at(
        &self,
        link: &str,
        bits: u64,
    ) -> Option<LinkParameters> {
        let line = self.known.get(link)?;
        Some(self.limited(line, line.parameters(Some(Capacity::from_bits_per_s(bits).ok()?))))
    }

    /// Returns the capacity of a link if it is measured and known.
    pub(in crate::control) fn measured(&self, link: &str) -> Option<Capacity> {
        self.known.get(link).filter(|line| line.settings.measured)?.capacity
    }

    /// Returns the id of a link as a whole.
    pub(in crate::control) fn id(&self, link: &str) -> Option<LinkId> {
        Some(self.known.get(link)?.id)
    }

    /// Sets the classes of a link, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_classes(&mut self, link: &str, classes: Option<Arc<ClassTree>>) {
        self.settings.entry(link.to_owned()).or_default().classes = classes;
    }

    /// Sets the buffer of a link in bytes, effective from the next [`Self::follow`].
    pub(in crate::control) fn set_buffer(&mut self, link: &str, bytes: u64) {
        self.settings.entry(link.to_owned()).or_default().buffer = Some(bytes);
    }

    /// Returns the buffer of a link with a capacity, and the part that is reserved for contracts.
    pub(in crate::control) fn buffer(
        &self,
        reservations: &Reservations,
        link: &str,
    ) -> Option<BufferUse> {
        let line = self.known.get(link)?;
        let most = line.buffer()?.bytes;
        let held = |id: &LinkId| reservations.link(*id).map_or(0, |it| it.ledger().held.buffer);
        let held = line.classes.values().chain([&line.id]).map(held).sum();
        Some(BufferUse { held, most })
    }

    /// Returns the size of this node's buffer.
    pub(in crate::control) fn host_buffer(&self) -> u64 {
        self.host_buffer.unwrap_or(HOST_BUFFER_DEFAULT)
    }

    /// Returns the guaranteed and the reserved rate of each class of a link, in matching order.
    pub(in crate::control) fn class_uses(
        &self,
        reservations: &Reservations,
        link: &str,
    ) -> Vec<ClassUse> {
        let Some((line, tree)) =
            self.known.get(link).and_then(|it| it.tree().map(|tree| (it, tree)))
        else {
            return Vec::new();
        };
        let class_use = |name: &str| {
            let admission = reservations.link(*line.classes.get(name)?)?;
            let guaranteed = admission.spec().rule != AdmissionTest::Unguaranteed;
            let bits = if guaranteed { admission.spec().capacity.bits_per_s() } else { 0 };
            let held = admission.ledger().held.rate;
            Some(ClassUse { name: name.to_owned(), held, most: bits })
        };
        tree.leaves().filter_map(|class| class_use(&class.name)).collect()
    }

    /// Updates the links and neighbours of `reservations`. A link or class that changed keeps the promises that
    /// still fit, the most important first. `publisher` returns the publisher in a reservation's label.
    pub(in crate::control) fn follow(
        &mut self,
        now: Instant,
        reservations: &mut Reservations,
        (me, registry): (NodeId, &Registry),
        hops: &BTreeMap<NodeId, HopInfo>,
        publisher: impl Fn(&[u8]) -> Option<PublisherId>,
    ) {
        let specs = self.update(hops);
        let changed: Vec<(LinkId, LinkParameters)> = specs
            .into_iter()
            .filter(|(id, spec)| reservations.link(*id).is_none_or(|it| it.spec() != spec))
            .collect();
        let classed: BTreeSet<NodeId> = hops
            .iter()
            .filter(|(_, hop)| {
                self.known.get(&hop.link_name).is_some_and(|it| !it.classes.is_empty())
            })
            .map(|(node, _)| *node)
            .collect();
        let place = |label: &[u8], next: NodeIndex| {
            let next = Some(NodeId(next.0)).filter(|next| classed.contains(next))?;
            Some(self.seat(registry, me, (publisher(label)?, next))?.link)
        };
        reservations.change_classes(now, &changed, place, Label::rank);
        for (&node, hop) in hops {
            if let Some(line) = self.known.get(&hop.link_name) {
                reservations.set_neighbour(now, NodeIndex(node.0), line.id, EPOCH);
            }
        }
    }

    /// Updates the known links, and returns the parameters of all links and classes.
    fn update(&mut self, hops: &BTreeMap<NodeId, HopInfo>) -> Vec<(LinkId, LinkParameters)> {
        let mut carried: BTreeMap<&str, Option<Capacity>> = BTreeMap::new();
        for hop in hops.values() {
            let least = carried.entry(&hop.link_name).or_insert(hop.capacity);
            *least = least.iter().copied().chain(hop.capacity).min();
        }
        let host_buffer = Some(self.host_buffer());
        let delivery = LinkParameters::new(ENDLESS, AdmissionTest::Delivery, 0);
        // Nothing is forwarded to subscribers, but samples may be scaled for them.
        let cpu = self.processor.map(|all| CpuBudget { cost: CpuCost::default(), ..all });
        let mut specs = vec![(DELIVERY, LinkParameters { host_buffer, cpu, ..delivery })];
        for (&name, &capacity) in &carried {
            let settings = self.settings.get(name).cloned().unwrap_or_default();
            let mut id = || {
                self.ids += 1;
                LinkId(self.ids)
            };
            let line = self.known.entry(name.to_owned()).or_insert_with(|| Line {
                id: id(),
                capacity,
                nominal: capacity,
                settings: Settings::default(),
                classes: BTreeMap::new(),
            });
            line.nominal = capacity;
            let bound = |own: Capacity| settings.allotment.map_or(own, |it| it.min(own));
            (line.capacity, line.settings) = (capacity.map(bound), settings);
            let named = line.tree().cloned();
            for class in named.iter().flat_map(|tree| tree.classes()) {
                line.classes.entry(class.name.clone()).or_insert_with(&mut id);
            }
        }
        for line in carried.keys().filter_map(|name| self.known.get(*name)) {
            let spec = |spec| self.limited(line, spec);
            specs.push((line.id, spec(line.parameters(line.capacity))));
            let classes = line.classes.iter();
            specs.extend(classes.map(|(name, id)| (*id, spec(line.class_parameters(name)))));
        }
        specs
    }

    /// Returns the parameters of a link or class with the limits of its link and of this node.
    fn limited(&self, line: &Line, spec: LinkParameters) -> LinkParameters {
        // A link without a capacity promises nothing about its queue.
        let (buffer, cpu) = (line.buffer(), self.processor);
        let host_buffer = Some(self.host_buffer()).filter(|_| buffer.is_some());
        // Best effort may use its burst of the processor while a sample of a contract waits for it.
        let busy = cpu.and(buffer).map_or(Duration::ZERO, |_| BestEffortRegulator::BURST);
        let latency = spec.latency.saturating_add(busy);
        LinkParameters { cpu, buffer, host_buffer, latency, ..spec }
    }

    /// Returns the place of a publisher's contracted stream from node `me`, this one, to its neighbour `next`.
    /// Returns `None` if the names that select the class are not known yet.
    pub(in crate::control) fn seat(
        &self,
        registry: &Registry,
        me: NodeId,
        (publisher, next): (PublisherId, NodeId),
    ) -> Option<Seat> {
        let hop = registry.record(me)?.neighbours.get(&next)?;
        let line = self.known.get(&hop.link_name)?;
        let Some((tree, capacity)) = line.tree().zip(line.capacity) else {
            let refuses = line.capacity.is_some() && refuses_contracts(line.settings.policy);
            let unguaranteed = refuses.then_some(Unguaranteed::Discipline);
            return Some(Seat { link: line.id, class: String::new(), unguaranteed });
        };
        let from = registry.record(publisher.node)?;
        let tag = Some(from.publishers.get(&publisher)?.tag.clone());
        let peer = registry.record(next)?.name.clone();
        let place = tree.class_of(&StreamNames { peer, node: from.name.clone(), tag }, true);
        let class = tree.classes().get(place)?.name.clone();
        let on = (line.settings.policy, capacity, line.settings.carrier);
        let unguaranteed = tree.guarantee(place, on).err();
        Some(Seat { link: *line.classes.get(&class)?, class, unguaranteed })
    }
}
