//! Combines the requests of subscriptions to the contract of a stream on one link, and its demand.

use super::request::{
    Ask, SHORTEST, counted_loss, keeps_windows, of_both, period_of, share, whole_micros,
};
use crate::budget::{SEGMENT_BYTES, SEGMENT_OVERHEAD, counted};
use crate::control::data::spec::PublisherSpec;
use crate::envelope::Envelope;
use crate::form::{Form, Rate};
use crate::plan;
use core::slice;
use paceline_admit::{DemandError, StreamDemand, Traffic};
use paceline_sched::curve::RATE_MAX;
use paceline_sched::police::Dual;
use paceline_sched::{Contract, Duration, LossTolerance};

/// The period of a stream whose period is unknown.
const PERIOD_UNKNOWN: Duration = Duration::from_millis(100);
/// A source counts as regular if its samples are early by at most 1/`JITTER_PART` of the period. Admission
/// charges for this jitter. Samples that are earlier still, or bunched on the path, get the deadline of a
/// regular sample.
const JITTER_PART: u64 = 10;

/// A contract, with its position in the end-to-end delay bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Promise {
    pub(crate) contract: Contract,
    pub(crate) upstream: Duration,
    /// The time after `deadline` during which a sample is still worth sending.
    pub(crate) slack: Duration,
}

/// Returns the contract of a stream in `form` that satisfies all of `asks`; `None` if there are none.
pub(crate) fn promise(spec: &PublisherSpec, form: Form, asks: &[Ask]) -> Option<Promise> {
    let shortest = asks.iter().filter_map(|ask| ask.within).min();
    let period = period_of(spec, form).or(shortest).unwrap_or(PERIOD_UNKNOWN).max(SHORTEST);
    let both = if keeps_windows(spec) { of_both } else { LossTolerance::strictest };
    let loss = asks.iter().map(|ask| ask.loss_here(spec, form, period)).reduce(both)?;
    let shares = asks.iter().map(|ask| share(ask, period));
    let (upstream, deadline) =
        shares.min_by_key(|&(upstream, deadline)| upstream.saturating_add(deadline))?;
    let contract = Contract {
        period,
        deadline: deadline.max(SHORTEST),
        loss,
        late: spec.late,
        jitter: period.mul_div(1, JITTER_PART).saturating_add(spread(spec, form)),
    };
    let gone = upstream.saturating_add(deadline);
    Some(Promise { contract, upstream, slack: slack(asks, gone) })
}

/// Returns the priority level of a stream that satisfies `asks`; `None` if its deadline sets it.
pub(crate) fn level(spec: &PublisherSpec, form: Form, asks: &[Ask]) -> Option<u32> {
    asks.iter().find_map(|ask| ask.level)?;
    let micros = |ask: &Ask| {
        let promise = promise(spec, form, slice::from_ref(ask))?;
        Some(u32::try_from(promise.contract.deadline.as_micros()).unwrap_or(u32::MAX))
    };
    asks.iter().filter_map(|ask| ask.level.or_else(|| micros(ask))).min()
}

/// Returns how late a sample may leave this hop and still be in time for some subscription.
///
/// `gone` is the part of the shortest bound used up to the end of this hop. The result is the difference of
/// the longest and shortest bounds, plus half of the time left for later hops. These need about the other
/// half.
fn slack(asks: &[Ask], gone: Duration) -> Duration {
    let bounds = || asks.iter().filter_map(|ask| ask.within);
    let (Some(shortest), Some(longest)) = (bounds().min(), bounds().max()) else {
        return Duration::ZERO;
    };
    longest.saturating_sub(shortest).saturating_add(shortest.saturating_sub(gone).mul_div(1, 2))
}

/// Returns the extra jitter of a limited rate. Each sample is one of those that remain after one in n, so it may precede
/// its ideal instant by up to their period.
fn spread(spec: &PublisherSpec, form: Form) -> Duration {
    let (Some(source), Some(period)) = (remaining(spec, form), form.rate.period(spec.period))
    else {
        return Duration::ZERO;
    };
    let even = period.as_nanos() % source.as_nanos().max(1) == 0;
    if even { Duration::ZERO } else { source }
}

/// Returns the time between two samples of the source that remain after one in n; the limits take some of them.
fn remaining(spec: &PublisherSpec, form: Form) -> Option<Duration> {
    Rate::every(form.rate.every).period(spec.period)
}

/// Returns the shortest time between two samples of a stream with one sample per `period`, early by at most
/// `jitter`.
fn gap(spec: &PublisherSpec, form: Form, (period, jitter): (Duration, Duration)) -> Duration {
    let early = jitter.saturating_sub(spread(spec, form));
    let apart = period.saturating_sub(jitter);
    let source = remaining(spec, form).filter(|source| !source.is_zero());
    // Scaling leaves out whole samples of the source.
    let whole = source.map(|source| source.mul_div(period.as_nanos() / source.as_nanos(), 1));
    whole.map_or(apart, |whole| apart.max(whole.saturating_sub(early)))
}

/// Returns the deadline of one subscription's samples at each hop of the path, in path order, given their form at each
/// hop.
pub(crate) fn shares(
    spec: &PublisherSpec,
    form: impl Fn(usize) -> Form,
    ask: &Ask,
) -> Vec<Duration> {
    let at = |hop| promise(spec, form(hop), &[Ask { hop, ..*ask }]).map(|it| it.contract.deadline);
    (0..ask.split.hops()).map(|hop| at(hop).unwrap_or_default()).collect()
}

/// Returns one subscription's demand on the link of its hop.
///
/// Returns `None` if the demand is unknown, and an inner `None` if the loss tolerance allows every sample to
/// miss.
pub(crate) fn demand_of(
    spec: &PublisherSpec,
    form: Form,
    ask: &Ask,
) -> Option<Option<StreamDemand>> {
    let period = form.rate.period(spec.period).filter(|period| !period.is_zero())?;
    let whole = u64::try_from(counted(spec.budget(form)?.bytes_max.into())).unwrap_or(u64::MAX);
    if ask.owes_nothing() {
        return Some(None);
    }
    let contract = promise(spec, form, slice::from_ref(ask))?.contract;
    let packet = whole.min(SEGMENT_BYTES + SEGMENT_OVERHEAD);
    let early = (period, contract.jitter);
    let envelope = envelope(spec, form, slice::from_ref(ask));
    let traffic = Traffic::spaced(whole, early, gap(spec, form, early), packet);
    // Scaling takes longer for some samples than for others.
    let bunched = ask.split.is_scaled(ask.hop) && !ask.scaling.is_zero();
    let traffic = traffic.map(|it| it.with_clock(contract.period));
    let traffic = traffic.map(|it| if bunched { it.without_samples() } else { it });
    let traffic = traffic.and_then(|it| long_term(envelope, it, early));
    let traffic = traffic.or_else(|_| Traffic::leaky(Traffic::BURST_MAX, RATE_MAX, packet)).ok()?;
    let deadline = contract.deadline.min(StreamDemand::DEADLINE_MAX);
    let demand = StreamDemand::new(traffic, deadline).ok()?;
    let demand = ask.level.map_or(demand, |level| demand.with_level(level));
    let counted = saved_here(spec, form, ask);
    let part = |hop| whole_micros(share(&Ask { hop, ..*ask }, period).1);
    let spent = (0..ask.hop).fold(Duration::ZERO, |sum, hop| sum.saturating_add(part(hop)));
    let within = (ask.hop..ask.split.hops()).fold(spent, |sum, hop| sum.saturating_add(part(hop)));
    // The proxy's node scales before its hop.
    let work = if ask.hop == ask.split.proxy() { spec.scaling_work(form) } else { 0 };
    Some(Some(demand.with_loss(counted).after_hops(spent, within).with_work(work)))
}

/// Returns the envelope of a stream's samples.
///
/// A learned one counts only if no sample may be lost: the publisher never agreed to it, and the loss tolerance may
/// save more.
fn envelope(spec: &PublisherSpec, form: Form, asks: &[Ask]) -> Option<Envelope> {
    let lossless = || asks.iter().all(|ask| ask.loss.x() == 0);
    spec.budget(form)?.envelope.filter(|it| !it.is_learned() || lossless())
}

/// Returns the samples of each window that admission may leave out. With an envelope none: those that miss may be
/// the short ones.
pub(in crate::control) fn saved(spec: &PublisherSpec, form: Form, ask: &Ask) -> LossTolerance {
    match envelope(spec, form, slice::from_ref(ask)) {
        Some(_) => LossTolerance::NONE,
        None => counted_loss(spec, form, ask),
    }
}

/// Returns the samples of each window that admission leaves out on the hop of `ask`.
fn saved_here(spec: &PublisherSpec, form: Form, ask: &Ask) -> LossTolerance {
    if ask.bears_loss() { saved(spec, form, ask) } else { LossTolerance::NONE }
}

/// Limits traffic by the envelope of the samples.
fn long_term(
    envelope: Option<Envelope>,
    peak: Traffic,
    early: (Duration, Duration),
) -> Result<Traffic, DemandError> {
    let Some(envelope) = envelope.map(|it| it.on_wire(early)) else { return Ok(peak) };
    if envelope.bits_per_s >= peak.rate() {
        return Ok(peak);
    }
    let (peak_burst, peak_rate) = (peak.burst(), peak.rate());
    let burst = envelope.burst.max(peak_burst);
    let dual = Dual { peak_burst, peak_rate, burst, rate: envelope.bits_per_s };
    Ok(peak.with_long_term(dual, envelope.packets_per_s)?.varying(true))
}

/// Returns true if any sample is promised under `ask`.
pub(in crate::control) fn is_promised(spec: &PublisherSpec, form: Form, ask: &Ask) -> bool {
    matches!(demand_of(spec, form, ask), Some(Some(_)))
}

/// Returns the demand of a stream in `form` on a link under the contract that satisfies `asks`.
pub(crate) fn demand(
    spec: &PublisherSpec,
    form: Form,
    contract: &Contract,
    asks: &[Ask],
) -> plan::Demand {
    let (period, jitter) = (contract.period, contract.jitter);
    let budget = spec.budget(form);
    let wire = counted(budget.map_or(SEGMENT_BYTES, |budget| budget.bytes_max).into());
    let every = u128::from(period.as_nanos().max(1));
    let rate = wire.saturating_mul(1_000_000_000).div_ceil(every);
    let early = (wire * u128::from(jitter.as_nanos())).div_ceil(every);
    let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let (bytes, declared) = (whole(wire), budget.is_some());
    let burst = whole(wire.saturating_add(early));
    let (bytes_per_s, varies) = (whole(rate), false);
    // Video chooses itself which pictures to leave out.
    let saves = |ask: &Ask| !spec.kind.is_video() && saved_here(spec, form, ask).x() > 0;
    let saves_loss = asks.iter().any(saves);
    let peak = plan::Demand { bytes, burst, bytes_per_s, declared, varies, saves_loss };
    let long_term =
        envelope(spec, form, asks).filter(|_| declared).map(|it| it.on_wire((period, jitter)));
    let long_term = long_term.map(|it| (it.burst.max(burst), it.bits_per_s.div_ceil(8)));
    match long_term {
        Some((burst, bytes_per_s)) if bytes_per_s < peak.bytes_per_s => {
            plan::Demand { burst, bytes_per_s, varies: true, ..peak }
        }
        Some(_) | None => peak,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::contracts::request::whole_micros;
    use crate::control::data::spec::SubscriptionSpec;
    use crate::control::data::split::Split;
    use crate::form::Size;
    use crate::sample::{Encoding, Kind};
    use crate::tag::{Pattern, Tag};
    use core::num::NonZeroU32;
    use paceline_admit::reserve::bears_loss;
    use paceline_sched::Late;
    use proptest::prelude::*;

    fn camera() -> PublisherSpec {
        PublisherSpec {
            tag: Tag::new("camera").unwrap(),
            kind: Kind::Picture,
            encoding: Encoding::Jpeg,
            period: Some(Duration::from_millis(40)),
            late: Late::Drop,
            loss: None,
            size: Some(Size { width: 640, height: 480 }),
            bytes_max: Some(10_900),
            envelope: None,
            waits: false,
            latch: false,
            unscalable: None,
            key_interval: None,
            structure: None,
            scaled: Vec::new(),
            within: None,
        }
    }

    /// A request at hop `hop`, from 1, of a path whose links all have a capacity.
    fn within(millis: u64, hop: usize, hops: usize) -> Ask {
        let within = Some(Duration::from_millis(millis));
        let split = Split::new((0..hops).map(|_| true));
        let scaling = Duration::ZERO;
        Ask {
            within,
            loss: LossTolerance::NONE,
            hop: hop - 1,
            split,
            level: None,
            scaling,
            thins: false,
        }
    }

    fn loss(x: u32, y: u32) -> LossTolerance {
        LossTolerance::new(x, y).unwrap()
    }

    #[test]
    fn the_hops_share_a_delay_bound() {
        let got = promise(&camera(), Form::FULL, &[within(60, 2, 3)]).unwrap();
        assert_eq!(got.upstream, Duration::from_millis(20));
        assert_eq!(got.contract.deadline, Duration::from_micros(18_500));
        assert_eq!(got.contract.period, Duration::from_millis(38));
        assert_eq!(got.contract.jitter, Duration::from_micros(3_800));
        assert_eq!(got.contract.loss, LossTolerance::NONE);
        assert_eq!(got.slack, Duration::from_micros(10_750), "half of what the third hop has");
        let both = promise(&camera(), Form::FULL, &[within(60, 2, 3), within(100, 2, 3)]).unwrap();
        assert_eq!((both.contract, both.slack), (got.contract, Duration::from_micros(50_750)));
        let short = promise(&camera(), Form::FULL, &[within(6, 1, 1)]).unwrap();
        assert_eq!(short.contract.deadline, Duration::from_micros(5_400));
    }

    #[test]
    fn declared_loss_applies_to_delay_bounds_without_their_own_tolerance() {
        let ask = |within: Option<u64>, loss| SubscriptionSpec {
            within: within.map(Duration::from_millis),
            loss,
            ..SubscriptionSpec::all_of(Pattern::new("camera").unwrap())
        };
        let declares = PublisherSpec { loss: Some(loss(2, 5)), ..camera() };
        assert_eq!(declares.tolerance_for(&ask(Some(60), None)), Some(loss(2, 5)));
        assert_eq!(camera().tolerance_for(&ask(Some(60), None)), Some(LossTolerance::NONE));
        assert_eq!(declares.tolerance_for(&ask(Some(60), Some(loss(1, 9)))), Some(loss(1, 9)));
        assert_eq!(declares.tolerance_for(&ask(None, None)), None, "still best effort");
    }

    #[test]
    fn a_declared_bound_applies_to_subscriptions_without_a_contract() {
        let ask = |within: Option<u64>, loss| SubscriptionSpec {
            within: within.map(Duration::from_millis),
            loss,
            ..SubscriptionSpec::all_of(Pattern::new("camera").unwrap())
        };
        let bound = Some(Duration::from_millis(40));
        let declares = PublisherSpec { within: bound, loss: Some(loss(2, 5)), ..camera() };
        let best_effort = ask(None, None);
        assert_eq!(declares.bound_for(&best_effort), bound);
        assert_eq!(declares.tolerance_for(&best_effort), Some(loss(2, 5)));
        assert_eq!(declares.bound_for(&ask(Some(60), None)), Some(Duration::from_millis(60)));
        assert_eq!(
            declares.bound_for(&ask(None, Some(loss(1, 9)))),
            None,
            "a contract without a bound"
        );
        let split = Split::new([true, true].into_iter());
        let bound_of = |spec, publisher| Ask::new(spec, publisher, 0, split).map(|ask| ask.within);
        assert_eq!(bound_of(&best_effort, &declares), Some(bound));
        assert_eq!(bound_of(&best_effort, &camera()), None);
    }

    #[test]
    fn the_shortest_bound_wins_and_differing_tolerances_are_ignored() {
        let tolerant = Ask { loss: loss(1, 2), ..within(30, 1, 1) };
        let stricter = Ask { loss: loss(1, 10), ..within(90, 1, 3) };
        let got = promise(&camera(), Form::FULL, &[stricter, tolerant]).unwrap();
        assert_eq!(got.upstream, Duration::ZERO);
        assert_eq!(got.contract.deadline, Duration::from_micros(28_500));
        assert_eq!(
            got.contract.loss,
            LossTolerance::NONE,
            "windows of other lengths lie across each other"
        );
        let got = promise(&camera(), Form::FULL, &[tolerant, within(90, 2, 3)]).unwrap();
        assert_eq!(got.contract.loss, LossTolerance::NONE);
        let alike = Ask { loss: loss(1, 2), ..within(40, 1, 1) };
        let got = promise(&camera(), Form::FULL, &[alike, tolerant]).unwrap();
        assert_eq!(got.contract.loss, loss(1, 2));
    }

    /// Returns the loss tolerance of the contract at hop `hop`, from 1, and the tolerance that admission
    /// counts. `slow` marks the links with a capacity.
    fn missed(slow: &[bool], hop: usize, form: Form, late: Late) -> (LossTolerance, LossTolerance) {
        let split = Split::new(slow.iter().copied());
        let within = Some(Duration::from_millis(60));
        let scaling = Duration::ZERO;
        let ask = Ask {
            within,
            loss: loss(3, 10),
            hop: hop - 1,
            split,
            level: None,
            scaling,
            thins: false,
        };
        let spec = PublisherSpec { late, ..camera() };
        let demand = demand_of(&spec, form, &ask).unwrap().unwrap();
        (promise(&spec, form, &[ask]).unwrap().contract.loss, demand.loss())
    }

    #[test]
    fn only_one_hop_of_a_path_uses_the_loss_tolerance() {
        let full = |slow: &[bool], hop| missed(slow, hop, Form::FULL, Late::Drop);
        let (all, none) = ((loss(3, 10), loss(3, 10)), (LossTolerance::NONE, LossTolerance::NONE));
        assert_eq!([1, 2, 3].map(|hop| full(&[false, true, true], hop)), [none, all, none]);
        assert_eq!([1, 2].map(|hop| full(&[true, true], hop)), [all, none]);
        assert_eq!(full(&[true], 1), none, "58.5 ms are more than 10/7 of 38");
        assert_eq!(full(&[false, true], 2), all, "53.5 ms are not");
        let sent_late = missed(&[false, true], 2, Form::FULL, Late::Send);
        assert_eq!(sent_late, none, "missed samples free no capacity");
        let rate = Rate::max(NonZeroU32::new(12_500).unwrap());
        let highest = missed(&[false, true], 2, Form { rate, ..Form::FULL }, Late::Drop);
        assert_eq!(highest, (loss(1, 10), loss(1, 10)), "windows may lie across two");
    }

    #[test]
    fn samples_that_a_later_node_thins_tolerate_no_loss() {
        let (tolerant, split) = (loss(3, 10), Split::new([true].into_iter()).with_proxy(1));
        let (within, scaling) = (Some(Duration::from_millis(30)), Duration::ZERO);
        let every =
            |thins| Ask { within, loss: tolerant, hop: 0, split, level: None, scaling, thins };
        let [all, thinned] = [false, true].map(every);
        let on = |ask: Ask| promise(&camera(), Form::FULL, &[ask]).unwrap().contract.loss;
        assert_eq!((on(all), saved(&camera(), Form::FULL, &all)), (tolerant, tolerant));
        let none = LossTolerance::NONE;
        assert_eq!((on(thinned), saved(&camera(), Form::FULL, &thinned)), (none, none));
        let publisher = Ask { split: split.with_proxy(0), ..thinned };
        assert_eq!(on(publisher), tolerant, "the link carries the requested samples alone");
    }

    proptest! {
        #[test]
        fn every_node_chooses_the_same_hop(
            slow in proptest::collection::vec(any::<bool>(), 1..8_usize),
            within in proptest::option::of(1..200_000_000_u64),
        ) {
            let split = Split::new(slow.iter().copied());
            let within = within.map(Duration::from_nanos);
            let scaling = Duration::ZERO;
            let (loss, thins) = (loss(1, 2), false);
            let ask = |hop| Ask { within, loss, hop, split, level: None, scaling, thins };
            let shares = shares(&camera(), |_| Form::FULL, &ask(0));
            let weights = shares.into_iter().map(|part| whole_micros(part).as_nanos() / 1_000);
            let weights: Vec<_> = weights.map(|micros| u32::try_from(micros).unwrap()).collect();
            for hop in 0..slow.len() {
                let admit = bears_loss(&weights, hop);
                prop_assert_eq!(ask(hop).bears_loss(), admit);
            }
        }
    }

    #[test]
    fn without_a_delay_bound_each_hop_may_take_a_period() {
        let only_loss = Ask { within: None, ..Ask { loss: loss(1, 2), ..within(0, 2, 2) } };
        let got = promise(&camera(), Form::FULL, &[only_loss]).unwrap();
        assert_eq!(got.contract.deadline, Duration::from_millis(38));
        assert_eq!(got.upstream, Duration::from_millis(38));
        let unknown = PublisherSpec { period: None, ..camera() };
        let got = promise(&unknown, Form::FULL, &[only_loss]).unwrap();
        assert_eq!(got.contract.period, Duration::from_millis(100));
        let got = promise(&unknown, Form::FULL, &[within(60, 1, 1)]).unwrap();
        assert_eq!(got.contract.period, Duration::from_millis(60));
    }

    #[test]
    fn best_effort_has_no_contract_and_zero_is_impossible() {
        assert_eq!(promise(&camera(), Form::FULL, &[]), None);
        let zero = PublisherSpec { period: Some(Duration::ZERO), ..camera() };
        let got = promise(&zero, Form::FULL, &[within(0, 1, 1)]).unwrap().contract;
        assert_eq!((got.period, got.deadline), (SHORTEST, SHORTEST));
    }

    /// Returns the rate in bits per second and the peak burst in bytes.
    fn load(spec: &PublisherSpec, form: Form, loss: LossTolerance) -> Option<(u64, u64)> {
        let demand = demand_of(spec, form, &Ask { loss, ..within(100, 1, 2) })?;
        demand.map(|demand| (demand.traffic().rate(), demand.traffic().dual().peak_burst))
    }

    #[test]
    fn the_requested_load_includes_headers_size_rate_and_tolerance() {
        // 10 segments: 12,000 bytes on the wire, 25 times per second.
        assert_eq!(load(&camera(), Form::FULL, LossTolerance::NONE), Some((2_400_000, 12_000)));
        assert_eq!(load(&camera(), Form::FULL, LossTolerance::EDF), Some((2_400_000, 12_000)));
        assert_eq!(load(&camera(), Form::FULL, loss(1, 10)), Some((2_400_000, 12_000)));
        assert_eq!(load(&camera(), Form::FULL, loss(3, 3)), None, "nothing is owed");
        let quarter = Form {
            rate: Rate::every(NonZeroU32::new(5).unwrap()),
            size: Some(Size { width: 320, height: 240 }),
            ..Form::FULL
        };
        // 3,854 bytes in 4 segments: 4,294 bytes, 5 times per second.
        assert_eq!(load(&camera(), quarter, LossTolerance::NONE), Some((171_760, 4_294)));
        let unknown = PublisherSpec { bytes_max: None, ..camera() };
        assert_eq!(demand_of(&unknown, Form::FULL, &within(100, 1, 2)), None);
        let huge = PublisherSpec {
            bytes_max: Some(u64::MAX),
            period: Some(Duration::from_nanos(1)),
            ..camera()
        };
        let (rate, _) = load(&huge, Form::FULL, LossTolerance::NONE).unwrap();
        assert_eq!(rate, RATE_MAX, "more than any link carries");
    }

    #[test]
    fn a_rate_limit_is_rounded_to_whole_source_samples_and_charged_so() {
        let at = |millihertz| Form {
            rate: Rate::max(NonZeroU32::new(millihertz).unwrap()),
            ..Form::FULL
        };
        let ask = within(100, 1, 1);
        // 25 → 20 Hz: four of five, so the gaps are 40 ms and 80 ms instead of the requested 50 ms.
        let contract = promise(&camera(), at(20_000), &[ask]).unwrap().contract;
        assert_eq!(contract.period, Duration::from_micros(47_500));
        assert_eq!(contract.jitter, Duration::from_micros(4_750 + 40_000));
        let traffic = *demand_of(&camera(), at(20_000), &ask).unwrap().unwrap().traffic();
        let dual = traffic.dual();
        assert_eq!((dual.peak_burst, dual.burst), (12_000, 12_000 + 10_740));
        // The second sample follows after at least 40 ms less a tenth of the period.
        assert_eq!(dual.peak_rate, 12_000_u64 * 8 * 1_000_000 / 35_250 + 1);
        // 25 → 12.5 Hz: every other sample.
        let contract = promise(&camera(), at(12_500), &[ask]).unwrap().contract;
        assert_eq!(contract.jitter, Duration::from_micros(7_600));
    }

    #[test]
    fn the_parts_of_a_delay_bound_add_up_to_it() {
        // Half of 100 ms, less 1.5 ms.
        let ask = within(100, 1, 2);
        let deadline = demand_of(&camera(), Form::FULL, &ask).unwrap().unwrap().deadline();
        assert_eq!(deadline, Duration::from_micros(48_500));
        assert_eq!(ask.whole(deadline), Duration::from_millis(100));
        assert_eq!(ask.whole(Duration::from_nanos(1)), Duration::from_millis(4));
    }
}
