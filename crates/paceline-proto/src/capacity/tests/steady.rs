//! The properties of the estimate: on steady, idle, half-used, falling and silent links.

use super::bottleneck::{Path, Trace, float, seconds};
use super::run::{Load, Report, Run, ranged};
use super::traces;
use crate::capacity::CapacityState;
use paceline_sched::{Duration, Instant};

const FACTOR: f64 = 1.25;

fn steady(mbit: f64) -> Path {
    Path::new(Trace::of(&[(0.0, mbit * 1e6)]))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs over a steady link and returns the report, with the last estimate divided by the capacity.
fn measured(mbit: f64, mut path: Path, length: f64) -> (Report, f64) {
    let mut load = Load::FULL;
    if mbit < 1.0 {
        load.contract = (60, millis(200));
    }
    if mbit > 500.0 {
        path.delay = millis(3);
    }
    let report = Run::new(path, load, 5).until(seconds(length));
    let last = report.moments.last().unwrap();
    let ratio = float(last.found.estimate) / float(last.truth);
    (report, ratio)
}

#[test]
fn steady_links_are_measured_within_a_quarter() {
    for (mbit, length) in
        [(0.064, 60.0), (0.25, 30.0), (1.0, 20.0), (5.0, 10.0), (20.0, 8.0), (100.0, 4.0)]
    {
        for stamps in [false, true] {
            let (report, ratio) = measured(mbit, Path { stamps, ..steady(mbit) }, length);
            assert!((1.0 / FACTOR..1.05).contains(&ratio), "{mbit} Mbit/s: {ratio}");
            let link = Trace::of(&[(0.0, mbit * 1e6)]).bytes(Instant::ZERO, seconds(length));
            // One train may precede its credit.
            let most = link / 20.0 + 4_000.0;
            assert!(float(report.probes) <= most, "{mbit} Mbit/s: {} of {most}", report.probes);
            // On the slowest link, a frame of data and a train precede some samples for 90 ms.
            assert!(mbit < 0.1 || report.late.is_empty(), "{mbit} Mbit/s: {:?}", report.late);
        }
    }
}

#[test]
#[ignore = "half a minute: half a million frames; cargo test -p paceline-proto --lib capacity -- --ignored"]
fn a_link_of_a_gigabit_is_measured_within_a_quarter() {
    for stamps in [false, true] {
        let (_, ratio) = measured(1_000.0, Path { stamps, ..steady(1_000.0) }, 3.0);
        assert!((1.0 / FACTOR..1.05).contains(&ratio), "{ratio}");
    }
}

#[test]
fn jitter_and_loss_make_the_estimate_lower_not_higher() {
    for jitter in [1, 5, 10, 20] {
        let path = Path { ack_jitter: millis(jitter), loss_ppm: 10_000, ..steady(20.0) };
        let (report, _) = measured(20.0, path, 15.0);
        let (from, until) = (seconds(5.0), seconds(15.0));
        let ratios = report.between(from, until).map(|it| it.found.estimate / 200_000);
        let (least, most) = ratios.fold((u64::MAX, 0), |(a, b), it| (a.min(it), b.max(it)));
        assert!(most <= 105, "{jitter} ms: {most} %");
        // Time stamps of the receiver would remove this error (see the next test).
        let expected = match jitter {
            0..=5 => 75,
            6..=10 => 60,
            _ => 35,
        };
        assert!(least >= expected, "{jitter} ms: {least} %");
    }
}

#[test]
fn stamps_remove_the_jitter_of_acknowledgements() {
    for jitter in [5, 20, 50] {
        let path = Path { ack_jitter: millis(jitter), stamps: true, ..steady(20.0) };
        let (report, ratio) = measured(20.0, path, 10.0);
        assert!((1.0 / FACTOR..1.05).contains(&ratio), "{jitter} ms: {ratio}");
        assert!(!report.has_been(CapacityState::Falling));
    }
}

#[test]
fn the_first_two_seconds_give_a_useful_estimate() {
    for mbit in [1.0, 5.0, 20.0, 50.0] {
        let (report, _) = measured(mbit, steady(mbit), 2.0);
        let low = report.moments.last().unwrap().found.low;
        assert!(float(low) >= mbit * 0.6e6, "{mbit} Mbit/s: {low}");
    }
}

/// The application limits a link of 20 Mbit/s to `rate` from the tenth second on.
fn limited(rate: u64, contract: (u64, Duration), length: f64, path: Path) -> Report {
    let limited = Some((seconds(10.0), Instant::FAR, rate));
    let load = Load { contract, elastic: Some(u64::MAX), limited };
    Run::new(path, load, 11).until(seconds(length))
}

fn unchanged(report: &Report, length: f64) {
    let spread = report.spread(seconds(10.0), seconds(length));
    assert!(spread <= 1.1, "{spread}");
    let wrong = |it: &&_| matches!(*it, CapacityState::Falling | CapacityState::Outage);
    let states: Vec<_> =
        report.between(seconds(10.0), seconds(length)).map(|it| it.found.state).collect();
    assert_eq!(states.iter().find(wrong), None);
}

#[test]
fn an_idle_link_keeps_its_estimate() {
    for stamps in [false, true] {
        let path = Path { stamps, ..steady(20.0) };
        unchanged(&limited(0, (0, Duration::ZERO), 610.0, path), 610.0);
    }
    let steering = (150, millis(10));
    unchanged(&limited(0, steering, 60.0, steady(20.0)), 60.0);
}

#[test]
fn a_half_used_link_keeps_its_estimate() {
    for stamps in [false, true] {
        let path = Path { stamps, ..steady(20.0) };
        unchanged(&limited(10_000_000, (150, millis(10)), 40.0, path), 40.0);
    }
}

#[test]
#[ignore = "ten minutes of half load take seconds; cargo test -p paceline-proto --lib capacity -- --ignored"]
fn a_link_that_is_half_used_for_ten_minutes_keeps_its_estimate() {
    unchanged(&limited(10_000_000, (150, millis(10)), 610.0, steady(20.0)), 610.0);
}

#[test]
fn a_fall_is_noticed_within_three_round_trips() {
    for (delay, buffer) in [(5, 100), (20, 100), (20, 1_000), (50, 100), (150, 1_000)] {
        for stamps in [false, true] {
            let path = Path {
                delay: millis(delay),
                buffer: millis(buffer),
                stamps,
                ack_jitter: millis(2),
                ..Path::new(traces::step())
            };
            let report = Run::new(path, Load::FULL, 3).until(seconds(26.0));
            let most = millis(6 * delay + 200);
            let noticed = report.noticed(seconds(20.0)).unwrap();
            assert!(noticed <= most, "{delay} ms, queue {buffer} ms: {noticed:?}");
            // The queue of the fall delays samples until it has drained. On the longest path, every sample is late.
            let end = seconds(20.0) + most + millis(buffer);
            let late: Vec<_> = report.late.iter().filter(|at| **at > end).collect();
            assert!(delay > 50 || late.is_empty(), "{delay} ms, queue {buffer} ms: {late:?}");
        }
    }
}

#[test]
fn a_rise_is_found_by_probes() {
    let report = Run::new(Path::new(traces::step()), Load::FULL, 3).until(seconds(46.0));
    let climbed = report.climbed(seconds(40.0), 80).unwrap();
    assert!(climbed <= millis(2_000), "{climbed:?}");
}

#[test]
fn the_fall_of_an_idle_link_is_found_by_probes() {
    let trace = Trace::of(&[(0.0, 20e6), (20.0, 2e6)]);
    let report = limited(0, (150, millis(10)), 40.0, Path::new(trace));
    let noticed = report.noticed(seconds(20.0)).unwrap();
    assert!(noticed <= millis(4_000), "{noticed:?}");
}

#[test]
fn an_outage_is_silence_and_keeps_the_estimate() {
    let trace = Trace::of(&[(0.0, 10e6), (10.0, 0.0), (13.0, 10e6)]);
    let report = Run::new(Path::new(trace), Load::FULL, 3).until(seconds(16.0));
    let out: Vec<_> =
        report.moments.iter().filter(|it| it.found.state == CapacityState::Outage).collect();
    let (first, last) = (out.first().unwrap().at, out.last().unwrap().at);
    assert!(first <= seconds(10.4) && seconds(12.9) <= last && last <= seconds(13.2));
    for moment in &out {
        assert_eq!((moment.found.pace, moment.found.low), (0, 0));
        assert!(moment.found.estimate >= 9_000_000, "{moment:?}");
    }
    let climbed = report.climbed(last, 80).unwrap();
    assert!(climbed <= millis(1_000), "{climbed:?}");
    let steady = Run::new(steady(10.0), Load::FULL, 3).until(seconds(10.0));
    assert!(!steady.has_been(CapacityState::Outage) && !steady.has_been(CapacityState::Falling));
}

#[test]
fn a_longer_path_is_no_fall() {
    for by in [15, 30, 80] {
        let path = Path { longer: Some((seconds(10.0), millis(by))), ..steady(20.0) };
        let report = Run::new(path, Load::FULL, 3).until(seconds(30.0));
        let granted = report.granted(seconds(10.0), seconds(30.0));
        assert!(granted >= 0.8, "{by} ms: {granted}");
    }
}

#[test]
fn a_token_bucket_does_not_cause_a_standing_queue() {
    let path = Path { bucket: 20_000, ..steady(10.0) };
    let report = Run::new(path, Load::FULL, 3).until(seconds(60.0));
    let (from, until) = (seconds(2.0), seconds(60.0));
    let (granted, excess) = (report.granted(from, until), report.excess(from, until));
    let late = float(u64::try_from(report.late.len()).unwrap()) / float(report.samples);
    assert!(granted >= 0.7 && excess <= 0.15 && late <= 0.01, "{granted} {excess} {late}");
}

#[test]
fn a_typed_range_bounds_the_estimate() {
    let report = ranged(steady(20.0), Load::FULL, (1_000_000, 5_000_000), seconds(6.0));
    for moment in &report.moments {
        let found = moment.found;
        let ordered = [1_000_000, found.low, found.estimate, found.high, 5_000_000];
        assert!(ordered.is_sorted(), "{found:?}");
    }
    assert_eq!(report.moments.last().unwrap().found.estimate, 5_000_000);
    let above = ranged(steady(0.5), Load::FULL, (1_000_000, 5_000_000), seconds(6.0));
    assert!(above.moments.iter().all(|it| it.found.low >= 1_000_000));
}

#[test]
fn most_of_each_trace_is_used() {
    for named in traces::all().into_iter().filter(|it| it.name != "flapping each 100 ms") {
        let path = Path { stamps: true, ack_jitter: millis(10), ..Path::new(named.trace) };
        let report = Run::new(path, Load::FULL, 3).until(seconds(named.length));
        let (from, until) = (seconds(2.0), seconds(named.length));
        let (granted, excess) = (report.granted(from, until), report.excess(from, until));
        assert!(granted >= 0.8 && excess <= 0.04, "{}: {granted} {excess}", named.name);
    }
}

#[test]
fn flapping_gives_a_bounded_estimate() {
    let flapping = traces::all().into_iter().find(|it| it.name == "flapping each 100 ms");
    let report = Run::new(Path::new(flapping.unwrap().trace), Load::FULL, 3).until(seconds(30.0));
    assert!(report.moments.iter().all(|it| it.found.estimate <= 21_000_000));
    let low = report.between(seconds(5.0), seconds(30.0)).map(|it| it.found.low).min();
    assert!(low.unwrap() >= 1_000_000, "the lower capacity is 2 Mbit/s: {low:?}");
    let late = float(u64::try_from(report.late.len()).unwrap()) / float(report.samples);
    assert!(late <= 0.01, "{late}");
}
