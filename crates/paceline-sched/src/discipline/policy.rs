//! The names of the disciplines.

use core::fmt;
use core::str::FromStr;

/// One of the two published rule sets of DWCS.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum RuleSet {
    /// N: the later rules (West & Poellabauer, RTSS 2000; West, Zhang, Schwan & Poellabauer, TC 2004).
    #[default]
    Later,
    /// O: the original rules (West & Schwan, ICMCS 1999; West, Schwan & Poellabauer, RTAS 1999).
    Original,
}

/// The rule by which a link selects the next stream.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// In order of arrival. Contracts are counted but do not affect the order.
    Fifo,
    /// The lowest priority number first, in order of arrival among equals.
    StaticPriority,
    /// Earliest deadline first, with deadlines relative to the sample's arrival, or to the beginning of its
    /// period if it must wait for that ([`Eligibility::OncePerPeriod`]).
    Edf,
    /// Earliest due date: EDF on the deadlines of the contract's clock, so that a sample which arrives
    /// before its period gains nothing (Ferrari & Verma 1990).
    DelayEdd,
    /// Dynamic window-constrained scheduling.
    ///
    /// With the later ordering: earliest deadline first, then lowest window constraint. It keeps every
    /// window of a feasible set if all periods, service times and window lengths are equal and deadlines
    /// coincide. Use VDS otherwise.
    Dwcs {
        /// The rules for the order of heads.
        ordering: RuleSet,
        /// The rules for adjusting windows.
        adjustment: RuleSet,
    },
    /// Virtual deadline scheduling: earliest virtual deadline first. Supports different periods.
    #[default]
    Vds,
    /// Deficit round robin: each stream sends bytes in proportion to its rate per round (Shreedhar &
    /// Varghese 1995).
    ///
    /// Contracts are counted but do not affect the order.
    Drr,
    /// Worst-case fair weighted fair queueing (Bennett & Zhang 1997): the lowest virtual finish time
    /// among the heads that a fluid link would have begun.
    ///
    /// Contracts are counted but do not affect the order.
    Wf2qPlus,
    /// Hierarchical fair service curves, each stream a class of its own (Stoica, Zhang & Ng 1997).
    Hfsc,
    /// Rate-controlled static priority (Zhang & Ferrari 1993): levels with a delay bound each, behind a regulator for
    /// each stream. Needs [`Eligibility::OncePerPeriod`], which is the regulator.
    Rcsp,
    /// Stop-and-Go queueing (Golestani 1990): samples that are released in one frame are served in the next.
    StopAndGo,
    /// Rotating priority queues (Liebeherr & Wrege 1994): EDF with deadlines rounded to rotations.
    Rpq,
}

impl Policy {
    /// DWCS with the later rules for both ordering and adjustment.
    pub const DWCS: Self = Self::Dwcs { ordering: RuleSet::Later, adjustment: RuleSet::Later };

    /// All policies.
    pub const ALL: [Self; 15] = [
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
        Self::Rcsp,
        Self::StopAndGo,
        Self::Rpq,
    ];

    /// The policies that a configuration may name: all but the two mixtures of DWCS rules, which are for
    /// experiments.
    pub const OFFERED: [Self; 13] = [
        Self::Fifo,
        Self::StaticPriority,
        Self::Edf,
        Self::DelayEdd,
        Self::DWCS,
        Self::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original },
        Self::Vds,
        Self::Drr,
        Self::Wf2qPlus,
        Self::Hfsc,
        Self::Rcsp,
        Self::StopAndGo,
        Self::Rpq,
    ];

    /// Parses the name of an [offered](Self::OFFERED) policy.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub fn offered(text: &str) -> Result<Self, UnknownPolicy> {
        Self::OFFERED.into_iter().find(|policy| policy.name() == text).ok_or(UnknownPolicy)
    }

    /// Returns the name used in configurations.
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
            Self::Rcsp => "rcsp",
            Self::StopAndGo => "stop-and-go",
            Self::Rpq => "rpq",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a text that is not the name of a policy. It lists the [offered](Policy::OFFERED) ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown policy: must be ")?;
        for (place, policy) in Policy::OFFERED.iter().enumerate() {
            let before = match place {
                0 => "",
                _ if place + 1 == Policy::OFFERED.len() => " or ",
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
    /// Parses a [`Self::name`] in lower case.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or(UnknownPolicy)
    }
}

/// The rule that limits how often a contracted stream may use its rank.
///
/// FIFO, DRR, WF²Q+ and HFSC have no periods and ignore it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Eligibility {
    /// Whenever it has a head: samples ahead of their period still precede best effort.
    WorkConserving,
    /// Once per period: a head ahead of its period follows all heads whose period has begun.
    ///
    /// A stream that sends more than its contract therefore takes nothing from conforming streams. While
    /// a head is ahead by more than its relative deadline, it is served in round robin with best effort.
    /// Within that deadline it precedes best effort. After a single delay at an earlier hop all later
    /// samples of a stream arrive ahead of their clock by the same time; this rule still meets their
    /// deadlines.
    #[default]
    OncePerPeriod,
}
