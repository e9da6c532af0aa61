//! Why a link said no, and what it would promise instead.

use super::contract::{Ask, asked};
use super::promises::{Promised, Wanted};
use super::refusal::{Offer, Refusal, RefusalReason};
use super::routes::Pair;
use super::spec::PublisherSpec;
use crate::form::{Form, Rate};
use core::num::NonZeroU32;
use paceline_admit::Resource;
use paceline_sched::{Duration, LossTolerance};

/// The window of an offered loss tolerance, for somebody who tolerates none.
const WINDOW: u32 = 100;
/// How finely an offer is searched: to so many parts of itself.
const PARTS: u64 = 256;

/// Fills in why `wanted` does not fit, with its numbers, and the best that would.
pub(super) fn explain(
    refusal: &mut Refusal,
    pair: &Pair<'_>,
    promised: &Promised,
    wanted: &Wanted,
) {
    let Some(ask) = pair.ask() else { return };
    let (Some(lack), Some(demand)) = (promised.ask(pair.key(), wanted), &wanted.demand) else {
        return;
    };
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
        // The others are sums of which rates are the only limited one here.
        Resource::Rate
        | Resource::Burst
        | Resource::Packet
        | Resource::Buffer
        | Resource::Cpu
        | Resource::Windows
        | Resource::Places
        | _ => {
            let rate = demand.traffic().rate();
            refusal.needed_bytes_per_s = bytes(rate);
            let others = lack.needed.saturating_sub(rate);
            refusal.available_bytes_per_s = lack.available.saturating_sub(others) / 8;
        }
    }
    let form = pair.leaving();
    let tried = Tried { spec: pair.spec, form, ask, pair, promised, wanted };
    refusal.offer = Offer {
        max_millihertz: tried.rate(),
        bytes: tried.bytes(),
        within: lack.offer.deadline.and_then(|deadline| tried.within(deadline)),
        loss: tried.loss(),
    };
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let per = u128::from(bytes) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
    u64::try_from(per).unwrap_or(u64::MAX)
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

/// A pair that was refused, asking otherwise.
struct Tried<'t> {
    spec: &'t PublisherSpec,
    form: Form,
    ask: Ask,
    pair: &'t Pair<'t>,
    promised: &'t Promised,
    wanted: &'t Wanted,
}

impl Tried<'_> {
    /// True if there is room for it so.
    fn fits(&self, spec: &PublisherSpec, form: Form, ask: &Ask) -> bool {
        let Some(demand) = asked(spec, form, ask) else { return false };
        self.promised.fits(self.pair.key(), &Wanted { demand, ..*self.wanted })
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

    /// The least tolerance that would do.
    fn loss(&self) -> Option<LossTolerance> {
        let (x, y) = match (self.ask.loss().x(), self.ask.loss().y()) {
            (_, 0 | 1) => (0, WINDOW),
            asked => asked,
        };
        let fits = |x| {
            let loss = LossTolerance::new(x, y).ok();
            loss.is_some_and(|loss| self.fits(self.spec, self.form, &self.ask.with_loss(loss)))
        };
        let (mut low, mut high) = (x, y.checked_sub(1).filter(|most| *most > x && fits(*most))?);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        LossTolerance::new(high, y).ok()
    }
}
