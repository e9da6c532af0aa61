//! Refused requests that take an offer of their refusal, which must be granted and kept.

use super::{Asked, Publishes, Run};
use core::num::NonZeroU32;
use paceline_proto::control::{Offer, SubscriptionSpec};
use paceline_proto::form::{Form, Rate};
use paceline_sched::Duration;

/// The time until a request is answered, also on the slowest links.
const ANSWERED: Duration = Duration::from_secs(4);
/// The coding time of forms that were not declared: the part of the delay bound for scaling covers it.
const CODING: Duration = Duration::from_micros(100);

/// Returns the requests that take each alternative of an offer.
fn taken(request: &SubscriptionSpec, offer: &Offer) -> Vec<SubscriptionSpec> {
    let rate = offer.max_millihertz.and_then(|rate| NonZeroU32::new(u32::try_from(rate).ok()?));
    let rate = rate.map(|rate| request.form.rate.at_most(rate));
    let form = |form: Form| SubscriptionSpec { form, ..request.clone() };
    let with_rate = |it: Form| rate.map(|rate| Form { rate, ..it });
    let with_size = |it: Form| offer.size.map(|size| Form { size: Some(size), ..it });
    let forms = if offer.together {
        vec![with_rate(request.form).and_then(with_size)]
    } else {
        vec![with_rate(request.form), with_size(request.form)]
    };
    let bits = offer.bitrate.map(|bits| Form { bitrate: Some(bits), ..request.form });
    let within = offer.within.map(|it| SubscriptionSpec { within: Some(it), ..request.clone() });
    let loss = offer.loss.map(|it| SubscriptionSpec { loss: Some(it), ..request.clone() });
    let forms = forms.into_iter().chain([bits]).flatten().map(form);
    forms.chain(within).chain(loss).collect()
}

impl Run {
    /// Lets each refused request take one of its offers, one request after the other. Errors if one is refused.
    pub(super) fn take_offers(&mut self) -> Result<(), String> {
        if self.mix.offers == 0 {
            return Ok(());
        }
        let refused = |asked: &Asked, run: &Self| {
            asked.spec.wants_contract()
                && !asked.is_tied
                && run.world.grants(asked.subscription).is_empty()
                && !run.world.refusals(asked.subscription).is_empty()
        };
        let all = core::mem::take(&mut self.asked);
        let (refused, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|asked| refused(asked, self));
        self.asked = others;
        // While one asks, the others must not take its room.
        refused.iter().for_each(|asked| self.world.unsubscribe(asked.subscription));
        self.world.run_for(ANSWERED);
        refused.into_iter().try_for_each(|asked| self.take_offer(asked))
    }

    fn take_offer(&mut self, asked: Asked) -> Result<(), String> {
        let Asked { node, place, spec, .. } = asked;
        self.subscribe(place, node, spec.clone());
        self.world.run_for(ANSWERED);
        let Some(again) = self.asked.pop() else { return Ok(()) };
        if !self.world.grants(again.subscription).is_empty() {
            self.asked.push(again);
            return Ok(());
        }
        let refusal = self.world.refusals(again.subscription).last().cloned();
        self.world.unsubscribe(again.subscription);
        self.world.run_for(ANSWERED);
        let Some((_, refusal)) = refusal else { return Ok(()) };
        let requests = taken(&spec, &refusal.offer);
        let place_of = self.wish_chance.place(requests.len());
        let Some(request) = requests.get(place_of) else {
            self.outcome.unoffered += 1;
            return Ok(());
        };
        let Some(Publishes { publisher, spec: of, .. }) = self.publishers.get(place) else {
            return Ok(());
        };
        let (publisher, of) = (*publisher, of.clone());
        let form = of.form_of(request.form);
        if of.scaled.iter().all(|one| one.form != (Form { rate: Rate::ALL, ..form })) {
            self.world.set_coding_time(publisher, form, CODING);
        }
        self.subscribe(place, node, request.clone());
        self.world.run_for(ANSWERED);
        let granted = self.asked.last().map(|it| self.world.grants(it.subscription));
        if granted.is_none_or(|granted| granted.is_empty()) {
            let why = self.asked.last().map(|it| self.world.refusals(it.subscription));
            return Err(format!(
                "an offer is refused: {} of {of:?}; {spec:?} -> {request:?}: {why:?}",
                refusal.offer
            ));
        }
        self.outcome.offers += 1;
        let pair = refusal.offer.together
            && request.form != spec.form
            && request.form.bitrate == spec.form.bitrate;
        self.outcome.pairs += u64::from(pair);
        Ok(())
    }
}
