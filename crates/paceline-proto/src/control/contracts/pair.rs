//! A publisher and a matching subscription, as seen from one node of the path between them.

use super::contract::is_promised;
use super::request::Ask;
use crate::control::data::best_effort::BestEffort;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::RefusalReason;
use crate::control::data::route::{Detour, Place, WantedStream};
use crate::control::data::spec::{IDLE_MIN, PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::{SourceKey, Target};
use paceline_sched::Duration;
use std::sync::Arc;

/// A publisher and a matching subscription whose path includes this node.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) publisher: PublisherId,
    pub(crate) subscription: SubscriptionId,
    pub(crate) spec: &'a Arc<PublisherSpec>,
    pub(crate) request: &'a SubscriptionSpec,
    /// The requested form, limited to this publisher's samples.
    pub(crate) asked: Form,
    pub(in crate::control) place: Place,
    /// The form of the arriving samples: that of the stream that carries them on the hop to this node.
    pub(in crate::control) arrives: Form,
    /// The form of the stream that carries them from this node.
    pub(in crate::control) leaves: Form,
    /// True if another stream with a contract carries them from this node.
    pub(in crate::control) carried: bool,
    /// The reason why it is carried as best effort although it requests a contract: its reservation is idle, or a
    /// contract that only the publisher requests was refused.
    pub(in crate::control) without: Option<BestEffort>,
    /// The nodes of its path if that leads through a proxy between the ends; known on the publisher's node only.
    pub(in crate::control) detour: Option<Detour>,
}

impl<'a> Pair<'a> {
    /// Returns the pair `key` at a node's position on its path.
    pub(in crate::control) fn at(
        (subscription, publisher): PairKey,
        spec: &'a Arc<PublisherSpec>,
        request: &'a SubscriptionSpec,
        place: Place,
    ) -> Self {
        let asked = spec.form_of(request.form);
        let behind = Form { via: place.via, ..asked };
        let form = |is_scaled: bool| if is_scaled { behind } else { Form::FULL };
        let arrives = form(place.index > place.split.proxy());
        let leaves = form(place.split.is_scaled(place.index));
        Self {
            publisher,
            subscription,
            spec,
            request,
            asked,
            place,
            arrives,
            leaves,
            carried: false,
            without: None,
            detour: None,
        }
    }
}

impl<'a> From<WantedStream<'a>> for Pair<'a> {
    fn from(stream: WantedStream<'a>) -> Self {
        let WantedStream { key, spec, request, place, detour, is_idle } = stream;
        let without = is_idle.then_some(BestEffort::Idle);
        Self { without, detour, ..Self::at(key, spec, request, place) }
    }
}

impl Pair<'_> {
    pub(crate) fn key(&self) -> PairKey {
        (self.subscription, self.publisher)
    }

    /// Returns the source of the stream: scaled samples if the proxy is an earlier node.
    pub(crate) fn source(&self) -> SourceKey {
        SourceKey { publisher: self.publisher, form: self.arrives }
    }

    /// Returns the publisher and the two nodes of the hop to this node; `None` on the publisher's node.
    pub(in crate::control) fn hop_to_here(&self) -> Option<(PublisherId, NodeId, NodeId)> {
        Some((self.publisher, self.place.before?, self.place.me))
    }

    /// Returns the publisher and the two nodes of the hop from this node; `None` on the subscription's node.
    pub(in crate::control) fn hop_from_here(&self) -> Option<(PublisherId, NodeId, NodeId)> {
        Some((self.publisher, self.place.me, self.place.next?))
    }

    /// Returns the form of the samples behind the proxy.
    pub(in crate::control) const fn behind(&self) -> Form {
        Form { via: self.place.via, ..self.asked }
    }

    /// Returns the form of the samples on hop `hop` of the path, if no other stream carries them.
    pub(in crate::control) const fn form_on(&self, hop: usize) -> Form {
        if self.place.split.is_scaled(hop) { self.behind() } else { Form::FULL }
    }

    /// Returns the forms of the samples on the hops to and from this node, if no other stream carries them. On the last
    /// node both are the form on the last hop.
    pub(in crate::control) const fn forms_here(&self) -> [Form; 2] {
        let to = self.form_on(self.place.index.saturating_sub(1));
        [to, if self.place.next.is_some() { self.form_on(self.place.index) } else { to }]
    }

    /// Returns the reason why the path does not lead through the requested proxy.
    pub(in crate::control) fn obstacle(&self) -> Option<RefusalReason> {
        match &self.detour {
            Some(Detour::Obstacle(reason)) => Some(*reason),
            Some(Detour::Path(_)) | None => None,
        }
    }

    /// Returns true if the publisher requests a contract and the subscription does not.
    pub(in crate::control) fn is_asked_by_publisher(&self) -> bool {
        self.spec.within.is_some() && !self.request.wants_contract()
    }

    /// Returns true if the path must grant a reservation first: the pair requests a contract, its demand is
    /// known, and a link of the path has a capacity.
    pub(in crate::control) fn is_reserved(&self) -> bool {
        let split = self.place.split;
        let here = self.place.index;
        // On a path through a proxy, both forms must have a known demand.
        let hops = if split.scales_between() { [0, split.proxy()] } else { [here, here] };
        let hops = hops.get(usize::from(!split.scales_between())..).unwrap_or_default();
        let promised = |ask: Ask| {
            let on = |&hop: &usize| is_promised(self.spec, self.form_on(hop), &Ask { hop, ..ask });
            hops.iter().all(on)
        };
        split.is_limited() && self.obstacle().is_none() && self.ask().is_some_and(promised)
    }

    /// Returns the time without a sample after which its reservation is released. Two periods at least, or the
    /// reservation would end between two samples; and the delay bound at least, or it would end before the last sample
    /// has arrived.
    pub(in crate::control) fn idle_time(&self) -> Option<Duration> {
        let two = self.spec.period.map_or(Duration::ZERO, |period| period.mul_div(2, 1));
        // The end of one half for a pause would end the other one.
        let idle = self.request.idle.filter(|_| self.request.with.is_none());
        let bound = self.bound().unwrap_or(Duration::ZERO);
        idle.map(|idle| idle.max(IDLE_MIN).max(two).max(bound))
    }

    /// Returns the division of the delay bound among the hops of the path.
    pub(in crate::control) fn split(&self) -> Split {
        self.place.split
    }

    pub(crate) fn is_background(&self) -> bool {
        self.spec.tag.is_private()
    }

    pub(crate) fn target(&self) -> Target {
        self.place.next.map_or(Target::Local, Target::Hop)
    }

    /// Returns the form of the stream from this node: scaled if the proxy is this node or an earlier one.
    pub(crate) const fn leaving(&self) -> Form {
        self.leaves
    }

    /// Returns the delay bound, requested by the subscription or by the publisher for it.
    pub(crate) fn bound(&self) -> Option<Duration> {
        self.spec.bound_for(self.request)
    }

    /// Returns the contract request to this node's link; `None` for background streams, which get no promise.
    pub(in crate::control) fn ask(&self) -> Option<Ask> {
        if self.is_background() || self.without.is_some() {
            return None;
        }
        let ask = Ask::new(self.request, self.spec, self.place.index, self.place.split)?;
        Some(if self.carried { ask.of_carried() } else { ask })
    }

    /// Returns the reason why nothing is promised, if a promise is requested.
    pub(in crate::control) fn best_effort(&self) -> Option<BestEffort> {
        // A subscription without a request learns only that one made for it failed.
        if self.without.is_some() || self.is_asked_by_publisher() {
            return self.without;
        }
        let ask = self.ask()?;
        let last = self.place.split.hops().saturating_sub(1);
        let period = self.form_on(last).rate.period(self.spec.period);
        if ask.owes_nothing() {
            None
        } else if !self.split().is_limited() {
            Some(BestEffort::NoCapacity)
        } else if period.is_none_or(|period| period.is_zero()) {
            Some(BestEffort::RateUnknown)
        } else {
            let unknown = |hop| self.spec.budget(self.form_on(hop)).is_none();
            (unknown(0) || unknown(last)).then_some(BestEffort::SizeUnknown)
        }
    }
}
