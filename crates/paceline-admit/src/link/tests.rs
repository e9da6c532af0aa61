//! Worked examples of each discipline, and comparisons with naive implementations of the tests.

use super::*;
use crate::bounds::edf::{Due, met};
use crate::corners::Piece;
use crate::cpu::{CpuBudget, CpuCost};
use crate::due::Trials;
use crate::traffic::Traffic;
use crate::verdict::{LinkGrant, LinkOffer, Resource};
use paceline_sched::curve::fits;
use paceline_sched::police::Dual;
use paceline_sched::{Capacity, Contract, Curve, LossTolerance};

mod random;

fn mbit(rate: u64) -> Capacity {
    Capacity::from_bits_per_s(rate * 1_000_000).unwrap()
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn link(rate: u64, rule: AdmissionTest, other: u64) -> Admission {
    Admission::new(LinkParameters::new(mbit(rate), rule, other))
}

const fn holder(number: u64) -> Holder {
    Holder { origin: 1, number }
}

fn leaky(bits: u64, mbit: u64, deadline: Duration) -> StreamDemand {
    let burst = bits / 8;
    let traffic = Traffic::leaky(burst, mbit * 1_000_000, burst.min(1_500)).unwrap();
    StreamDemand::new(traffic, deadline).unwrap()
}

/// Installs a new stream. Returns its grant.
fn admit(
    link: &mut Admission,
    number: u64,
    demand: &StreamDemand,
) -> Result<LinkGrant, LinkRefusal> {
    let trunk = Trunk(number.into());
    match link.hold(trunk, holder(number), demand) {
        AdmissionResult::Granted(grant) => {
            assert!(link.commit(trunk, holder(number), None));
            Ok(grant)
        }
        AdmissionResult::Refused(refusal) => Err(refusal),
    }
}

/// A hop that spaces samples again delays them by different times all the same.
#[test]
fn the_next_hop_is_charged_for_the_delay_variation_of_this_one() {
    let ms = Duration::from_millis;
    let demand = leaky(8_000, 1, ms(8)).with_bunched(ms(5));
    let spaces = link(100, AdmissionTest::Vds { coincide: false }, 0);
    let keeps = link(100, AdmissionTest::StaticPriority, 0);
    assert_eq!((spaces.bunches(&demand), keeps.bunches(&demand)), (ms(8), ms(13)));
    assert_eq!((spaces.arriving(ms(13)), keeps.arriving(ms(13))), (ms(0), ms(13)));
}

#[test]
fn sums_below_limits_match_seed_003() {
    // 32 packets of 4,500 bytes and 30 Mbit/s, both as strict limits.
    let rule = AdmissionTest::SigmaRho { burst: 144_000, rate: 30_000_000 };
    let mut fddi = link(100, rule, 4_500);
    let asks = |burst: u64, mbit: u64| leaky(burst * 8, mbit, Duration::from_secs(1));
    admit(&mut fddi, 1, &asks(22_500, 10)).unwrap();
    admit(&mut fddi, 2, &asks(22_500, 10)).unwrap();
    let refused = admit(&mut fddi, 3, &asks(22_500, 10)).unwrap_err();
    assert_eq!(
        (refused.resource, refused.needed, refused.available),
        (Resource::Rate, 30_000_000, 29_999_999)
    );
    let refused = admit(&mut fddi, 3, &asks(99_000, 1)).unwrap_err();
    assert_eq!(
        (refused.resource, refused.needed, refused.available),
        (Resource::Burst, 144_000, 143_999)
    );
    let grant = admit(&mut fddi, 3, &asks(98_999, 9)).unwrap();
    // (143,999 + 4,500) bytes at 100 Mbit/s.
    assert_eq!(grant.now, Duration::from_nanos(11_879_920));
}

#[test]
fn fifo_and_static_priority_give_the_worked_bounds() {
    let mut fifo = link(100, AdmissionTest::Fifo, 0);
    admit(&mut fifo, 1, &leaky(30_000, 20, micros(900))).unwrap();
    let second = admit(&mut fifo, 2, &leaky(60_000, 30, micros(900))).unwrap();
    assert_eq!((second.now, second.bound), (micros(900), micros(900)));
    // The new stream's own deadline is long, but an admitted stream would miss its deadline.
    let refused = admit(&mut fifo, 3, &leaky(12_000, 1, micros(9_000))).unwrap_err();
    assert_eq!(
        (refused.resource, refused.needed, refused.available),
        (Resource::Delay, 1_020_000, 900_000)
    );
    let mut priority = link(100, AdmissionTest::StaticPriority, 1_500);
    let one = leaky(30_000, 20, micros(420)).with_level(1);
    assert_eq!(admit(&mut priority, 1, &one).unwrap().now, micros(420));
    let two = leaky(60_000, 30, micros(1_275)).with_level(2);
    assert_eq!(admit(&mut priority, 2, &two).unwrap().now, micros(1_275));
    let refused = admit(&mut priority, 3, &leaky(8, 1, micros(500)).with_level(2));
    assert!(refused.is_err(), "a byte more in its level");
    let mut alone = link(100, AdmissionTest::StaticPriority, 0);
    admit(&mut alone, 2, &leaky(60_000, 30, micros(1_125)).with_level(2)).unwrap();
    let one = leaky(30_000, 20, micros(420)).with_level(1);
    assert_eq!(admit(&mut alone, 1, &one).unwrap().now, micros(420), "behind a packet of level 2");
    let third = leaky(12_000, 1, micros(9_000)).with_level(3);
    assert!(admit(&mut alone, 3, &third).is_err(), "its packet would block level 2 for 1.275 ms");
}

#[test]
fn edf_guarantees_the_worked_deadlines_to_the_nanosecond() {
    for (other, least) in [(0, 1_000), (1_500, 1_150)] {
        let mut edf = link(100, AdmissionTest::Edf, other);
        admit(&mut edf, 1, &leaky(30_000, 20, micros(500))).unwrap();
        let short = leaky(60_000, 30, Duration::from_nanos(least * 1_000 - 1));
        let refused = admit(&mut edf, 2, &short).unwrap_err();
        assert_eq!(refused.resource, Resource::Due { within: short.deadline() });
        assert_eq!(refused.offer.deadline.map(|d| d >= micros(least)), Some(true));
        assert_eq!(
            admit(&mut edf, 2, &leaky(60_000, 30, micros(least))).unwrap().bound,
            micros(least)
        );
    }
    let mut edf = link(100, AdmissionTest::Edf, 0);
    admit(&mut edf, 2, &leaky(60_000, 30, micros(2_000))).unwrap();
    assert!(admit(&mut edf, 1, &leaky(30_000, 20, Duration::from_nanos(419_999))).is_err());
    admit(&mut edf, 1, &leaky(30_000, 20, micros(420))).unwrap();
}

#[test]
fn coinciding_deadlines_are_refused_even_at_low_load() {
    // 10 streams with one sample of 2,500 bytes per second, 20 ms each: 2 % of the link, but 200 ms
    // at once.
    let contract = Contract::every(Duration::from_secs(1)).unwrap();
    let contract = contract.with_deadline(Duration::from_millis(80)).unwrap();
    let asks = StreamDemand::of_contract(&contract, 2_500, 1_200).unwrap();
    for rule in [
        AdmissionTest::Edf,
        AdmissionTest::Vds { coincide: false },
        AdmissionTest::Dwcs { coincide: false },
    ] {
        let mut thin = link(1, rule, 1_200);
        let admitted = (0..10).filter(|number| admit(&mut thin, *number, &asks).is_ok()).count();
        assert_eq!(admitted, 3, "20 ms each and 9.6 ms of another's packet within 80 ms");
        let refused = admit(&mut thin, 10, &asks).unwrap_err();
        let within = Duration::from_millis(80);
        assert_eq!(refused.resource, Resource::Due { within });
        assert_eq!((refused.needed, refused.available), (11_200, 10_000));
        let LinkOffer { rate, burst, deadline, loss } = refused.offer;
        assert_eq!((rate, loss), (None, None), "neither fewer samples nor losses help");
        let (burst, deadline) = (burst.unwrap(), deadline.unwrap());
        assert!(burst <= 1_300 && burst > 1_290, "{burst}: 1,300 bytes are left");
        // By the samples, or by the curve above them.
        let least = if rule == AdmissionTest::Edf { 90_176 } else { 89_600 };
        assert!(deadline >= micros(least) && deadline < micros(least + 100), "{deadline}");
        assert!(refused.to_string().contains("11200 needed, 10000 available; ask for samples of"));
    }
}

#[test]
fn service_curves_are_summed_like_the_schedulers_test() {
    let mut state = 5;
    let (mut fitting, mut not) = (0, 0);
    for _ in 0..3_000 {
        let mut sums = Corners::default();
        let mut kept: Vec<Curve> = Vec::new();
        let capacity = Capacity::from_bytes_per_s(1_000 + scatter(&mut state) % 2_000).unwrap();
        for _ in 0..8 {
            let mut rate = || 1 + scatter(&mut state) % 6_000;
            let (m1, m2, ms) = (rate(), rate(), rate() % 40);
            let Ok(curve) = Curve::two_piece(m1, Duration::from_millis(ms), m2) else { continue };
            let piece = Piece::service(&curve);
            kept.push(curve);
            let rates: u64 = kept.iter().map(Curve::m2).sum();
            let here =
                sums.check(capacity.bits_per_s(), 0, None, &piece, &mut Trials::new()).is_ok();
            let here = here && rates <= capacity.bits_per_s();
            assert_eq!(here, fits(&kept, capacity).is_ok(), "{kept:?} on {capacity:?}");
            if here {
                sums.add(&piece);
                fitting += 1;
            } else {
                kept.pop();
                not += 1;
            }
        }
        for curve in &kept {
            sums.take(&Piece::service(curve));
        }
        assert!(sums.is_zero());
    }
    assert!(fitting > 500 && not > 500, "{fitting} {not}");
    // 6 Mbit/s for 10 ms, then 2. With 2 then 7 Mbit/s it fits into 10 Mbit/s, with 5 then 7 it
    // does not.
    let two_piece = |m1: u64, m2: u64| {
        Piece::service(
            &Curve::two_piece(m1 * 1_000_000, Duration::from_millis(10), m2 * 1_000_000).unwrap(),
        )
    };
    let mut sums = Corners::default();
    sums.add(&two_piece(6, 2));
    assert_eq!(sums.check(10_000_000, 0, None, &two_piece(2, 7), &mut Trials::new()), Ok(()));
    let excess = sums.check(10_000_000, 0, None, &two_piece(5, 7), &mut Trials::new()).unwrap_err();
    assert_eq!((excess.at, excess.needed, excess.available), (10_000_000, 13_750, 12_500));
}

#[test]
fn hfsc_keeps_bursts_within_deadlines_among_long_packets() {
    let mut hfsc = link(10, AdmissionTest::Hfsc, 1_250);
    // 12,500 bytes take 10 ms, a packet takes 1 ms.
    let traffic = Traffic::leaky(12_500, 2_000_000, 1_250).unwrap();
    let asks = |millis| StreamDemand::new(traffic, Duration::from_millis(millis)).unwrap();
    assert!(admit(&mut hfsc, 1, &asks(10)).is_err());
    // 12,500 bytes within 20 ms are 5 Mbit/s; two such streams fill the link.
    assert_eq!(admit(&mut hfsc, 1, &asks(21)).unwrap().bound, Duration::from_millis(21));
    let refused = admit(&mut hfsc, 2, &asks(20)).unwrap_err();
    assert_eq!(refused.resource, Resource::Due { within: Duration::from_millis(19) });
    admit(&mut hfsc, 2, &asks(21)).unwrap();
    hfsc.release(Trunk(1), holder(1));
    hfsc.release(Trunk(2), holder(2));
    admit(&mut hfsc, 1, &asks(11)).unwrap();
    let long =
        StreamDemand::new(Traffic::leaky(1_500, 8_000, 1_500).unwrap(), Duration::from_secs(9));
    let refused = admit(&mut hfsc, 3, &long.unwrap()).unwrap_err();
    assert_eq!(
        (refused.resource, refused.needed, refused.available),
        (Resource::Packet, 1_500, 1_250)
    );
}

#[test]
fn loss_windows_count_only_if_all_streams_are_equal_and_coincide() {
    // Samples of 1,250 bytes every 3 ms take 1 ms of the link each: three services per period, one
    // of which is reserved for a packet of other traffic.
    let asks = |x, y| {
        let period = Duration::from_millis(3);
        let contract = Contract::every(period).unwrap();
        StreamDemand::of_contract(&contract, 1_250, 1_250)
            .unwrap()
            .with_loss(LossTolerance::new(x, y).unwrap())
    };
    for rule in [AdmissionTest::Vds { coincide: true }, AdmissionTest::Dwcs { coincide: true }] {
        let mut slots = link(10, rule, 1_250);
        for (number, loss) in [(1, (1, 2)), (2, (1, 2)), (3, (1, 4)), (4, (3, 4))] {
            admit(&mut slots, number, &asks(loss.0, loss.1)).unwrap();
        }
        let refused = admit(&mut slots, 5, &asks(7, 8)).unwrap_err();
        let (resource, needed) = (refused.resource, refused.needed);
        assert_eq!((resource, needed, refused.available), (Resource::Windows, 2_125, 2_000));
        assert_eq!(refused.offer.loss, None, "a stream owed nothing requires nothing");
        // With another period every sample counts, and five of them do not fit.
        let other =
            StreamDemand::of_contract(&Contract::every(micros(4_000)).unwrap(), 1_250, 1_250);
        assert_ne!(admit(&mut slots, 6, &other.unwrap()).unwrap_err().resource, Resource::Windows);
    }
    let mut apart = link(10, AdmissionTest::Dwcs { coincide: false }, 1_250);
    admit(&mut apart, 1, &asks(1, 2)).unwrap();
    admit(&mut apart, 2, &asks(1, 2)).unwrap();
    assert!(admit(&mut apart, 3, &asks(1, 2)).is_err(), "each sample counts as one");
}

#[test]
fn rates_are_tested_by_disciplines_that_ignore_deadlines() {
    let spec =
        LinkParameters { timed: false, ..LinkParameters::new(mbit(10), AdmissionTest::Edf, 1_250) };
    let mut turns = Admission::new(spec);
    // 6.25 Mbit/s, of which half is owed.
    let contract = Contract::every(micros(1_600)).unwrap();
    let asks = StreamDemand::of_contract(&contract, 1_250, 1_250).unwrap();
    let asks = turns.seen(&asks.with_loss(LossTolerance::new(1, 2).unwrap()));
    for number in 1..=3 {
        admit(&mut turns, number, &asks).unwrap();
    }
    let refused = admit(&mut turns, 4, &asks).unwrap_err();
    assert_eq!((refused.resource, refused.needed), (Resource::Rate, 12_500_000));
    assert_eq!(turns.bunches(&asks.with_deadline(micros(9_000)).unwrap()), micros(9_000));
}

#[test]
fn delivery_tests_buffers_alone() {
    let buffer = Some(QueueSpace { bytes: 30_000, number: 0 });
    let spec = LinkParameters::new(mbit(1), AdmissionTest::Delivery, 0);
    let mut end = Admission::new(LinkParameters { host_buffer: Some(40_000), buffer, ..spec });
    // 80 Mbit/s exceed the rate of the link, which does not count. 10,000 bytes and 1 ms of the rate.
    let traffic = Traffic::leaky(10_000, 80_000_000, 1_500).unwrap();
    let asks = StreamDemand::new(traffic, Duration::from_nanos(1)).unwrap();
    let asks = end.seen(&asks);
    admit(&mut end, 1, &asks).unwrap();
    assert_eq!(end.ledger().held.buffer, 20_000);
    let refused = admit(&mut end, 2, &asks).unwrap_err();
    assert_eq!((refused.resource, refused.needed), (Resource::Buffer, 40_000));
    end.release(Trunk(1), holder(1));
    end.set_host_buffer_elsewhere(25_000);
    let refused = admit(&mut end, 2, &asks).unwrap_err();
    assert_eq!((refused.resource, refused.needed), (Resource::HostBuffer, 45_000));
    assert_eq!(refused.available, 40_000);
    assert!(refused.offer.burst.is_some(), "{refused:?}");
    end.set_host_buffer_elsewhere(20_000);
    admit(&mut end, 2, &asks).unwrap();
}

#[test]
fn buffers_and_processors_are_resources_too() {
    let cost = CpuCost { sample_nanos: 2_000, byte_picos: 400 };
    let cpu = CpuBudget { cost, nanos_per_s: 100_000_000 };
    let spec = LinkParameters {
        buffer: Some(QueueSpace { bytes: 50_000, number: 0 }),
        cpu: Some(cpu),
        ..LinkParameters::new(mbit(100), AdmissionTest::Edf, 0)
    };
    let mut small = Admission::new(spec);
    // 10 Mbit/s: 500 samples/s of 2,500 bytes cost 1.5 ms of a processor, 19,531.25 samples/s of 64
    // bytes 39.56 ms.
    let asks = |burst: u64| {
        let packet = burst.min(1_500);
        StreamDemand::new(
            Traffic::leaky(burst, 10_000_000, packet).unwrap(),
            Duration::from_millis(8),
        )
        .unwrap()
    };
    admit(&mut small, 1, &asks(2_500)).unwrap();
    assert_eq!(small.ledger().held.cpu, 500 * 3_000);
    assert_eq!(small.ledger().held.buffer, 12_500, "2,500 plus the arrivals of 8 ms");
    admit(&mut small, 2, &asks(64)).unwrap();
    admit(&mut small, 3, &asks(64)).unwrap();
    let all = 1_500_000 + 3 * 39_562_500;
    let refused = admit(&mut small, 4, &asks(64)).unwrap_err();
    assert_eq!(
        (refused.resource, refused.needed, refused.available),
        (Resource::Cpu, all, 100_000_000)
    );
    small.set_cpu_elsewhere(98_500_000 - 2 * 39_562_500);
    admit(&mut small, 4, &asks(2_500)).unwrap_err();
    small.set_cpu_elsewhere(97_000_000 - 2 * 39_562_500);
    admit(&mut small, 4, &asks(2_500)).unwrap();
    small.release(Trunk(4), holder(4));
    small.set_cpu_elsewhere(0);
    let refused = admit(&mut small, 4, &asks(12_501)).unwrap_err();
    assert_eq!(
        (refused.resource, refused.needed, refused.available),
        (Resource::Buffer, 55_129, 50_000)
    );
}

#[test]
fn a_shared_stream_is_reserved_once_and_changes_break_nothing() {
    let mut edf = link(100, AdmissionTest::Edf, 1_500);
    let (trunk, strict, mild) =
        (Trunk(7), leaky(30_000, 20, micros(900)), leaky(30_000, 20, micros(5_000)));
    assert!(matches!(edf.hold(trunk, holder(1), &mild), AdmissionResult::Granted(_)));
    assert_eq!((edf.installed(trunk), edf.ledger().tentative().streams), (None, 1));
    assert!(edf.commit(trunk, holder(1), None) && !edf.commit(trunk, holder(1), None));
    let alone = *edf.ledger();
    assert!(matches!(edf.hold(trunk, holder(2), &strict), AdmissionResult::Granted(_)));
    assert_eq!(edf.ledger().held.rate, 20_000_000);
    let deadline = |demand: Option<&StreamDemand>| demand.map(StreamDemand::deadline);
    assert_eq!(deadline(edf.charged(trunk)), Some(micros(900)));
    assert_eq!(deadline(edf.installed(trunk)), Some(micros(5_000)));
    edf.commit(trunk, holder(2), None);
    assert_eq!(deadline(edf.installed(trunk)), Some(micros(900)));
    // A change: the installed demand remains while the new one is tentative, and a denial restores
    // it.
    let more = leaky(60_000, 30, micros(5_000));
    assert!(matches!(edf.hold(trunk, holder(1), &more), AdmissionResult::Granted(_)));
    assert_eq!((edf.ledger().held.rate, edf.ledger().installed.rate), (30_000_000, 20_000_000));
    edf.cancel(trunk, holder(1));
    assert_eq!(edf.ledger().held.rate, 20_000_000);
    // Relaxed on commit, but never beyond the tentative reservation.
    assert!(matches!(edf.hold(trunk, holder(1), &more), AdmissionResult::Granted(_)));
    edf.commit(trunk, holder(1), Some(&leaky(40_000, 90, micros(9_000))));
    edf.release(trunk, holder(2));
    assert_eq!(edf.installed(trunk), Some(&leaky(40_000, 30, micros(9_000))));
    edf.hold(trunk, holder(1), &mild);
    edf.commit(trunk, holder(1), None);
    assert_eq!(*edf.ledger(), alone);
    edf.set_used(trunk, 12_345);
    assert_eq!(edf.ledger().used, 12_345);
    edf.release(trunk, holder(1));
    edf.release(trunk, holder(9));
    assert!(edf.is_empty());
}

#[test]
fn an_oversized_request_takes_nothing_from_admitted_streams() {
    let mut edf = link(100, AdmissionTest::Edf, 1_500);
    admit(&mut edf, 1, &leaky(30_000, 20, micros(900))).unwrap();
    let before = *edf.ledger();
    let whole = leaky(30_000, 100, micros(5_000));
    for number in 2..12 {
        let refused = admit(&mut edf, number, &whole).unwrap_err();
        assert_eq!((refused.resource, refused.needed), (Resource::Rate, 120_000_000));
        let offered = refused.offer.rate.unwrap();
        assert!(offered <= 80_000_000 && offered > 79_000_000, "{offered}");
    }
    assert_eq!(*edf.ledger(), before);
}

/// A deterministic pseudo-random number.
fn scatter(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn the_tests_of_an_offer_agree_with_tests_of_their_own() {
    let mut link = link(8, AdmissionTest::Vds { coincide: false }, 1_200);
    let demand = |number: u64| {
        let period = Duration::from_micros(40_000 + number % 37 * 9_000);
        let deadline = Duration::from_micros(15_000 + number % 41 * 2_000);
        let contract = Contract::every(period).unwrap().with_deadline(deadline).unwrap();
        let contract = contract.with_jitter(period.mul_div(1, 2));
        let loss = LossTolerance::new(u32::try_from(number % 2).unwrap(), 3).unwrap();
        let demand = StreamDemand::of_contract(&contract, 300 + number % 29 * 70, 1_200).unwrap();
        demand.with_loss(loss)
    };
    let mut offers = 0;
    for number in 0..150 {
        let (trunk, name, demand) = (Trunk(number.into()), holder(number), demand(number));
        let AdmissionResult::Refused(refusal) = link.hold(trunk, name, &demand) else { continue };
        let fits = |demand: StreamDemand| link.fits(trunk, name, &demand);
        let slower = |parts: u64| fits(demand.with_source(demand.source().slower(parts, 1_024)));
        if let Some(rate) = refusal.offer.rate {
            let parts =
                (1..1_024).filter(|parts| demand.source().slower(*parts, 1_024).rate() == rate);
            let parts = parts.max().unwrap();
            assert!(slower(parts) && !slower(parts + 1), "{number}: {parts}");
        }
        if let Some(deadline) = refusal.offer.deadline {
            let part = Duration::from_nanos(deadline.as_nanos() / 500);
            assert!(fits(demand.with_deadline(deadline).unwrap()));
            assert!(
                !fits(demand.with_deadline(deadline.saturating_sub(part)).unwrap()),
                "{number}: {deadline}"
            );
            offers += 1;
        }
    }
    assert!(offers > 20, "{offers}");
}
