//! One sample crosses a link once: forms of one publisher that leave over the same hop share a stream.
//!
//! "All", "one in 3" and "one in 6" of a tag are carried as "all" where one subscription behind the hop requests it,
//! and are thinned again behind the hop. A stream carries those whose samples are all among its own. One without a
//! contract carries none with a contract, because it could delay them. The contract of a stream that carries others
//! satisfies all of them, and admission charges it once ([`paceline_admit::Trunk::carries`]).
//!
//! Both nodes of a hop decide alike: both know all pairs whose path crosses it. For a moment they may differ, because a
//! reservation is installed at the later node first. The earlier node alone decides which stream a sample is sent in, and
//! the later one still accepts the stream before ([`super::linger`]).

use super::pair::Pair;
use super::spec::{PublisherSpec, SubscriptionSpec};
use crate::form::{Form, Rate};
use crate::ids::{NodeId, PublisherId};
use core::num::NonZeroU32;
use std::collections::BTreeMap;

/// A publisher's samples on a hop.
type HopKey = (PublisherId, NodeId, NodeId);
/// The forms on a hop.
pub(super) type Forms = BTreeMap<Form, Promised>;

/// The contracts of the subscriptions of a form.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Promised {
    /// One of them requests a contract.
    asked: bool,
    /// One of them has a reservation that may be shared.
    reserved: bool,
}

impl Promised {
    /// Adds a subscription.
    pub(super) const fn add(&mut self, asked: bool, reserved: bool) {
        self.asked |= asked;
        self.reserved |= asked && reserved;
    }

    /// Returns true if a stream of this form may carry one of the form `other`.
    const fn may_carry(self, other: Self) -> bool {
        !other.asked || self.reserved && other.reserved
    }
}

impl Form {
    /// Returns true if each sample in the form `other` is also one in this form.
    pub(super) fn contains(self, other: Self) -> bool {
        let of_these = |n: NonZeroU32| other.rate.every.get().is_multiple_of(n.get());
        // A bit rate limit may take other ones of some samples than of all.
        let counted = self.rate.one_in().is_some_and(of_these) && other.rate.bits_per_s.is_none();
        let rate = self.rate == other.rate || counted;
        // Streams behind different proxies come on different paths.
        rate && Self { rate: Rate::ALL, ..self } == Self { rate: Rate::ALL, ..other }
    }
}

/// Lets the pairs share streams on the hops to and from this node. Returns those that change by it: few, of many.
pub(super) fn share<'p, 'a: 'p>(
    pairs: impl Iterator<Item = &'p Pair<'a>> + Clone,
) -> Vec<Pair<'a>> {
    let mut hops: BTreeMap<HopKey, Forms> = BTreeMap::new();
    for pair in pairs.clone().filter(|pair| may_share(pair)) {
        let [to_here, from_here] = pair.forms_here();
        let to = pair.hop_to_here().map(|key| (key, to_here));
        let from = pair.hop_from_here().map(|key| (key, from_here));
        let reserved = pair.is_reserved() && !stays_apart(pair.spec, pair.request);
        let (asked, reserved) = (pair.ask().is_some(), reserved);
        for (key, form) in [to, from].into_iter().flatten() {
            hops.entry(key).or_default().entry(form).or_default().add(asked, reserved);
        }
    }
    // Most hops carry one form of a publisher.
    hops.retain(|_, forms| forms.len() > 1);
    let carriers: BTreeMap<HopKey, BTreeMap<Form, Form>> =
        hops.iter().map(|(key, forms)| (*key, carriers(forms))).collect();
    let mut changed = Vec::new();
    for pair in pairs.filter(|pair| may_share(pair)) {
        let mut shared = (pair.leaves, pair.carried, pair.arrives);
        let on = |key, form| {
            let known = carriers.get(&key).and_then(|forms| forms.get(&form));
            known.copied().unwrap_or(form)
        };
        let [to_here, own] = pair.forms_here();
        let leaves = pair.hop_from_here().map_or(own, |key| on(key, own));
        if pair.hop_from_here().is_some() {
            (shared.0, shared.1) = (leaves, leaves != own);
        }
        // The samples of a carried form come from those of its carrier.
        let wanted = if to_here == own { leaves } else { to_here };
        if let Some(key) = pair.hop_to_here() {
            shared.2 = on(key, wanted);
        }
        if shared != (pair.leaves, pair.carried, pair.arrives) {
            let (leaves, carried, arrives) = shared;
            changed.push(Pair { leaves, carried, arrives, ..pair.clone() });
        }
    }
    changed
}

/// Returns true if the contract of a request neither carries streams of other forms nor is carried by them: that of video,
/// and that of a reservation which is released while idle, because the stream is best effort until it returns.
pub(super) fn stays_apart(spec: &PublisherSpec, request: &SubscriptionSpec) -> bool {
    spec.kind.is_video() || request.idle.is_some()
}

/// Video is thinned once: its pictures depend on each other.
fn may_share(pair: &Pair<'_>) -> bool {
    !pair.is_background() && !pair.spec.kind.is_video()
}

/// Returns the form that carries each form of a hop.
pub(super) fn carriers(forms: &Forms) -> BTreeMap<Form, Form> {
    type Entry<'f> = (&'f Form, &'f Promised);
    let carries = |(one, its): Entry<'_>, (other, of): Entry<'_>| {
        one != other && one.contains(*other) && its.may_carry(*of)
    };
    let carried = |form| forms.iter().any(|one| carries(one, form));
    let roots: Vec<Entry<'_>> = forms.iter().filter(|form| !carried(*form)).collect();
    let carrier = |form| roots.iter().find(|root| carries(**root, form)).map(|root| *root.0);
    forms.iter().map(|form| (*form.0, carrier(form).unwrap_or(*form.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::booking::trunk;
    use super::*;
    use crate::form::Size;
    use core::num::NonZeroU32;
    use proptest::prelude::*;

    fn rate() -> impl Strategy<Value = Rate> {
        let number = |n: u32| NonZeroU32::new(n).unwrap();
        prop_oneof![
            Just(Rate::ALL),
            (2..13_u32).prop_map(move |n| Rate::every(number(n))),
            (1..5_u32, 1..4_u32).prop_map(move |(n, limit)| {
                Rate::every(number(n)).at_most(number(limit * 1_000))
            }),
            (1..5_u32).prop_map(move |n| Rate {
                bits_per_s: Some(number(8_000)),
                ..Rate::every(number(n))
            }),
        ]
    }

    fn form() -> impl Strategy<Value = Form> {
        let size = proptest::option::of((1..3_u32).prop_map(|width| Size { width, height: 1 }));
        let via = proptest::option::of((1..3_u64).prop_map(NodeId));
        (rate(), size, via).prop_map(|(rate, size, via)| Form { rate, size, via, ..Form::FULL })
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
            if one.contains(other) && one != other {
                let all = |rate: Rate| (0..200_u32).filter(move |seq| seq.is_multiple_of(rate.every.get()));
                prop_assert!(all(other.rate).all(|seq| all(one.rate).any(|it| it == seq)));
                prop_assert!(one.rate.one_in().is_some() && other.rate.bits_per_s.is_none());
            }
        }

        #[test]
        fn a_carrier_contains_what_it_carries_and_is_carried_by_none(
            forms in proptest::collection::btree_map(form(), any::<[bool; 2]>(), 1..9),
        ) {
            let promised = |[asked, reserved]: [bool; 2]| {
                let mut promised = Promised::default();
                promised.add(asked, reserved);
                promised
            };
            let forms: Forms = forms.into_iter().map(|(form, it)| (form, promised(it))).collect();
            let carriers = carriers(&forms);
            for (form, carrier) in &carriers {
                prop_assert!(carrier.contains(*form) && carriers[carrier] == *carrier);
                let apart = form == carrier;
                prop_assert!(apart || !forms[form].asked || forms[carrier].reserved, "it could be delayed");
                let others = || forms.iter().filter(|(other, _)| *other != form);
                let could = |(other, its): (&Form, &Promised)| {
                    other.contains(*form) && its.may_carry(forms[form])
                };
                prop_assert!(!apart || !others().any(could));
            }
        }

        #[test]
        fn contracts_are_shared_on_a_link_as_admission_charges_them(
            forms in proptest::collection::btree_set(form(), 1..9),
        ) {
            let publisher = PublisherId { node: NodeId(3), index: 5 };
            let trunk = |form: Form| trunk(publisher, false, form);
            for (one, other) in forms.iter().flat_map(|one| forms.iter().map(move |other| (*one, *other))) {
                let carries = one != other && one.contains(other);
                prop_assert_eq!(trunk(one).carries(trunk(other)), carries);
                if one.rate.bits_per_s.or(other.rate.bits_per_s).is_none() {
                    prop_assert_eq!(one.rate.cmp(&other.rate), trunk(one).cmp(&trunk(Form { rate: other.rate, ..one })));
                }
            }
        }
    }
}
