//! Pairs as routing and the rights of nodes see them.

use super::booking::wanted;
use super::pair::Pair;
use crate::control::data::ids::PairKey;
use crate::control::data::route::{Detour, Place, RoutedStream};
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::membership::access::PassingStream;
use crate::control::membership::registry::Registry;
use crate::form::Form;
use crate::plan::SourceKey;
use crate::rights::StreamQuality;
use std::sync::Arc;

impl RoutedStream for Pair<'_> {
    fn key(&self) -> PairKey {
        Pair::key(self)
    }

    fn spec(&self) -> &Arc<PublisherSpec> {
        self.spec
    }

    fn request(&self) -> &SubscriptionSpec {
        self.request
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn detour(&self) -> Option<&Detour> {
        self.detour.as_ref()
    }

    fn requested(&self) -> Form {
        self.asked
    }

    fn source(&self) -> SourceKey {
        Pair::source(self)
    }

    fn wants_contract(&self) -> bool {
        self.ask().is_some()
    }
}

impl PassingStream for Pair<'_> {
    fn qualities(&self, registry: &Registry) -> [StreamQuality; 2] {
        qualities(registry, self)
    }
}

/// Returns the demands of a pair's stream on the hops to and from this node, which differ if this node scales it between
/// the ends.
fn qualities(registry: &Registry, pair: &Pair<'_>) -> [StreamQuality; 2] {
    let leaving = quality(registry, pair, pair.place.index);
    let (index, split) = (pair.place.index, pair.split());
    if split.scales_between() && index == split.proxy() {
        return [quality(registry, pair, index.saturating_sub(1)), leaving];
    }
    [leaving, leaving]
}

/// Returns the demand of a pair's stream on hop `hop` of the path, or on the last one.
fn quality(registry: &Registry, pair: &Pair<'_>, hop: usize) -> StreamQuality {
    let number = hop.min(pair.split().hops().saturating_sub(1));
    let hop = |next| registry.record(registry.me())?.neighbours.get(&next);
    let capacity = pair.place.next.and_then(hop).and_then(|hop| hop.capacity);
    let form = pair.form_on(number);
    let period = form.rate.period(pair.spec.period).filter(|period| !period.is_zero());
    let millihertz = period.map(|period| 1_000_000_000_000 / period.as_nanos());
    let contract = pair.spec.tolerance_for(pair.request).is_some();
    let promised = contract
        .then(|| wanted(pair.publisher, pair.spec, pair.request, (pair.split(), pair.behind())));
    let promised = promised.flatten().map(|it| it.on(number).traffic.rate().div_ceil(8));
    let plain = pair.spec.bytes_max.filter(|_| form.size.is_none() && form.audio.is_none());
    let plain =
        plain.zip(millihertz).map(|(bytes, rate)| bytes.saturating_mul(rate).div_ceil(1_000));
    StreamQuality {
        millihertz,
        bytes_per_s: promised.or(plain),
        contract,
        within: pair.bound(),
        link_bytes_per_s: capacity.map(|capacity| capacity.bytes_per_s()),
        importance: pair.request.importance,
    }
}
