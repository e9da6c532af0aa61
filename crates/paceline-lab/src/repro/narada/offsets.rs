//! The offset of the clock from the system clock over time: figures 12 to 14, in virtual time.

use super::Figures;
use super::chart::{self, Line};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::float;
use anyhow::Result;
use paceline_time::clock::service::{ClockService, ClockSettings, ServerFacts};
use paceline_time::ntp::seal::NtpDatagram;
use paceline_time::ntp::source::PollRange;
use paceline_time::server::NtpServer;
use paceline_time::{ClockReading, ClockStatus, TimeBounds};
use std::net::{IpAddr, Ipv4Addr};

const SECOND: u64 = 1_000_000_000;
/// The true time at the start.
const START: u64 = 1_100_000_000 * SECOND;
/// The simulated time.
const HOURS: u64 = 3;
const SERVERS: usize = 4;
/// The interval of requests: 2^6 s.
const POLL: i8 = 6;
/// The root dispersion of the servers.
const ERROR: u64 = 500_000;

/// A machine of the paper.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    figure: u32,
    place: &'static str,
    /// The printed offset of the system clock at the start, in milliseconds; it is behind.
    first_ms: u64,
    /// The printed smallest and largest change, and the sum of all, in milliseconds.
    changes_ms: [Option<u64>; 3],
    /// Another program keeps the system clock within 200 µs after the start.
    has_daemon: bool,
    /// The least round trip to each server and its variation, in milliseconds; the paper does not state them.
    trip_ms: (u64, u64),
}

pub(super) const MACHINES: [Machine; 3] = [
    Machine {
        figure: 12,
        place: "Cardiff, no NTP daemon",
        first_ms: 19_235,
        changes_ms: [Some(0), Some(5), Some(527)],
        has_daemon: false,
        trip_ms: (20, 20),
    },
    Machine {
        figure: 13,
        place: "Indiana, no NTP daemon",
        first_ms: 544_461,
        changes_ms: [Some(0), Some(3), Some(381)],
        has_daemon: false,
        trip_ms: (30, 20),
    },
    Machine {
        figure: 14,
        place: "Indiana, with an NTP daemon",
        first_ms: 1,
        changes_ms: [Some(0), Some(1), None],
        has_daemon: true,
        trip_ms: (30, 20),
    },
];

/// The sum of the drift, in milliseconds, of a machine for which the paper prints none.
const ASSUMED_MS: u64 = 400;

impl Machine {
    /// The raw clock at a true time: slow by the printed total change in [`HOURS`], or by [`ASSUMED_MS`].
    fn raw(&self, now: u64) -> u64 {
        let total = u128::from(self.changes_ms[2].unwrap_or(ASSUMED_MS)) * 1_000_000;
        let passed = u128::from(now - START);
        let lost = passed * total / u128::from(HOURS * 3_600 * SECOND);
        SECOND + u64::try_from(passed - lost).unwrap_or_default()
    }

    /// The system clock at a true time.
    fn wall(&self, now: u64) -> u64 {
        let behind = self.first_ms * 1_000_000;
        match self.has_daemon {
            true if now - START > SECOND => now + random(now / (64 * SECOND)) % 400_000 - 200_000,
            true => now - behind,
            false => START - behind + self.raw(now) - SECOND,
        }
    }
}

/// An answer under way.
struct Flight {
    source: usize,
    arrives: u64,
    bytes: NtpDatagram,
}

/// The state of a run.
struct Run {
    machine: Machine,
    service: ClockService,
    server: NtpServer,
    flights: Vec<Flight>,
    /// The time of each update, and the offset from the system clock, in nanoseconds.
    offsets: Vec<(u64, i64)>,
    outside: u64,
    backward: u64,
    last: u64,
}

impl Run {
    fn new(machine: Machine) -> Self {
        let ranges = [PollRange { min: POLL, max: POLL }; SERVERS];
        let service = ClockService::new(ClockSettings::default(), &ranges, machine.raw(START));
        let server = NtpServer::default();
        Self {
            machine,
            service,
            server,
            flights: Vec::new(),
            offsets: Vec::new(),
            outside: 0,
            backward: 0,
            last: 0,
        }
    }

    /// Advances one second.
    fn step(&mut self, now: u64) {
        let raw = self.machine.raw(now);
        while let Some((source, request)) = self.service.request(raw, random(now ^ raw)) {
            self.service.sent(source, raw);
            self.send(source, &request, now);
        }
        let arrived = self.flights.extract_if(.., |flight| flight.arrives <= now + SECOND);
        let mut arrived: Vec<_> = arrived.collect();
        arrived.sort_by_key(|flight| flight.arrives);
        for flight in arrived {
            let before = self.service.updates();
            let (raw, wall) = (self.machine.raw(flight.arrives), self.machine.wall(flight.arrives));
            let _ = self.service.receive(flight.source, &flight.bytes, raw, wall);
            if self.service.updates() > before {
                let off = i128::from(self.service.page().time(raw)) - i128::from(wall);
                self.offsets.push((flight.arrives, i64::try_from(off).unwrap_or_default()));
            }
        }
        self.check(now + SECOND);
    }

    fn send(&mut self, source: usize, request: &[u8], now: u64) {
        let (least, varies) = self.machine.trip_ms;
        let seed = now ^ (source as u64) << 60;
        let [out, back] =
            [1, 2].map(|way| least * 500_000 + random(seed + way) % (varies * 500_000));
        let reading = |nanos| ClockReading {
            nanos,
            bounds: TimeBounds { earliest: nanos - ERROR, latest: nanos + ERROR },
            status: ClockStatus::Synchronised,
            epoch: 1,
        };
        let facts = ServerFacts { stratum: 1, reference_id: *b"GPS\0", ..ServerFacts::default() };
        let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, u8::try_from(source).unwrap_or(u8::MAX)));
        let at = reading(now + out);
        let answer = self.server.answer(request, client, now, &facts, (at, at));
        let arrives = now + out + back;
        self.flights.extend(answer.map(|bytes| Flight { source, arrives, bytes }));
    }

    /// Compares the clock with the true time.
    fn check(&mut self, now: u64) {
        let reading = self.service.read(self.machine.raw(now), self.machine.wall(now));
        if reading.status == ClockStatus::Unsynchronised {
            return;
        }
        self.outside += u64::from(now < reading.bounds.earliest || now > reading.bounds.latest);
        self.backward += u64::from(reading.nanos < self.last);
        self.last = reading.nanos;
    }
}

/// Simulates a machine.
pub(super) fn section(machine: &Machine, figures: &Figures) -> Result<Section> {
    let mut run = Run::new(*machine);
    (0..HOURS * 3_600).for_each(|second| run.step(START + second * SECOND));
    let title = format!(
        "Figure {}: offset over time, {}, {HOURS} h in virtual time",
        machine.figure, machine.place
    );
    let millis = |nanos: u64| float(nanos) / 1e6;
    let first = run.offsets.first().map_or(f64::NAN, |(_, offset)| millis(offset.unsigned_abs()));
    let changes = run.offsets.windows(2).filter_map(|pair| match pair {
        [(_, before), (_, after)] => Some(millis(after.abs_diff(*before))),
        _ => None,
    });
    let changes: Vec<f64> = changes.collect();
    let [least, most, total] = machine.changes_ms.map(|it| it.map_or(f64::NAN, float));
    let mut section = Section::new(title).against_paper();
    let printed = float(machine.first_ms);
    let near = Bound::Near(printed, float(machine.trip_ms.0 + machine.trip_ms.1) / 2.0);
    section.must("initial offset", Unit::Millis, first, printed, near);
    let smallest = changes.iter().copied().fold(f64::INFINITY, f64::min);
    section.show("smallest change of an update", Unit::Millis, smallest, least);
    section.show(
        "largest change of an update",
        Unit::Millis,
        changes.iter().copied().fold(0.0, f64::max),
        most,
    );
    section.show("total change", Unit::Millis, changes.iter().sum(), total);
    let none = f64::NAN;
    section.must(
        "readings outside of their bounds",
        Unit::Count,
        float(run.outside),
        none,
        Bound::AtMost(0.0),
    );
    section.must(
        "readings before an earlier one",
        Unit::Count,
        float(run.backward),
        none,
        Bound::AtMost(0.0),
    );
    section.note(
        "The paper states neither duration, drift, delays nor the interval of requests. Here each server receives a \
         request every 64 s.",
    );
    section.note(match machine.changes_ms[2] {
        Some(_) => {
            "The drift is the one whose sum over the simulated time is the printed total change."
                .to_owned()
        }
        None => format!(
            "The paper prints no total change; the drift is assumed to sum up to {ASSUMED_MS} ms."
        ),
    });
    let start = run.offsets.first().map_or(0, |(_, offset)| *offset);
    let points = run.offsets.iter().map(|(at, offset)| {
        let off = offset.saturating_sub(start);
        let sign = if off < 0 { -1.0 } else { 1.0 };
        (float((at - START) / SECOND) / 60.0, sign * millis(off.unsigned_abs()))
    });
    let line = Line { name: "offset since the start".to_owned(), points: points.collect() };
    let title = format!("Figure {}: {}", machine.figure, machine.place);
    figures.write(machine.figure, &chart::svg(&title, ["minutes", "ms"], &[line]))?;
    Ok(section)
}

/// Returns a number that depends only on `seed`.
fn random(seed: u64) -> u64 {
    let mixed = (seed ^ 0x5DEE_CE66).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 32)) | 1
}
