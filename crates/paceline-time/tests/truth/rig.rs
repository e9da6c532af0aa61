//! A clock with servers in virtual time: true time, a raw clock that drifts, paths with delay and loss, and servers that
//! lie.

use paceline_time::clock::service::{ClockSettings, HostClocks, SourcePart};
use paceline_time::ntp::packet::{Leap, NtpPacket, NtpShort, NtpTime};
use paceline_time::ntp::source::PollRange;
use paceline_time::{ClockReading, ClockService, ClockStatus, SharedClock};
use std::collections::BinaryHeap;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const MICRO: u64 = 1_000;

/// 2026-11-27, the true time at the beginning, in nanoseconds since 1970.
pub(crate) const BASE: u64 = 1_795_737_600 * SECOND;

/// Random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `below` - 1.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// A number below `below`, of any magnitude: below a tenth of it half of the time, and below a hundredth in a quarter.
    pub(crate) fn scaled(&mut self, below: u64) -> u64 {
        let tenths = 10_u64.pow(self.next().trailing_zeros().min(4));
        self.below((below / tenths).max(1))
    }

    /// A number from -`most` to `most`.
    pub(crate) fn around(&mut self, most: i64) -> i64 {
        let span = u64::try_from(2 * most + 1).unwrap();
        i64::try_from(self.below(span)).unwrap() - most
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nature {
    /// Its clock is off by at most its root dispersion, which is this.
    Honest(u64),
    /// Its clock is off by this and it declares a dispersion of 1 µs.
    Shifted(i64),
    /// Its clock runs this fast, in picoseconds per second.
    Ramp(i64),
    /// Like [`Self::Shifted`] by a random amount that changes with each answer.
    Random(i64),
    /// Stratum 16.
    Unsynchronised,
    /// Leap indicator 3.
    NotReady,
    /// All times are zero.
    Zero,
    /// All times are all ones.
    Huge,
    /// It answers another request than this client's.
    WrongOrigin,
    /// It repeats its first answer.
    Replay,
    /// A kiss-of-death with each answer.
    Kiss([u8; 4]),
    /// Random bytes.
    Garbage,
    /// Honest within 1 µs, with this leap indicator.
    Announces(Leap),
    /// No answer at all.
    Silent,
}

/// A server and the path to it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) nature: Nature,
    pub(crate) there: u64,
    pub(crate) back: u64,
    pub(crate) jitter: u64,
    pub(crate) loss_percent: u64,
}

impl Server {
    pub(crate) fn new(nature: Nature, there: u64, back: u64) -> Self {
        Self { nature, there, back, jitter: there / 2, loss_percent: 0 }
    }

    pub(crate) fn lossy(self, percent: u64) -> Self {
        Self { loss_percent: percent, ..self }
    }
}

/// The raw clock: a line that changes its slope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawClock {
    pub(crate) at: u64,
    pub(crate) raw: u64,
    /// In picoseconds per second.
    pub(crate) rate: i64,
}

impl RawClock {
    pub(crate) fn read(&self, at: u64) -> u64 {
        let passed = i128::from(at) - i128::from(self.at);
        let passed = passed + passed * i128::from(self.rate) / 1_000_000_000_000;
        u64::try_from(i128::from(self.raw) + passed).unwrap()
    }

    /// The time at which the raw clock reads at least `raw`.
    pub(crate) fn when(&self, raw: u64) -> u64 {
        let passed = i128::from(raw) - i128::from(self.raw);
        let passed = passed * 1_000_000_000_000 / (1_000_000_000_000 + i128::from(self.rate));
        u64::try_from(i128::from(self.at) + passed + 1).unwrap_or(0)
    }

    pub(crate) fn turn(&mut self, at: u64, rate: i64) {
        *self = Self { at, raw: self.read(at), rate };
    }
}

/// A packet in flight: it arrives at `at` at server number `server`, or from it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Flight {
    at: std::cmp::Reverse<u64>,
    server: usize,
    is_request: bool,
    bytes: Vec<u8>,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) samples: u64,
    /// Readings whose bounds did not contain the true time.
    pub(crate) outside: u64,
    /// Readings, and stamps, that were not after the one before.
    pub(crate) backward: u64,
    /// Readings with an unknown error.
    pub(crate) unknown: u64,
    /// Seconds in which the clock was synchronised, and those of them in which it called an honest server false.
    pub(crate) synchronised: u64,
    pub(crate) accused: u64,
    /// The true time of the first synchronisation.
    pub(crate) first: Option<u64>,
    /// The largest error bound of a synchronised reading.
    pub(crate) widest: u64,
    /// The largest error of a synchronised reading.
    pub(crate) farthest: u64,
    pub(crate) epoch: u64,
}

/// The world.
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now: u64,
    pub(crate) raw: RawClock,
    pub(crate) wall_off: i64,
    /// The time that the host was suspended.
    pub(crate) suspended: u64,
    pub(crate) servers: Vec<Server>,
    pub(crate) service: ClockService,
    pub(crate) shared: SharedClock,
    /// The leap seconds that have passed: true UTC is this much behind.
    pub(crate) leaps: u64,
    /// The wander of the raw clock per second, in picoseconds per second.
    pub(crate) wander: i64,
    flights: BinaryHeap<Flight>,
    replayed: Option<Vec<u8>>,
    last: (u64, u64, u64),
    pub(crate) base: u64,
}

impl World {
    pub(crate) fn new(seed: u64, servers: &[Server], range: PollRange, rate: i64) -> Self {
        Self::at(BASE, seed, servers, range, rate)
    }

    pub(crate) fn at(
        base: u64,
        seed: u64,
        servers: &[Server],
        range: PollRange,
        rate: i64,
    ) -> Self {
        let raw = RawClock { at: 0, raw: 1_000 * SECOND, rate };
        let ranges = vec![range; servers.len()];
        Self {
            rng: Rng(seed),
            now: 0,
            raw,
            wall_off: 0,
            suspended: 0,
            servers: servers.to_vec(),
            service: ClockService::new(ClockSettings::default(), &ranges, raw.raw),
            shared: SharedClock::default(),
            leaps: 0,
            wander: 10_000,
            flights: BinaryHeap::new(),
            replayed: None,
            last: (0, 0, 0),
            base,
        }
    }

    /// The true time at `at`.
    pub(crate) fn utc(&self, at: u64) -> u64 {
        self.base + at - self.leaps * SECOND
    }

    fn wall(&self) -> u64 {
        self.utc(self.now).saturating_add_signed(self.wall_off)
    }

    /// The host stands still for `nanos`.
    pub(crate) fn suspend(&mut self, nanos: u64) {
        let raw = self.raw.read(self.now);
        self.now += nanos;
        self.suspended += nanos;
        self.raw = RawClock { at: self.now, raw, ..self.raw };
        self.observe();
    }

    pub(crate) fn observe(&mut self) {
        let raw = self.raw.read(self.now);
        let boot = raw + self.suspended;
        let wall = self.wall();
        self.service.observe(HostClocks { raw, boot, wall });
        self.shared.publish(self.service.page());
    }

    fn accuses_an_honest_server(&self) -> bool {
        let parts = self.servers.iter().zip(self.service.sources());
        let mut honest = parts.filter(|(server, _)| matches!(server.nature, Nature::Honest(_)));
        honest.any(|(_, (_, part))| part == SourcePart::Falseticker)
    }

    /// Runs for `nanos`, and reads the clock `readings` times between two events.
    pub(crate) fn run(&mut self, nanos: u64, readings: u64, outcome: &mut Outcome) {
        let end = self.now + nanos;
        let mut second = self.now;
        while self.now < end {
            let wake = self.service.next_wakeup().map_or(u64::MAX, |raw| self.raw.when(raw));
            let flight = self.flights.peek().map_or(u64::MAX, |flight| flight.at.0);
            let next = wake.min(flight).min(second).min(end).max(self.now);
            self.read(next, readings, outcome);
            self.now = next;
            if next == second {
                second += SECOND;
                let rate = self.raw.rate + self.rng.around(self.wander);
                self.raw.turn(next, rate.clamp(-499_000_000, 499_000_000));
                self.observe();
                if self.service.page().status() == ClockStatus::Synchronised {
                    outcome.synchronised += 1;
                    outcome.accused += u64::from(self.accuses_an_honest_server());
                }
            }
            if next == flight {
                self.arrive();
            }
            self.send();
            self.shared.publish(self.service.page());
        }
    }

    /// Sends the requests that are due.
    fn send(&mut self) {
        let nonce = self.rng.next();
        while let Some((server, packet)) = self.service.request(self.raw.read(self.now), nonce) {
            self.service.sent(server, self.raw.read(self.now));
            let path = self.servers[server];
            if !self.rng.chance(path.loss_percent) {
                let at = self.now + path.there + self.delay(path.jitter);
                let bytes = packet.to_vec();
                self.flights.push(Flight {
                    at: std::cmp::Reverse(at),
                    server,
                    is_request: true,
                    bytes,
                });
            }
        }
    }

    /// A delay of up to `jitter`, and sometimes ten times as much.
    fn delay(&mut self, jitter: u64) -> u64 {
        let most = if self.rng.chance(3) { jitter * 10 } else { jitter };
        self.rng.below(most + 1)
    }

    /// A packet arrives.
    fn arrive(&mut self) {
        let Some(flight) = self.flights.pop() else { return };
        if !flight.is_request {
            let raw = self.raw.read(self.now);
            let wall = self.wall();
            let _ = self.service.receive(flight.server, &flight.bytes, raw, wall);
            return;
        }
        let path = self.servers[flight.server];
        let busy = self.rng.below(20 * MICRO);
        let Some(bytes) = self.answer(&flight, busy, path.nature) else { return };
        if !self.rng.chance(path.loss_percent) {
            let at = self.now + busy + path.back + self.delay(path.jitter);
            self.flights.push(Flight {
                at: std::cmp::Reverse(at),
                server: flight.server,
                is_request: false,
                bytes: bytes.clone(),
            });
            // Some networks deliver twice.
            if self.rng.chance(1) {
                let at = std::cmp::Reverse(at + self.rng.below(SECOND));
                self.flights.push(Flight { at, server: flight.server, is_request: false, bytes });
            }
        }
    }

    fn answer(&mut self, flight: &Flight, busy: u64, nature: Nature) -> Option<Vec<u8>> {
        let request = NtpPacket::decode(&flight.bytes).unwrap();
        let mut dispersion = MICRO;
        let off = match nature {
            Nature::Honest(error) => {
                dispersion = error;
                // The answer's own rounding takes part of the error.
                self.rng.around(i64::try_from(error).unwrap() * 9 / 10)
            }
            Nature::Shifted(off) => off,
            Nature::Ramp(rate) => {
                i64::try_from(i128::from(self.now) * i128::from(rate) / 1_000_000_000_000).unwrap()
            }
            Nature::Random(most) => self.rng.around(most),
            Nature::Silent => return None,
            Nature::Replay if self.replayed.is_some() => return self.replayed.clone(),
            Nature::Garbage => {
                let length = self.rng.below(100);
                let mut bytes = flight.bytes.clone();
                bytes.resize(usize::try_from(length).unwrap(), 0);
                bytes.iter_mut().for_each(|byte| *byte = self.rng.next().to_be_bytes()[0]);
                return Some(bytes);
            }
            Nature::Unsynchronised
            | Nature::NotReady
            | Nature::Zero
            | Nature::Huge
            | Nature::WrongOrigin
            | Nature::Replay
            | Nature::Kiss(_)
            | Nature::Announces(_) => 0,
        };
        let time = |at: u64| NtpTime::from_unix(self.utc(at).saturating_add_signed(off));
        let mut packet = NtpPacket {
            version: 4,
            mode: 4,
            stratum: 2,
            precision: -23,
            root_delay: NtpShort::from_nanos(0),
            root_dispersion: NtpShort::from_nanos(dispersion),
            origin: request.transmit,
            receive: time(self.now),
            transmit: time(self.now + busy),
            ..NtpPacket::default()
        };
        match nature {
            Nature::Unsynchronised => packet.stratum = 16,
            Nature::NotReady => packet.leap = Leap::Unknown,
            Nature::Announces(leap) => packet.leap = leap,
            Nature::Zero => (packet.receive, packet.transmit) = (NtpTime(0), NtpTime(0)),
            Nature::Huge => {
                (packet.receive, packet.transmit) = (NtpTime(u64::MAX), NtpTime(u64::MAX))
            }
            Nature::WrongOrigin => packet.origin = NtpTime(self.rng.next()),
            Nature::Kiss(code) => (packet.stratum, packet.reference_id) = (0, code),
            Nature::Honest(_)
            | Nature::Shifted(_)
            | Nature::Ramp(_)
            | Nature::Random(_)
            | Nature::Replay
            | Nature::Garbage
            | Nature::Silent => {}
        }
        let bytes = packet.encode().to_vec();
        if nature == Nature::Replay {
            self.replayed = Some(bytes.clone());
        }
        Some(bytes)
    }

    /// Reads the clock at `readings` instants until `end`, in order.
    fn read(&mut self, end: u64, readings: u64, outcome: &mut Outcome) {
        let span = end - self.now;
        for one in 0..readings {
            let at = self.now + span / readings.max(1) * one;
            let raw = self.raw.read(at);
            let wall = self.wall();
            let reading = self.shared.read(raw, || wall);
            self.check(at, &reading, outcome);
            let stamp = self.shared.stamp(raw, || wall).nanos;
            outcome.backward += u64::from(stamp <= self.last.2);
            self.last.2 = stamp;
        }
    }

    fn check(&mut self, at: u64, reading: &ClockReading, outcome: &mut Outcome) {
        let utc = self.utc(at);
        outcome.samples += 1;
        let (epoch, nanos, _) = self.last;
        // Only the first synchronisation may step back.
        outcome.backward += u64::from(epoch > 0 && reading.nanos < nanos);
        (self.last.0, self.last.1) = (reading.epoch, reading.nanos);
        outcome.epoch = reading.epoch;
        let bounds = reading.bounds;
        outcome.outside += u64::from(!(bounds.earliest..=bounds.latest).contains(&utc));
        if reading.error() == u64::MAX {
            outcome.unknown += 1;
            return;
        }
        if reading.status == ClockStatus::Synchronised {
            outcome.first.get_or_insert(at);
            outcome.widest = outcome.widest.max(reading.error());
            outcome.farthest = outcome.farthest.max(reading.nanos.abs_diff(utc));
        }
    }
}

/// A random network: 1 to 7 servers, of which a minority is of any nature, with a raw clock of up to 400 ppm.
pub(crate) fn random(seed: u64) -> World {
    let mut rng = Rng(seed);
    let count = 1 + rng.below(7);
    let lying = rng.below(count.div_ceil(2));
    let range = if rng.chance(50) { PollRange::OWN } else { PollRange { min: 2, max: 6 } };
    let servers: Vec<Server> = (0..count)
        .map(|at| {
            let there = 10 * MICRO + rng.scaled(30 * MILLI);
            let back = 10 * MICRO + rng.scaled(30 * MILLI);
            let honest = Nature::Honest(rng.scaled(10 * MILLI));
            let nature = if at < lying { liar(&mut rng) } else { honest };
            Server::new(nature, there, back).lossy(rng.below(20))
        })
        .collect();
    let rate = rng.around(400_000_000);
    let mut world = World::new(seed, &servers, range, rate);
    world.wall_off = rng.around(10_000_000_000_000);
    world.wander = rng.around(20_000).abs();
    world
}

fn liar(rng: &mut Rng) -> Nature {
    match rng.below(12) {
        0 => Nature::Shifted(rng.around(100_000_000_000)),
        1 => Nature::Shifted(rng.around(1_000_000)),
        2 => Nature::Shifted(rng.around(30_000_000)),
        3 => Nature::Ramp(rng.around(400_000_000)),
        4 => Nature::Random(rng.around(10_000_000).abs()),
        5 => Nature::Zero,
        6 => Nature::Huge,
        7 => Nature::WrongOrigin,
        8 => Nature::Replay,
        9 => Nature::Garbage,
        10 => Nature::Kiss(*b"RATE"),
        _ => Nature::Silent,
    }
}
