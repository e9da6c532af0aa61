//! The names of the disciplines.

use core::fmt;
use core::str::FromStr;

/// Which of the two published rule sets of DWCS.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum RuleSet {
    /// N: the later rules (West & Poellabauer, RTSS 2000; West, Zhang, Schwan & Poellabauer, TC 2004).
    #[default]
    Later,
    /// O: the original rules (West & Schwan, ICMCS 1999; West, Schwan & Poellabauer, RTAS 1999).
    Original,
}

/// The rule by which a link chooses the next stream.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// In order of arrival. Contracts are judged, never used.
    Fifo,
    /// The lowest priority number first, in order of arrival among equals.
    StaticPriority,
    /// Earliest deadline first; a deadline follows the sample's arrival.
    Edf,
    /// Earliest due date: EDF on the deadlines of the contract's clock, so that a sample that comes
    /// before its period gains nothing (Ferrari & Verma 1990).
    DelayEdd,
    /// Dynamic window-constrained scheduling. With the later ordering: earliest deadline first, then
    /// lowest window constraint. It keeps every window of a feasible set when all periods, service
    /// times and window lengths are equal and deadlines coincide; choose VDS otherwise.
    Dwcs {
        /// The order of heads.
        ordering: RuleSet,
        /// How windows change.
        adjustment: RuleSet,
    },
    /// Virtual deadline scheduling: earliest virtual deadline first. Copes with different periods.
    #[default]
    Vds,
    /// Deficit round robin: in turn, as many bytes a round as its rate says (Shreedhar & Varghese 1995).
    /// Contracts are judged, never used.
    Drr,
    /// Worst-case fair weighted fair queueing: the least virtual finish among the heads that a fluid
    /// link would have begun (Bennett & Zhang 1997). Contracts are judged, never used.
    Wf2qPlus,
    /// Hierarchical fair service curves, each stream a class of its own (Stoica, Zhang & Ng 1997).
    Hfsc,
}

impl Policy {
    /// DWCS with the later rules, ordering and adjustment.
    pub const DWCS: Self = Self::Dwcs { ordering: RuleSet::Later, adjustment: RuleSet::Later };

    /// Every policy.
    pub const ALL: [Self; 12] = [
        Self::Fifo,
        Self::StaticPriority,
        Self::Edf,
        Self::DelayEdd,
        Self::DWCS,
        Self::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original },
        Self::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Later },
        Self::Dwcs { ordering: RuleSet::Later, adjustment: RuleSet::Original },
        Self::Vds,
        Self::Drr,
        Self::Wf2qPlus,
        Self::Hfsc,
    ];

    /// Its name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        use RuleSet::{Later, Original};
        match self {
            Self::Fifo => "fifo",
            Self::StaticPriority => "static-priority",
            Self::Edf => "edf",
            Self::DelayEdd => "delay-edd",
            Self::Dwcs { ordering: Later, adjustment: Later } => "dwcs",
            Self::Dwcs { ordering: Original, adjustment: Original } => "dwcs-original",
            Self::Dwcs { ordering: Original, adjustment: Later } => "dwcs-original-order",
            Self::Dwcs { ordering: Later, adjustment: Original } => "dwcs-original-adjustment",
            Self::Vds => "vds",
            Self::Drr => "drr",
            Self::Wf2qPlus => "wf2q+",
            Self::Hfsc => "hfsc",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown policy: must be ")?;
        for (place, policy) in Policy::ALL.iter().enumerate() {
            let before = match place {
                0 => "",
                _ if place + 1 == Policy::ALL.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}{policy}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;
    /// Reads a [`Self::name`], in lower case.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or(UnknownPolicy)
    }
}

/// How often a contracted stream may use its rank. FIFO, DRR,
/// WF²Q+ and HFSC know no periods and ignore it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Eligibility {
    /// Whenever it has a head: samples ahead of their period still precede best effort.
    WorkConserving,
    /// Once per period: a head ahead of its period goes behind all heads whose period has come, so that a
    /// stream that sends more than it was promised takes nothing from those that keep to theirs. Until it is
    /// ahead by no more than its deadline it takes turns with best effort, then it goes before that: a stream
    /// that was held up once has all its later samples come as much ahead of its clock, and keeps its promise.
    #[default]
    OncePerPeriod,
}
