//! The service of an observer's contract.

use crate::contract::{Grant, Refusal};
use crate::status::PublisherId;
use paceline_objects::contract::DelayParts;
use paceline_objects::{InterestContract, ObjectContract, PeerId};
use std::time::Duration;

/// A change of the service of an observer's contract.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServiceEvent {
    /// The links to an owner reserve the contract.
    Granted(Grant),
    /// A link cannot keep it: the updates of an owner are best effort. The offer was tested by every node of the path
    /// right after the refusal.
    Refused(Refusal, ServiceOffer),
    /// The modules at both ends need so much of the delay that the links to an owner cannot keep the rest. A granted
    /// contract stays in force, but its updates may be later; without one they are best effort. The last value is the
    /// least delay that leaves enough time for the links.
    EndsTooSlow(PeerId, DelayParts, Duration),
    /// Nothing is reserved for the updates of a publisher any more; they are best effort.
    Withdrawn(PublisherId),
}

/// Contracts that every node of the path would grant instead of a refused one. Each value suffices by itself, unless
/// [`Self::together`] is true; `None` if no value of this dimension suffices.
///
/// Each value was tested by the admission test of every node of the path, in steps of at most 1/37 of the value.
/// Other contracts may use up the capacity before it is requested.
///
/// ```
/// use paceline::world::{InterestContract, ObjectContract, ServiceOffer};
/// use std::time::Duration;
///
/// let each = ObjectContract::per_second(10, 60, Duration::from_millis(150));
/// let refused = InterestContract { each, objects: 20 };
/// let offer = ServiceOffer { max_updates: Some(4), ..ServiceOffer::default() };
/// let smaller = offer.apply(&refused).expect("something is offered");
/// assert_eq!((smaller.each.max_updates, smaller.objects), (4, 20));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServiceOffer {
    /// At most this number of updates in the contract's time.
    pub max_updates: Option<u32>,
    /// A least share of the state of at most this, in thousandths.
    pub fidelity_permille: Option<u16>,
    /// A delay of at least this.
    pub delay: Option<Duration>,
    /// True if the values suffice only together.
    pub together: bool,
}

impl ServiceOffer {
    /// Returns the refused contract with the offered values: all of them if they suffice only together, and else the
    /// first of the number of updates, the delay and the fidelity. `None` if nothing is offered.
    ///
    /// Set the other values to `None` to choose one.
    #[must_use]
    pub fn apply(&self, refused: &InterestContract) -> Option<InterestContract> {
        let Self { max_updates, fidelity_permille, delay, together } = *self;
        if (max_updates, fidelity_permille, delay) == (None, None, None) {
            return None;
        }
        let delay = delay.filter(|_| together || max_updates.is_none());
        let alone = max_updates.is_none() && delay.is_none();
        let fidelity = fidelity_permille.filter(|_| together || alone);
        let each = ObjectContract {
            max_updates: max_updates.unwrap_or(refused.each.max_updates),
            fidelity_permille: fidelity.unwrap_or(refused.each.fidelity_permille),
            delay: delay.map_or(refused.each.delay, Into::into),
            ..refused.each
        };
        // With fewer updates, a refresh may have to come later.
        let each = ObjectContract { refresh: each.refresh.max(each.gap()), ..each };
        Some(InterestContract { each, ..*refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_applied_unless_all_are_needed() {
        let each = ObjectContract::per_second(10, 60, Duration::from_millis(150));
        let refused = InterestContract { each, objects: 20 };
        let offer = ServiceOffer {
            max_updates: Some(1),
            fidelity_permille: Some(500),
            delay: Some(Duration::from_millis(600)),
            together: false,
        };
        let values = |offer: ServiceOffer| {
            let each = offer.apply(&refused).expect("something is offered").each;
            (each.max_updates, each.delay.as_micros() / 1_000, each.fidelity_permille)
        };
        assert_eq!(values(offer), (1, 150, 1_000));
        assert_eq!(values(ServiceOffer { max_updates: None, ..offer }), (10, 600, 1_000));
        assert_eq!(
            values(ServiceOffer { max_updates: None, delay: None, ..offer }),
            (10, 150, 500)
        );
        assert_eq!(values(ServiceOffer { together: true, ..offer }), (1, 600, 500));
        assert_eq!(ServiceOffer::default().apply(&refused), None);
        let rare = ObjectContract { max_updates: 1, per: each.per.mul_div(5, 1), ..each };
        let rare =
            InterestContract { each: ObjectContract { refresh: rare.gap(), ..rare }, objects: 1 };
        assert_eq!(offer.apply(&rare).expect("an offer").each.check(), Ok(()));
    }
}
