//! The parameters of a stream on a link.

use super::super::pacing::Wire;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::{Demand, OutputPlan, StreamNames};
use crate::retransmit::Retransmit;
use crate::sample::Kind;
use paceline_sched::curve::Curve;
use paceline_sched::discipline::{ServiceClass, Terms};
use paceline_sched::hfsc::Curves;
use paceline_sched::{Contract, Duration, Late};
use std::sync::Arc;

/// The maximum number of queued samples of a best-effort data stream.
const WAITING_MAX: usize = 256;
/// The maximum number of queued samples of a stream with a contract, however long its deadline and its
/// upstream delay.
const CONTRACTED_MAX: usize = 1 << 16;
/// The maximum number of queued bytes of a best-effort stream, unless a single sample is larger.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// The parameters of a stream on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// The next hop.
    pub hop: NodeId,
    /// The publisher of the samples.
    pub publisher: PublisherId,
    /// The form of the samples on this link.
    pub form: Form,
    /// The kind of the samples. A picture or state replaces an older one that is still queued.
    pub kind: Kind,
    /// The traffic contract; `None` for best effort.
    pub contract: Option<Contract>,
    /// The part of the delay bound that is spent before this link.
    pub upstream: Duration,
    /// The time after a sample's deadline on this link within which it can still be useful downstream.
    pub slack: Duration,
    /// A background stream: served when no live sample is queued, without a contract. Its samples do not
    /// replace each other.
    pub background: bool,
    /// The longest time that a sample may be queued before its first byte is sent; `None` for no limit.
    pub max_wait: Option<Duration>,
    /// The retransmission mode on carriers that may lose frames.
    pub retransmit: Retransmit,
    /// The priority level on links with static priorities; `None` if the deadline sets it.
    pub level: Option<u32>,
    /// The admitted demand of the contract, for disciplines that share by rates or curves.
    pub demand: Option<Demand>,
    /// The names that select the class; `None` selects it by the contract alone.
    pub names: Option<Arc<StreamNames>>,
    /// The subscriptions of the contract, in order; none for best effort. A subscription that moves to another stream
    /// receives its samples in order.
    pub subscriptions: Arc<[SubscriptionId]>,
    /// True if another stream replaces it, so that it takes only samples before the first one of that stream.
    pub ends: bool,
}

impl StreamSpec {
    /// Returns a best-effort stream with default settings for `form`.
    #[must_use]
    pub fn best_effort(publisher: PublisherId, hop: NodeId, form: Form, kind: Kind) -> Self {
        Self {
            hop,
            publisher,
            form,
            kind,
            contract: None,
            upstream: Duration::ZERO,
            slack: Duration::ZERO,
            background: false,
            max_wait: None,
            retransmit: Retransmit::Selective,
            level: None,
            demand: None,
            names: None,
            subscriptions: Arc::default(),
            ends: false,
        }
    }

    /// Returns the stream towards `hop` according to `plan`.
    #[must_use]
    pub fn of(publisher: PublisherId, hop: NodeId, plan: &OutputPlan) -> Self {
        let OutputPlan { form, kind, contract, upstream, slack, background, demand, .. } = plan;
        Self {
            hop,
            publisher,
            form: *form,
            kind: *kind,
            contract: *contract,
            upstream: *upstream,
            slack: *slack,
            background: *background,
            max_wait: plan.max_wait,
            retransmit: plan.retransmit,
            level: plan.level,
            demand: *demand,
            names: None,
            subscriptions: match contract {
                Some(_) => plan.subscriptions.as_slice().into(),
                None => Arc::default(),
            },
            ends: plan.until.is_some() && contract.is_some(),
        }
    }

    /// Sets the names that select the class.
    #[must_use]
    pub fn with_names(mut self, names: Option<Arc<StreamNames>>) -> Self {
        self.names = names;
        self
    }

    /// Returns the discipline's class for this stream.
    pub(in crate::link) fn class(&self) -> ServiceClass {
        if self.background { ServiceClass::Background } else { self.contract.into() }
    }

    /// Returns the stream's terms for the discipline, where one packet of other streams delays the next by at
    /// most `blocked`.
    ///
    /// A contract contributes the share and the service curve that admission assumed. The share is the demanded rate, and
    /// at least the rate that serves the burst within the deadline less `blocked`, twice. The curve
    /// serves the burst within the deadline less `blocked`, and continues at the rate: the peak rate for samples
    /// that vary in size, because a curve begins again whenever the stream has nothing to send. Samples begin early if
    /// admission counts on it. The longest one then takes at most two thirds of the deadline there, which
    /// includes a margin that the contract here does not.
    pub(in crate::link) fn terms(&self, blocked: Duration, wire: &Wire) -> Terms {
        let mut terms = Terms::new(self.class());
        if let (ServiceClass::Contracted(contract), true) = (&mut terms.class, self.is_patient()) {
            contract.late = Late::Send;
        }
        if let (Some(level), false) = (self.level, self.background) {
            terms = terms.with_priority(level);
        }
        let Some((contract, demand)) = self.contract.zip(self.demand) else { return terms };
        let early =
            demand.saves_loss && wire.time_of(demand.bytes) <= contract.deadline.mul_div(3, 4);
        let left = contract.deadline.saturating_sub(blocked).max(Duration::from_nanos(1));
        let rate = demand.bytes_per_s.max(share(demand.burst, left.saturating_sub(blocked)));
        let terms = terms.with_rate(rate).with_early_begin(early);
        let bits = demand.bytes_per_s.clamp(1, Terms::RATE_MAX) * 8;
        let (burst, bits) =
            if demand.varies { peak(&contract, &demand) } else { (demand.burst, bits) };
        let curves = Curves {
            real_time: Curve::burst(burst, left, bits).ok(),
            link_share: Curve::linear(bits).ok(),
            upper_limit: None,
        };
        if self.background || curves.link_share.is_none() {
            terms
        } else {
            terms.with_curves(curves)
        }
    }

    /// Returns `true` if a sample that misses its deadline on this link stays queued, since it may still meet
    /// the delay bound downstream.
    ///
    /// False where loss is tolerated, since the time to send a late sample is reserved for others. False for
    /// video, which has its own shedding order.
    pub(in crate::link) fn is_patient(&self) -> bool {
        let contract = self.contract.filter(|it| it.late == Late::Drop && it.loss.x() == 0);
        contract.is_some() && !self.slack.is_zero() && !self.kind.is_video()
    }

    /// Returns the maximum number of queued bytes, unless a single sample is larger. A contract has room for
    /// its demand, for which admission has reserved a part of the link's buffer.
    pub(in crate::link) fn waiting_bytes_max(&self) -> usize {
        let demanded = self.contract.zip(self.demand).map_or(0, |(contract, demand)| {
            let nanos = u128::from(self.waits(&contract).as_nanos());
            let bytes = u128::from(demand.bytes_per_s) * nanos / 1_000_000_000;
            usize::try_from(bytes + u128::from(demand.burst)).unwrap_or(usize::MAX)
        });
        demanded.max(WAITING_BYTES_MAX)
    }

    /// Returns the longest time that samples of a contract may wait here, with those that upstream hops may
    /// have bunched together.
    const fn waits(&self, contract: &Contract) -> Duration {
        let bunched = self.upstream.saturating_add(contract.jitter);
        contract.deadline.saturating_add(self.slack).saturating_add(bunched)
    }

    /// Returns the maximum number of queued samples. For a contract: the samples between release and
    /// deadline, those that upstream hops may have bunched together, and two.
    pub(super) fn waiting_max(&self) -> usize {
        self.contract.map_or(WAITING_MAX, |contract| {
            let waits = self.waits(&contract);
            let periods = waits.as_nanos() / contract.period.as_nanos().max(1);
            usize::try_from(periods).unwrap_or(CONTRACTED_MAX).clamp(2, CONTRACTED_MAX - 2) + 2
        })
    }
}

/// Returns the rate in bytes per second that serves `burst` bytes within `left`.
fn share(burst: u64, left: Duration) -> u64 {
    let rate = (u128::from(burst) * 1_000_000_000).div_ceil(u128::from(left.as_nanos().max(1)));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Returns the burst in bytes and the rate in bits per second of the longest sample in each period.
fn peak(contract: &Contract, demand: &Demand) -> (u64, u64) {
    let every = u128::from(contract.period.as_nanos().max(1));
    let bytes = u128::from(demand.bytes);
    let early = (bytes * u128::from(contract.jitter.as_nanos())).div_ceil(every);
    let bits = (bytes * 8_000_000_000).div_ceil(every).min(u128::from(Terms::RATE_MAX) * 8);
    let narrow = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
    (demand.bytes.saturating_add(narrow(early)), narrow(bits))
}
