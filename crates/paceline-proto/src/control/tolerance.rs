//! What of the samples that a subscription tolerates to lose a link may miss, and which link of its path.

use super::contract::{Ask, period_of, share, whole_micros};
use super::spec::{PublisherSpec, SubscriptionSpec};
use crate::form::{Form, Rate};
use paceline_admit::reserve::bears_loss;
use paceline_sched::{Duration, Late, LossTolerance};

impl Ask {
    /// Whether the samples of this hop may miss what is tolerated.
    pub(super) fn bears_loss(&self) -> bool {
        let part = |hop| whole_micros(share(&Self { hop, ..*self }, Duration::ZERO).1);
        bears_loss((0..self.split.hops()).map(part), self.hop)
    }

    /// What of the loss tolerance its hop has. Each link counts windows by itself, so two that missed what is
    /// tolerated would miss more together. Where late samples are sent all the same none is put off: it would
    /// keep those waiting that its window may not miss any more.
    pub(super) fn loss_here(
        &self,
        spec: &PublisherSpec,
        form: Form,
        period: Duration,
    ) -> LossTolerance {
        if !keeps_windows(spec) || self.loss == LossTolerance::EDF {
            return self.loss;
        }
        match spec.late {
            Late::Drop if self.bears_loss() => self.loss_if_borne(form, period),
            Late::Drop | Late::Send => LossTolerance::NONE,
        }
    }

    /// What a link may miss of each window of `form` if its hop is the one. Nothing where more than y/(y − x) periods
    /// fit into its part of the delay: then what is owed would wait behind what is not, and come late with it.
    fn loss_if_borne(&self, form: Form, period: Duration) -> LossTolerance {
        let (x, y) = (self.loss.x(), self.loss.y());
        let x = match form.rate {
            Rate::All | Rate::Every(_) => x,
            // Which samples it takes depends on when they come, so a window here may lie across two of the
            // subscriber's.
            Rate::Max(_) => x / 2,
        };
        let (part, owed) = (share(self, period).1, y.saturating_sub(x));
        if y > 0 && period.mul_div(y.into(), owed.max(1).into()) < part {
            return LossTolerance::NONE;
        }
        LossTolerance::new(x, y).unwrap_or(self.loss)
    }

    /// Its loss tolerance leaves nothing that is owed; 0/0 asks for deadlines alone.
    pub(crate) const fn owes_nothing(&self) -> bool {
        self.loss.y() > 0 && self.loss.x() >= self.loss.y()
    }
}

/// The loss tolerance of a subscription with a contract; `None` for best effort. A delay bound alone
/// allows the loss that the publisher declared, else none, and the tolerance of another subscription
/// must not weaken that.
pub(crate) fn tolerance(
    spec: &SubscriptionSpec,
    publisher: &PublisherSpec,
) -> Option<LossTolerance> {
    let declared = publisher.loss.unwrap_or(LossTolerance::NONE);
    spec.loss.or_else(|| spec.within.map(|_| declared))
}

/// Whether windows of a stream are promised: nothing is where nobody knows how much it is, and what is too much of a video
/// goes in its own order.
pub(super) fn keeps_windows(spec: &PublisherSpec) -> bool {
    spec.bytes_max.is_some() && spec.period.is_some() && !spec.kind.is_video()
}

/// What two subscriptions of one stream may both miss: windows of different lengths lie across each other, so of two
/// tolerances that differ neither holds, and so admission charges them ([`Demand::join`]). Without windows, 0/0, the
/// deadlines alone count.
pub(super) fn of_both(one: LossTolerance, other: LossTolerance) -> LossTolerance {
    if one == other || one == LossTolerance::EDF || other == LossTolerance::EDF {
        one.strictest(other)
    } else {
        LossTolerance::NONE
    }
}

/// What of the samples of each window admission may leave out on the one hop of the path that may miss any: of a
/// publisher whose late samples are sent all the same those that miss make no room.
pub(super) fn counted_loss(spec: &PublisherSpec, form: Form, ask: &Ask) -> LossTolerance {
    let borne = (0..ask.split.hops()).map(|hop| Ask { hop, ..*ask }).find(Ask::bears_loss);
    match (spec.late, period_of(spec, form)) {
        (Late::Drop, Some(_)) if spec.kind.is_video() => ask.loss,
        (Late::Drop, Some(period)) => borne.unwrap_or(*ask).loss_if_borne(form, period),
        (Late::Drop, None) | (Late::Send, _) => LossTolerance::NONE,
    }
}
