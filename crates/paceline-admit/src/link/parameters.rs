//! The parameters of a link for admission, and what a demand takes of such a link.

use crate::corners::Piece;
use crate::cpu::CpuBudget;
use crate::demand::StreamDemand;
use crate::ledger::Amounts;
use crate::owed::Owed;
use crate::traffic::{nanobits, narrow};
use paceline_sched::curve::RATE_MAX;
use paceline_sched::discipline::{Rcsp, Rpq, StopAndGo};
use paceline_sched::{Capacity, Curve, Duration, Policy};

/// A limit that no real cost reaches. [`super::Admission::TRUNKS_MAX`] times this value does not overflow.
const CPU_MAX: u64 = 1 << 46;

/// The admission test of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AdmissionTest {
    /// Limits on the sums of bursts and rates, with FIFO order.
    SigmaRho {
        /// The burst limit in bytes.
        burst: u64,
        /// The rate limit in bits per second.
        rate: u64,
    },
    /// First in, first out.
    Fifo,
    /// Static priority.
    StaticPriority,
    /// Earliest deadline first, relative to the arrival, however early a sample arrives.
    Edf,
    /// Virtual deadline scheduling. A stream is charged the most services that its windows can owe
    /// at once.
    Vds {
        /// The caller guarantees that the periods of all streams start together. Streams with equal
        /// parameters are then charged the services owed per period.
        coincide: bool,
    },
    /// DWCS with the later rule set. Loss tolerances count only if windows coincide. Otherwise this is the test of every
    /// discipline that releases samples once per period and sends the earliest deadline first: EDF and Delay-EDD, too.
    Dwcs {
        /// As for [`AdmissionTest::Vds`].
        coincide: bool,
    },
    /// Hierarchical fair service curves, with one class per stream.
    Hfsc,
    /// Rate-controlled static priority: the samples of each level fit into its delay bound, once per period.
    Rcsp,
    /// Stop-and-Go: the samples that are released within a frame fit into the next one.
    StopAndGo,
    /// Rotating priority queues: as [`AdmissionTest::Dwcs`], with deadlines that are rounded down to rotations, and one
    /// rotation shorter.
    Rpq,
    /// WF²Q+: each stream reserves the rate that sends its burst within its deadline, less two packets of others, and has
    /// that share of the link.
    Shares,
    /// Delivery to the subscribers of this node: no link limits it, and only buffers are tested.
    Delivery,
    /// Nothing is guaranteed, so every demand is refused: a class without a guarantee.
    Unguaranteed,
}

impl AdmissionTest {
    /// Returns the test for a discipline whose streams are eligible once per period
    /// ([`paceline_sched::discipline::Eligibility::OncePerPeriod`]). Returns `None` for DRR, whose rounds may be long, and
    /// for DWCS's original rules: they guarantee neither deadlines nor windows.
    #[must_use]
    pub fn of(policy: Policy) -> Option<Self> {
        match policy {
            Policy::Fifo => Some(Self::Fifo),
            Policy::StaticPriority => Some(Self::StaticPriority),
            Policy::Vds => Some(Self::Vds { coincide: false }),
            Policy::Edf | Policy::DelayEdd => Some(Self::Dwcs { coincide: false }),
            Policy::Dwcs { .. } if policy == Policy::DWCS => Some(Self::Dwcs { coincide: false }),
            Policy::Hfsc => Some(Self::Hfsc),
            Policy::Rcsp => Some(Self::Rcsp),
            Policy::StopAndGo => Some(Self::StopAndGo),
            Policy::Rpq => Some(Self::Rpq),
            Policy::Wf2qPlus => Some(Self::Shares),
            Policy::Dwcs { .. } | Policy::Drr => None,
        }
    }

    /// True if samples that may be missed are charged less.
    pub(super) const fn counts_loss(self) -> bool {
        matches!(self, Self::Vds { .. } | Self::Dwcs { coincide: true })
    }

    pub(super) const fn coincides(self) -> bool {
        matches!(self, Self::Vds { coincide: true } | Self::Dwcs { coincide: true })
    }

    /// True if the sum of the rates may not exceed the capacity.
    pub(super) const fn is_limited_by_rate(self) -> bool {
        !self.coincides() && !matches!(self, Self::Delivery)
    }

    /// True if the hop re-spaces samples by the contract's period. This removes the delay variation of
    /// earlier hops at no cost in the worst case, so only that of the hop itself remains.
    pub(super) const fn regulates(self) -> bool {
        match self {
            Self::Vds { .. }
            | Self::Dwcs { .. }
            | Self::Rcsp
            | Self::StopAndGo
            | Self::Rpq
            | Self::Delivery => true,
            Self::SigmaRho { .. }
            | Self::Fifo
            | Self::StaticPriority
            | Self::Edf
            | Self::Hfsc
            | Self::Shares
            | Self::Unguaranteed => false,
        }
    }

    /// Returns the level of a stream with this deadline, if the discipline has levels with delay bounds
    /// (`regulated.rs`). Returns `None` if none is short enough.
    pub(super) const fn level(self, deadline: Duration) -> Option<u32> {
        match self {
            Self::Rcsp => Some(Rcsp::level(deadline)),
            Self::StopAndGo => StopAndGo::frame(deadline),
            Self::SigmaRho { .. }
            | Self::Fifo
            | Self::StaticPriority
            | Self::Edf
            | Self::Vds { .. }
            | Self::Dwcs { .. }
            | Self::Hfsc
            | Self::Rpq
            | Self::Shares
            | Self::Delivery
            | Self::Unguaranteed => None,
        }
    }

    /// Returns the deadline by which the discipline orders samples: it may round `deadline` down.
    pub(super) const fn ordered_by(self, deadline: Duration) -> Duration {
        if !matches!(self, Self::Rpq) {
            return deadline;
        }
        // A sample precedes others that are due up to one rotation earlier.
        let rotations = Rpq::queue(deadline).saturating_sub(1);
        Duration::from_nanos(rotations * Rpq::ROTATION.as_nanos())
    }
}

/// The queue space of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueueSpace {
    /// The size in bytes.
    pub bytes: u64,
    /// The caller's number of the buffer. Links with the same number, such as the classes of one link,
    /// share it.
    pub number: u32,
}

/// The parameters of a link for admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkParameters {
    /// The capacity of the link.
    pub capacity: Capacity,
    /// The admission test.
    pub rule: AdmissionTest,
    /// The longest best-effort packet in bytes; 0 without best-effort traffic. For HFSC, the
    /// longest packet of all traffic, because service curves depend on it.
    pub other: u64,
    /// The worst-case latency that the host adds to each packet: wake-up and driver queue.
    pub latency: Duration,
    /// The queue space of all streams; `None` for no limit.
    pub buffer: Option<QueueSpace>,
    /// The queue space of all links of the node that have one, in bytes; `None` if this link counts for no such sum.
    pub host_buffer: Option<u64>,
    /// The processor budget of all links of the node; `None` for no limit.
    pub cpu: Option<CpuBudget>,
    /// True if the discipline honours deadlines. Otherwise only rates are tested and no deadline is
    /// guaranteed.
    pub timed: bool,
}

impl LinkParameters {
    /// Creates a link without other limits than its capacity, and with best-effort packets of
    /// `other` bytes.
    #[must_use]
    pub const fn new(capacity: Capacity, rule: AdmissionTest, other: u64) -> Self {
        let latency = Duration::ZERO;
        let (buffer, host_buffer, cpu) = (None, None, None);
        Self { capacity, rule, other, latency, buffer, host_buffer, cpu, timed: true }
    }

    /// Returns what a demand takes of the resources of the link.
    pub(super) fn amounts(&self, demand: &StreamDemand) -> Amounts {
        let cpu = self.cpu.map_or(0, |cpu| {
            // A source's burst is one sample, whose packets share its cost.
            let dual = demand.source().dual();
            let forwarding = cpu.cost.of_stream(dual.peak_burst, dual.rate);
            forwarding.saturating_add(demand.work()).min(CPU_MAX)
        });
        let amounts = Amounts::of(demand, cpu);
        let rate = self.owed(demand).map_or(amounts.rate, |owed| owed.rate);
        let rate = self.share(demand).map_or(rate, |share| share.max(rate));
        // Without a guaranteed delay, nothing bounds the queue but the burst.
        let buffer = if self.timed { amounts.buffer } else { demand.traffic().burst() };
        Amounts { rate, buffer, ..amounts }
    }

    /// Returns the rate in bits per second that sends the burst of `demand` within its deadline, less the host's latency and
    /// one packet of others, twice, where streams have shares. At most [`RATE_MAX`], which no link has.
    ///
    /// The link may have begun a packet without a share, and then one of another share.
    fn share(&self, demand: &StreamDemand) -> Option<u64> {
        if self.rule != AdmissionTest::Shares {
            return None;
        }
        let blocked = self.capacity.time_for(self.other).saturating_add(self.latency);
        let left = demand.deadline().saturating_sub(blocked).saturating_sub(blocked);
        let left = u128::from(left.as_nanos());
        let bits = nanobits(demand.traffic().burst()).checked_div(left).map(|bits| bits + 1);
        Some(bits.map_or(RATE_MAX, narrow).min(RATE_MAX))
    }

    /// Returns the services owed to a stream with a loss tolerance, if the rule counts them and samples can begin early
    /// enough, or if only rates are tested.
    fn owed(&self, demand: &StreamDemand) -> Option<Owed> {
        let owed = Owed::of(demand)?;
        let early = || self.begins_within(demand, demand.deadline().mul_div(2, 3));
        let counts = matches!(self.rule, AdmissionTest::Vds { .. }) && early();
        (counts || !self.timed).then_some(owed)
    }

    /// Returns true if no divided sample of the stream takes longer than `time`.
    fn begins_within(&self, demand: &StreamDemand, time: Duration) -> bool {
        demand.begun().is_none_or(|(_, longest)| {
            self.capacity.time_for(longest).saturating_add(self.latency) <= time
        })
    }

    /// Returns the least time until the deadline of a sample that has begun early, in nanoseconds, if the discipline
    /// begins samples early.
    fn begun(&self, demand: &StreamDemand) -> Option<u64> {
        let (time, _) = demand.begun()?;
        let begins = matches!(self.rule, AdmissionTest::Vds { .. });
        let left = time.as_nanos().saturating_sub(self.latency.as_nanos());
        (begins && self.begins_within(demand, time)).then_some(left)
    }

    /// Returns the stream's demand or service curve, or `None` if its deadline is shorter than the
    /// host's latency.
    pub(super) fn piece(&self, demand: &StreamDemand) -> Option<Piece> {
        let deadline = self.rule.ordered_by(demand.deadline());
        let left = deadline.as_nanos().checked_sub(self.latency.as_nanos())?;
        match self.rule {
            AdmissionTest::Hfsc => self.curve(demand).map(|curve| Piece::service(&curve)),
            AdmissionTest::Edf
            | AdmissionTest::Vds { .. }
            | AdmissionTest::Dwcs { .. }
            | AdmissionTest::Rpq
            | AdmissionTest::Rcsp
            | AdmissionTest::StopAndGo
            | AdmissionTest::Shares
            | AdmissionTest::Fifo
            | AdmissionTest::StaticPriority
            | AdmissionTest::Unguaranteed
            | AdmissionTest::Delivery
            | AdmissionTest::SigmaRho { .. } => {
                let re_spaced = self.rule.regulates();
                (left > 0).then(|| {
                    Piece::due(demand, left, self.owed(demand), (re_spaced, self.begun(demand)))
                })
            }
        }
    }

    /// Returns the service curve that meets the deadline of `demand`: it serves the burst within the deadline, less the
    /// host's latency and one blocking packet. Returns `None` if there is none.
    pub(super) fn curve(&self, demand: &StreamDemand) -> Option<Curve> {
        // The test ensures that no blocking packet is longer than `other`.
        let taken = self.capacity.time_for(self.other).saturating_add(self.latency);
        let left =
            demand.deadline().as_nanos().checked_sub(taken.as_nanos()).filter(|left| *left > 0)?;
        let traffic = demand.traffic();
        Curve::burst(traffic.burst(), Duration::from_nanos(left), traffic.rate()).ok()
    }
}
