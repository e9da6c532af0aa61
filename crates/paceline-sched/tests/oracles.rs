//! Schedules computed by hand or by an independent model, slot by slot, for DWCS in both rule sets and
//! VDS.

use paceline_sched::discipline::{Eligibility, Policy, RuleSet};
use slots::{Slots, Spec};

#[path = "support/slots.rs"]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod slots;

use Eligibility::{OncePerPeriod, WorkConserving};
use Policy::Vds;

#[expect(non_upper_case_globals, reason = "named like the other policies")]
const Dwcs: Policy = Policy::DWCS;
const ORIGINAL: Policy =
    Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original };

/// Returns the first slots as letters, `.` for an empty one.
fn schedule(slots: &mut Slots, count: usize) -> String {
    let letter = |stream: usize| ('A'..='Z').nth(stream).unwrap_or('?');
    (0..count).map(|_| slots.step().map_or('.', letter)).collect()
}

fn assert_schedule(policy: Policy, specs: &[Spec], expected: &str, violated: &str) {
    let mut slots = Slots::new(policy, OncePerPeriod, specs);
    assert_eq!(schedule(&mut slots, expected.len()), expected, "{policy} {specs:?}");
    for (stream, name) in ('A'..='Z').enumerate().take(specs.len()) {
        assert_eq!(slots.is_violated(stream), violated.contains(name), "{policy} {name}");
        let reported = slots.violations.iter().any(|&(_, who)| who == stream);
        assert_eq!(reported, violated.contains(name), "{policy} {name}");
    }
}

/// Formats the state as in the traces: x'/y' and `*` if tagged, then the deadline in slots.
fn state(slots: &Slots, count: usize, deadlines: bool) -> String {
    let one = |stream: usize| {
        let (Some(window), Some(deadline)) = (slots.window(stream), slots.deadline(stream)) else {
            return String::from("no head");
        };
        let deadline = match deadlines {
            true => format!("({})", deadline.as_nanos() / 1_000_000),
            false => String::new(),
        };
        format!("{}/{}{deadline}{}", window.x, window.y, if window.tagged { "*" } else { "" })
    };
    (0..count).map(one).collect::<Vec<_>>().join(" ")
}

fn assert_trace(slots: &mut Slots, count: usize, deadlines: bool, trace: &[(&str, usize)]) {
    for (slot, &(before, served)) in trace.iter().enumerate() {
        assert_eq!(state(slots, count, deadlines), before, "slot {slot}");
        assert_eq!(slots.step(), Some(served), "slot {slot}");
    }
}

#[test]
fn e1_three_streams_share_a_link_half_quarter_quarter() {
    let specs = [(1, 2, 1), (3, 4, 1), (6, 8, 1)];
    let trace = [
        ("1/2 3/4 6/8", 0),
        ("1/1 2/3 5/7", 1),
        ("1/2 2/2 4/6", 0),
        ("1/1 1/1 3/5", 2),
        ("1/2 3/4 3/4", 0),
        ("1/1 2/3 2/3", 1),
        ("1/2 2/2 1/2", 0),
        ("1/1 1/1 0/1", 2),
    ];
    for policy in [Dwcs, ORIGINAL] {
        let mut slots = Slots::new(policy, WorkConserving, &specs);
        for _ in 0..4 {
            assert_trace(&mut slots, 3, false, &trace);
        }
        assert!(slots.violations.is_empty());
    }
}

#[test]
fn e2_different_periods_defeat_dwcs_at_three_tenths_of_the_link() {
    let specs = [(9, 10, 1), (0, 1, 10), (0, 1, 10)];
    assert_schedule(Dwcs, &specs, "AAAAAAAAABAAAAAAAAACAAAA", "BC");
    assert_schedule(Vds, &specs, "ABCAAAAAAAABCAAAAAAAABCA", "");
    assert_schedule(ORIGINAL, &specs, "BCAAAAAAAABCAAAAAAAABCAA", "");
}

#[test]
fn e3_an_overload_is_shared_and_every_violation_is_tagged() {
    let specs = [(0, 1, 1), (0, 2, 1)];
    assert_schedule(Dwcs, &specs, "BABABABA", "AB");
    assert_schedule(ORIGINAL, &specs, "BABABBAB", "AB");
    let trace = [
        ("0/1(1) 0/2(1)", 1),
        ("0/2(2)* 0/1(2)", 0),
        ("0/1(3) 0/2(3)*", 1),
        ("0/2(4)* 0/2(4)", 0),
        ("0/1(5) 0/3(5)*", 1),
        ("0/2(6)* 0/2(6)", 0),
        ("0/1(7) 0/3(7)*", 1),
        ("0/2(8)* 0/2(8)", 0),
    ];
    let mut slots = Slots::new(Dwcs, OncePerPeriod, &specs);
    assert_trace(&mut slots, 2, true, &trace);
    let by_stream = |who| slots.violations.iter().filter(|&&(_, stream)| stream == who).count();
    assert_eq!((by_stream(0), by_stream(1)), (4, 4));
}

#[test]
fn e4_five_sixths_with_different_periods() {
    let specs = [(1, 2, 2), (0, 1, 4), (1, 3, 2)];
    assert_schedule(Dwcs, &specs, "CABCACBCACBACABCACBCACBA", "");
    assert_schedule(Vds, &specs, "CABCABCAABCACABCABCAABCA", "");
    assert_schedule(ORIGINAL, &specs, "BCACBACABCACBACABCACBACA", "");
}

#[test]
fn e5_without_windows_it_is_earliest_deadline_first() {
    let specs = [(0, 0, 2), (0, 0, 3), (0, 0, 6)];
    assert_schedule(Dwcs, &specs, "ABABACABABAC", "");
    assert_schedule(Vds, &specs, "ABABACABABAC", "");
    assert_schedule(ORIGINAL, &specs, "ABABACABABAC", "");
}

#[test]
fn e6_a_completed_window_lets_misses_run_beyond_x() {
    let specs = [(1, 2, 1), (2, 3, 1)];
    assert_schedule(Dwcs, &specs, &"ABABAA".repeat(5), "");
    assert_schedule(Vds, &specs, &"ABABAA".repeat(5), "");
    assert_schedule(ORIGINAL, &specs, "ABABAABAABAABAAB", "");
    let mut slots = Slots::new(Dwcs, OncePerPeriod, &specs);
    slots.run(30);
    let runs = slots.missed.last().unwrap().split(|&missed| !missed);
    assert_eq!(runs.map(<[bool]>::len).max(), Some(3));
}

#[test]
fn e7_four_streams_of_different_periods() {
    let specs = [(0, 1, 2), (1, 2, 3), (2, 3, 3), (3, 4, 6)];
    assert_schedule(Dwcs, &specs, "ABCAADABCAACABCAABABCAAB", "");
    assert_schedule(Vds, &specs, "ABACADABACABABABACABACAB", "");
    assert_schedule(ORIGINAL, &specs, "ABACADABACABABABACABACAB", "");
}

#[test]
fn e8_five_streams_of_one_period_use_the_whole_link() {
    let specs = [(1, 2, 3), (1, 2, 3), (1, 3, 3), (2, 3, 3), (0, 1, 3)];
    assert_schedule(Dwcs, &specs, &"ECABECDEABECEABCDE".repeat(3), "");
    assert_schedule(Vds, &specs, &"ECABECDEABECEABCDE".repeat(3), "");
    assert_schedule(ORIGINAL, &specs, &"ECABECDEABECEABCDE".repeat(3), "");
    let mut slots = Slots::new(Dwcs, OncePerPeriod, &specs);
    let trace = [
        ("1/2(3) 1/2(3) 1/3(3) 2/3(3) 0/1(3)", 4),
        ("1/2(3) 1/2(3) 1/3(3) 2/3(3) 0/1(6)", 2),
        ("1/2(3) 1/2(3) 1/2(6) 2/3(3) 0/1(6)", 0),
        ("1/1(6) 0/1(6) 1/2(6) 1/2(6) 0/1(6)", 1),
    ];
    assert_trace(&mut slots, 5, true, &trace);
    slots.run(2);
    assert_trace(&mut slots, 5, true, &[("1/2(9) 1/2(9) 1/1(9) 0/1(9) 0/1(9)", 3)]);
}
