//! The 48 bytes of an NTP packet, and its formats of time (RFC 5905, sections 6 and 7.3).

use core::fmt;

/// The length of a packet without extension fields, in bytes.
pub const PACKET_BYTES: usize = 48;

/// The seconds from 1900-01-01, the beginning of NTP's first era, to 1970-01-01.
const UNIX_EPOCH: u64 = 2_208_988_800;

/// The length of an era in seconds.
const ERA: i128 = 1 << 32;

/// A time of NTP in its 64-bit format: seconds of an unknown era and 2^-32 seconds. 0 means unknown.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// Returns the time of `unix` nanoseconds since 1970, rounded down to 2^-32 seconds.
    ///
    /// ```
    /// use paceline_time::ntp::packet::NtpTime;
    ///
    /// // 2036-02-07T06:28:16 UTC, the first second of era 1.
    /// assert_eq!(NtpTime::from_unix(2_085_978_496_000_000_000).0, 0);
    /// ```
    #[must_use]
    pub const fn from_unix(unix: u64) -> Self {
        let seconds = (unix / 1_000_000_000 + UNIX_EPOCH) & 0xffff_ffff;
        let fraction = ((unix % 1_000_000_000) << 32) / 1_000_000_000;
        Self(seconds << 32 | fraction)
    }

    /// Returns the nanoseconds since 1970, rounded down, in the era that is nearest to `pivot` nanoseconds since 1970.
    ///
    /// The result is right if the pivot is less than 68 years off. It is `None` for times before 1970 and after 2554.
    #[must_use]
    pub fn to_unix(self, pivot: u64) -> Option<u64> {
        let (seconds, fraction) = (i128::from(self.0 >> 32), i128::from(self.0 & 0xffff_ffff));
        let near = i128::from(pivot / 1_000_000_000 + UNIX_EPOCH);
        let era = (near - seconds + ERA / 2).div_euclid(ERA);
        let unix = seconds + era * ERA - i128::from(UNIX_EPOCH);
        u64::try_from(unix * 1_000_000_000 + ((fraction * 1_000_000_000) >> 32)).ok()
    }

    /// Returns true for the value that means an unknown time.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        self.0 == 0
    }
}

/// A duration of NTP in its 32-bit format, in 2^-16 seconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NtpShort(pub u32);

impl NtpShort {
    /// Returns the duration of `nanos`, rounded up; it saturates at 18 hours.
    #[must_use]
    pub fn from_nanos(nanos: u64) -> Self {
        let units = (u128::from(nanos) << 16).div_ceil(1_000_000_000);
        Self(u32::try_from(units).unwrap_or(u32::MAX))
    }

    /// Returns the duration in nanoseconds, rounded up.
    #[must_use]
    pub fn as_nanos(self) -> u64 {
        (u64::from(self.0) * 1_000_000_000).div_ceil(1 << 16)
    }
}

/// The leap indicator: a leap second at the end of the day.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Leap {
    /// No leap second.
    #[default]
    None,
    /// The last minute of the day has 61 seconds.
    Insert,
    /// The last minute of the day has 59 seconds.
    Delete,
    /// The server is not synchronised.
    Unknown,
}

impl Leap {
    /// Returns the two bits of a packet.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Insert => 1,
            Self::Delete => 2,
            Self::Unknown => 3,
        }
    }

    /// Returns the indicator of the two lowest bits of `code`.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::None,
            1 => Self::Insert,
            2 => Self::Delete,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Leap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Unknown => "unknown",
        })
    }
}

/// The mode of a client's packet.
pub const MODE_CLIENT: u8 = 3;
/// The mode of a server's packet.
pub const MODE_SERVER: u8 = 4;

/// A packet of NTP without extension fields.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NtpPacket {
    /// Whether a leap second is announced, or the server is not synchronised.
    pub leap: Leap,
    /// The version, 1 to 7; this crate sends 4.
    pub version: u8,
    /// The mode, 0 to 7: 3 for a client, 4 for a server.
    pub mode: u8,
    /// The number of servers to a reference clock, 1 to 15; 0 is a kiss-of-death, and 16 or more not synchronised.
    pub stratum: u8,
    /// The logarithm to base 2 of the poll interval in seconds.
    pub poll: i8,
    /// The logarithm to base 2 of the precision of the clock in seconds.
    pub precision: i8,
    /// The round-trip delay to the reference clock.
    pub root_delay: NtpShort,
    /// The largest error to the reference clock, in addition to half the delay.
    pub root_dispersion: NtpShort,
    /// The reference clock; of a kiss-of-death, its code.
    pub reference_id: [u8; 4],
    /// The time at which the clock was last set.
    pub reference: NtpTime,
    /// The client's transmit time, copied by the server.
    pub origin: NtpTime,
    /// The time at which the server received the request.
    pub receive: NtpTime,
    /// The time at which the sender sent this packet.
    pub transmit: NtpTime,
}

impl NtpPacket {
    /// Returns a client's request. `nonce` takes the place of its transmit time: nothing else identifies the answer, so
    /// it must be random.
    #[must_use]
    pub fn request(nonce: u64, poll: i8) -> Self {
        Self { version: 4, mode: MODE_CLIENT, poll, transmit: NtpTime(nonce), ..Self::default() }
    }

    /// Returns the bytes of the packet.
    #[must_use]
    pub fn encode(&self) -> [u8; PACKET_BYTES] {
        let first = self.leap.code() << 6 | (self.version & 7) << 3 | self.mode & 7;
        let head =
            [[first, self.stratum, self.poll.to_be_bytes()[0], self.precision.to_be_bytes()[0]]];
        let head = head.into_iter().chain([
            self.root_delay.0.to_be_bytes(),
            self.root_dispersion.0.to_be_bytes(),
            self.reference_id,
        ]);
        let times = [self.reference, self.origin, self.receive, self.transmit];
        let times = times.into_iter().flat_map(|time| time.0.to_be_bytes());
        let mut bytes = [0; PACKET_BYTES];
        for (to, from) in bytes.iter_mut().zip(head.flatten().chain(times)) {
            *to = from;
        }
        bytes
    }

    /// Returns the packet at the beginning of `bytes`. Extension fields and authenticators after it are ignored.
    ///
    /// Returns `None` if there are fewer than 48 bytes. No other value is rejected here.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[first, stratum, poll, precision], rest) = bytes.split_first_chunk::<4>()?;
        let (root_delay, rest) = rest.split_first_chunk::<4>()?;
        let (root_dispersion, rest) = rest.split_first_chunk::<4>()?;
        let (reference_id, rest) = rest.split_first_chunk::<4>()?;
        let (reference, rest) = rest.split_first_chunk::<8>()?;
        let (origin, rest) = rest.split_first_chunk::<8>()?;
        let (receive, rest) = rest.split_first_chunk::<8>()?;
        let (transmit, _) = rest.split_first_chunk::<8>()?;
        let time = |bytes: &[u8; 8]| NtpTime(u64::from_be_bytes(*bytes));
        Some(Self {
            leap: Leap::from_code(first >> 6),
            version: first >> 3 & 7,
            mode: first & 7,
            stratum,
            poll: i8::from_be_bytes([poll]),
            precision: i8::from_be_bytes([precision]),
            root_delay: NtpShort(u32::from_be_bytes(*root_delay)),
            root_dispersion: NtpShort(u32::from_be_bytes(*root_dispersion)),
            reference_id: *reference_id,
            reference: time(reference),
            origin: time(origin),
            receive: time(receive),
            transmit: time(transmit),
        })
    }

    /// Returns the duration of 2^[`Self::precision`] seconds in nanoseconds, at least 1 ns and at most 1 s.
    #[must_use]
    pub fn precision_nanos(&self) -> u64 {
        let shift = u32::from(self.precision.clamp(-30, 0).unsigned_abs());
        1_000_000_000_u64.div_ceil(1 << shift)
    }
}
