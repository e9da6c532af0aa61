//! Tests of the counting on numbers small enough to verify by hand.

use super::*;

fn arrival(seq: u64, at: u64) -> Arrival {
    Arrival { seq, at, bytes: 10, size: None }
}

/// Ten samples, one per 100 units, measured from 200 to 700. Sample 4 never arrives, 6 arrives
/// twice.
fn measured() -> Measured {
    let arrivals = [0, 1, 2, 3, 5, 6, 6, 7, 8].map(|seq| arrival(seq, seq * 100 + 150));
    Measured {
        from: 200,
        to: 700,
        sent: vec![(0..10).map(|seq| seq * 100).collect()],
        arrivals: vec![vec![arrivals.to_vec()]],
        ..Measured::default()
    }
}

#[test]
fn samples_count_at_publication_and_rates_at_arrival() {
    let flow = measured().flow(0, (0, 0), usize::MAX);
    assert_eq!((flow.sent, flow.lost()), (5, 1));
    assert_eq!(flow.delays().max(), Some(150));
    // 1, 2, 3 and 5 arrive inside, from 250 to 650.
    assert_eq!(flow.arrived.len(), 4);
    assert!((flow.hertz() - 3.0 * 1e9 / 400.0).abs() < 1e-3);
    assert!((flow.bytes() - 40.0).abs() < 1e-9);
}

#[test]
fn a_limit_takes_the_first_ones() {
    let flow = measured().flow(0, (0, 0), 2);
    assert_eq!((flow.sent, flow.lost()), (2, 0));
    assert_eq!(measured().flow(7, (3, 3), 2).sent, 0);
}

#[test]
fn misses_are_samples_that_are_late_or_absent() {
    let delays = [(0, 10), (6, 10), (12, 300), (30, 10), (36, 10)];
    let flow = Flow { delays: BTreeMap::from(delays), ..Flow::default() };
    // In order: in time, in time, late, absent, absent, in time, in time.
    assert_eq!(flow.misses_beyond(6, 200, (0, 1)), 3);
    assert_eq!(flow.misses_beyond(6, 200, (1, 10)), 2);
    assert_eq!(flow.misses_beyond(6, 200, (3, 10)), 0);
    assert_eq!(flow.misses_beyond(6, 200, (1, 4)), 1);
}
