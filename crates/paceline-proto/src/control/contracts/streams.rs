//! The streams of this node that result from pairs.

use super::booking::Booking;
use super::contract::{demand, level, promise};
use super::pair::Pair;
use super::request::Ask;
use crate::control::data::ids::PairKey;
use crate::control::data::route::Place;
use crate::control::data::spec::PublisherSpec;
use crate::control::membership::registry::Registry;
use crate::entry::EntryLimit;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::{OutputPlan, SourceKey, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The streams of this node as they were output last.
#[derive(Debug, Default)]
pub(in crate::control) struct Streams {
    pub(in crate::control) installed: BTreeMap<SourceKey, Installed>,
    /// The streams with contracts that were removed last, and whose samples another one carries from then on.
    pub(in crate::control) handed: BTreeSet<(SourceKey, NodeId, Form)>,
    /// The publishers with a carried stream.
    pub(in crate::control) matching: BTreeSet<PublisherId>,
    /// Publishers of this node with subscriptions whose paths have not answered yet.
    pub(in crate::control) awaited: BTreeSet<PublisherId>,
    /// The carried pairs of local subscriptions, ordered by subscription.
    pub(in crate::control) heard: Vec<PairKey>,
}

/// Returns the publishers of a subscription among pairs that are ordered by subscription.
pub(in crate::control) fn publishers_of(
    heard: &[PairKey],
    subscription: SubscriptionId,
) -> impl Iterator<Item = PublisherId> {
    let from = heard.partition_point(|pair| pair.0 < subscription);
    heard.iter().skip(from).take_while(move |pair| pair.0 == subscription).map(|pair| pair.1)
}

/// Returns the pairs with a reservation installed here, each with its reserved path. Pairs whose local
/// subscription has ended are left out.
pub(crate) fn booked<'a>(
    registry: &'a Registry,
    bookings: impl Iterator<Item = &'a Booking>,
    me: NodeId,
) -> Vec<Pair<'a>> {
    let of = |booking: &'a Booking| {
        let (subscription, publisher) = booking.pair;
        let spec = registry.record(publisher.node)?.publishers.get(&publisher)?;
        let here = || registry.record(me).map(|record| &record.subscriptions);
        if subscription.node == me && !here()?.contains_key(&subscription) {
            return None;
        }
        let place = Place::on(&booking.path, booking.split, me)?;
        Some(Pair::at(booking.pair, spec, &booking.request, place))
    };
    bookings.filter_map(of).collect()
}

/// The complete set of streams that leave a source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Installed {
    pub(crate) publisher: Arc<PublisherSpec>,
    /// The neighbours from which its samples arrive, in order; none on the publisher's node.
    pub(crate) from: BTreeSet<NodeId>,
    /// The limits of the samples that arrive.
    pub(crate) entry: Vec<EntryLimit>,
    pub(crate) outputs: Vec<OutputPlan>,
}

/// Returns the streams for `pairs`, which must be ordered by key.
pub(crate) fn plan<'p, 'a: 'p>(
    pairs: impl Iterator<Item = &'p Pair<'a>>,
) -> BTreeMap<SourceKey, Installed> {
    let mut groups: BTreeMap<_, BTreeMap<_, Vec<&Pair<'_>>>> = BTreeMap::new();
    for pair in pairs {
        let streams = groups.entry(pair.source()).or_default();
        streams.entry((pair.target(), pair.leaving())).or_default().push(pair);
    }
    let mut installed = BTreeMap::new();
    for (source, streams) in groups {
        let Some(first) = streams.values().flatten().next() else { continue };
        let publisher = Arc::clone(first.spec);
        let from = streams.values().flatten().filter_map(|pair| pair.place.before).collect();
        let outputs = streams
            .iter()
            .map(|(&(target, form), behind)| {
                let scale = if form == source.form { Form::FULL } else { form.without_via() };
                output(OutputPlan { scale, ..blank(&publisher, target, form) }, behind)
            })
            .collect();
        installed.insert(source, Installed { publisher, from, entry: Vec::new(), outputs });
    }
    installed
}

fn blank(publisher: &PublisherSpec, target: Target, form: Form) -> OutputPlan {
    let (late, kind, background) = (publisher.late, publisher.kind, publisher.tag.is_private());
    OutputPlan { late, kind, background, ..OutputPlan::new(target, form) }
}

/// Fills in the fields that depend on the subscriptions of an output.
fn output(mut plan: OutputPlan, behind: &[&Pair<'_>]) -> OutputPlan {
    // A subscription on the publisher's own node needs no grant of a link.
    let is_here = |pair: &&&Pair<'_>| pair.split().hops() == 0 && pair.ask().is_some();
    plan.is_granted = behind.iter().any(|pair| is_here(&pair) || pair.is_reserved());
    plan.aligned = behind.iter().any(|pair| pair.ask().is_some());
    plan.subscriptions = behind.iter().map(|pair| pair.subscription).collect();
    let requested = behind.iter().map(|pair| pair.request.retransmit);
    plan.retransmit = requested.max().unwrap_or_default();
    let bounded = behind.iter().filter_map(|pair| Some((pair.bound()?, pair)));
    let strictest = bounded.min_by_key(|(bound, _)| *bound);
    plan.within = strictest.map(|(bound, _)| bound);
    match plan.target {
        Target::Local => {
            // After the last hop the delay bound is used up, unless there was no hop.
            let hops = strictest.map_or(0, |(_, pair)| pair.split().hops());
            plan.upstream = plan.within.filter(|_| hops > 0).unwrap_or_default();
        }
        Target::Hop(_) => {
            let asks: Vec<Ask> = behind.iter().filter_map(|pair| pair.ask()).collect();
            let spec = behind.first().map(|pair| pair.spec);
            let promise = spec.and_then(|spec| Some((spec, promise(spec, plan.form, &asks)?)));
            if let Some((spec, promise)) = promise {
                plan.contract = Some(promise.contract);
                plan.demand = Some(demand(spec, plan.form, &promise.contract, &asks));
                plan.level = level(spec, plan.form, &asks);
                (plan.upstream, plan.slack) = (promise.upstream, promise.slack);
            } else {
                plan.max_wait = spec.and_then(|spec| spec.max_wait());
            }
        }
    }
    plan
}
