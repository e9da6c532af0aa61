//! The guarantees of HFSC in the paper, on random trees over a link in virtual time (SIGCOMM 1997,
//! sections II to V).

use link::{Carried, Packet, Random, bursts, carry};
use paceline_sched::capacity::Capacity;
use paceline_sched::curve::{Curve, fits};
use paceline_sched::hfsc::{ClassIndex, Criterion, Curves, Hfsc};
use paceline_sched::time::{Duration, Instant};

#[path = "support/hfsc_link.rs"]
mod link;

const LONGEST: u64 = 1_500;

/// 8 Mbit/s: a byte takes a whole number of nanoseconds, so the link loses nothing to rounding.
fn thin() -> Capacity {
    Capacity::from_bits_per_s(8_000_000).expect("not zero")
}

fn two_piece(m1: u64, millis: u64, m2: u64) -> Curve {
    Curve::two_piece(m1, Duration::from_millis(millis), m2).expect("a curve")
}

fn line(bits_per_s: u64) -> Curve {
    Curve::linear(bits_per_s).expect("a curve")
}

fn share(bits_per_s: u64) -> Curves {
    Curves { link_share: Some(line(bits_per_s)), ..Curves::default() }
}

fn add(hfsc: &mut Hfsc, parent: ClassIndex, curves: Curves) -> ClassIndex {
    hfsc.add(parent, curves).expect("a class")
}

fn merge(mut packets: Vec<Packet>) -> Vec<Packet> {
    packets.sort_by_key(|packet| packet.arrived);
    packets
}

/// Returns packets that keep the class backlogged from `from` on.
fn backlog(random: &mut Random, class: ClassIndex, from: Instant, bytes: u64) -> Vec<Packet> {
    let mut left = bytes;
    let mut packets = Vec::new();
    while left > 0 {
        let bytes = (40 + random.below(LONGEST - 39)).min(left);
        left -= bytes;
        packets.push(Packet { arrived: from, class, bytes });
    }
    packets
}

/// Returns random curves that fit the link, close to its whole capacity.
fn fitting_curves(random: &mut Random) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for _ in 0..40 {
        let rate = 1 + random.below(4_000_000);
        let curve = match random.below(4) {
            0 => two_piece(0, 1 + random.below(60), rate),
            1 => line(rate),
            _ => two_piece(1 + random.below(8_000_000), 1 + random.below(60), rate),
        };
        curves.push(curve);
        if fits(&curves, thin()).is_err() {
            curves.pop();
        }
    }
    curves
}

#[test]
fn every_deadline_is_met_within_the_time_of_one_longest_packet_if_the_curves_fit() {
    let until = Instant::from_millis(3_000);
    let slack = thin().time_for(LONGEST);
    let (mut guaranteed, mut tight) = (0, 0);
    for seed in 0..150 {
        let mut random = Random(seed);
        let (curves, mut hfsc) = (fitting_curves(&mut random), Hfsc::new());
        let mut packets = Vec::new();
        let mut parents = vec![ClassIndex::ROOT];
        for curve in &curves {
            let pick = usize::try_from(random.below(parents.len() as u64)).expect("few");
            let parent = parents.get(pick).copied().unwrap_or(ClassIndex::ROOT);
            parents.push(add(&mut hfsc, parent, share(1 + random.below(9_000_000))));
            let link_share = (random.below(2) == 0).then(|| line(1 + random.below(9_000_000)));
            let curves = Curves { real_time: Some(*curve), link_share, upper_limit: None };
            let leaf = add(&mut hfsc, parent, curves);
            // From much less than the guarantee to more.
            let load = 1_000 + curve.m2() * (1 + random.below(30)) / 20;
            packets.extend(bursts(&mut random, leaf, load, until));
        }
        let greedy = add(&mut hfsc, ClassIndex::ROOT, share(1_000_000));
        packets.extend(backlog(&mut random, greedy, Instant::ZERO, 3_000_000));
        for carried in carry(&mut hfsc, thin(), &merge(packets), until) {
            let Some(deadline) = carried.deadline else { continue };
            let late = carried.end.since(deadline);
            assert!(late <= slack, "seed {seed}: {late} late, {carried:?}, {curves:?}");
            guaranteed += u64::from(carried.criterion == Criterion::RealTime);
            tight += u64::from(!late.is_zero());
        }
    }
    assert!(guaranteed > 10_000 && tight > 100, "{guaranteed} by real time, {tight} late at all");
}

/// Returns the bytes of the class served up to `until`.
fn served_until(log: &[Carried], class: ClassIndex, until: Instant) -> u64 {
    let mine = log.iter().filter(|carried| carried.packet.class == class && carried.end <= until);
    mine.map(|carried| carried.packet.bytes).sum()
}

#[test]
fn backlogged_siblings_share_by_their_curves_within_a_packet_of_each_at_every_level() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut hfsc = Hfsc::new();
        let mut packets = Vec::new();
        // Leaves with their rates, two or more below each of two or more parents.
        let mut families: Vec<(u64, Vec<(ClassIndex, u64)>)> = Vec::new();
        for _ in 0..2 + random.below(3) {
            let rate = random.magnitude(30);
            let parent = add(&mut hfsc, ClassIndex::ROOT, share(rate));
            let mut family = Vec::new();
            for _ in 0..2 + random.below(3) {
                let rate = random.magnitude(30);
                let leaf = add(&mut hfsc, parent, share(rate));
                packets.extend(backlog(&mut random, leaf, Instant::ZERO, 2_000_000));
                family.push((leaf, rate));
            }
            families.push((rate, family));
        }
        let log = carry(&mut hfsc, thin(), &packets, Instant::from_millis(1_500));
        for millis in (0..1_500).step_by(13) {
            let bytes = |leaf| served_until(&log, leaf, Instant::from_millis(millis));
            let of = |family: &[(ClassIndex, u64)]| -> u64 {
                family.iter().map(|&(leaf, _)| bytes(leaf)).sum()
            };
            let above: Vec<(u64, u64)> = families.iter().map(|(rate, f)| (of(f), *rate)).collect();
            assert_shares(&above, seed);
            for (_, family) in &families {
                let family: Vec<(u64, u64)> = family.iter().map(|&(l, r)| (bytes(l), r)).collect();
                assert_shares(&family, seed);
            }
        }
    }
}

/// |W₁/r₁ − W₂/r₂| ≤ L/r₁ + L/r₂ for every two of them, and one packet that is on the link.
fn assert_shares(siblings: &[(u64, u64)], seed: u64) {
    for &(bytes, rate) in siblings {
        for &(other_bytes, other_rate) in siblings {
            let mine = u128::from(bytes) * u128::from(other_rate);
            let others = u128::from(other_bytes) * u128::from(rate);
            let bound = u128::from(2 * LONGEST) * u128::from(rate + other_rate);
            assert!(mine.abs_diff(others) <= bound, "seed {seed}: {siblings:?}");
        }
    }
}

#[test]
fn an_upper_limit_is_never_exceeded_by_more_than_a_packet() {
    let until = Instant::from_millis(2_000);
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut hfsc = Hfsc::new();
        let mut limit = || match random.below(3) {
            0 => line(1 + random.below(3_000_000)),
            1 => two_piece(0, 1 + random.below(200), 1 + random.below(3_000_000)),
            _ => two_piece(
                random.below(6_000_000),
                1 + random.below(200),
                1 + random.below(3_000_000),
            ),
        };
        let (outer, inner) = (limit(), limit());
        let capped = |curve| Curves { upper_limit: Some(curve), ..share(1_000_000) };
        let tenant = add(&mut hfsc, ClassIndex::ROOT, capped(outer));
        let limited = add(&mut hfsc, tenant, capped(inner));
        let sibling = add(&mut hfsc, tenant, share(1_000_000));
        let other = add(&mut hfsc, ClassIndex::ROOT, share(1_000_000));
        let start = Instant::from_millis(100);
        let mut packets = backlog(&mut random, other, Instant::ZERO, 500_000);
        for leaf in [limited, sibling] {
            packets.extend(backlog(&mut random, leaf, start, 3_000_000));
        }
        let log = carry(&mut hfsc, thin(), &merge(packets), until);
        let (mut by_limited, mut by_tenant) = (0, 0);
        for carried in &log {
            let bytes = carried.packet.bytes;
            by_limited += if carried.packet.class == limited { bytes } else { 0 };
            by_tenant += if [limited, sibling].contains(&carried.packet.class) { bytes } else { 0 };
            let since = carried.end.since(start);
            assert!(by_limited <= inner.bytes_at(since) + LONGEST, "seed {seed}: {inner}");
            assert!(by_tenant <= outer.bytes_at(since) + LONGEST, "seed {seed}: {outer}");
        }
        // The tenant gets all of it, since the link has room: the other one finishes soon.
        let most = outer.bytes_at(until.since(start));
        assert!(by_tenant + 2 * LONGEST >= most, "seed {seed}: {by_tenant} of {most}, {outer}");
    }
}

/// Returns the longest time from arrival to the end of service.
fn longest_delay(log: &[Carried], class: ClassIndex) -> Duration {
    let mine = log.iter().filter(|carried| carried.packet.class == class);
    mine.map(|carried| carried.end.since(carried.packet.arrived)).max().unwrap_or_default()
}

#[test]
fn a_steep_first_piece_gives_a_low_rate_a_short_delay() {
    // Voice: 160 bytes every 20 ms are 64 kbit/s, next to packets of 1,500 bytes that fill the link.
    let delay_with = |voice: Curve| {
        let rest = line(thin().bits_per_s() - voice.m1().max(voice.m2()));
        assert_eq!(fits(&[voice, rest], thin()), Ok(()));
        let mut hfsc = Hfsc::new();
        let guarantee = |curve| Curves { real_time: Some(curve), ..Curves::default() };
        let speaker = add(&mut hfsc, ClassIndex::ROOT, guarantee(voice));
        let bulk = Curves { real_time: Some(rest), ..share(1_000_000) };
        let bulk = add(&mut hfsc, ClassIndex::ROOT, bulk);
        let mut packets: Vec<Packet> = (0..2_000)
            .map(|_| Packet { arrived: Instant::ZERO, class: bulk, bytes: LONGEST })
            .collect();
        packets.extend((0..100).map(|n| Packet {
            arrived: Instant::from_millis(7 + 20 * n),
            class: speaker,
            bytes: 160,
        }));
        let log = carry(&mut hfsc, thin(), &merge(packets), Instant::from_millis(2_100));
        assert_eq!(served_until(&log, speaker, Instant::FAR), 100 * 160);
        longest_delay(&log, speaker)
    };
    let (within, longest) = (Duration::from_millis(4), thin().time_for(LONGEST));
    let steep = delay_with(Curve::burst(160, within, 64_000).expect("a curve"));
    let plain = delay_with(line(64_000));
    assert!(steep <= within.saturating_add(longest), "{steep} with a steep first piece");
    assert!(plain > Duration::from_millis(15), "{plain} without one: nothing is shown");
}
