//! The default form of an observer: never more than links with a capacity carry anyway.

use paceline::Capacity;
use paceline::contract::{Form, Rate, Retransmit};
use paceline::status::{HopView, SourceView, Taken};

/// The form to request on a tag.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    /// The tag has no publisher.
    Nobody,
    /// This form: it adds no load to any link with a capacity.
    Take(Form),
    /// No form: this link would carry any form for the observer alone.
    Leave(Thin),
}

/// A link with a capacity to which an observer must not add load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Thin {
    /// The link's name.
    pub(super) link: String,
    /// The link's capacity.
    pub(super) capacity: Capacity,
}

/// Chooses the form for a tag with these publishers; keeps `current` as long as it adds no load.
pub(super) fn choose(sources: &[SourceView], current: Option<Form>) -> Choice {
    if sources.is_empty() {
        return Choice::Nobody;
    }
    let mut forms: Vec<Form> = sources.iter().flat_map(others).map(|taken| taken.form).collect();
    forms.push(Form::FULL);
    forms.sort_by_key(rank);
    forms.dedup();
    let free = |form: &Form| sources.iter().all(|source| unpaid(source, *form).is_none());
    if let Some(form) = current.into_iter().chain(forms).find(free) {
        return Choice::Take(form);
    }
    let thin = sources.iter().find_map(|source| unpaid(source, Form::FULL));
    thin.map_or(Choice::Nobody, Choice::Leave)
}

/// Returns the other subscriptions to a publisher. Excludes observers, recognised by their retransmission
/// mode: two observers would otherwise keep each other's streams alive.
fn others(source: &SourceView) -> impl Iterator<Item = &Taken> {
    source.taken.iter().filter(|taken| taken.retransmit != Retransmit::None)
}

/// Orders forms: most samples first, then the largest pictures.
fn rank(form: &Form) -> (u32, u32, u64) {
    let Rate { every, max_millihertz, .. } = form.rate;
    let limit = max_millihertz.map_or(0, |millihertz| u32::MAX - millihertz.get());
    let pixels = form.size.map_or(u64::MAX, |s| u64::from(s.width) * u64::from(s.height));
    (every.get(), limit, u64::MAX - pixels)
}

/// Returns the first hop with a capacity that does not already carry this form for another subscription.
fn unpaid(source: &SourceView, form: Form) -> Option<Thin> {
    let carried = |hop: &HopView| {
        let same = others(source).filter(|taken| taken.form == form);
        same.flat_map(|taken| &taken.hops).any(|other| other == hop)
    };
    let thin = source.hops.iter().filter(|hop| !carried(hop));
    thin.filter_map(|hop| Some(Thin { link: hop.link.clone(), capacity: hop.capacity? })).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::status::{NodeId, PublisherId, SubscriptionId};
    use paceline::{Size, Tag};
    use std::num::NonZeroU32;

    const ROBOT: u64 = 1;
    const RELAY: u64 = 2;
    const HOST: u64 = 3;
    const ME: u64 = 9;

    fn hop(from: u64, to: u64, mbit: Option<u64>) -> HopView {
        HopView {
            from: NodeId(from),
            to: NodeId(to),
            link: if mbit.is_some() { "thin" } else { "host" }.to_owned(),
            capacity: mbit.map(|mbit| Capacity::from_bits_per_s(mbit * 1_000_000).unwrap()),
            multicast: false,
        }
    }

    fn source(hops: Vec<HopView>, taken: Vec<(Form, Vec<HopView>)>) -> SourceView {
        let taken = taken.into_iter().map(|(form, hops)| Taken {
            subscription: SubscriptionId { node: NodeId(7), index: 1 },
            form,
            retransmit: Retransmit::Selective,
            hops,
        });
        SourceView {
            publisher: PublisherId { node: NodeId(ROBOT), index: 0 },
            tag: Tag::new("robot/camera").unwrap(),
            node: "robot".to_owned(),
            encoding: paceline::Encoding::Jpeg,
            key_interval: None,
            period: None,
            late: paceline::Late::Drop,
            loss: None,
            within: None,
            size: None,
            bytes_max: None,
            traffic: None,
            latch: false,
            hops,
            taken: taken.collect(),
        }
    }

    fn few() -> Form {
        let rate = Rate::max(NonZeroU32::new(5_000).unwrap());
        Form { rate, size: Some(Size { width: 160, height: 120 }), ..Form::FULL }
    }

    fn way() -> Vec<HopView> {
        vec![hop(ROBOT, HOST, Some(2)), hop(HOST, ME, None)]
    }

    #[test]
    fn without_a_link_capacity_it_requests_every_sample() {
        assert_eq!(choose(&[], None), Choice::Nobody);
        assert_eq!(choose(&[source(vec![], vec![])], None), Choice::Take(Form::FULL));
        let free = source(vec![hop(ROBOT, HOST, None), hop(HOST, ME, None)], vec![]);
        assert_eq!(choose(&[free], None), Choice::Take(Form::FULL));
    }

    #[test]
    fn behind_a_link_with_a_capacity_it_shares_an_existing_stream() {
        let beside = vec![hop(ROBOT, HOST, Some(2)), hop(HOST, 7, None)];
        let camera = source(way(), vec![(few(), beside.clone())]);
        assert_eq!(choose(&[camera], None), Choice::Take(few()));
        let richer = source(way(), vec![(few(), beside.clone()), (Form::FULL, beside)]);
        assert_eq!(choose(std::slice::from_ref(&richer), None), Choice::Take(Form::FULL));
        assert_eq!(choose(&[richer], Some(few())), Choice::Take(few()), "the form does not change");
    }

    #[test]
    fn it_requests_no_stream_that_nobody_else_receives() {
        let thin = |choice| matches!(choice, Choice::Leave(Thin { link, .. }) if link == "thin");
        assert!(thin(choose(&[source(way(), vec![])], None)));
        assert!(
            thin(choose(&[source(way(), vec![])], Some(few()))),
            "the other observer has ended"
        );
        // A subscription before the link, or behind another link, makes no difference.
        let before = source(way(), vec![(Form::FULL, vec![])]);
        assert!(thin(choose(&[before], None)));
        let aside = source(way(), vec![(Form::FULL, vec![hop(ROBOT, 5, Some(2))])]);
        assert!(thin(choose(&[aside], None)));
    }

    #[test]
    fn another_observer_does_not_keep_the_stream() {
        let mut camera = source(way(), vec![(few(), way())]);
        assert_eq!(choose(std::slice::from_ref(&camera), None), Choice::Take(few()));
        camera.taken[0].retransmit = Retransmit::None;
        assert!(matches!(choose(&[camera], Some(few())), Choice::Leave(_)));
    }

    #[test]
    fn every_link_of_the_path_and_every_publisher_counts() {
        let two = vec![hop(ROBOT, RELAY, Some(2)), hop(RELAY, HOST, Some(1)), hop(HOST, ME, None)];
        let at_relay = (Form::FULL, vec![hop(ROBOT, RELAY, Some(2))]);
        assert!(matches!(choose(&[source(two.clone(), vec![at_relay])], None), Choice::Leave(_)));
        let through = (few(), vec![hop(ROBOT, RELAY, Some(2)), hop(RELAY, HOST, Some(1))]);
        let taken = source(two, vec![through]);
        assert_eq!(choose(std::slice::from_ref(&taken), None), Choice::Take(few()));
        assert!(matches!(choose(&[taken, source(way(), vec![])], None), Choice::Leave(_)));
    }
}
