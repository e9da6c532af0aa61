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
use crate::control::data::forms::{Forms, carriers};
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use std::collections::BTreeMap;

/// A publisher's samples on a hop.
type HopKey = (PublisherId, NodeId, NodeId);
/// Lets the pairs share streams on the hops to and from this node. Returns those that change by it: few, of many.
pub(in crate::control) fn share<'p, 'a: 'p>(
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
pub(in crate::control) fn stays_apart(spec: &PublisherSpec, request: &SubscriptionSpec) -> bool {
    spec.kind.is_video() || request.idle.is_some()
}

/// Video is thinned once: its pictures depend on each other.
fn may_share(pair: &Pair<'_>) -> bool {
    !pair.is_background() && !pair.spec.kind.is_video()
}
