//! Explains the refusal of a link, and finds the best contract that it would accept.

use super::variant::{SIXTEENTHS, full_rate, shown_rate, sixteenths};
use crate::classes::Unguaranteed;
use crate::control::contracts::contract::demand_of;
use crate::control::contracts::request::Ask;
use crate::control::data::refusal::{Offer, Refusal, RefusalReason};
use crate::control::data::spec::PublisherSpec;
use crate::form::{Form, Size};
use core::num::NonZeroU32;
use paceline_admit::{Admission, AdmissionResult, Holder, Resource, StreamDemand, Trunk};
use paceline_sched::{Duration, LossTolerance};

/// The longest window of an offered loss tolerance.
const WINDOW: u32 = 100;
/// The precision of the search for an offer: one part in this number.
const PARTS: u64 = 256;
/// The lowest offered rate: one part in this number of the requested one.
const RATE_PARTS: u64 = 32;
/// A holder for demands that are only tested, never reserved.
pub(in crate::control) const NOBODY: Holder = Holder { origin: u128::MAX, number: u64::MAX };

/// A demand of one stream to test on one link.
pub(in crate::control) struct Tried<'t> {
    pub(in crate::control) spec: &'t PublisherSpec,
    /// The form on the links.
    pub(in crate::control) form: Form,
    pub(in crate::control) ask: Ask,
    pub(in crate::control) link: &'t Admission,
    /// The stream's reservation on this link.
    pub(in crate::control) trunk: Trunk,
    /// The demand that this one replaces. Both must be satisfied until the change is complete.
    pub(in crate::control) before: Option<&'t StreamDemand>,
}

/// Fills in the lacking resource.
pub(in crate::control) fn name_lack(
    refusal: &mut Refusal,
    lack: &paceline_admit::LinkRefusal,
    rate: u64,
) {
    let bytes = |bits: u64| bits.div_ceil(8);
    match lack.resource {
        Resource::Due { within } => {
            let (due, carried) = (lack.needed, lack.available);
            refusal.reason = RefusalReason::Deadlines { within, due, carried };
            refusal.needed_bytes_per_s = per_second(due, within);
            refusal.available_bytes_per_s = per_second(carried, within);
        }
        Resource::Delay => {
            let within = Duration::from_nanos(lack.available);
            let takes = Duration::from_nanos(lack.needed);
            refusal.reason = RefusalReason::Delay { takes, within };
        }
        Resource::Cpu => {
            let (needed, available) = (lack.needed, lack.available);
            refusal.reason = RefusalReason::Processor { needed, available };
        }
        Resource::Buffer => {
            let (needed, available) = (lack.needed, lack.available);
            refusal.reason = RefusalReason::Buffer { needed, available };
        }
        Resource::HostBuffer => {
            let (needed, available) = (lack.needed, lack.available);
            refusal.reason = RefusalReason::HostBuffer { needed, available };
        }
        Resource::Guarantee => {
            refusal.reason = RefusalReason::NoGuarantee { why: Unguaranteed::NoCurve };
        }
        // The other resources are sums; rate is the only one with a limit here.
        Resource::Rate
        | Resource::Burst
        | Resource::Packet
        | Resource::Windows
        | Resource::Places
        | _ => {
            refusal.reason = RefusalReason::Capacity;
            refusal.needed_bytes_per_s = bytes(rate);
            let others = lack.needed.saturating_sub(rate);
            refusal.available_bytes_per_s = lack.available.saturating_sub(others) / 8;
        }
    }
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let per = u128::from(bytes) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
    u64::try_from(per).unwrap_or(u64::MAX)
}

/// Combines two offers into one that satisfies both. Each part by itself must fit every link of a path.
pub(in crate::control) fn both(one: Offer, other: Offer) -> Offer {
    fn meet<T>(one: Option<T>, other: Option<T>, of: impl Fn(T, T) -> T) -> Option<T> {
        Some(of(one?, other?))
    }
    let smaller = |a: Size, b: Size| if a.pixels() < b.pixels() { a } else { b };
    let part = |loss: LossTolerance| {
        u64::from(loss.x()) * u64::from(LossTolerance::Y_MAX) / u64::from(loss.y().max(1))
    };
    Offer {
        max_millihertz: meet(one.max_millihertz, other.max_millihertz, u64::min),
        size: meet(one.size, other.size, smaller),
        together: false,
        bitrate: meet(one.bitrate, other.bitrate, NonZeroU32::min),
        bytes: meet(one.bytes, other.bytes, u64::min),
        within: meet(one.within, other.within, Duration::max),
        loss: meet(one.loss, other.loss, |a, b| if part(a) < part(b) { b } else { a }),
    }
}

/// Returns the largest number below `full` that fits, to one part in [`PARTS`]. All smaller numbers must fit
/// too.
fn most(full: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (1, full);
    if high <= low || !fits(low) {
        return None;
    }
    while high - low > low / PARTS + 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

impl Tried<'_> {
    /// Returns the reason why the link cannot promise the demand, with figures and the best contract that
    /// would fit.
    ///
    /// Returns `None` if the link can promise it, or if no promise is needed.
    pub(in crate::control) fn explain(&self, mut refusal: Refusal) -> Option<Refusal> {
        let demand = demand_of(self.spec, self.form, &self.ask)??;
        let seen = self.link.seen(&self.with_before(demand));
        let AdmissionResult::Refused(lack) = self.link.ask(self.trunk, NOBODY, &seen) else {
            return None;
        };
        name_lack(&mut refusal, &lack, demand.traffic().rate());
        refusal.offer = Offer {
            max_millihertz: self.rate(),
            size: self.size(),
            together: false,
            bitrate: self.bitrate(),
            bytes: self.bytes(),
            within: lack.offer.deadline.and_then(|deadline| self.within(deadline)),
            loss: self.loss(),
        };
        Some(refusal)
    }

    /// Returns true if the link can promise the demand, or if no promise is needed.
    pub(in crate::control) fn is_granted(&self) -> bool {
        self.fits(self.spec, self.form, &self.ask)
    }

    fn with_before(&self, demand: StreamDemand) -> StreamDemand {
        self.before.map_or(demand, |before| demand.join(before))
    }

    /// Returns true if the link can promise this variant of the request.
    fn fits(&self, spec: &PublisherSpec, form: Form, ask: &Ask) -> bool {
        let fits = |demand: StreamDemand| {
            let demand = self.with_before(demand);
            // How much the earlier hops bunch the samples is known only when they reserve one after the other.
            let bunched = self.link.arriving(demand.bunched_most());
            let demand = self.link.seen(&demand.with_bunched(bunched));
            self.link.fits(self.trunk, NOBODY, &demand)
        };
        let other = self.is_scaled() && form != self.form;
        let ask = if other { ask.in_form(spec, form) } else { *ask };
        demand_of(spec, form, &ask).is_some_and(|demand| demand.is_none_or(fits))
    }

    /// Returns true if the link carries the samples in the requested form, not in the publisher's.
    fn is_scaled(&self) -> bool {
        self.ask.is_scaled()
    }

    /// Returns the highest rate that fits, from a small part of the requested one.
    fn rate(&self) -> Option<u64> {
        let full = full_rate(self.spec, self.form).filter(|_| self.is_scaled())?;
        let form = |millihertz| {
            let rate = self.form.rate.at_most(shown_rate(millihertz)?);
            Some(Form { rate, ..self.form })
        };
        most(full, |rate| form(rate).is_some_and(|form| self.fits(self.spec, form, &self.ask)))
            .filter(|rate| *rate >= full / RATE_PARTS)
    }

    /// Returns the largest size that fits, in sixteenths of the requested sides.
    fn size(&self) -> Option<Size> {
        let size = |of: u64| sixteenths(self.spec, self.form, of).filter(|_| self.is_scaled());
        let fits = |of: u64| {
            size(of).is_some_and(|size| {
                let form = Form { size: Some(size), ..self.form };
                self.fits(self.spec, form, &self.ask)
            })
        };
        most(SIXTEENTHS, fits).and_then(size)
    }

    /// Returns the largest bit rate that fits, in whole kbit/s and from an eighth of the reserved one.
    fn bitrate(&self) -> Option<NonZeroU32> {
        let spec = self.spec;
        let at =
            |kbit: u64| u32::try_from(kbit.saturating_mul(1_000)).ok().and_then(NonZeroU32::new);
        let form = |kbit: u64| Form { bitrate: at(kbit), ..self.form };
        let (period, budget) = (self.form.rate.period(spec.period)?, spec.budget(self.form)?);
        let coded = spec.form_of(form(1)).bitrate.is_some() && spec.unscalable.is_none();
        if !coded || !self.is_scaled() {
            return None;
        }
        let each = u128::from(budget.bytes_max) * 8_000_000 / u128::from(period.as_nanos().max(1));
        let mean = budget.envelope.map(|it| u128::from(it.bytes_per_s()) / 125);
        let full = u64::try_from(mean.map_or(each, |mean| mean.min(each))).unwrap_or(u64::MAX);
        let kbit = most(full, |kbit| self.fits(spec, form(kbit), &self.ask))?;
        at(kbit).filter(|_| kbit >= full / 8)
    }

    fn bytes(&self) -> Option<u64> {
        let whole = self.spec.budget(self.form)?;
        let full = whole.bytes_max;
        most(full, |bytes| {
            let envelope = whole.envelope.map(|it| it.smaller(bytes, full));
            // Samples of this size in the publisher's own form cost the same as in the requested one.
            let spec = PublisherSpec { bytes_max: Some(bytes), envelope, ..self.spec.clone() };
            let form = Form { rate: self.form.rate, ..Form::FULL };
            self.fits(&spec, form, &self.ask)
        })
    }

    fn within(&self, deadline: Duration) -> Option<Duration> {
        self.ask.within()?;
        let bound = self.ask.whole(deadline);
        self.fits(self.spec, self.form, &self.ask.with_bound(bound)).then_some(bound)
    }

    /// Returns the least tolerance that would fit, of 1/100 … 1/3, 1/2, 2/3 … 99/100. For the same fraction,
    /// a longer window may require more samples in a row.
    fn loss(&self) -> Option<LossTolerance> {
        let at = |place: u32| match WINDOW.checked_sub(place) {
            Some(y) if y > 1 => LossTolerance::new(1, y),
            _ => LossTolerance::new(place + 3 - WINDOW, place + 4 - WINDOW),
        };
        let (x, y) = (u64::from(self.ask.loss().x()), u64::from(self.ask.loss().y()).max(1));
        let fits = |place: u32| {
            at(place).is_ok_and(|loss| {
                u64::from(loss.x()) * y > x * u64::from(loss.y())
                    && self.fits(self.spec, self.form, &self.ask.with_loss(loss))
            })
        };
        let (mut low, mut high) = (0, 2 * WINDOW - 4);
        if !fits(high) {
            return None;
        }
        if fits(low) {
            return at(low).ok();
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        at(high).ok()
    }
}
