//! The client's state of one server: polls, bursts, back-off, and the checks of its answers (RFC 5905, sections 8, 9
//! and 13, and RFC 8633).

use super::filter::{ClockFilter, Measurement};
use super::keys::NtpKey;
use super::packet::{Leap, MODE_SERVER, NtpPacket, PACKET_BYTES};
use super::seal::{NtpDatagram, Seal};
use super::{DISTANCE_MAX, FREQUENCY_MAX, STRATUM_MAX, growth};
use core::fmt;

/// The number of requests in a burst (BCOUNT).
pub const BURST: u8 = 8;
/// The limit of the poll hysteresis (LIMIT).
const HYSTERESIS: i32 = 30;
/// An offset below this multiple of the jitter lengthens the poll interval (PGATE).
const GATE: u64 = 4;
/// A server that is not synchronised is asked more and more rarely, up to this interval (2^4 s) or the shortest one.
const POLL_ABSTAINING: i8 = 4;
/// The distance of requests in a burst is at most 2 s.
const BURST_SPACING: u64 = 2_000_000_000;
/// The number of unanswered requests after which a server counts as dead.
const DEAD_AFTER: u32 = 8;
/// The number of answers after which a server is used.
pub const SAMPLES_MIN: u8 = 4;

/// The range of the interval between requests to one server, as logarithms to base 2 of seconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PollRange {
    /// The shortest interval, from -4 (62.5 ms).
    pub min: i8,
    /// The longest interval, at least the shortest, up to 17 (36 h).
    pub max: i8,
}

impl PollRange {
    /// The range of RFC 5905 for servers on the Internet: 16 s to 17 min.
    pub const PUBLIC: Self = Self { min: 4, max: 10 };
    /// The range for servers of one's own: 1 s to 16 s.
    pub const OWN: Self = Self { min: 0, max: 4 };

    /// Returns the distance of requests in a burst, in nanoseconds: 2 s, or a quarter of a shortest interval below 8 s.
    #[must_use]
    pub fn burst_spacing(self) -> u64 {
        (interval(self.min) / 4).min(BURST_SPACING)
    }
}

/// Returns the nanoseconds of 2^`poll` seconds, from 2^-4 to 2^17.
#[must_use]
pub fn interval(poll: i8) -> u64 {
    let shift = u32::from(poll.clamp(-4, 17).saturating_add(4).unsigned_abs());
    62_500_000 << shift
}

/// The cause for which an answer of a server is not used.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rejected {
    /// It has fewer than 48 bytes, or is of another version or mode.
    Malformed,
    /// It answers no request that is waiting: a duplicate, a replay, a late or a forged answer.
    Unrequested,
    /// The server is not synchronised.
    Unsynchronised,
    /// Its times are zero, decreasing, or out of range.
    Time,
    /// It was faster than the server's own times permit.
    Delay,
    /// The distance to the reference clock exceeds 1 s.
    Distance,
    /// The server limits its clients' rate (kiss-of-death `RATE`); polls become rarer.
    RateLimited,
    /// The server refuses this client (kiss-of-death `DENY` or `RSTR`); it gets no more requests.
    Denied,
    /// It has no authentication code by the key of the server.
    Unauthenticated,
    /// The server does not accept the key (crypto-NAK).
    KeyRefused,
}

impl Rejected {
    /// All causes, in the order of [`NtpSource::rejections`].
    pub const ALL: [Self; 10] = [
        Self::Malformed,
        Self::Unrequested,
        Self::Unsynchronised,
        Self::Time,
        Self::Delay,
        Self::Distance,
        Self::RateLimited,
        Self::Denied,
        Self::Unauthenticated,
        Self::KeyRefused,
    ];

    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unrequested => "unrequested",
            Self::Unsynchronised => "unsynchronised",
            Self::Time => "time",
            Self::Delay => "delay",
            Self::Distance => "distance",
            Self::RateLimited => "rate_limited",
            Self::Denied => "denied",
            Self::Unauthenticated => "unauthenticated",
            Self::KeyRefused => "key_refused",
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Pending {
    nonce: u64,
    sent: u64,
}

/// The fields of a server's last usable answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerState {
    /// The leap second that it announces.
    pub leap: Leap,
    /// Its stratum.
    pub stratum: u8,
    /// Its reference clock or server.
    pub reference_id: [u8; 4],
    /// Its round-trip delay to the reference clock, in nanoseconds.
    pub root_delay: u64,
    /// Its largest error to the reference clock in addition to half that delay, in nanoseconds.
    pub root_dispersion: u64,
}

/// The client's state of one server. Instants are those of the raw clock in nanoseconds.
#[derive(Clone, Debug)]
pub struct NtpSource {
    range: PollRange,
    key: Option<NtpKey>,
    poll: i8,
    /// The shortest interval that the server permits: [`PollRange::min`], or more after `RATE`.
    floor: i8,
    hysteresis: i32,
    reach: u8,
    unanswered: u32,
    burst: u8,
    next: u64,
    last_sent: Option<u64>,
    pending: Option<Pending>,
    filter: ClockFilter,
    state: Option<ServerState>,
    is_denied: bool,
    /// The last answer said that the server is not synchronised.
    is_abstaining: bool,
    /// No answer with the right authentication code has arrived since one without it.
    is_unauthenticated: bool,
    /// The usable answers since the measurements were last removed.
    fresh: u8,
    rejections: [u64; Rejected::ALL.len()],
    answers: u64,
}

impl NtpSource {
    /// Creates the state of a server whose first burst begins at `raw`.
    #[must_use]
    pub fn new(range: PollRange, raw: u64) -> Self {
        Self {
            range,
            key: None,
            poll: range.min,
            floor: range.min,
            hysteresis: 0,
            reach: 0,
            unanswered: 0,
            burst: BURST,
            next: raw,
            last_sent: None,
            pending: None,
            filter: ClockFilter::default(),
            state: None,
            is_denied: false,
            is_abstaining: false,
            is_unauthenticated: false,
            fresh: 0,
            rejections: [0; Rejected::ALL.len()],
            answers: 0,
        }
    }

    /// Uses only answers with an authentication code by `key`.
    pub fn set_key(&mut self, key: NtpKey) {
        self.key = Some(key);
    }

    /// Returns the bytes of a request to this server.
    #[must_use]
    pub fn datagram(&self, request: &NtpPacket) -> NtpDatagram {
        NtpDatagram::new(request, self.key.as_ref())
    }

    /// Returns the instant of the next request; `None` if the server has denied this client.
    #[must_use]
    pub fn next_request(&self) -> Option<u64> {
        (!self.is_denied).then_some(self.next)
    }

    /// Returns the request that is due at `raw`, if one is. `nonce` must be random.
    ///
    /// Call [`Self::sent`] when it leaves.
    pub fn request(&mut self, raw: u64, nonce: u64) -> Option<NtpPacket> {
        if self.is_denied || raw < self.next {
            return None;
        }
        // The last request stayed without an answer.
        if self.last_sent.is_some() && self.pending.take().is_some() {
            self.note_silence();
        }
        self.reach <<= 1;
        self.burst = self.burst.saturating_sub(1);
        let wait = if self.burst > 0 && !self.is_dead() {
            self.burst_spacing()
        } else {
            interval(self.poll)
        };
        self.next = raw.saturating_add(wait);
        // Zero means an unknown time.
        let nonce = nonce.max(1);
        self.pending = Some(Pending { nonce, sent: raw });
        self.last_sent = Some(raw);
        Some(NtpPacket::request(nonce, self.poll))
    }

    /// The distance of requests in a burst; a server that limits the rate gets none.
    fn burst_spacing(&self) -> u64 {
        if self.floor > self.range.min { interval(self.floor) } else { self.range.burst_spacing() }
    }

    fn note_silence(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
        if self.reach & 0b111 == 0 {
            self.filter.push_silence();
        }
        if self.unanswered.is_multiple_of(DEAD_AFTER) {
            self.poll = self.poll.saturating_add(1).min(self.range.max);
        }
    }

    /// Notes that the request of [`Self::request`] left at `raw` or later.
    pub fn sent(&mut self, raw: u64) {
        if let Some(pending) = &mut self.pending {
            pending.sent = raw.max(pending.sent);
        }
    }

    /// Takes an answer that arrived at `raw` or earlier. `wall` is any estimate of UTC in nanoseconds since 1970, less
    /// than 68 years off; it determines the era.
    ///
    /// # Errors
    /// Returns the cause for which the answer is not used; it is also counted.
    pub fn receive(&mut self, bytes: &[u8], raw: u64, wall: u64) -> Result<(), Rejected> {
        let taken = self.take(bytes, raw, wall);
        if let Err(cause) = taken {
            let at = Rejected::ALL.iter().position(|one| *one == cause);
            if let Some(count) = at.and_then(|at| self.rejections.get_mut(at)) {
                *count += 1;
            }
        }
        taken
    }

    fn take(&mut self, bytes: &[u8], raw: u64, wall: u64) -> Result<(), Rejected> {
        let packet = NtpPacket::decode(bytes).ok_or(Rejected::Malformed)?;
        let is_own = (3..=4).contains(&packet.version) && packet.mode == MODE_SERVER;
        if !is_own || bytes.len() < PACKET_BYTES {
            return Err(Rejected::Malformed);
        }
        let matching = self.pending.filter(|it| it.nonce == packet.origin.0);
        let pending = matching.ok_or(Rejected::Unrequested)?;
        // The right answer may still arrive after one that anybody on the path can write.
        self.authenticate(bytes)?;
        self.pending = None;
        if packet.stratum == 0 {
            return Err(self.kissed(packet.reference_id, raw));
        }
        if packet.leap == Leap::Unknown || packet.stratum >= STRATUM_MAX {
            self.state = None;
            self.is_abstaining = true;
            let rarest = POLL_ABSTAINING.min(self.range.max).max(self.floor);
            self.poll = self.poll.saturating_add(1).min(rarest);
            return Err(Rejected::Unsynchronised);
        }
        let measurement = measure(&packet, pending.sent, raw.max(pending.sent), wall)?;
        let was_silent = (self.reach == 0 && self.answers > 0) || self.is_abstaining;
        self.reach |= 1;
        self.unanswered = 0;
        self.answers += 1;
        self.is_abstaining = false;
        self.fresh = self.fresh.saturating_add(1);
        self.filter.push(measurement);
        self.state = Some(ServerState {
            leap: packet.leap,
            stratum: packet.stratum,
            reference_id: packet.reference_id,
            root_delay: packet.root_delay.as_nanos(),
            root_dispersion: packet.root_dispersion.as_nanos(),
        });
        if was_silent {
            self.poll = self.floor;
            self.restart(raw);
        }
        Ok(())
    }

    /// Checks the authentication code of an answer, if this server has a key.
    fn authenticate(&mut self, bytes: &[u8]) -> Result<(), Rejected> {
        let Some(key) = &self.key else { return Ok(()) };
        let seal = Seal::of(bytes);
        self.is_unauthenticated = !seal.is_by(key);
        match seal {
            _ if !self.is_unauthenticated => Ok(()),
            Seal::Refused => Err(Rejected::KeyRefused),
            Seal::None | Seal::Code { .. } | Seal::Malformed => Err(Rejected::Unauthenticated),
        }
    }

    /// Obeys a kiss-of-death.
    fn kissed(&mut self, code: [u8; 4], raw: u64) -> Rejected {
        match &code {
            b"DENY" | b"RSTR" => {
                self.is_denied = true;
                self.state = None;
                Rejected::Denied
            }
            b"RATE" => {
                self.floor = self.floor.max(self.poll).saturating_add(1).min(17);
                self.poll = self.floor;
                self.burst = 0;
                self.next = raw.saturating_add(interval(self.poll));
                Rejected::RateLimited
            }
            _ => Rejected::Unsynchronised,
        }
    }

    /// Removes all measurements and starts a burst, because they no longer hold.
    pub fn forget(&mut self, raw: u64) {
        self.filter.clear();
        self.fresh = 0;
        self.pending = None;
        self.poll = self.floor;
        self.restart(raw);
    }

    /// Starts a burst, no sooner after the last request than a burst permits.
    fn restart(&mut self, raw: u64) {
        self.burst = BURST;
        let spacing = self.burst_spacing();
        let soonest = self.last_sent.map_or(raw, |sent| sent.saturating_add(spacing));
        self.next = self.next.min(soonest.max(raw));
    }

    /// Adapts the poll interval: longer while `residual`, the difference of the clock from this server in nanoseconds,
    /// lies within the jitter, else shorter.
    pub fn adapt(&mut self, residual: u64, jitter: u64) {
        let step = i32::from(self.poll.max(1));
        let is_calm = residual <= jitter.max(1_000).saturating_mul(GATE);
        self.hysteresis += if is_calm { step } else { -2 * step };
        if self.hysteresis.abs() >= HYSTERESIS {
            let toward = if self.hysteresis > 0 { 1 } else { -1 };
            let top = self.range.max.max(self.floor);
            self.poll = self.poll.saturating_add(toward).clamp(self.floor, top);
            self.hysteresis = 0;
        }
    }

    /// Returns the measurements.
    #[must_use]
    pub const fn filter(&self) -> &ClockFilter {
        &self.filter
    }

    /// Returns the fields of the last usable answer; `None` before the first, and after the server said that it is not
    /// synchronised.
    #[must_use]
    pub const fn state(&self) -> Option<&ServerState> {
        self.state.as_ref()
    }

    /// Returns true if the server is synchronised, has answered one of the last 4 requests, and has answered 4 since its
    /// measurements were last removed.
    #[must_use]
    pub const fn is_fit(&self) -> bool {
        let is_reached = self.reach & 0b1111 != 0 && self.fresh >= SAMPLES_MIN;
        is_reached && self.state.is_some() && !self.is_denied
    }

    /// Returns true if the server has not answered for 8 requests in succession.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.unanswered >= DEAD_AFTER
    }

    /// Returns true if the server denies this client.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.is_denied
    }

    /// Returns true if the server's last answer said that it is not synchronised.
    #[must_use]
    pub const fn is_abstaining(&self) -> bool {
        self.is_abstaining
    }

    /// Returns true if the server's last answer had no authentication code by its key.
    #[must_use]
    pub const fn is_unauthenticated(&self) -> bool {
        self.is_unauthenticated
    }

    /// Returns true if the server counts for a majority: it may still answer, and does not say that it is not
    /// synchronised.
    #[must_use]
    pub const fn has_vote(&self) -> bool {
        !self.is_denied && !self.is_dead() && !self.is_abstaining
    }

    /// Returns the answers to the last 8 requests, one bit each; the lowest bit is the last request.
    #[must_use]
    pub const fn reach(&self) -> u8 {
        self.reach
    }

    /// Returns the interval of requests in nanoseconds.
    #[must_use]
    pub fn poll_nanos(&self) -> u64 {
        interval(self.poll)
    }

    /// Returns the number of usable answers.
    #[must_use]
    pub const fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the number of answers that were not used, by cause.
    pub fn rejections(&self) -> impl Iterator<Item = (Rejected, u64)> + '_ {
        Rejected::ALL.into_iter().zip(self.rejections)
    }
}

/// Measures the offset from an answer to a request that left at `sent` and was answered at `received`.
///
/// With the clock of the server off by at most e, the offset lies between T3 - e - `received` and T2 + e - `sent`.
fn measure(
    packet: &NtpPacket,
    sent: u64,
    received: u64,
    wall: u64,
) -> Result<Measurement, Rejected> {
    if packet.receive.is_unknown() || packet.transmit.is_unknown() {
        return Err(Rejected::Time);
    }
    let unix = |time: super::packet::NtpTime| {
        time.to_unix(wall).and_then(|unix| i64::try_from(unix).ok()).ok_or(Rejected::Time)
    };
    let (t2, t3) = (unix(packet.receive)?, unix(packet.transmit)?);
    let (Ok(r1), Ok(r4)) = (i64::try_from(sent), i64::try_from(received)) else {
        return Err(Rejected::Time);
    };
    // A server cannot answer before it receives, and a request of more than 1 s would exceed the distance.
    if t3 < t2 || t3 - t2 > 1_000_000_000 || r4 < r1 {
        return Err(Rejected::Time);
    }
    let (high, low) = (t2 - r1, t3 - r4);
    let trip = received - sent;
    let slack = 2 * packet.precision_nanos() + growth(trip, FREQUENCY_MAX) + 2;
    let delay = high - low;
    if delay < 0 && delay.unsigned_abs() > slack {
        return Err(Rejected::Delay);
    }
    let delay = u64::try_from(delay).unwrap_or_default();
    let root = (packet.root_delay.as_nanos().div_ceil(2))
        .saturating_add(packet.root_dispersion.as_nanos());
    let error = delay.div_ceil(2).saturating_add(root).saturating_add(slack);
    if error >= DISTANCE_MAX {
        return Err(Rejected::Distance);
    }
    let raw = sent + trip / 2;
    Ok(Measurement { raw, offset: low + (high - low) / 2, delay, error })
}
