//! The grants of reservations on this node.

use super::admission::Paths;
use super::booking::{Booking, Demanded};
use crate::control::Control;
use crate::control::data::grant::{Grant, GrantedHop, ProcessorUse};
use crate::control::data::ids::PairKey;
use crate::control::data::spec::SubscriptionSpec;
use crate::envelope::Envelope;
use crate::ids::NodeId;
use paceline_sched::Duration;

impl Control {
    /// Returns this host's processor time for promises; `None` if the cost of samples was never measured.
    #[must_use]
    pub fn processor_use(&self) -> Option<ProcessorUse> {
        let most = self.contracts.admission.links.processor?.nanos_per_s;
        Some(ProcessorUse { held: self.contracts.admission.reservations.processor_held(), most })
    }

    /// Returns the grants of all paths that include this node, ordered by subscription and publisher.
    pub fn grants(&self) -> impl Iterator<Item = Grant> + '_ {
        let all = self.contracts.admission.paths(&self.membership.registry);
        all.into_iter().filter_map(|(pair, paths)| self.grant_on(pair, &paths))
    }

    /// Returns the grant of a pair from its reservations here.
    fn grant_on(&self, pair: PairKey, paths: &Paths<'_>) -> Option<Grant> {
        let mut grant = self.grant(paths.carried.or(paths.other)?);
        match (paths.carried, paths.other) {
            (Some(_), Some(spare)) => grant.spare = self.grant(spare).hops,
            // Until a reservation is marked, none is a spare.
            (None, Some(_)) if self.membership.registry.carrier_of(pair).is_some() => {
                grant.spare = core::mem::take(&mut grant.hops);
            }
            (Some(_) | None, None) | (None, Some(_)) => {}
        }
        Some(grant)
    }

    fn grant(&self, booking: &Booking) -> Grant {
        let Booking { pair, request, path, wanted, scaled, bounds, .. } = booking;
        let demanded = Demanded { wanted: *wanted, scaled: *scaled, bounds: bounds.clone() };
        self.grant_of(*pair, request, path, &demanded)
    }

    /// Returns the grant that results if every node of `path` reserves its part of `demanded`.
    pub(in crate::control) fn grant_of(
        &self,
        (subscription, publisher): PairKey,
        request: &SubscriptionSpec,
        path: &[NodeId],
        demanded: &Demanded,
    ) -> Grant {
        let Demanded { wanted, bounds, .. } = demanded;
        let nodes = path.split_last().map_or(&[][..], |(_, nodes)| nodes);
        let parts = bounds.iter().copied().chain(core::iter::repeat(Duration::ZERO));
        let hops = nodes.iter().zip(path.iter().skip(1)).zip(parts).enumerate().map(|(at, hop)| {
            let ((&node, next), bound) = hop;
            let traffic = demanded.on(at).traffic;
            let record = self.membership.registry.record(node);
            let hop = record.and_then(|record| record.neighbours.get(next));
            GrantedHop {
                node,
                node_name: record.map(|record| record.name.clone()).unwrap_or_default(),
                link: hop.map(|hop| hop.link_name.clone()).unwrap_or_default(),
                capacity: hop.and_then(|hop| hop.capacity),
                bytes_per_s: traffic.rate().div_ceil(8),
                burst: traffic.burst(),
                bound,
                realtime: self.has_realtime(node, *next) && self.has_realtime(*next, node),
            }
        });
        let (bound, hops) = (wanted.within, hops.collect());
        let spec = self
            .membership
            .registry
            .record(publisher.node)
            .and_then(|it| it.publishers.get(&publisher));
        let within = spec.map_or(request.within, |spec| spec.bound_for(request));
        let learned = spec.and_then(|spec| spec.envelope).is_some_and(Envelope::is_learned);
        let learned = learned && wanted.traffic.varies();
        let form = spec.map_or(request.form, |spec| spec.form_of(request.form));
        let (revision, spare) = (request.revision, Vec::new());
        Grant { subscription, publisher, revision, form, bound, within, learned, hops, spare }
    }

    /// Returns true if the threads of `node` have real-time priorities, as it announces with its hop to `next`.
    fn has_realtime(&self, node: NodeId, next: NodeId) -> bool {
        let record = self.membership.registry.record(node);
        let hop = record.and_then(|record| record.neighbours.get(&next));
        hop.is_some_and(|hop| hop.realtime)
    }

    /// Returns the grants of this node's subscriptions and publishers.
    pub(in crate::control) fn granted_here(&self) -> impl Iterator<Item = (PairKey, Grant)> + '_ {
        let ends = |(subscription, publisher): PairKey| [subscription.node, publisher.node];
        let here = move |(pair, paths): &(PairKey, Paths<'_>)| {
            paths.carried.is_some() && ends(*pair).contains(&self.me)
        };
        let all =
            self.contracts.admission.paths(&self.membership.registry).into_iter().filter(here);
        all.filter_map(|(pair, paths)| Some((pair, self.grant_on(pair, &paths)?)))
    }
}
