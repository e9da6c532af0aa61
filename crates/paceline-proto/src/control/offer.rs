//! Why a link said no, and what it would promise instead.

use super::contract::{Ask, asked};
use super::refusal::{Offer, Refusal, RefusalReason};
use super::spec::PublisherSpec;
use crate::form::{Form, Rate};
use core::num::NonZeroU32;
use paceline_admit::{Admission, Demand, Holder, Resource, Trunk, Verdict};
use paceline_sched::{Duration, LossTolerance};

/// The longest window of an offered loss tolerance.
const WINDOW: u32 = 100;
/// How finely an offer is searched: to so many parts of itself.
const PARTS: u64 = 256;
/// Nobody's: what is only asked for is held by none.
const NOBODY: Holder = Holder { origin: u128::MAX, number: u64::MAX };

/// What one stream asks of one link.
pub(super) struct Tried<'t> {
    pub(super) spec: &'t PublisherSpec,
    /// As it travels over links.
    pub(super) form: Form,
    pub(super) ask: Ask,
    pub(super) link: &'t Admission,
    /// Its name on this link.
    pub(super) trunk: Trunk,
    /// The demand whose place it takes: until the change is done both have to be kept.
    pub(super) before: Option<&'t Demand>,
}

/// Fills in what there is too little of.
pub(super) fn name_lack(refusal: &mut Refusal, lack: &paceline_admit::Refusal, rate: u64) {
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
        // The others are sums of which rates are the only limited one here.
        Resource::Rate
        | Resource::Burst
        | Resource::Packet
        | Resource::Buffer
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

/// What of two offers both hold: each part alone has to fit every link of a path.
pub(super) fn both(one: Offer, other: Offer) -> Offer {
    fn meet<T>(one: Option<T>, other: Option<T>, of: impl Fn(T, T) -> T) -> Option<T> {
        Some(of(one?, other?))
    }
    let part = |loss: LossTolerance| {
        u64::from(loss.x()) * u64::from(LossTolerance::Y_MAX) / u64::from(loss.y().max(1))
    };
    Offer {
        max_millihertz: meet(one.max_millihertz, other.max_millihertz, u64::min),
        bytes: meet(one.bytes, other.bytes, u64::min),
        within: meet(one.within, other.within, Duration::max),
        loss: meet(one.loss, other.loss, |a, b| if part(a) < part(b) { b } else { a }),
    }
}

/// The largest number below `full` that fits, to one part in [`PARTS`] of it, where all smaller ones fit too.
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
    /// Why the link cannot promise it, with its numbers and the best that would fit; `None` if it can, or
    /// if nothing of it is to be promised.
    pub(super) fn explain(&self, mut refusal: Refusal) -> Option<Refusal> {
        let demand = asked(self.spec, self.form, &self.ask)??;
        let seen = self.link.seen(&self.with_before(demand));
        let Verdict::Refused(lack) = self.link.ask(self.trunk, NOBODY, &seen) else { return None };
        name_lack(&mut refusal, &lack, demand.traffic().rate());
        refusal.offer = Offer {
            max_millihertz: self.rate(),
            bytes: self.bytes(),
            within: lack.offer.deadline.and_then(|deadline| self.within(deadline)),
            loss: self.loss(),
        };
        Some(refusal)
    }

    fn with_before(&self, demand: Demand) -> Demand {
        self.before.map_or(demand, |before| demand.join(before))
    }

    /// True if there is room for it so.
    fn fits(&self, spec: &PublisherSpec, form: Form, ask: &Ask) -> bool {
        let fits = |demand: Demand| {
            let demand = self.link.seen(&self.with_before(demand));
            self.link.fits(self.trunk, NOBODY, &demand)
        };
        asked(spec, form, ask).is_some_and(|demand| demand.is_none_or(fits))
    }

    fn rate(&self) -> Option<u64> {
        let period = self.form.rate.period(self.spec.period)?;
        let full = 1_000_000_000_000 / period.as_nanos().max(1);
        most(full, |millihertz| {
            let rate = u32::try_from(millihertz).ok().and_then(NonZeroU32::new).map(Rate::Max);
            rate.is_some_and(|rate| self.fits(self.spec, Form { rate, ..self.form }, &self.ask))
        })
    }

    fn bytes(&self) -> Option<u64> {
        let fitting = most(self.spec.bytes_max?, |bytes| {
            let spec = PublisherSpec { bytes_max: Some(bytes), ..self.spec.clone() };
            self.fits(&spec, self.form, &self.ask)
        })?;
        // What the subscriber would get: pictures that are scaled are smaller than the publisher's.
        let (Some(scaled), Some(source)) = (self.form.size, self.spec.size) else {
            return Some(fitting);
        };
        let bytes = u128::from(fitting) * u128::from(scaled.pixels());
        let bytes = bytes / u128::from(source.pixels().max(1));
        u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    fn within(&self, deadline: Duration) -> Option<Duration> {
        self.ask.within()?;
        let bound = self.ask.whole(deadline);
        self.fits(self.spec, self.form, &self.ask.with_bound(bound)).then_some(bound)
    }

    /// The least tolerance that would do, of 1/100 … 1/3, 1/2, 2/3 … 99/100: the longer a window the more may be owed
    /// at once.
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
