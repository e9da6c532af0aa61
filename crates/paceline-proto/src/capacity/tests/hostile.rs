//! Peers that acknowledge too much, too little, twice, the future, in another order, or with impossible times.

use super::bottleneck::Dice;
use crate::capacity::{
    CapacityEstimator, CapacityState, Departure, Receipt, frames, rate, time_of,
};
use paceline_sched::{Capacity, Duration, Instant};

/// The rate of the sender's interface: nothing is ever sent faster.
const LINE: u64 = 50_000_000;

/// The lies of a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lie {
    TooMuch,
    TooLittle,
    Twice,
    Future,
    Reordered,
    Stamps,
    Held,
    Anything,
}

const LIES: [Lie; 8] = [
    Lie::TooMuch,
    Lie::TooLittle,
    Lie::Twice,
    Lie::Future,
    Lie::Reordered,
    Lie::Stamps,
    Lie::Held,
    Lie::Anything,
];

fn lie(lie: Lie, dice: &mut Dice, (from, next): (u64, u64), now: Instant) -> Receipt {
    let micros = u32::try_from(now.as_nanos() / 1_000 % 4_294_967_296).unwrap();
    let honest =
        Receipt { first: from, newest: next - 1, held: Duration::ZERO, arrived: Some(micros) };
    let any = Some(u32::try_from(dice.next() >> 32).unwrap());
    match lie {
        Lie::TooMuch => Receipt { first: 0, newest: next - 1, arrived: None, ..honest },
        Lie::TooLittle => Receipt { newest: from, ..honest },
        Lie::Twice => Receipt { first: dice.below(next), ..honest },
        Lie::Future => Receipt { newest: next + dice.below(1_000_000), ..honest },
        Lie::Reordered => {
            let first = dice.below(next);
            Receipt { first, newest: first + dice.below(next - first), ..honest }
        }
        // All frames arrived at once, or as fast as the stamps may differ.
        Lie::Stamps => {
            Receipt { arrived: if dice.below(50) == 0 { any } else { Some(0) }, ..honest }
        }
        Lie::Held => Receipt { held: Duration::from_nanos(dice.next()), ..honest },
        Lie::Anything => Receipt {
            first: dice.next() >> dice.below(64),
            newest: dice.next() >> dice.below(64),
            held: Duration::from_nanos(dice.next() >> dice.below(64)),
            arrived: any.filter(|_| dice.below(2) == 0),
        },
    }
}

struct Sender {
    estimator: CapacityEstimator,
    next: u64,
    free: Instant,
}

impl Sender {
    fn send(&mut self, now: Instant, frames: u64, bytes: u64, probe: bool) {
        for left in (0..frames).rev() {
            self.free = self.free.max(now) + Duration::from_nanos(time_of(bytes, LINE) + 1);
            let sent = Departure {
                number: self.next,
                bytes,
                left: self.free,
                backlogged: left > 0,
                probe,
            };
            self.estimator.handle_sent(now, &sent);
            self.next += 1;
        }
    }

    fn check(&self, what: Lie) {
        let found = self.estimator.estimate();
        assert!(found.estimate <= LINE, "{what:?}: above the sent rate: {found:?}");
        assert!(found.pace <= found.low && found.low <= found.estimate, "{what:?}: {found:?}");
        assert!(found.estimate <= found.high, "{what:?}: {found:?}");
    }
}

fn attack(what: Lie, seed: u64, rounds: u64) {
    let mut dice = Dice::new(seed);
    let estimator = CapacityEstimator::new(None, None);
    let mut sender = Sender { estimator, next: 0, free: Instant::ZERO };
    let mut now = Instant::from_millis(1);
    for _ in 0..rounds {
        let from = sender.next;
        if let Some(request) = sender.estimator.probe(now) {
            assert!(request.bytes <= 256_000 && request.until > now);
            sender.send(now, 10, (request.bytes / 10).max(1), true);
        }
        sender.send(now, 1 + dice.below(5), 100 + dice.below(1_300), false);
        now += Duration::from_micros(dice.below(20_000));
        for _ in 0..=dice.below(3) {
            let receipt = lie(what, &mut dice, (from, sender.next), now);
            sender.estimator.handle_ack(now, &receipt);
            sender.check(what);
        }
        sender.estimator.handle_lost(now, dice.below(sender.next + 10));
        sender.estimator.handle_timeout(now);
        let jump = if dice.below(100) == 0 { dice.below(60_000_000) } else { dice.below(20_000) };
        now += Duration::from_micros(jump);
        sender.check(what);
        let waiting = sender.estimator.remembered();
        assert!(waiting.0 <= frames::FRAMES_MAX && waiting.1 <= 16, "{waiting:?}");
    }
}

#[test]
fn no_lie_raises_the_estimate_above_the_rate_of_sending() {
    for what in LIES {
        for seed in 0..20 {
            attack(what, seed, 300);
        }
    }
}

#[test]
#[ignore = "minutes: cargo test -p paceline-proto --lib capacity -- --ignored"]
fn no_lie_of_many_raises_the_estimate_above_the_rate_of_sending() {
    for what in LIES {
        for seed in 0..2_000 {
            attack(what, seed, 1_000);
        }
    }
}

/// Acknowledges all frames, of which the last one has arrived `micros` after the start, by the receiver's clock.
fn stamped(sender: &mut Sender, now: Instant, micros: u64) {
    let arrived = u32::try_from(micros).ok();
    let newest = sender.next - 1;
    let receipt = Receipt { first: 0, newest, held: Duration::ZERO, arrived };
    sender.estimator.handle_ack(now, &receipt);
    sender.check(Lie::Stamps);
}

#[test]
fn arrivals_that_are_compressed_while_a_queue_drains_raise_nothing() {
    let estimator = CapacityEstimator::new(None, None);
    let mut sender = Sender { estimator, next: 0, free: Instant::ZERO };
    let at = |micros: u64| Instant::from_nanos(micros * 1_000);
    let mut clock = 1_000;
    // An honest peer behind 10 Mbit/s, where a frame of 1,000 bytes takes 0.8 ms.
    for _ in 0..10 {
        sender.send(at(clock), 1, 60, false);
        stamped(&mut sender, at(clock + 50), clock + 50);
        clock += 1_000;
        sender.send(at(clock), 10, 1_000, true);
        stamped(&mut sender, at(clock + 8_000), clock + 8_000);
        clock += 200_000;
    }
    let before = sender.estimator.estimate().estimate;
    assert!((8_000_000..11_000_000).contains(&before), "{before}");
    // It claims a growing queue, and then that all of it has arrived nearly at once.
    let (mut arrival, mut fell) = (clock, false);
    for frame in 0..2_000 {
        sender.send(at(clock), 1, 1_200, false);
        arrival += if frame < 1_000 { 1_900 } else { 100 };
        stamped(&mut sender, at(clock), arrival);
        clock += 1_000;
        let found = sender.estimator.estimate();
        fell |= found.state == CapacityState::Falling;
        assert!(found.estimate <= before, "{frame}: {found:?}");
    }
    assert!(fell);
}

#[test]
fn the_future_is_ignored_and_counted() {
    let mut estimator = CapacityEstimator::new(None, None);
    let now = Instant::from_millis(5);
    let forged = [(0, 0), (3, 1), (0, u64::MAX)];
    for (first, newest) in forged {
        let receipt = Receipt { first, newest, held: Duration::MAX, arrived: Some(7) };
        estimator.handle_ack(now, &receipt);
    }
    assert_eq!(
        (estimator.contradictions(), estimator.estimate().state),
        (3, CapacityState::Unknown)
    );
}

#[test]
fn a_peer_that_never_answers_gets_little() {
    let estimator = CapacityEstimator::new(None, None);
    let mut sender = Sender { estimator, next: 0, free: Instant::ZERO };
    let mut bytes = 0;
    for tick in 0..6_000 {
        let now = Instant::from_millis(tick * 10);
        if let Some(request) = sender.estimator.probe(now) {
            bytes += request.bytes;
            sender.send(now, 5, request.bytes / 5, true);
        }
        sender.estimator.handle_timeout(now);
    }
    // The start, and its share in each of 60 s.
    assert!(rate(bytes, 60_000_000_000) <= 25_000, "{bytes}");
    let found = sender.estimator.estimate();
    assert_eq!((found.state, found.low), (CapacityState::Unknown, 0));
}

#[test]
fn times_of_any_size_do_not_panic() {
    let bits = |bits| Capacity::from_bits_per_s(bits).ok();
    let mut estimator = CapacityEstimator::new(bits(8), bits(u64::MAX));
    let times = [Instant::ZERO, Instant::FAR, Instant::from_millis(1), Instant::FAR];
    for (number, now) in (0..40).zip(times.iter().cycle()) {
        let bytes = if number % 3 == 0 { u64::MAX } else { 0 };
        let sent =
            Departure { number, bytes, left: *now, backlogged: true, probe: number % 5 == 0 };
        estimator.handle_sent(*now, &sent);
        let receipt = Receipt { first: 0, newest: number, held: Duration::MAX, arrived: Some(0) };
        estimator.handle_ack(*now, &receipt);
        estimator.handle_timeout(*now);
        let _ = estimator.probe(*now);
        assert!(estimator.poll_timeout() >= Instant::ZERO && estimator.estimate().low >= 8);
    }
}
