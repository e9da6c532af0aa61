//! The inputs of a request or refusal.

use crate::control::contracts::pair::Pair;
use crate::control::data::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::control::membership::registry::Registry;
use crate::ids::{NodeId, SubscriptionId};
use std::sync::Arc;

/// The inputs of a request or refusal.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::control::contracts) struct Basis {
    pub(in crate::control::contracts) spec: Arc<PublisherSpec>,
    pub(in crate::control::contracts) request: SubscriptionSpec,
    pub(in crate::control::contracts) path: Vec<NodeId>,
    pub(in crate::control::contracts) proxy: usize,
    /// The path of the spare, if one is requested and there is such a path.
    pub(in crate::control::contracts) spare: Option<Vec<NodeId>>,
    /// The subscription that prevents two paths for the spare ([`RefusalReason::SpareMeets`]), if there is one.
    pub(in crate::control::contracts) met: Option<SubscriptionId>,
    /// The hops of both paths.
    pub(in crate::control::contracts) hops: Vec<HopInfo>,
}

impl Basis {
    /// Returns the inputs of a pair with these paths.
    pub(in crate::control::contracts) fn on(
        pair: &Pair<'_>,
        registry: &Registry,
        path: Vec<NodeId>,
        spare: Option<Vec<NodeId>>,
    ) -> Self {
        // Whether a neighbour receives multicast groups changes no admission.
        let hop = |(from, to): (&NodeId, &NodeId)| {
            let hop = registry.record(*from).and_then(|record| record.neighbours.get(to));
            hop.map(|hop| HopInfo { multicast: false, ..hop.clone() })
        };
        let both = core::iter::once(&path).chain(&spare);
        let ends = both.flat_map(|path| path.iter().zip(path.iter().skip(1)));
        let hops = ends.filter_map(hop).collect();
        let (spec, request, proxy) =
            (Arc::clone(pair.spec), pair.request.clone(), pair.split().proxy());
        Self { spec, request, path, proxy, spare, met: None, hops }
    }

    /// Returns the first path, and true if only encrypted hops may carry it.
    pub(in crate::control::contracts) fn first(&self) -> (&[NodeId], bool) {
        (&self.path, self.request.encrypted)
    }
}

#[cfg(test)]
impl Basis {
    /// Returns the inputs of a request with this number.
    pub(in crate::control::contracts) fn numbered(revision: u64) -> Self {
        let pattern = crate::tag::Pattern::new("a").unwrap();
        let within = Some(paceline_sched::Duration::from_millis(20));
        let request = SubscriptionSpec { revision, within, ..SubscriptionSpec::all_of(pattern) };
        let spec = Arc::new(PublisherSpec::new(crate::tag::Tag::new("a").unwrap()));
        let (path, hops) = (vec![NodeId(1), NodeId(2)], Vec::new());
        Self { spec, request, path, proxy: 0, spare: None, met: None, hops }
    }
}
