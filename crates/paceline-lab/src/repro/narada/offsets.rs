//! The offset of the clock from the system clock over time: figures 12 to 14, in virtual time.

use super::Figures;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::float;
use crate::chart::{self, Line};
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
    /// The printed offset of the system clock at the start, in milliseconds, an input; it is behind.
    first_ms: u64,
    /// The printed smallest and largest change, and the sum of all, in milliseconds. The sum is an input.
    changes_ms: [Option<u64>; 3],
    /// The oscillator is alternately faster and slower by this, for half an hour each, in 10⁻⁹.
    wander_ppb: u64,
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
        wander_ppb: 0,
        has_daemon: false,
        trip_ms: (20, 20),
    },
    Machine {
        figure: 13,
        place: "Indiana, no NTP daemon",
        first_ms: 544_461,
        changes_ms: [Some(0), Some(3), Some(381)],
        wander_ppb: 0,
        has_daemon: false,
        trip_ms: (30, 20),
    },
    Machine {
        figure: 14,
        place: "Indiana, with an NTP daemon",
        first_ms: 1,
        changes_ms: [Some(0), Some(1), None],
        wander_ppb: 0,
        has_daemon: true,
        trip_ms: (30, 20),
    },
];

/// The time for which a wandering oscillator is fast, and then slow.
const HALF: u64 = 1_800 * SECOND;
/// The clock has settled after this time.
const SETTLED: u64 = 1_800 * SECOND;

/// Oscillators and servers that the paper does not have: a name, the drift in milliseconds over the simulated time, and
/// the wander.
const OTHERS: [(&str, u64, u64); 3] = [
    ("slow by 200 ppm", 2_160, 0),
    ("wandering by ± 10 ppm every half hour", 0, 10_000),
    ("slow by 50 ppm, wandering by ± 50 ppm", 540, 50_000),
];

/// The sum of the drift, in milliseconds, of a machine for which the paper prints none.
const ASSUMED_MS: u64 = 400;

impl Machine {
    /// The raw clock at a true time: slow by the printed total change in [`HOURS`], or by [`ASSUMED_MS`].
    fn raw(&self, now: u64) -> u64 {
        let total = u128::from(self.changes_ms[2].unwrap_or(ASSUMED_MS)) * 1_000_000;
        let passed = u128::from(now - START);
        let lost = passed * total / u128::from(HOURS * 3_600 * SECOND);
        let cycle = u128::from(2 * HALF);
        let (phase, half) = (passed % cycle, u128::from(HALF));
        let slow = if phase < half { phase } else { cycle - phase };
        let lost = lost + slow * u128::from(self.wander_ppb) / 1_000_000_000;
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
    /// The largest error of a reading after the clock has settled, and the largest bound that it states, in nanoseconds.
    error: u64,
    stated: u64,
    /// The error of the servers' clocks, which they do not know; it must be 0.
    wrong: u64,
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
            error: 0,
            stated: 0,
            wrong: 0,
        }
    }

    /// Simulates all hours.
    fn finish(mut self) -> Self {
        (0..HOURS * 3_600).for_each(|second| self.step(START + second * SECOND));
        self
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
        let at = reading(now + out + self.wrong);
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
        if now - START > SETTLED {
            let TimeBounds { earliest, latest } = reading.bounds;
            let stated = reading.nanos.abs_diff(earliest).max(reading.nanos.abs_diff(latest));
            self.error = self.error.max(reading.nanos.abs_diff(now));
            self.stated = self.stated.max(stated);
        }
    }

    /// Adds the bounds that every clock must meet, whatever its oscillator.
    fn rows(&self, section: &mut Section, name: &str) {
        for (quantity, count) in
            [("outside of their bounds", self.outside), ("before an earlier one", self.backward)]
        {
            let quantity = format!("{name}readings {quantity}");
            section.must(&quantity, Unit::Count, float(count), f64::NAN, Bound::AtMost(0.0));
        }
        let millis = |nanos: u64| float(nanos) / 1e6;
        let (error, stated) = (millis(self.error), millis(self.stated));
        let quantity = format!("{name}largest error after 30 min (largest bound that it states)");
        section.must(&quantity, Unit::Millis, error, f64::NAN, Bound::AtMost(stated));
    }
}

/// Simulates a machine.
pub(super) fn section(machine: &Machine, figures: &Figures) -> Result<Section> {
    let run = Run::new(*machine).finish();
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
    let mut section = Section::new(title).against_paper().repeatable();
    let printed = float(machine.first_ms);
    let near = Bound::Near(printed, float(machine.trip_ms.0 + machine.trip_ms.1) / 2.0);
    section.must("initial offset (input)", Unit::Millis, first, printed, near);
    let smallest = changes.iter().copied().fold(f64::INFINITY, f64::min);
    section.show("smallest change of an update", Unit::Millis, smallest, least);
    section.show(
        "largest change of an update",
        Unit::Millis,
        changes.iter().copied().fold(0.0, f64::max),
        most,
    );
    section.show("total change (drift: input)", Unit::Millis, changes.iter().sum(), total);
    run.rows(&mut section, "");
    section.note(
        "The printed initial offset and total change are inputs, so our values of them are no results: they show only that \
         the clock finds them again. The predictions are the last three rows. The paper states neither duration, drift, delays \
         nor the interval of requests, so the changes of single updates are not reproduced. Here each server receives a \
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

/// Returns the machine of figure 12 with another oscillator.
fn with(drift_ms: u64, wander_ppb: u64) -> Machine {
    let [cardiff, ..] = MACHINES;
    Machine { changes_ms: [None, None, Some(drift_ms)], wander_ppb, ..cardiff }
}

/// Simulates other oscillators, about which the paper says nothing.
pub(super) fn others() -> Section {
    let title = format!("Other oscillators than in figure 12, {HOURS} h in virtual time");
    let mut section = Section::new(title).against_paper().repeatable();
    for (name, drift_ms, wander_ppb) in OTHERS {
        Run::new(with(drift_ms, wander_ppb)).finish().rows(&mut section, &format!("{name}: "));
    }
    section
}

/// Returns a number that depends only on `seed`.
fn random(seed: u64) -> u64 {
    let mixed = (seed ^ 0x5DEE_CE66).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 32)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_met(run: &Run) -> bool {
        let mut section = Section::new("planted").repeatable();
        run.rows(&mut section, "");
        section.is_met()
    }

    #[test]
    fn bounds_fail_if_all_servers_are_wrong_or_the_oscillator_breaks() {
        assert!(is_met(&Run::new(with(540, 50_000)).finish()));
        // Planted: all servers are 100 ms ahead, and state an error of 0.5 ms.
        let wrong = Run { wrong: 100_000_000, ..Run::new(with(540, 0)) };
        assert!(!is_met(&wrong.finish()));
        // Planted: the oscillator wanders by one part in 100, far more than the clock assumes.
        assert!(!is_met(&Run::new(with(0, 20_000_000)).finish()));
    }
}
