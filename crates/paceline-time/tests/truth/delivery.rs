//! Delivery by time on nodes with synchronised clocks, in virtual time: the order of samples, and the age of commands.

use crate::rig::{MICRO, MILLI, Nature, Rng, SECOND, Server, World};
use paceline_sched::{Duration, Instant};
use paceline_time::fresh::{CommandVerdict, Freshness, age_by_clocks, fresh_until};
use paceline_time::ntp::source::PollRange;
use paceline_time::order::{
    BEFORE_START, BufferLimits, Handled, LateArrival, Placement, TimeBuffer, Timed, on_this_host,
};
use paceline_time::{ClockReading, TimeBounds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A node whose clock follows three servers; its system clock is off by up to 50 ms, and its oscillator by 100 ppm.
fn node(seed: u64, wall_off: i64) -> World {
    let path = Server::new(Nature::Honest(20 * MICRO), 300 * MICRO, 200 * MICRO).lossy(2);
    let rate = Rng(seed).around(100_000_000);
    let mut world = World::new(seed, &[path; 3], PollRange::OWN, rate);
    world.wall_off = wall_off;
    world
}

/// Reads the clock of a node at the true time `at`, not before the last event of the node.
fn read(node: &World, at: u64) -> ClockReading {
    node.service
        .page()
        .read(node.raw.read(at), || node.utc(at).saturating_add_signed(node.wall_off))
}

/// The bounds of a reading as a sample carries them; `None` if the error is unknown.
fn carried(reading: &ClockReading) -> Option<TimeBounds> {
    let error = reading.error_byte();
    (error != u8::MAX).then(|| TimeBounds::of_stamp(reading.nanos, error))
}

fn advance(nodes: &mut [World], to: u64) {
    let mut ignored = Default::default();
    for node in nodes {
        node.run(to.saturating_sub(node.now), 0, &mut ignored);
    }
}

const HOLD: Duration = Duration::from_millis(50);
/// The time between two rounds of the publishers.
const ROUND: u64 = 10 * MILLI;
const PUBLISHERS: usize = 10;

/// A sample in the buffer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Item {
    publisher: usize,
    captured: u64,
    arrived: u64,
    /// Half of the interval of its time.
    error: u64,
}

#[derive(Debug, Default)]
struct Ordered {
    released: u64,
    /// Samples before which a later one was released, although the order was stated as known.
    violations: u64,
    /// Samples that left after one that was captured later, of which the bounds did not decide the order.
    inverted: u64,
    /// Those that were earlier by more than both errors.
    beyond: u64,
    /// Samples that left after a later one of their publisher.
    overtaken: u64,
    unknown: u64,
    late: u64,
    /// The capture time of the last sample of each publisher.
    last: [u64; PUBLISHERS],
    /// The longest wait in the buffer.
    longest: u64,
    /// The last one.
    before: Item,
}

/// A sample under way: arrival, capture, publisher, and the interval that it carries.
type Flights = BinaryHeap<Reverse<(u64, u64, usize, Option<(u64, u64)>)>>;

/// The publishers of the rounds.
struct Source {
    rng: Rng,
    /// The last arrival of each publisher: its samples stay in order.
    last: [u64; PUBLISHERS],
    left: u64,
}

impl Source {
    fn round(&mut self, nodes: &[World], now: u64, flights: &mut Flights) {
        for (publisher, last) in self.last.iter_mut().enumerate().filter(|_| self.left > 0) {
            // Within the round at any time, so that different publishers are close together.
            let at = now + self.rng.below(ROUND);
            let stamp = carried(&read(&nodes[publisher % 3], at));
            *last = (*last).max(at + 2 * MILLI + self.rng.below(38 * MILLI));
            let stamp = stamp.map(|stamp| (stamp.earliest, stamp.latest));
            flights.push(Reverse((*last, at, publisher, stamp)));
        }
        self.left = self.left.saturating_sub(u64::try_from(PUBLISHERS).unwrap());
    }
}

impl Ordered {
    /// Counts a sample that leaves at `at`.
    fn take(&mut self, item: Item, place: Placement, at: u64) {
        self.released += 1;
        self.longest = self.longest.max(at - item.arrived);
        let inverted = self.before.captured.saturating_sub(item.captured);
        match place {
            Placement::InOrder => self.violations += u64::from(inverted > 0),
            Placement::Unknown => self.unknown += 1,
            Placement::Late => self.late += 1,
        }
        self.inverted += u64::from(inverted > 0);
        self.beyond += u64::from(inverted > self.before.error + item.error);
        let last = &mut self.last[item.publisher];
        self.overtaken += u64::from(*last > item.captured);
        *last = item.captured;
        self.before = item;
    }
}

/// Ten publishers on three nodes publish at 100 Hz; one subscription on a fourth node orders all samples.
fn order(seed: u64, samples: u64) -> Ordered {
    let mut nodes: Vec<World> = [50_000_000, -50_000_000, 17_000_000, -3_000_000]
        .iter()
        .zip(seed * 10..)
        .map(|(off, seed)| node(seed, *off))
        .collect();
    let mut now = 20 * SECOND;
    advance(&mut nodes, now);
    let limits = BufferLimits::holding(HOLD);
    let mut buffer = TimeBuffer::<u8, Item>::new(limits, LateArrival::Flag).unwrap();
    let mut source = Source { rng: Rng(seed), last: [0; PUBLISHERS], left: samples };
    let (mut out, mut flights) = (Ordered::default(), Flights::new());
    while source.left > 0 || !flights.is_empty() || !buffer.is_empty() {
        advance(&mut nodes, now);
        source.round(&nodes, now, &mut flights);
        now += ROUND;
        loop {
            let arrived = flights.peek().map_or(u64::MAX, |Reverse((arrived, ..))| *arrived);
            let release = buffer.next_release().map_or(u64::MAX, Instant::as_nanos);
            if arrived.min(release) >= now {
                break;
            }
            if release <= arrived {
                while let Some((item, place)) = buffer.poll(Instant::from_nanos(release)) {
                    out.take(item, place, release);
                }
                continue;
            }
            let Some(Reverse((_, captured, publisher, stamp))) = flights.pop() else { break };
            let utc = read(&nodes[3], arrived).bounds;
            let (earliest, latest) = stamp.expect("synchronised for 20 s");
            let (stamp, local) = (TimeBounds { earliest, latest }, Instant::from_nanos(arrived));
            let (nanos, bounds) = on_this_host(local, stamp, utc).expect("not in the future");
            let truth = BEFORE_START + captured;
            assert!((bounds.earliest..=bounds.latest).contains(&truth), "the age is bounded");
            let error = (bounds.latest - bounds.earliest).div_ceil(2);
            let item = Item { publisher, captured, arrived, error };
            let source = u8::try_from(publisher).ok();
            let timed = Timed { clock: 0, source, nanos, bounds, bytes: 64, item };
            assert_eq!(buffer.handle(local, timed), Handled::Buffered);
        }
    }
    out
}

#[test]
fn a_million_samples_of_ten_publishers_on_three_nodes_are_in_order() {
    let out = order(1, 1_000_000);
    println!("{out:?}");
    assert_eq!((out.violations, out.beyond, out.late, out.overtaken), (0, 0, 0, 0), "{out:?}");
    assert_eq!(out.released, 1_000_000, "none is lost");
    assert!(out.longest <= HOLD.as_nanos(), "{out:?}");
    // Clocks that are off by up to 50 ms do not decide the order of most neighbours, but of some.
    assert!(out.inverted > 0 && out.unknown * 100 < out.released * 95, "{out:?}");
}

const LIMIT: u64 = 100 * MILLI;

#[derive(Debug, Default)]
struct Decided {
    commands: u64,
    lost: u64,
    released: u64,
    /// Released with a true age above the limit.
    too_old: u64,
    /// Provably young: younger than the limit minus twice the error.
    young: u64,
    young_released: u64,
    silences: u64,
    /// Safe actions that started after the true end of the last command, although the process was not stopped.
    tardy: u64,
    unknown: u64,
}

impl Decided {
    /// Decides on a command that was captured and is decided on at these true times; returns true if it acts.
    fn decide(
        &mut self,
        freshness: &mut Freshness,
        (captured, at): (u64, u64),
        stamp: Option<TimeBounds>,
        clock: &ClockReading,
    ) -> bool {
        let known = stamp.filter(|_| clock.error() != u64::MAX);
        let age = known.and_then(|stamp| age_by_clocks(stamp, clock.bounds));
        let now = Instant::from_nanos(at);
        let until = fresh_until(now, Duration::from_nanos(LIMIT), age);
        let true_age = at - captured;
        let released = matches!(freshness.release(now, until), CommandVerdict::Fresh { .. });
        self.released += u64::from(released);
        self.too_old += u64::from(released && true_age > LIMIT);
        match known {
            Some(stamp) => {
                let error = (stamp.latest - stamp.earliest) / 2 + clock.error();
                if true_age + 2 * error < LIMIT {
                    self.young += 1;
                    self.young_released += u64::from(released);
                }
            }
            None => self.unknown += 1,
        }
        released
    }
}

/// Cuts the link, stops the receiving process, or steps a system clock now and then.
fn disturb(rng: &mut Rng, now: u64, nodes: &mut [World], (cut, stopped): (&mut u64, &mut u64)) {
    if rng.below(500) == 0 {
        *cut = now + rng.below(SECOND);
    }
    if rng.below(700) == 0 {
        *stopped = now + rng.below(2 * SECOND);
    }
    if rng.below(2_000) == 0 {
        let one = usize::try_from(rng.below(2)).unwrap();
        nodes[one].wall_off = rng.around(30_000_000_000);
        nodes[one].observe();
    }
}

/// Commands at 100 Hz over a link with delay spikes and cuts, to a process that is stopped now and then, with system
/// clocks that step.
fn actuate(seed: u64, commands: u64) -> Decided {
    let mut nodes = vec![node(seed * 10, 40_000_000), node(seed * 10 + 1, -25_000_000)];
    advance(&mut nodes, 20 * SECOND);
    let mut rng = Rng(seed);
    let (mut out, mut freshness) = (Decided::default(), Freshness::default());
    let mut now = 20 * SECOND;
    let (mut queue, mut cut, mut stopped) = (BinaryHeap::new(), 0, 0);
    // The true end of the newest released command, as the application knows it.
    let mut acts_until = None::<u64>;
    while out.commands < commands || !queue.is_empty() {
        advance(&mut nodes, now);
        if out.commands < commands {
            disturb(&mut rng, now, &mut nodes, (&mut cut, &mut stopped));
            let at = now + rng.below(ROUND);
            out.commands += 1;
            let spike = if rng.chance(4) { rng.below(400 * MILLI) } else { 0 };
            let arrives = at + MILLI + rng.below(9 * MILLI) + spike;
            if at < cut {
                out.lost += 1;
            } else {
                let stamp = carried(&read(&nodes[0], at));
                queue.push(Reverse((arrives, at, stamp.map(|it| (it.earliest, it.latest)))));
            }
        }
        let end = now + ROUND;
        loop {
            let due = freshness.next_silence().map_or(u64::MAX, Instant::as_nanos);
            let arrives = queue.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
            let next = due.min(arrives);
            if next >= end {
                break;
            }
            // A stopped process does everything when it continues.
            let at = next.max(stopped);
            if at >= end {
                break;
            }
            let instant = Instant::from_nanos(at);
            if Instant::from_nanos(due) <= instant {
                if freshness.poll_silence(instant) {
                    out.silences += 1;
                    let true_end = acts_until.take().unwrap();
                    out.tardy += u64::from(at > stopped && at > true_end);
                }
                continue;
            }
            let Some(Reverse((_, captured, stamp))) = queue.pop() else { break };
            let stamp = stamp.map(|(earliest, latest)| TimeBounds { earliest, latest });
            let clock = read(&nodes[1], at);
            if out.decide(&mut freshness, (captured, at), stamp, &clock) {
                acts_until = acts_until.max(Some(captured + LIMIT));
            }
        }
        now = end;
    }
    out
}

#[test]
fn no_command_of_a_hundred_thousand_is_released_too_old() {
    let out = actuate(3, 100_000);
    println!("{out:?}");
    assert_eq!(out.too_old, 0, "{out:?}");
    assert!(out.young_released * 100 >= out.young * 99, "{out:?}");
    assert!(out.young * 2 > out.commands, "most arrive in time: {out:?}");
    assert!(out.silences > 100 && out.tardy == 0, "{out:?}");
    assert!(out.unknown > 0, "steps of clocks leave no proof: {out:?}");
}
