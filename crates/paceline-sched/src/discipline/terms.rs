//! The data that a stream gives to a discipline: its terms when it joins, and its heads.

use crate::contract::Contract;
use crate::hfsc::Curves;
use crate::time::{Duration, Instant};

/// Identifies a stream on its link. Indices should be small and dense: memory is proportional to the
/// highest one.
///
/// The order of streams is the order of their indices, which resolves every tie.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamIndex(pub u32);

/// The class in which a stream takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServiceClass {
    /// With a contract: classes 0 to 2.
    Contracted(Contract),
    /// Without a contract: class 2.
    BestEffort,
    /// Without a contract, after all other streams: class 3.
    Background,
}

impl From<Option<Contract>> for ServiceClass {
    /// Converts a contract; a stream without one is best effort.
    fn from(contract: Option<Contract>) -> Self {
        contract.map_or(Self::BestEffort, Self::Contracted)
    }
}

/// The terms on which a stream takes part. Each discipline uses those that it supports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Terms {
    /// The class, with the contract.
    pub class: ServiceClass,
    /// The level for static priority; the lowest level is served first.
    ///
    /// `None` under a contract: a shorter deadline gives a higher priority (deadline-monotonic).
    pub priority: Option<u32>,
    /// The rate for DRR and WF²Q+ in bytes per second; a stream's share is its rate among the rates of
    /// all.
    ///
    /// 0 counts as 1, and more than 2^40 (a terabyte per second) as 2^40. `None` under a contract means
    /// the share of 1 byte per second, so that such streams have equal shares. `None` without a contract
    /// places the stream in the round robin of best effort.
    pub rate: Option<u64>,
    /// The service curves for HFSC. `None` under a contract: a share in proportion to its rate.
    pub curves: Option<Curves>,
    /// True if admission relies on VDS to begin samples that may be missed early or not at all: it reserves time only
    /// for the samples that windows owe, and for one that has begun.
    pub begins_early: bool,
}

impl Terms {
    /// The highest effective rate in bytes per second.
    pub const RATE_MAX: u64 = 1 << 40;

    /// Returns true if the stream takes part in a discipline's order: it has a contract, a priority or a
    /// share.
    pub(super) const fn ranks(&self) -> bool {
        match self.class {
            ServiceClass::Contracted(_) => true,
            ServiceClass::BestEffort => {
                self.priority.is_some() || self.rate.is_some() || self.curves.is_some()
            }
            ServiceClass::Background => false,
        }
    }

    /// Returns the effective rate, from 1 to [`Self::RATE_MAX`].
    pub(super) fn share(&self) -> u64 {
        self.rate.unwrap_or(1).clamp(1, Self::RATE_MAX)
    }

    /// Returns terms with only a class.
    #[must_use]
    pub const fn new(class: ServiceClass) -> Self {
        Self { class, priority: None, rate: None, curves: None, begins_early: false }
    }

    /// Sets [`Self::begins_early`].
    #[must_use]
    pub const fn with_early_begin(mut self, begins_early: bool) -> Self {
        self.begins_early = begins_early;
        self
    }

    /// Returns the same terms with a static priority; the lowest is served first.
    #[must_use]
    pub const fn with_priority(mut self, priority: u32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Returns the same terms with a rate in bytes per second.
    #[must_use]
    pub const fn with_rate(mut self, rate: u64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Returns the same terms with service curves.
    #[must_use]
    pub const fn with_curves(mut self, curves: Curves) -> Self {
        self.curves = Some(curves);
        self
    }

    /// Returns the contract, if there is one.
    #[must_use]
    pub const fn contract(&self) -> Option<Contract> {
        match self.class {
            ServiceClass::Contracted(contract) => Some(contract),
            ServiceClass::BestEffort | ServiceClass::Background => None,
        }
    }
}

impl From<ServiceClass> for Terms {
    fn from(class: ServiceClass) -> Self {
        Self::new(class)
    }
}

impl From<Option<Contract>> for Terms {
    fn from(contract: Option<Contract>) -> Self {
        Self::new(contract.into())
    }
}

/// The sample at the head of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// The instant of its arrival at the link; not in the future.
    pub arrived: Instant,
    /// The part of the sample that is still to be sent.
    pub left: Left,
}

impl Head {
    /// Returns a head that is sent in one segment of `bytes`.
    #[must_use]
    pub const fn whole(arrived: Instant, service: Duration, bytes: u32) -> Self {
        Self { arrived, left: Left { service, segment: bytes, last: true } }
    }
}

/// The part of a head that is still to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Left {
    /// The transmission time of that part.
    pub service: Duration,
    /// The size of its next segment in bytes on the wire: a packet in the terms of fair queueing.
    ///
    /// The segment actually sent may be shorter or longer; its actual size is charged.
    pub segment: u32,
    /// True if that segment is the last one.
    pub last: bool,
}

/// The outcome of a sample's service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Service {
    /// The service ended by the sample's first deadline. Always true without a contract.
    pub on_time: bool,
    /// The sample was missed, and the misses of its window first exceeded x with it.
    ///
    /// True at most once per window, and never for a miss that [`super::Scheduler::poll_missed`] has
    /// reported.
    pub violated: bool,
}

/// A sample that can no longer end by its deadline. Reported once per sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Miss {
    /// The stream of the sample.
    pub stream: StreamIndex,
    /// True under [`crate::contract::Late::Drop`]: the stream has no head any more. The caller discards
    /// the sample, including any segments already sent, and announces the next one.
    ///
    /// False: the head stays and is sent late.
    pub dropped: bool,
    /// The misses of the window first exceeded x with this miss. True once per violated window.
    pub violated: bool,
}

/// The samples of a stream before its next one, of the same aligned window of y samples.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Earlier {
    /// Their number.
    pub samples: u64,
    /// How many of them were missed. Once the window owes no more services, those in time beyond y − x count as
    /// missed, too: the account does not distinguish them.
    pub missed: u32,
}

/// The position of a stream in its window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowState {
    /// The misses still tolerated. DWCS: x'. Other disciplines: k' − m', at least 0.
    pub x: u32,
    /// The remaining samples. DWCS: y', which grows beyond y while the window is violated. Other
    /// disciplines: k'.
    pub y: u32,
    /// DWCS with the later adjustment: violated since the last service on time. Other disciplines:
    /// always false.
    pub tagged: bool,
}
