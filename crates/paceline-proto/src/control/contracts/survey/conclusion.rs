//! The answer of a survey from the obstacles of all nodes, and the variants of the request that it may offer.

use super::offer::both;
use super::query::{Half, Query};
use super::variant::Variants;
use super::{Cause, Open};
use crate::control::Control;
use crate::control::data::refusal::Refusal;

/// The answer of a survey.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub(super) complete: bool,
    /// The trials that the path would grant.
    pub(super) fits: u64,
    pub(super) refusal: Option<Refusal>,
    /// The obstacle of the opposite stream.
    pub(super) back: Option<Refusal>,
}

impl Control {
    /// Returns the answer from the obstacles of all nodes.
    pub(super) fn conclusion(&self, open: &mut Open) -> Conclusion {
        let complete = open.waiting.is_empty();
        // A node that did not answer has tested no trial.
        let fits = if complete { open.fits } else { 0 };
        let Query { first, opposite: second, follows, .. } = &open.query;
        let mut refusal = worst(first, core::mem::take(&mut open.found));
        let mut back = None;
        match &open.cause {
            // The refusing node may not have answered; then its original refusal applies.
            Cause::Refused(_, known) => {
                refusal = refusal.or_else(|| (!complete).then(|| (**known).clone()));
            }
            Cause::Curious(hoped) => {
                let spare = core::mem::take(&mut open.opposed);
                match (second, &hoped.opposite) {
                    (Some(half), None) => {
                        let spare = worst(half, spare).map(|it| Refusal { spare: true, ..it });
                        refusal = refusal.or(spare);
                    }
                    (Some(half), Some(stream)) => {
                        back = worst(half, spare);
                        let own = if *follows { half.pair } else { first.pair };
                        if *follows {
                            core::mem::swap(&mut refusal, &mut back);
                        }
                        let opposed =
                            |it: &Refusal| self.opposed(own, it.node, (&stream.tag, false));
                        let opposed = back.as_ref().map(opposed);
                        // A pair that follows is requested after the other one is reserved.
                        refusal = if *follows { opposed.or(refusal) } else { refusal.or(opposed) };
                    }
                    (None, _) => {}
                }
            }
        }
        Conclusion { complete, fits, refusal, back }
    }

    /// Returns the variants of a refused request that may be offered; `None` if there are none.
    pub(super) fn variants(&self, query: &Query, conclusion: &Conclusion) -> Option<Variants> {
        let refusal = conclusion.refusal.as_ref()?;
        let (half, _) = query.tried();
        let may = !refusal.is_opposite() && refusal.lacks_room();
        let spec = self.publisher(half.pair.1).filter(|_| may)?;
        let variants = Variants::of(spec, &half.request, (half.split, &refusal.offer));
        (!variants.trials().is_empty()).then_some(variants)
    }
}

/// Returns the first obstacle on a path, with an offer that fits all its nodes.
fn worst(half: &Half, mut found: Vec<Refusal>) -> Option<Refusal> {
    let lacks_room = Refusal::lacks_room;
    let place = |it: &Refusal| half.path.iter().position(|node| *node == it.node);
    found.sort_by_key(|it| (it.lacks_room(), place(it)));
    let offer = found.iter().all(lacks_room);
    let offer = found.iter().filter(|_| offer).map(|it| it.offer).reduce(both);
    let mut worst = found.into_iter().next();
    if let (Some(worst), Some(offer)) = (&mut worst, offer) {
        worst.offer = offer;
        (worst.subscription, worst.publisher) = half.pair;
    }
    worst
}
