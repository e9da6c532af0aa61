//! What a stream tells a discipline: its terms when it joins, its head when it has one.

use crate::contract::Contract;
use crate::hfsc::Curves;
use crate::time::{Duration, Instant};

/// Names a stream on its link: small and dense, because memory is proportional to the highest one.
///
/// The order of streams is the order of their indexes, which settles every tie.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamIndex(pub u32);

/// In which class a stream takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// With a contract: classes 0 to 2.
    Contracted(Contract),
    /// Without one: class 2.
    BestEffort,
    /// Without one, and after all others: class 3.
    Background,
}

impl From<Option<Contract>> for Class {
    /// A stream without a contract is best effort.
    fn from(contract: Option<Contract>) -> Self {
        contract.map_or(Self::BestEffort, Self::Contracted)
    }
}

/// The terms on which a stream takes part. Each discipline uses those that it knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Terms {
    /// Its class, with its contract.
    pub class: Class,
    /// Static priority: its level, the lowest first. `None`: the shorter the deadline of its contract,
    /// the sooner (deadline-monotonic).
    pub priority: Option<u32>,
    /// DRR and WF²Q+: its rate in bytes per second, which is its share among the rates of all. 0 counts
    /// as 1, and more than 2^40 (a terabyte per second) as 2^40. `None` under a contract: the share of
    /// 1 byte per second, so that such streams have equal ones; without a contract it takes its turn
    /// among best effort.
    pub rate: Option<u64>,
    /// HFSC: its service curves. `None` under a contract: a share by its rate.
    pub curves: Option<Curves>,
}

impl Terms {
    /// The greatest rate that makes a difference, in bytes per second.
    pub const RATE_MAX: u64 = 1 << 40;

    /// It takes part in a discipline's order: it has a contract, or asked for a priority or a share.
    pub(super) const fn ranks(&self) -> bool {
        match self.class {
            Class::Contracted(_) => true,
            Class::BestEffort => {
                self.priority.is_some() || self.rate.is_some() || self.curves.is_some()
            }
            Class::Background => false,
        }
    }

    /// The rate that counts, from 1 to [`Self::RATE_MAX`].
    pub(super) fn share(&self) -> u64 {
        self.rate.unwrap_or(1).clamp(1, Self::RATE_MAX)
    }

    /// Terms that say nothing but the class.
    #[must_use]
    pub const fn new(class: Class) -> Self {
        Self { class, priority: None, rate: None, curves: None }
    }

    /// The same terms with a static priority, the lowest first.
    #[must_use]
    pub const fn with_priority(mut self, priority: u32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The same terms with a rate in bytes per second.
    #[must_use]
    pub const fn with_rate(mut self, rate: u64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The same terms with service curves.
    #[must_use]
    pub const fn with_curves(mut self, curves: Curves) -> Self {
        self.curves = Some(curves);
        self
    }

    /// The contract, if there is one.
    #[must_use]
    pub const fn contract(&self) -> Option<Contract> {
        match self.class {
            Class::Contracted(contract) => Some(contract),
            Class::BestEffort | Class::Background => None,
        }
    }
}

impl From<Class> for Terms {
    fn from(class: Class) -> Self {
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
    /// When it arrived at the link; not in the future.
    pub arrived: Instant,
    /// What is to be sent of it.
    pub left: Left,
}

impl Head {
    /// A sample that is sent in one piece of `bytes`.
    #[must_use]
    pub const fn whole(arrived: Instant, service: Duration, bytes: u32) -> Self {
        Self { arrived, left: Left { service, segment: bytes } }
    }
}

/// What is still to be sent of a head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Left {
    /// The time that the link needs for all of it.
    pub service: Duration,
    /// The bytes of its next segment as they count on the wire: what fair queueing calls a packet.
    /// The segment that leaves may be shorter or longer; what is charged is what left.
    pub segment: u32,
}

/// How the service of a sample ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Service {
    /// It ended by the sample's first deadline. Always true without a contract.
    pub on_time: bool,
    /// The sample was missed, and with it the misses of its window first exceeded x: true at most once
    /// per window, and never for a miss that [`super::Scheduler::poll_missed`] has reported.
    pub violated: bool,
}

/// A sample that can no longer end by its deadline. Reported once per sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Miss {
    /// Whose sample it is.
    pub stream: StreamIndex,
    /// True under [`crate::contract::Late::Drop`]: the head is gone; the caller discards the sample,
    /// segments already sent included, and announces the next. False: it stays and is sent late.
    pub dropped: bool,
    /// With this miss the misses of the window first exceeded x: true once per violated window.
    pub violated: bool,
}

/// Where a stream stands in its window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowState {
    /// Misses still tolerated. DWCS: x'. The others: k' − m', at least 0.
    pub x: u32,
    /// Samples left. DWCS: y', which grows beyond y while violated. The others: k'.
    pub y: u32,
    /// DWCS with the later adjustment: violated since the last service in time. The others: never.
    pub tagged: bool,
}
