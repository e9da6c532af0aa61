//! Measures the wall-clock cost of a scheduler iteration and of a packet in the virtual host.

use super::super::clock;
use super::super::stats::float;
use crate::turns::host::{Host, Senders, run};
use crate::turns::{Budget, Cost, Pace};
use anyhow::Result;
use paceline_sched::time::Duration;

/// The number of runs. The best one counts: other runs were disturbed.
const RUNS: u32 = 7;
const VIRTUAL: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) turn_ns: f64,
    pub(super) packet_ns: f64,
}

impl Measured {
    /// Returns the costs in whole nanoseconds, each at least 1.
    pub(super) fn cost(&self) -> Cost {
        let whole = |nanos: f64| {
            let nanos = std::time::Duration::from_secs_f64(nanos.max(1.0) / 1e9);
            Duration::from(nanos)
        };
        Cost { turn: whole(self.turn_ns), packet: whole(self.packet_ns), kib: Duration::ZERO }
    }
}

pub(super) fn measure() -> Result<Measured> {
    let micro = Duration::from_micros(1);
    let none = Senders { count: 0, interval: micro, len: 0, held_up: Duration::ZERO };
    let sixteen = Senders { count: 16, interval: Duration::from_micros(16), len: 1_200, ..none };
    let (mut turn_ns, mut both_ns) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS {
        turn_ns = turn_ns.min(per_turn(Pace::Periodic(micro), &none)?);
        both_ns = both_ns.min(per_turn(Pace::WorkConserving, &sixteen)?);
    }
    Ok(Measured { turn_ns, packet_ns: (both_ns - turn_ns).max(0.0) })
}

/// Returns the wall-clock nanoseconds per iteration. With senders, each iteration serves one
/// packet.
fn per_turn(pace: Pace, senders: &Senders) -> Result<f64> {
    let budget = Budget { packets: 1, work: Duration::ZERO };
    let host = Host { pace, budget, cost: Cost::default(), queue: 8 };
    let start = clock::now();
    let figures = run(&host, senders, VIRTUAL)?;
    Ok(float(clock::now() - start) / float(figures.turns.max(1)))
}
