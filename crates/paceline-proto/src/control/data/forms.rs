//! The forms of one publisher's samples on a hop, and which of them carry others.

use crate::form::{Form, Rate};
use core::num::NonZeroU32;
use std::collections::BTreeMap;

/// The forms on a hop.
pub(in crate::control) type Forms = BTreeMap<Form, Promised>;

/// The contracts of the subscriptions of a form.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::control) struct Promised {
    /// One of them requests a contract.
    asked: bool,
    /// One of them has a reservation that may be shared.
    reserved: bool,
}

impl Promised {
    /// Adds a subscription.
    pub(in crate::control) const fn add(&mut self, asked: bool, reserved: bool) {
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
    pub(in crate::control) fn contains(self, other: Self) -> bool {
        let of_these = |n: NonZeroU32| other.rate.every.get().is_multiple_of(n.get());
        // A bit rate limit may take other ones of some samples than of all.
        let counted = self.rate.one_in().is_some_and(of_these) && other.rate.bits_per_s.is_none();
        let rate = self.rate == other.rate || counted;
        // Streams behind different proxies come on different paths.
        rate && Self { rate: Rate::ALL, ..self } == Self { rate: Rate::ALL, ..other }
    }
}

/// Returns the form that carries each form of a hop.
pub(in crate::control) fn carriers(forms: &Forms) -> BTreeMap<Form, Form> {
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
    use super::*;
    use crate::control::contracts::booking::trunk;
    use crate::form::Size;
    use crate::ids::{NodeId, PublisherId};
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
