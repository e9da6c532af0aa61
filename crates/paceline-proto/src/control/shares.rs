//! One sample crosses a link once: forms of one publisher that leave over the same hop share a stream.
//!
//! "All", "one in 3" and "one in 6" of a tag are carried as "all" where one subscription behind the hop requests it,
//! and are thinned again behind the hop. A stream may carry another if its form contains the other one and its contract
//! is at least as strict. So no subscription receives less than by a stream of its own. A best-effort stream never
//! carries one with a contract.
//!
//! Both nodes of a hop decide alike: both know all pairs whose path crosses it.

use super::contract::promise;
use super::pair::Pair;
use super::request::Ask;
use crate::form::{Form, Rate};
use crate::ids::{NodeId, PublisherId};
use paceline_sched::{Duration, LossTolerance};
use std::collections::BTreeMap;

/// A publisher's samples on a hop.
type HopKey = (PublisherId, NodeId, NodeId);
/// The pairs of each form on a hop, with their requests for contracts there.
type Forms<'p, 'a> = BTreeMap<Form, Vec<(&'p Pair<'a>, Option<Ask>)>>;

/// The promise of a form on a hop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Promise {
    BestEffort,
    /// At the latest `due` after publication, within `deadline` on the hop.
    Contract {
        deadline: Duration,
        due: Duration,
        /// No sample may miss.
        lossless: bool,
        level: Option<u32>,
    },
}

impl Form {
    /// Returns true if each sample in the form `other` is also one in this form.
    pub(super) fn contains(self, other: Self) -> bool {
        let rate = match (self.rate, other.rate) {
            (Rate::All, _) => true,
            (Rate::Every(a), Rate::Every(b)) => b.get().is_multiple_of(a.get()),
            (Rate::Every(_) | Rate::Max(_), _) => self.rate == other.rate,
        };
        rate && Self { rate: Rate::All, ..self } == Self { rate: Rate::All, ..other }
    }
}

impl Promise {
    fn of(form: Form, behind: &[(&Pair<'_>, Option<Ask>)]) -> Self {
        let asks: Vec<Ask> = behind.iter().filter_map(|(_, ask)| *ask).collect();
        let spec = behind.first().map(|(pair, _)| pair.spec);
        let Some(promise) = spec.and_then(|spec| promise(spec, form, &asks)) else {
            return Self::BestEffort;
        };
        let deadline = promise.contract.deadline;
        Self::Contract {
            deadline,
            due: promise.upstream.saturating_add(deadline),
            lossless: promise.contract.loss == LossTolerance::NONE,
            level: asks.iter().filter_map(|ask| ask.level).min(),
        }
    }

    /// Returns true if samples under this promise satisfy `other`, too.
    fn covers(self, other: Self) -> bool {
        match (self, other) {
            (_, Self::BestEffort) => true,
            (Self::BestEffort, Self::Contract { .. }) => false,
            (
                Self::Contract { deadline, due, lossless, level },
                Self::Contract { deadline: theirs, due: theirs_due, level: their_level, .. },
            ) => lossless && deadline <= theirs && due <= theirs_due && level == their_level,
        }
    }
}

/// Lets the pairs share streams on the hops to and from this node.
pub(super) fn share<'a>(mut pairs: Vec<Pair<'a>>) -> Vec<Pair<'a>> {
    let mut hops: BTreeMap<HopKey, Forms<'_, 'a>> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| may_share(pair)) {
        for (key, ask) in pair.hops_here() {
            let forms = hops.entry(key).or_default();
            forms.entry(pair.travelling()).or_default().push((pair, ask));
        }
    }
    // Most hops carry one form of a publisher.
    hops.retain(|_, forms| forms.len() > 1);
    let carriers: BTreeMap<HopKey, BTreeMap<Form, Form>> =
        hops.iter().map(|(key, forms)| (*key, carriers(forms))).collect();
    for pair in pairs.iter_mut().filter(|pair| may_share(pair)) {
        let on = |key, form| {
            let known = carriers.get(&key).and_then(|forms| forms.get(&form));
            known.copied().unwrap_or(form)
        };
        let own = pair.travelling();
        let leaves = pair.hop_from_here().map_or(own, |key| on(key, own));
        if pair.hop_from_here().is_some() {
            pair.leaves = leaves;
        }
        // The samples of a carried form come from those of its carrier.
        if let Some(key) = pair.hop_to_here() {
            pair.arrives = on(key, leaves);
        }
    }
    pairs
}

/// Video is thinned once: its pictures depend on each other.
fn may_share(pair: &Pair<'_>) -> bool {
    !pair.is_background() && !pair.spec.kind.is_video()
}

/// Returns the form that carries each form of a hop.
fn carriers(forms: &Forms<'_, '_>) -> BTreeMap<Form, Form> {
    let promises: BTreeMap<Form, Promise> =
        forms.iter().map(|(form, behind)| (*form, Promise::of(*form, behind))).collect();
    let carries = |(one, promise): (&Form, &Promise), (other, theirs): (&Form, &Promise)| {
        one != other && one.contains(*other) && promise.covers(*theirs)
    };
    let carried = |form| promises.iter().any(|other| carries(other, form));
    let roots: Vec<_> = promises.iter().filter(|form| !carried(*form)).collect();
    let carrier = |form| roots.iter().find(|root| carries(**root, form)).map(|(root, _)| **root);
    promises.iter().map(|form| (*form.0, carrier(form).unwrap_or(*form.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Size;
    use core::num::NonZeroU32;
    use proptest::prelude::*;

    fn rate() -> impl Strategy<Value = Rate> {
        let number = |n: u32| NonZeroU32::new(n).unwrap();
        prop_oneof![
            Just(Rate::All),
            (2..13_u32).prop_map(move |n| Rate::Every(number(n))),
            (1..4_u32).prop_map(move |n| Rate::Max(number(n * 1_000))),
        ]
    }

    fn form() -> impl Strategy<Value = Form> {
        let size = proptest::option::of((1..3_u32).prop_map(|width| Size { width, height: 1 }));
        (rate(), size).prop_map(|(rate, size)| Form { rate, size, ..Form::FULL })
    }

    proptest! {
        #[test]
        fn a_form_contains_the_samples_of_another_in_any_phase(
            one in form(), other in form(), third in form(),
        ) {
            if one.contains(other) && other.contains(one) {
                prop_assert_eq!(one, other);
            }
            if one.contains(other) && other.contains(third) {
                prop_assert!(one.contains(third));
            }
            if let (Rate::Every(a), Rate::Every(b), true) = (one.rate, other.rate, one.contains(other)) {
                let all = |n: NonZeroU32| (0..200_u32).filter(move |seq| seq.is_multiple_of(n.get()));
                prop_assert!(all(b).all(|seq| all(a).any(|it| it == seq)));
            }
        }

        #[test]
        fn stricter_promises_cover_weaker_ones(deadline in 1..9_u64, due in 1..9_u64) {
            let contract = |deadline, due, lossless| Promise::Contract {
                deadline: Duration::from_millis(deadline),
                due: Duration::from_millis(due),
                lossless,
                level: None,
            };
            let one = contract(deadline, due, true);
            prop_assert!(one.covers(one) && one.covers(Promise::BestEffort));
            prop_assert!(!Promise::BestEffort.covers(one));
            prop_assert!(!contract(deadline, due, false).covers(one));
            prop_assert!(one.covers(contract(deadline + 1, due, false)));
            prop_assert!(!contract(deadline + 1, due, true).covers(one));
            prop_assert!(!contract(deadline, due + 1, true).covers(one));
        }
    }
}
