//! Delay of live frames by background frames, on a wire that may differ from the link's configuration, and
//! with an owner that wakes up late.

use super::*;

const LIVE: StreamIndex = StreamIndex(0);
const BACKGROUND: StreamIndex = StreamIndex(1);

/// A simulated wire.
#[derive(Clone, Copy)]
struct Wire {
    /// The capacity that the link assumes, in Mbit/s.
    believed: u64,
    /// The real capacity, in Mbit/s.
    carries: u64,
    /// The path delay, from the end of a frame's transmission to its arrival, in each direction.
    delay: Duration,
    /// The maximum delay of the owner's wake-up, in microseconds.
    late_us: u64,
}

/// The offered load.
#[derive(Clone, Copy)]
struct Load {
    /// The size of a live sample, in bytes.
    live: usize,
    /// The interval between live samples.
    every: Duration,
    /// Background samples are queued at all times.
    pulls: bool,
}

#[derive(Default)]
struct Outcome {
    /// The arrival times of the live samples.
    came: Vec<Instant>,
    /// The longest remaining transmission time on the wire when a live sample arrived at the link with no
    /// other live sample in transit.
    found: Duration,
    /// The utilisation of the wire, in thousandths.
    used: u64,
}

fn mbit(mbit: u64) -> Capacity {
    Capacity::from_bits_per_s(mbit * 1_000_000).unwrap()
}

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

struct Line {
    wire: Wire,
    now: Instant,
    a: End,
    b: End,
    free: Instant,
    busy: Duration,
    /// Frames in transit: the arrival time, the destination (`true` for `b`) and the bytes.
    flight: Vec<(Instant, bool, Bytes)>,
    wakes: u64,
    wake_at: Instant,
}

impl Line {
    fn new(wire: Wire) -> Self {
        let spec = LinkSpec { capacity: Some(mbit(wire.believed)), ..LinkSpec::default() };
        let (a, b) = (End::new(1, 2, spec), End::new(2, 1, LinkSpec::default()));
        let (now, free) = (at(0), at(0));
        let flight = Vec::new();
        Self { wire, now, a, b, free, busy: Duration::ZERO, flight, wakes: 0, wake_at: now }
    }

    /// Polls both ends and puts their frames on the wire.
    fn poll(&mut self) {
        let (now, wire) = (self.now, self.wire);
        self.a.poll(now);
        for frame in std::mem::take(&mut self.a.sent) {
            let takes = mbit(wire.carries).time_for(on_wire(frame.len() as u64));
            self.free = self.free.max(now) + takes;
            self.busy = self.busy.saturating_add(takes);
            self.flight.push((self.free + wire.delay, true, frame));
        }
        self.b.poll(now);
        for frame in std::mem::take(&mut self.b.sent) {
            self.flight.push((now + wire.delay, false, frame));
        }
        // A pseudo-random wake-up delay between 0 and the maximum.
        self.wakes += 1;
        let late = us(self.wakes * 7_919 % (wire.late_us + 1));
        self.wake_at = self.a.link.poll_timeout().max(now + us(1)) + late;
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let arrives = self.flight.iter().map(|(at, ..)| *at).min().unwrap_or(Instant::FAR);
            let next = arrives.min(self.wake_at).min(self.b.link.poll_timeout());
            self.now = next.max(self.now + us(1)).min(until);
            let now = self.now;
            let (come, rest) =
                std::mem::take(&mut self.flight).into_iter().partition(|(at, ..)| *at <= now);
            self.flight = rest;
            let come: Vec<(Instant, bool, Bytes)> = come;
            for (_, forth, frame) in come {
                if forth { self.b.hear(now, frame) } else { self.a.hear(now, frame) }
            }
            if now == until {
                return;
            }
            self.poll();
        }
    }
}

fn run(wire: Wire, load: Load, seconds: u64) -> Outcome {
    let mut line = Line::new(wire);
    line.run_until(at(1_000));
    let hop = line.a.other;
    let background = StreamSpec { background: true, ..to(hop, Kind::Data, None) };
    assert!(line.a.link.open_stream(LIVE, to(hop, Kind::Data, None)));
    assert!(line.a.link.open_stream(BACKGROUND, background));
    let (start, busy) = (line.now, line.busy);
    let mut outcome = Outcome::default();
    let (mut pulled, mut due) = (0, start);
    for seq in 0.. {
        if due >= start + Duration::from_millis(seconds * 1_000) {
            break;
        }
        while load.pulls && line.a.link.has_room(due, BACKGROUND) && pulled < 4_000_000 {
            line.a.link.handle_sample(due, BACKGROUND, sample(due, 1_000_000 + pulled, 50_000));
            pulled += 1;
        }
        line.poll();
        line.run_until(due);
        let settled = line.a.link.is_settled(LIVE);
        if settled {
            outcome.found = outcome.found.max(line.free.since(line.now));
        }
        line.a.link.handle_sample(due, LIVE, sample(due, seq, load.live));
        line.poll();
        // Run until the sample has arrived, or until the next one is due.
        let next = due + load.every;
        while line.now < next {
            let before = line.b.got.len();
            line.run_until((line.now + us(50)).min(next));
            let lives = line.b.got.iter().skip(before).filter(|seq| **seq < 1_000_000);
            outcome.came.extend(lives.map(|_| line.now));
        }
        due = next;
    }
    let whole = line.now.since(start).as_nanos();
    outcome.used = (line.busy.as_nanos() - busy.as_nanos()) * 1_000 / whole;
    outcome
}

const EXACT: Wire = Wire { believed: 8, carries: 8, delay: us(50), late_us: 0 };
const STEERING: Load = Load { live: 64, every: us(10_000), pulls: true };
const CAMERA: Load = Load { live: 10_000, every: us(33_333), pulls: true };

/// Returns the transmission time of a full frame.
fn frame(wire: Wire) -> Duration {
    let bytes = on_wire(Carrier::Ordered.frame_bytes(Some(mbit(wire.believed))));
    mbit(wire.carries).time_for(bytes)
}

#[test]
fn a_live_sample_finds_no_more_than_one_frame_before_it() {
    for wire in [
        EXACT,
        Wire { late_us: 900, ..EXACT },
        Wire { delay: us(1_000), late_us: 900, ..EXACT },
        Wire { delay: us(10_000), late_us: 900, ..EXACT },
        // The link assumes more capacity than the wire has.
        Wire { carries: 7, late_us: 400, ..EXACT },
    ] {
        let Outcome { came, found, .. } = run(wire, STEERING, 20);
        let (delay, carries, late) = (wire.delay, wire.carries, wire.late_us);
        println!("{carries} Mbit/s, {delay}, late by {late}: found {found} of {}", frame(wire));
        assert!(came.len() >= 1_995, "{}", came.len());
        assert!(found <= frame(wire), "{found} of {} at {delay}, {carries}", frame(wire));
    }
}

#[test]
fn background_traffic_delays_live_samples_by_at_most_a_frame() {
    for (delay, load) in [(us(50), STEERING), (us(50), CAMERA), (us(5_000), STEERING)] {
        let wire = Wire { delay, ..EXACT };
        let alone = run(wire, Load { pulls: false, ..load }, 20).came;
        let beside = run(wire, load, 20).came;
        let both = alone.len().min(beside.len());
        assert!(alone.len() - both <= 1 && both > 500, "{} {}", alone.len(), beside.len());
        let later = alone.iter().zip(&beside).map(|(alone, beside)| beside.since(*alone));
        let most = later.max().unwrap();
        println!("{delay}: later by {most}");
        // Arrivals are checked every 50 µs.
        assert!(most <= frame(wire).saturating_add(us(100)), "{most} at {delay}");
    }
}

#[test]
fn the_background_uses_all_spare_capacity_at_any_round_trip_time() {
    // The background waits for the acknowledgement of its last frame where the bandwidth-delay product is
    // below half a frame.
    let mut all = Vec::new();
    for delay in [0, 50, 500, 1_000, 5_000, 50_000] {
        let wire = Wire { delay: us(delay), ..EXACT };
        let used = run(wire, STEERING, 10).used;
        println!("a round trip of {} us: {used} of 1000 used", 2 * delay);
        all.push(used);
    }
    assert!(all.iter().all(|used| *used >= 600), "{all:?}");
}
