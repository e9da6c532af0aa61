//! Clocks that drift and are stepped, in virtual time.

use paceline_sched::{Capacity, Duration, Instant};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
use paceline_sim::{ClockSpec, LinkPlan, Net as _, NodeIx, Sub, World};

/// Ten years in nanoseconds.
const TEN_YEARS: i64 = 10 * 365 * 86_400 * 1_000_000_000;
const HZ: u64 = 50;
const PERIOD: Duration = Duration::from_millis(20);
/// The instant of the first sample.
const STARTS: Instant = Instant::from_millis(63_000);

fn chain() -> (World, [NodeIx; 3]) {
    let mut world = World::new(11);
    let nodes = ["a", "b", "c"].map(|name| world.add_node(name));
    let plan = LinkPlan { capacity: Capacity::from_bits_per_s(5_000_000).ok() };
    world.connect(nodes[0], nodes[1], plan);
    world.connect(nodes[1], nodes[2], plan);
    (world, nodes)
}

/// Publishes at `a` for a minute to four subscriptions: all samples, a contract, and 10 Hz with and without a
/// declared period. After half the time `what` changes the world.
fn minute(clocks: [i32; 3], mut what: impl FnMut(&mut World, [NodeIx; 3])) -> (World, [Sub; 4]) {
    let (mut world, nodes) = chain();
    for (node, drift_ppm) in nodes.into_iter().zip(clocks) {
        world.set_clock(node, ClockSpec { drift_ppm });
    }
    world.run_for(Duration::from_secs(2));
    let spec = |tag| paceline_proto::control::PublisherSpec { bytes_max: Some(200), ..data(tag) };
    let declared = world.publish(nodes[0], spec("declared").hertz(HZ));
    let plain = world.publish(nodes[0], spec("plain"));
    let asks = [
        all("declared"),
        all("declared").within_ms(20),
        all("declared").max_hertz(10),
        all("plain").max_hertz(10),
    ];
    let subs = asks.map(|asked| world.subscribe(nodes[2], asked));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.now(), STARTS);
    for publisher in [declared, plain] {
        world.every(publisher, PERIOD, 60 * HZ, payloads(200));
    }
    world.run_for(Duration::from_secs(30));
    what(&mut world, nodes);
    world.run_for(Duration::from_secs(31));
    (world, subs)
}

fn counts(world: &World, subs: [Sub; 4]) -> [usize; 4] {
    subs.map(|sub| world.delivered(sub).len())
}

/// Returns the least and the greatest error of the ages at a subscription, in nanoseconds. The publication
/// times are known.
fn errors(world: &World, sub: Sub) -> (i64, i64) {
    let nanos = |duration: Duration| duration.as_nanos().cast_signed();
    let errors = world.delivered(sub).iter().map(|sample| {
        let published = STARTS + PERIOD.mul_div(sample.seq, 1);
        nanos(sample.age) - nanos(sample.at.since(published))
    });
    errors.fold((i64::MAX, i64::MIN), |(least, most), error| (least.min(error), most.max(error)))
}

/// Checks that all samples arrived, and as many of the thinned ones: the first one of them may be one more than those of
/// the instants of UTC, and a step costs two. The numbers of captures of a clock that stands still are corrected again and
/// again.
fn is_alike(got: [usize; 4], before: [usize; 4], stands: bool, by: &str) {
    assert_eq!(got[..2], before[..2], "{by}");
    let most = if stands { 12 } else { 3 };
    assert!(got[2].abs_diff(before[2]) <= most, "{by}: {} for {}", got[2], before[2]);
}

#[test]
fn drift_has_no_effect_and_ages_stay_correct_within_it() {
    let (world, subs) = minute([0; 3], |_, _| ());
    let (least, most) = errors(&world, subs[0]);
    let before = counts(&world, subs);
    println!("without drift, ages are {least} to {most} ns off");
    assert_eq!(before[..2], [3_000, 3_000]);
    for clocks in [[200, -200, 200], [-200, 200, 0], [200, 200, -200]] {
        let (mut world, subs) = minute(clocks, |_, _| ());
        let got = counts(&world, subs);
        is_alike(got, before, false, &format!("{clocks:?}"));
        assert!(got[3].abs_diff(600) <= 6, "{clocks:?}: {}", got[3]);
        assert!(subs.iter().all(|&sub| world.delivered(sub).iter().all(|sample| !sample.late)));
        assert_eq!(world.known(NodeIx(0)), ["a", "b", "c"]);
        let off = errors(&world, subs[0]);
        println!("{clocks:?}: {} to {} ns off", off.0, off.1);
        // 200 ppm of a transit time of milliseconds is negligible, but other samples share the frames now.
        assert!(off.0 >= least - 50_000 && off.1 <= most + 50_000, "{clocks:?}: {off:?}");
    }
}

#[test]
fn utc_steps_of_ten_years_have_no_effect() {
    let (world, subs) = minute([0; 3], |_, _| ());
    let before = counts(&world, subs);
    for by_ns in [TEN_YEARS, -TEN_YEARS, i64::MAX, i64::MIN, 1_000_000, -1_000_000] {
        let (world, subs) = minute([0; 3], |world, nodes| {
            nodes.into_iter().for_each(|node| world.step_clock(node, by_ns));
        });
        let got = counts(&world, subs);
        is_alike(got, before, by_ns == i64::MIN, &by_ns.to_string());
        // Before 1970 all samples have the same timestamp, which does not allow 10 Hz without a declared
        // period.
        let representable = by_ns != i64::MIN;
        assert!(
            !representable || got[3].abs_diff(before[3]) <= 3,
            "{by_ns}: {} of {}",
            got[3],
            before[3]
        );
        assert!(subs.iter().all(|&sub| world.delivered(sub).iter().all(|sample| !sample.late)));
    }
}

#[test]
fn a_clock_set_while_running_continues() {
    let (world, subs) = minute([0; 3], |world, nodes| {
        world.set_clock(nodes[1], ClockSpec { drift_ppm: -100_000 });
        world.run_for(Duration::from_secs(5));
        world.set_clock(nodes[1], ClockSpec { drift_ppm: 100_000 });
        world.run_for(Duration::from_secs(5));
        world.set_clock(nodes[1], ClockSpec::default());
    });
    let got = counts(&world, subs);
    assert_eq!(got[..2], [3_000, 3_000], "even with a clock a tenth off");
}
