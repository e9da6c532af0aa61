//! A subscription's contract request at one hop: the hop's part of the delay bound, and its loss tolerance.

use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::form::{Form, Rate};
use paceline_admit::StreamDemand;
use paceline_admit::reserve::bears_loss;
use paceline_sched::{Duration, Late, LossTolerance};

/// The shortest period and deadline of a contract; shorter ones are below the resolution of a link.
pub(in crate::control) const SHORTEST: Duration = Duration::from_micros(1);
/// The largest margin that each hop keeps of its share, for delays outside its scheduler, such as threads and
/// the network stack.
const MARGIN_MAX: Duration = Duration::from_micros(1_500);

/// One subscription's contract request, as seen from the link of one hop of its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(in crate::control) within: Option<Duration>,
    pub(in crate::control) loss: LossTolerance,
    /// The index of the hop on the path, from 0.
    pub(in crate::control) hop: usize,
    /// The division of the delay bound among the hops.
    pub(in crate::control) split: Split,
    /// The requested priority level.
    pub(in crate::control) level: Option<u32>,
    /// The part of the delay bound for scaling.
    pub(in crate::control) scaling: Duration,
    /// True if windows are promised of only some of the samples.
    pub(in crate::control) thins: bool,
}

impl Ask {
    /// Returns the request of `spec` for `publisher` at the link of hop `hop`, from 0; `None` for best
    /// effort.
    pub(crate) fn new(
        spec: &SubscriptionSpec,
        publisher: &PublisherSpec,
        hop: usize,
        split: Split,
    ) -> Option<Self> {
        let loss = publisher.tolerance_for(spec)?;
        let within = publisher.bound_for(spec);
        let scaling = within.map(|within| publisher.scaling_part(spec, within));
        let scaling = scaling.unwrap_or_default();
        let thins = publisher.form_of(spec.form).rate != Rate::ALL && keeps_windows(publisher);
        Some(Self { within, loss, hop, split, level: spec.level, scaling, thins })
    }

    /// Returns the request for samples in another form.
    pub(crate) fn in_form(&self, publisher: &PublisherSpec, form: Form) -> Self {
        let scaling = self.within.map(|within| publisher.scaling_part_of(form, within));
        let thins = form.rate != Rate::ALL && keeps_windows(publisher);
        Self { scaling: scaling.unwrap_or_default(), thins, ..*self }
    }

    /// Returns true if the hop carries scaled samples.
    pub(crate) fn is_scaled(&self) -> bool {
        self.split.is_scaled(self.hop)
    }

    /// Returns the delay bound, in whole milliseconds, that gives a hop with a capacity a part of at least
    /// `deadline`.
    pub(crate) fn whole(&self, deadline: Duration) -> Duration {
        self.split.bound(deadline.saturating_add(MARGIN_MAX)).saturating_add(self.scaling)
    }

    pub(crate) const fn loss(&self) -> LossTolerance {
        self.loss
    }

    /// Returns the requested delay bound.
    pub(crate) const fn within(&self) -> Option<Duration> {
        self.within
    }

    /// Returns the request with another delay bound.
    pub(crate) const fn with_bound(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }

    /// Returns the request with another loss tolerance.
    pub(crate) const fn with_loss(self, loss: LossTolerance) -> Self {
        Self { loss, ..self }
    }

    /// Returns the request of a stream that another one carries: its windows lie across those of the other one, so it
    /// tolerates no loss.
    pub(in crate::control) fn of_carried(self) -> Self {
        let edf = self.loss == LossTolerance::EDF;
        Self { loss: if edf { self.loss } else { LossTolerance::NONE }, ..self }
    }

    /// Returns true if the windows of the samples on this hop are not those of the subscription, because a later node
    /// scales the samples for several subscriptions, or leaves out some.
    fn crosses_windows(&self) -> bool {
        let thinned_later = self.thins && !self.split.is_scaled(self.hop);
        self.split.is_before_proxy(self.hop) || thinned_later
    }

    /// Returns true if this hop of the path may miss samples.
    pub(in crate::control) fn bears_loss(&self) -> bool {
        let part = |hop| whole_micros(share(&Self { hop, ..*self }, Duration::ZERO).1);
        bears_loss((0..self.split.hops()).map(part), self.hop)
    }

    /// Returns the loss tolerance of the hop's link.
    ///
    /// Each link counts windows independently, so two hops that both used the tolerance could exceed it
    /// together. Only one hop gets it. With [`Late::Send`] no hop gets it: late samples are still sent, and
    /// would delay those that their window can no longer miss.
    pub(in crate::control) fn loss_here(
        &self,
        spec: &PublisherSpec,
        form: Form,
        period: Duration,
    ) -> LossTolerance {
        if self.loss == LossTolerance::EDF {
            return self.loss;
        }
        if self.crosses_windows() {
            return LossTolerance::NONE;
        }
        if !keeps_windows(spec) {
            return self.loss;
        }
        match spec.late {
            Late::Drop if self.bears_loss() => self.loss_if_borne(form, period),
            Late::Drop | Late::Send => LossTolerance::NONE,
        }
    }

    /// Returns the loss tolerance for windows of `form` if this hop is the one that may miss samples.
    ///
    /// Returns no tolerance if more than y/(y − x) periods fit into the hop's part of the delay. Required
    /// samples would then queue behind those that may miss, and be late with them.
    fn loss_if_borne(&self, form: Form, period: Duration) -> LossTolerance {
        let (x, y) = (self.loss.x(), self.loss.y());
        // The samples that a limit takes depend on their times, so a window here may overlap two of the subscriber's.
        let x = if form.rate.one_in().is_some() { x } else { x / 2 };
        let (part, owed) = (share(self, period).1, y.saturating_sub(x));
        if y > 0 && (x == 0 || period.mul_div(y.into(), owed.max(1).into()) < part) {
            return LossTolerance::NONE;
        }
        LossTolerance::new(x, y).unwrap_or(self.loss)
    }

    /// Returns true if the loss tolerance allows every sample to miss; 0/0 requests deadlines alone.
    pub(crate) const fn owes_nothing(&self) -> bool {
        self.loss.y() > 0 && self.loss.x() >= self.loss.y()
    }
}

/// Returns the part of the delay bound for the earlier hops, and the part for this hop.
pub(in crate::control) fn share(ask: &Ask, period: Duration) -> (Duration, Duration) {
    let Some(within) = ask.within else {
        // With only a loss tolerance, each hop may take one period.
        return (period.mul_div(ask.hop as u64, 1), period);
    };
    let within = within.saturating_sub(ask.scaling);
    let mine = ask.split.part(within, ask.hop);
    let margin = mine.mul_div(1, 10).min(MARGIN_MAX);
    let scaled = if ask.split.is_scaled(ask.hop) { ask.scaling } else { Duration::ZERO };
    let upstream = ask.split.before(within, ask.hop).saturating_add(scaled);
    (upstream, mine.saturating_sub(margin))
}

/// Rounds a hop's part of a delay to whole microseconds, as it is requested. The same number is the hop's
/// weight.
pub(in crate::control) fn whole_micros(part: Duration) -> Duration {
    let micros = (part.as_nanos() / 1_000).clamp(1, u32::MAX.into());
    Duration::from_micros(micros).min(StreamDemand::DEADLINE_MAX)
}

/// Returns the period of a stream's contracts, if its source declares one. It is 1/20 shorter than the
/// source's, so that the stream can catch up after a short stall.
pub(in crate::control) fn period_of(spec: &PublisherSpec, form: Form) -> Option<Duration> {
    form.rate.period(spec.period).map(|period| period.mul_div(19, 20).max(SHORTEST))
}

/// Returns true if windows of a stream are promised. They are not if its size or period is unknown, nor for
/// video, whose excess is shed by its own picture order.
pub(in crate::control) fn keeps_windows(spec: &PublisherSpec) -> bool {
    spec.bytes_max.is_some() && spec.period.is_some() && !spec.kind.is_video()
}

/// Returns the loss tolerance that satisfies two subscriptions of one stream.
///
/// Windows of different lengths overlap each other, so two different tolerances combine to no loss. Admission
/// charges them alike ([`paceline_admit::StreamDemand::join`]). Tolerances without windows (0/0) leave only the
/// deadlines.
pub(in crate::control) fn of_both(one: LossTolerance, other: LossTolerance) -> LossTolerance {
    if one == other || one == LossTolerance::EDF || other == LossTolerance::EDF {
        one.strictest(other)
    } else {
        LossTolerance::NONE
    }
}

/// Returns the samples of each window that admission may leave out, on the one hop that may miss any. With
/// [`Late::Send`] it may leave out none, because missed samples are sent and save no capacity.
pub(in crate::control) fn counted_loss(
    spec: &PublisherSpec,
    form: Form,
    ask: &Ask,
) -> LossTolerance {
    if ask.crosses_windows() && ask.loss != LossTolerance::EDF {
        return LossTolerance::NONE;
    }
    let borne = (0..ask.split.hops()).map(|hop| Ask { hop, ..*ask }).find(Ask::bears_loss);
    match (spec.late, period_of(spec, form)) {
        (Late::Drop, Some(_)) if spec.kind.is_video() => ask.loss,
        (Late::Drop, Some(period)) => borne.unwrap_or(*ask).loss_if_borne(form, period),
        (Late::Drop, None) | (Late::Send, _) => LossTolerance::NONE,
    }
}
