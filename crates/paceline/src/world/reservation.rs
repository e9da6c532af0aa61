//! The reservation of an observer's contract.

use super::channels;
use super::service::{ServiceEvent, ServiceOffer};
use super::state::Shared;
use crate::contract::Refusal;
use crate::shell::clock;
use crate::{SubscriberEvent, Subscription};
use paceline_objects::packet::UpdateClass;
use paceline_objects::{InterestContract, Participant, PeerId};
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// The subscription of the promised updates.
#[derive(Default)]
pub(super) struct Reservation {
    contract: Option<InterestContract>,
    /// Whether the request could be declared; it is repeated otherwise.
    requested: bool,
    network: Duration,
    subscription: Option<Subscription>,
    checked: Option<Instant>,
}

impl Reservation {
    /// How often the measured times are compared with the requested ones.
    const CHECK: Duration = Duration::from_secs(1);

    /// Requests what the interest's contract leaves for the network, and takes the answers.
    pub(super) fn update(&mut self, shared: &Arc<Shared>) {
        self.answers(shared);
        let now = clock::now();
        let state = shared.lock();
        let contract = state.participant.interest().and_then(|interest| interest.contract);
        let id = state.participant.id();
        if contract == self.contract
            && self.checked.is_some_and(|checked| now.since(checked) < Self::CHECK)
        {
            return;
        }
        let Some(wanted) = contract else {
            drop(state);
            *self = Self::default();
            return;
        };
        let network = network(&state.participant, wanted.each.delay);
        drop(state);
        self.checked = Some(now);
        // Smaller changes are not worth a new request.
        let near = self.requested && self.network <= network.mul_div(11, 10);
        if contract == self.contract && near {
            return;
        }
        self.network = network;
        self.contract = contract;
        self.requested = self.request(shared, id);
    }

    /// Requests the contract; returns false if it could not be declared.
    fn request(&mut self, shared: &Arc<Shared>, id: PeerId) -> bool {
        let class = UpdateClass::Promised;
        let receiver = Arc::clone(shared);
        let pattern = channels::promised(shared.world(), id);
        self.subscription = None;
        let declared = shared
            .node()
            .subscriber(&pattern)
            .within(self.network.into())
            .callback(move |sample| channels::take(&receiver, &sample, class));
        match declared {
            Ok(subscription) => {
                self.subscription = Some(subscription);
                true
            }
            Err(error) => {
                crate::warn_limited!("world: {error}");
                false
            }
        }
    }

    fn answers(&self, shared: &Shared) {
        let Some((subscription, contract)) = self.subscription.as_ref().zip(self.contract) else {
            return;
        };
        let mut events = Vec::new();
        while let Some(event) = subscription.try_event() {
            match event {
                SubscriberEvent::Granted(grant) => events.push(ServiceEvent::Granted(grant)),
                SubscriberEvent::Refused(_, refusal) => {
                    let offer = offer(&contract, self.network, &refusal);
                    events.push(ServiceEvent::Refused(refusal, offer));
                }
                SubscriberEvent::Withdrawn(publisher)
                | SubscriberEvent::BestEffort(publisher, _) => {
                    events.push(ServiceEvent::Withdrawn(publisher));
                }
                SubscriberEvent::Publishers(_)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_) => {}
            }
        }
        if !events.is_empty() {
            shared.lock().answer(events);
            shared.arrived.notify(usize::MAX);
        }
    }
}

/// Returns the delay that remains for the network, by the greatest measured times of all owners.
fn network(participant: &Participant, delay: Duration) -> Duration {
    let parts = participant.peers().filter_map(|(peer, _)| participant.delay_parts(peer));
    let networks = parts.filter_map(|parts| parts.network(delay));
    // Half of the delay if the rest is spent at the ends: the miss is visible in the report.
    networks.min().unwrap_or_else(|| delay.mul_div(1, 2)).max(delay.mul_div(1, 2))
}

/// Returns a refusal's offer in the terms of the contract.
fn offer(contract: &InterestContract, network: Duration, refusal: &Refusal) -> ServiceOffer {
    let each = &contract.each;
    let share = |needed: u64, available: u64| {
        (needed > 0 && available < needed)
            .then(|| u128::from(available) * 1_000 / u128::from(needed))
    };
    let share = share(refusal.needed_bytes_per_s, refusal.available_bytes_per_s);
    let updates = share.map(|share| u128::from(each.max_updates) * share / 1_000);
    let fidelity = share.map(|share| u128::from(each.fidelity_permille) * share / 1_000);
    let spent = each.delay.saturating_sub(network);
    ServiceOffer {
        max_updates: updates
            .and_then(|updates| u32::try_from(updates).ok())
            .filter(|updates| *updates > 0),
        fidelity_permille: fidelity
            .and_then(|fidelity| u16::try_from(fidelity).ok())
            .filter(|least| *least > 0),
        delay: refusal.offer.within.map(|within| within.saturating_add(spent).into()),
    }
}
