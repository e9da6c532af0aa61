//! The reservations of an observer's contract on the paths from all owners.

use super::channels;
use super::service::{ServiceEvent, ServiceOffer};
use super::state::Shared;
use super::trials::{Refused, Searches};
use crate::shell::clock;
use crate::status::PublisherId;
use crate::{SubscriberEvent, Subscription};
use paceline_objects::contract::DelayParts;
use paceline_objects::packet::UpdateClass;
use paceline_objects::{InterestContract, ObjectContract, PeerId};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The reservations of the contract, one per owner: each has the delay that its ends leave.
#[derive(Default)]
pub(super) struct Reservations {
    contract: Option<InterestContract>,
    owners: BTreeMap<PeerId, OwnerReservation>,
    searches: Searches,
    requests: u64,
    /// The changes of participants that the requests follow.
    changes: u64,
    checked: Option<Instant>,
}

/// The reservation on the path from one owner.
struct OwnerReservation {
    parts: DelayParts,
    /// The requested delay of the network.
    within: Duration,
    /// Whether the ends were reported as too slow.
    too_slow: bool,
    /// The number of the request, and the subscription of promised updates; `None` if the ends are too slow, or if it
    /// could not be declared.
    request: Option<(u64, Subscription)>,
    /// The publisher whose refusal is not reported yet, because an offer is being searched.
    refused: Option<PublisherId>,
    /// The last answer was a refusal.
    is_refused: bool,
}

impl Reservations {
    /// How often the measured times are compared with the requested ones.
    const CHECK: Duration = Duration::from_secs(1);

    /// Requests the delay that the contract of the interest leaves for the network, and takes the answers.
    pub(super) fn update(&mut self, shared: &Arc<Shared>) {
        let mut events = self.answers(shared);
        events.extend(self.found());
        let now = clock::now();
        let state = shared.lock();
        let contract = state.participant.interest().and_then(|interest| interest.contract);
        let changes = state.participant.interest_changes();
        let same = contract == self.contract && changes == self.changes;
        if !same || self.checked.is_none_or(|checked| now.since(checked) >= Self::CHECK) {
            let owner = |(owner, _)| {
                state.participant.service_from(owner, contract.as_ref()?)?;
                Some((owner, state.participant.delay_parts(owner)?))
            };
            let parts: BTreeMap<_, _> = state.participant.peers().filter_map(owner).collect();
            drop(state);
            if contract != self.contract {
                self.owners.clear();
            }
            (self.contract, self.changes, self.checked) = (contract, changes, Some(now));
            events.extend(self.follow(&parts, shared));
        } else {
            drop(state);
        }
        if !events.is_empty() {
            shared.lock().answer(events);
            shared.arrived.notify(usize::MAX);
        }
    }

    /// Requests the contract from all owners with these times at the ends, unless a request in force is still right.
    fn follow(
        &mut self,
        parts: &BTreeMap<PeerId, DelayParts>,
        shared: &Arc<Shared>,
    ) -> Vec<ServiceEvent> {
        self.owners.retain(|owner, _| parts.contains_key(owner));
        let Some(contract) = self.contract else { return Vec::new() };
        let mut events = Vec::new();
        for (owner, parts) in parts {
            let network = parts.network(&contract.each).filter(|left| *left >= channels::SHORTEST);
            let within = network.map_or(Duration::ZERO, channels::requested);
            if let Some(known) = self.owners.get_mut(owner) {
                known.too_slow &= network.is_none();
                if known.suits(network) {
                    continue;
                }
            }
            let too_slow = network.is_none();
            if too_slow {
                let delay = achievable(&contract.each, parts, channels::SHORTEST);
                events.push(ServiceEvent::EndsTooSlow(*owner, *parts, delay.into()));
            }
            if let Some(known) = self.owners.get_mut(owner)
                && (too_slow || known.change(*parts, within, shared))
            {
                known.too_slow = too_slow;
                continue;
            }
            self.requests += 1;
            let own = shared.lock().participant.id();
            let tag = channels::promised(shared.world(), own, &contract, *owner);
            let request = network.and_then(|_| request(shared, &tag, within));
            let request = request.map(|subscription| (self.requests, subscription));
            let reservation = OwnerReservation {
                parts: *parts,
                within,
                too_slow,
                request,
                refused: None,
                is_refused: false,
            };
            self.owners.insert(*owner, reservation);
        }
        events
    }

    /// Takes the answers of the paths. A refusal is reported once an offer was searched.
    fn answers(&mut self, shared: &Arc<Shared>) -> Vec<ServiceEvent> {
        let Some(contract) = self.contract else { return Vec::new() };
        let mut events = Vec::new();
        for (owner, reservation) in &mut self.owners {
            let OwnerReservation { parts, request, refused: waiting, is_refused, .. } = reservation;
            let Some((number, subscription)) = request else { continue };
            while let Some(event) = subscription.try_event() {
                match event {
                    SubscriberEvent::Granted(grant) => {
                        waiting.take_if(|it| *it == grant.publisher);
                        *is_refused = false;
                        events.push(ServiceEvent::Granted(grant));
                    }
                    SubscriberEvent::Refused(publisher, refusal) => {
                        *waiting = Some(publisher);
                        *is_refused = true;
                        let own = shared.lock().participant.id();
                        let refused = Refused {
                            node: shared.node().clone(),
                            owner: *owner,
                            tag: channels::promised(shared.world(), own, &contract, *owner),
                            contract,
                            parts: *parts,
                            refusal,
                            number: *number,
                        };
                        if let Some(refused) = self.searches.begin(refused, shared) {
                            *waiting = None;
                            events.push(ServiceEvent::Refused(
                                refused.refusal,
                                ServiceOffer::default(),
                            ));
                        }
                    }
                    SubscriberEvent::Withdrawn(publisher)
                    | SubscriberEvent::BestEffort(publisher, _) => {
                        waiting.take_if(|it| *it == publisher);
                        events.push(ServiceEvent::Withdrawn(publisher));
                    }
                    SubscriberEvent::ChangeRefused { within, .. } => {
                        // The contract that stays in force has this delay of the network.
                        let granted = within.map_or(Duration::ZERO, Into::into);
                        let delay = achievable(&contract.each, parts, granted);
                        events.push(ServiceEvent::EndsTooSlow(*owner, *parts, delay.into()));
                    }
                    SubscriberEvent::Publishers(_)
                    | SubscriberEvent::NoSpare(_)
                    | SubscriberEvent::Excess { .. }
                    | SubscriberEvent::Changed { .. }
                    | SubscriberEvent::Adapted { .. }
                    | SubscriberEvent::Warned(..)
                    | SubscriberEvent::Silent(_)
                    | SubscriberEvent::Resumed(_) => {}
                }
            }
        }
        events
    }

    /// Takes the offers that were found for refusals that are still in force.
    fn found(&mut self) -> Vec<ServiceEvent> {
        let mut events = Vec::new();
        while let Some((refused, offer)) = self.searches.found() {
            let Refused { owner, number, refusal, .. } = refused;
            let Some(reservation) = self.owners.get_mut(&owner) else { continue };
            let current = reservation.request.as_ref().is_some_and(|(known, _)| *known == number);
            if current && reservation.refused.take_if(|it| *it == refusal.publisher).is_some() {
                events.push(ServiceEvent::Refused(refusal, offer));
            }
        }
        events
    }
}

impl OwnerReservation {
    /// Returns whether the request is still right for the delay that is left to the network: not longer, so that the
    /// delay of the contract is kept, and not much shorter. A refused one is made again when an eighth more is left.
    /// Without such a delay, it is right once that was reported.
    fn suits(&self, network: Option<Duration>) -> bool {
        match network {
            Some(network) => {
                self.request.is_some()
                    && self.within <= network
                    && channels::requested(network)
                        <= self.within.mul_div(if self.is_refused { 9 } else { 16 }, 8)
            }
            None => self.too_slow,
        }
    }

    /// Changes the request to another delay of the network. The old contract stays in force until the path has
    /// granted the new one, and after a refusal. Returns false if there is no request to change.
    fn change(&mut self, parts: DelayParts, within: Duration, shared: &Shared) -> bool {
        let Some((_, subscription)) = &self.request else {
            return false;
        };
        let changed =
            shared.node().change(subscription.id(), |request| request.within(within.into()));
        (self.parts, self.within) = (parts, within);
        changed.inspect_err(|error| crate::warn_limited!("world: {error}")).is_ok()
    }
}

/// Requests the contract of one owner; `None` if it could not be declared.
fn request(shared: &Arc<Shared>, tag: &str, within: Duration) -> Option<Subscription> {
    let receiver = Arc::clone(shared);
    let class = UpdateClass::Promised;
    let declared = shared
        .node()
        .subscriber(tag)
        .within(within.into())
        .callback(move |sample| channels::take(&receiver, &sample, class));
    declared.inspect_err(|error| crate::warn_limited!("world: {error}")).ok()
}

/// Returns a delay of which the ends leave `network`.
fn achievable(each: &ObjectContract, parts: &DelayParts, network: Duration) -> Duration {
    let needed = parts.ends().saturating_add(network);
    // The spread is at most a quarter, and at most the gap.
    let quarter = Duration::from_nanos(needed.as_nanos().saturating_mul(4).div_ceil(3));
    quarter.min(needed.saturating_add(each.gap()))
}
