//! A plain reference: the maximum of the last trains, computed from complete knowledge of their arrivals.

use super::bottleneck::{Dice, float};
use crate::capacity::{
    CapacityEstimator, CapacityState, Departure, Receipt, samples::KEPT, time_of,
};
use paceline_sched::{Duration, Instant};

/// The arrivals of a train at the receiver: bytes and times.
type Arrivals = Vec<(u64, Instant)>;

/// Returns the maximum of the rates between the first and the last arrival of the last trains.
fn windowed_maximum(trains: &[Arrivals]) -> f64 {
    let rate = |train: &Arrivals| {
        let took = train[train.len() - 1].1.since(train[0].1);
        let bytes: u64 = train.iter().skip(1).map(|(bytes, _)| bytes).sum();
        float(bytes) * 8e9 / float(took.as_nanos())
    };
    trains.iter().rev().take(KEPT).map(rate).fold(0.0, f64::max)
}

/// A history of trains, pauses and small frames over an empty link whose capacity changes between them.
struct History {
    dice: Dice,
    estimator: CapacityEstimator,
    now: Instant,
    next: u64,
    capacity: u64,
    busy: Instant,
}

impl History {
    fn new(dice: Dice, capacity: u64) -> Self {
        let mut history = Self {
            dice,
            estimator: CapacityEstimator::new(None, None),
            now: Instant::from_millis(1),
            next: 0,
            capacity,
            busy: Instant::ZERO,
        };
        history.greet();
        history
    }

    /// Sends frames of `bytes` at once, and acknowledges each one on arrival.
    fn send(&mut self, frames: u64, bytes: u64, probe: bool) -> Arrivals {
        let delay = Duration::from_millis(10);
        let mut arrivals = Vec::new();
        let begin = self.next;
        for left in (0..frames).rev() {
            let (number, backlogged) = (self.next, left > 0);
            let sent = Departure { number, bytes, left: self.now, backlogged, probe };
            self.estimator.handle_sent(self.now, &sent);
            self.next += 1;
            self.busy =
                self.busy.max(self.now) + Duration::from_nanos(time_of(bytes, self.capacity));
            arrivals.push((bytes, self.busy + delay));
        }
        for (number, (_, at)) in (begin..).zip(&arrivals) {
            self.now = *at + delay;
            let receipt =
                Receipt { first: number, newest: number, held: Duration::ZERO, arrived: None };
            self.estimator.handle_ack(self.now, &receipt);
        }
        arrivals
    }

    fn greet(&mut self) {
        for _ in 0..5 {
            self.send(1, 60, false);
            self.now += Duration::from_millis(20);
        }
    }

    fn pause(&mut self) {
        // Small frames use a part of the link, or none.
        for _ in 0..self.dice.below(20) {
            let bytes = 40 + self.dice.below(200);
            self.send(1, bytes, false);
            self.now += Duration::from_millis(1 + self.dice.below(30));
        }
        let longest = if self.dice.below(4) == 0 { 60_000 } else { 500 };
        self.now += Duration::from_millis(100 + self.dice.below(longest));
        // The small frames of an idle hop show the delay of the path. A train whose frames are long shows it less well.
        self.greet();
    }
}

fn compare(seed: u64) {
    let mut dice = Dice::new(seed);
    let capacity = 1_000_000 + dice.below(50_000_000);
    let mut history = History::new(dice, capacity);
    let mut trains = Vec::new();
    history.greet();
    for _ in 0..40 {
        // A long train would be a busy period of its own, in which a fall is found by the growth of the delay.
        let frames = 8 + history.dice.below(12);
        let bytes = history.capacity / 400 / frames;
        trains.push(history.send(frames, bytes, true));
        let found = float(history.estimator.estimate().estimate);
        let expected = windowed_maximum(&trains);
        let ratio = found / expected;
        assert!((0.9..1.1).contains(&ratio), "seed {seed}: {found} instead of {expected}");
        history.pause();
        // A train may double the estimate, not more.
        let percent = 60 + history.dice.below(120);
        history.capacity = (history.capacity / 100 * percent).clamp(500_000, 100_000_000);
    }
}

/// A flow of 100 kbit/s that the application limits, for a minute.
fn limited(history: &mut History) {
    for _ in 0..6_000 {
        history.send(1, 125, false);
        history.now += Duration::from_millis(10);
    }
}

#[test]
fn an_application_limited_rate_is_never_taken_for_the_capacity() {
    let mut history = History::new(Dice::new(1), 20_000_000);
    limited(&mut history);
    let found = history.estimator.estimate();
    assert_eq!((found.state, found.estimate, found.low), (CapacityState::Unknown, 0, 0));
    for _ in 0..KEPT {
        history.send(10, 1_200, true);
        history.now += Duration::from_millis(200);
    }
    let found = history.estimator.estimate();
    assert!((19_000_000..=20_000_000).contains(&found.estimate), "{found:?}");
    assert_eq!(found.state, CapacityState::Stable);
    limited(&mut history);
    assert_eq!(history.estimator.estimate(), found);
}

#[test]
fn the_estimate_is_the_windowed_maximum_of_busy_periods() {
    (0..200).for_each(compare);
}

#[test]
#[ignore = "a minute: cargo test -p paceline-proto --lib capacity -- --ignored"]
fn the_estimate_is_the_windowed_maximum_over_many_histories() {
    (0..20_000).for_each(compare);
}
