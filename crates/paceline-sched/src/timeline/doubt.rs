//! The load of a link's contracts, and the reasons why a discipline does not guarantee them.

use super::{Ahead, Arrivals, Setup, Spec};
use crate::contract::Contract;
use crate::discipline::{Policy, RuleSet};
use crate::time::{Duration, Instant};
use core::fmt;

/// The number 1 in the fixed-point format of loads.
const ONE: u128 = 1 << 40;
/// The utilisation in millionths up to which no set of different periods is known that VDS fails.
const VDS_MIXED: u64 = 900_000;

/// The load of all contracts on the link, in millionths of its capacity, rounded to the nearest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Load {
    /// U = Σ (1 − x/y)·C/T: the share that must be sent in time.
    pub utilisation: u64,
    /// Σ C/T: the share that arrives if every stream sends one sample per period.
    pub offered: u64,
}

/// Sums and extremes over the streams with a contract.
#[derive(Clone, Copy, Debug, Default)]
struct Survey {
    owed: u128,
    offered: u128,
    periods: Option<(Duration, Duration)>,
    services: Option<(Duration, Duration)>,
    /// Some deadline differs from the period.
    other_deadline: bool,
    /// Some stream does not send once per period from 0 on.
    other_arrivals: bool,
    /// Some stream may miss some samples, but not all.
    windows: bool,
    /// Some such stream is in a class.
    classes: bool,
}

/// A reason why windows are not guaranteed. Its text states the finding and suggests an alternative.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// The contracts require more than the capacity: no discipline can keep all of them.
    Overload(Load),
    /// The discipline does not use windows.
    NoWindows(Policy),
    /// HFSC guarantees service curves, not windows.
    Curves,
    /// HFSC between classes, and windows within some of them.
    Classes,
    /// EDF, and the offered load exceeds the capacity.
    EdfOverload(Policy, Load),
    /// DWCS's original rules, which do not keep aligned windows.
    OriginalRules(Policy),
    /// DWCS with different periods: the shortest and the longest one.
    MixedPeriods(Duration, Duration),
    /// VDS with different periods, at this load.
    MixedPeriodsVds(Load),
    /// Samples, with or without a contract, with different transmission times: the shortest and the
    /// longest one.
    MixedTimes(Duration, Duration),
    /// The period is not a multiple of a sample's transmission time.
    Misfit(Duration, Duration),
    /// Some deadline differs from its stream's period.
    OtherDeadlines,
    /// Some stream under a contract does not send once per period from 0 on.
    OtherArrivals,
}

impl Load {
    /// Returns the load of the contracts of `streams`.
    #[must_use]
    pub fn of(setup: &Setup, streams: &[Spec]) -> Self {
        Survey::of(setup, streams).load()
    }
}

impl Doubt {
    /// Returns the reasons why the windows of `streams` are not guaranteed under `setup`.
    ///
    /// The result is empty if they are guaranteed, or if no stream has a window.
    #[must_use]
    pub fn all(setup: &Setup, streams: &[Spec]) -> alloc::vec::Vec<Self> {
        let survey = Survey::of(setup, streams);
        let mut doubts = alloc::vec::Vec::new();
        if !survey.windows {
            return doubts;
        }
        if survey.owed > ONE {
            doubts.push(Self::Overload(survey.load()));
        }
        survey.by_policy(setup.policy, &mut doubts);
        let none =
            |doubt: &Self| matches!(doubt, Self::NoWindows(_) | Self::Curves | Self::Classes);
        if doubts.iter().any(none) {
            return doubts;
        }
        survey.by_model(&mut doubts);
        doubts
    }
}

impl Survey {
    fn of(setup: &Setup, streams: &[Spec]) -> Self {
        let mut survey = Self::default();
        for spec in streams {
            for size in spec.sizes.iter().copied().chain(spec.sizes.is_empty().then_some(1)) {
                // A stream without a contract delays others by at most one segment.
                let whole = spec.terms.contract().is_some();
                let bytes = if whole { size } else { size.min(setup.segment) };
                widen(&mut survey.services, setup.service(bytes));
            }
            if let Some(contract) = spec.terms.contract() {
                survey.add(setup, spec, contract);
            }
        }
        survey
    }

    fn add(&mut self, setup: &Setup, spec: &Spec, contract: Contract) {
        let (x, y) = (u128::from(contract.loss.x()), u128::from(contract.loss.y().max(1)));
        let period = u128::from(contract.period.as_nanos().max(1));
        let services = spec.sizes.iter().map(|size| u128::from(setup.service(*size).as_nanos()));
        let service = match spec.sizes.len() as u128 {
            0 => u128::from(setup.service(1).as_nanos()),
            count => services.sum::<u128>() / count,
        };
        self.offered = self.offered.saturating_add(service * ONE / period);
        // Below 2^20 · 2^64 · 2^40.
        self.owed = self.owed.saturating_add((y - x) * service * ONE / (y * period));
        widen(&mut self.periods, contract.period);
        self.other_deadline |= contract.deadline != contract.period;
        let windows = contract.loss.y() > 0 && x < y;
        self.windows |= windows;
        self.classes |= windows && spec.class.is_some();
        self.other_arrivals |= match &spec.arrivals {
            Arrivals::Backlogged => setup.ahead == Ahead::Shares,
            Arrivals::Every { first, every, .. } => {
                *first != Instant::ZERO || *every != contract.period
            }
            Arrivals::At(_) => true,
        };
    }

    fn load(&self) -> Load {
        let millionths = |sum: u128| {
            u64::try_from((sum.saturating_mul(1_000_000).saturating_add(ONE / 2)) / ONE)
        };
        Load {
            utilisation: millionths(self.owed).unwrap_or(u64::MAX),
            offered: millionths(self.offered).unwrap_or(u64::MAX),
        }
    }

    fn mixed(range: Option<(Duration, Duration)>) -> Option<(Duration, Duration)> {
        range.filter(|(least, most)| least != most)
    }

    fn by_policy(&self, policy: Policy, doubts: &mut alloc::vec::Vec<Doubt>) {
        let mixed = Self::mixed(self.periods);
        if policy == Policy::Edf || policy == Policy::DelayEdd {
            if self.offered > ONE {
                doubts.push(Doubt::EdfOverload(policy, self.load()));
            }
        } else if policy == Policy::Vds {
            if mixed.is_some() {
                doubts.push(Doubt::MixedPeriodsVds(self.load()));
            }
        } else if let Policy::Dwcs { ordering, adjustment } = policy {
            if ordering == RuleSet::Original || adjustment == RuleSet::Original {
                doubts.push(Doubt::OriginalRules(policy));
            } else if let Some((least, most)) = mixed {
                doubts.push(Doubt::MixedPeriods(least, most));
            }
        } else if policy == Policy::Hfsc {
            doubts.push(if self.classes { Doubt::Classes } else { Doubt::Curves });
        } else {
            doubts.push(Doubt::NoWindows(policy));
        }
    }

    /// Adds the assumptions of the proofs that are not met.
    fn by_model(&self, doubts: &mut alloc::vec::Vec<Doubt>) {
        if let Some((least, most)) = Self::mixed(self.services) {
            doubts.push(Doubt::MixedTimes(least, most));
        } else if let (Some((period, _)), Some((service, _))) = (self.periods, self.services)
            && period.as_nanos() % service.as_nanos().max(1) != 0
        {
            doubts.push(Doubt::Misfit(period, service));
        }
        if self.other_deadline {
            doubts.push(Doubt::OtherDeadlines);
        }
        if self.other_arrivals {
            doubts.push(Doubt::OtherArrivals);
        }
    }
}

fn widen(range: &mut Option<(Duration, Duration)>, value: Duration) {
    *range =
        Some(range.map_or((value, value), |(least, most)| (least.min(value), most.max(value))));
}

/// Millionths of the link, formatted as a factor.
struct Share(u64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000_000, self.0 % 1_000_000 / 1_000)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload(load) => write!(
                f,
                "the contracts need {} of the link, and above 1 no discipline can keep every \
                 window; try longer periods, smaller samples, more loss tolerance or more capacity",
                Share(load.utilisation)
            ),
            Self::NoWindows(policy) => write!(
                f,
                "{policy} ignores loss tolerances and guarantees no window at all; try vds, or \
                 dwcs if all periods are equal"
            ),
            Self::Curves => f.write_str(
                "hfsc guarantees service curves, not windows: contracts are measured, not used; try \
                 a class with the discipline vds or dwcs and a sufficient real-time curve",
            ),
            Self::Classes => f.write_str(
                "hfsc guarantees service curves, not windows: the guarantees of a class's \
                 discipline hold only if the class's real-time curve serves its streams in time; \
                 size the curve for all of them and for the longest segment of the others",
            ),
            Self::EdfOverload(policy, load) => write!(
                f,
                "{policy} guarantees deadlines only up to a load of 1, and the load is {} of the \
                 link: above 1 it does not choose which stream misses; try dwcs or vds",
                Share(load.offered)
            ),
            Self::OriginalRules(policy) => write!(
                f,
                "{policy} does not keep aligned windows: a stream that may miss the rest of its \
                 window keeps that state when it is served; try dwcs with the later rules, or vds"
            ),
            Self::MixedPeriods(least, most) => write!(
                f,
                "dwcs guarantees windows only if all periods are equal, and here they are from \
                 {least} to {most}: it may violate windows at a third of the link; try vds, or one \
                 period"
            ),
            Self::MixedPeriodsVds(load) if load.utilisation > VDS_MIXED => write!(
                f,
                "vds with different periods can violate windows on a nearly full link, and the \
                 contracts need {} of it; stay below 0.9, or use one period",
                Share(load.utilisation)
            ),
            Self::MixedPeriodsVds(_) => f.write_str(
                "vds with different periods is not proved to keep windows; up to 0.9 of the link no \
                 counterexample is known",
            ),
            Self::MixedTimes(least, most) => write!(
                f,
                "samples occupy the link from {least} to {most}, and windows are guaranteed only \
                 if all times are equal: a segment is never interrupted, so leave room for the \
                 longest"
            ),
            Self::Misfit(period, service) => write!(
                f,
                "the period of {period} is not a multiple of {service}, the time that a sample \
                 occupies the link, and windows are guaranteed only then; use a multiple"
            ),
            Self::OtherDeadlines => f.write_str(
                "windows are guaranteed only if each deadline equals the stream's period; omit \
                 deadline_ns",
            ),
            Self::OtherArrivals => f.write_str(
                "windows are guaranteed only if each contracted stream has one sample per period \
                 from time 0 on",
            ),
        }
    }
}
