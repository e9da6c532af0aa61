//! A link of 1 Mbit/s that all observers share, first in, first out.

use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The rate of the link in bytes per second.
pub(super) const RATE: u64 = 125_000;
/// The delay of the link in addition to the time of transmission.
pub(super) const PROPAGATION: Duration = Duration::from_millis(20);
/// The bytes of a message without its updates: IPv4, UDP and the message's own header.
pub(super) const MESSAGE_BYTES: u64 = 60;
/// The bytes of an update: position and velocity of 12 bytes each, and a header.
pub(super) const UPDATE_BYTES: u64 = 42;
/// The largest message.
pub(super) const LARGEST: u64 = 1_400;

/// A message on the link.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// Its observer, and None for one that reaches all.
    pub(super) observer: Option<usize>,
    /// The cars whose motion at the time of sending it carries.
    pub(super) cars: Vec<usize>,
    pub(super) bytes: u64,
    /// When its updates became due, if they are promised.
    pub(super) promised: Vec<Instant>,
    pub(super) number: u64,
}

impl Packet {
    /// Returns messages of updates of `cars` to an observer, as full as possible.
    pub(super) fn of(observer: Option<usize>, cars: &[usize]) -> impl Iterator<Item = Self> {
        let room = usize::try_from((LARGEST - MESSAGE_BYTES) / UPDATE_BYTES).unwrap_or(1);
        cars.chunks(room).map(move |cars| Self {
            observer,
            cars: cars.to_vec(),
            bytes: bytes_of(cars.len()),
            promised: Vec::new(),
            number: 0,
        })
    }
}

/// Returns the bytes of a message with this number of updates.
pub(super) fn bytes_of(updates: usize) -> u64 {
    MESSAGE_BYTES + UPDATE_BYTES * u64::try_from(updates).unwrap_or_default()
}

/// The link.
#[derive(Debug, Default)]
pub(super) struct Link<T> {
    free: Instant,
    flights: VecDeque<(Instant, T)>,
}

impl<T> Link<T> {
    pub(super) fn new() -> Self {
        Self { free: Instant::ZERO, flights: VecDeque::new() }
    }

    /// Sends something of `bytes`.
    pub(super) fn send(&mut self, now: Instant, bytes: u64, message: T) {
        let takes = Duration::from_secs(1).mul_div(bytes, RATE);
        self.free = self.free.max(now) + takes;
        self.flights.push_back((self.free + PROPAGATION, message));
    }

    /// Returns the next message that has arrived by now, and when it did.
    pub(super) fn receive(&mut self, now: Instant) -> Option<(Instant, T)> {
        self.flights.front().filter(|(at, _)| *at <= now)?;
        self.flights.pop_front()
    }
}
