//! Frames, the units of transmission on a link.

use super::ack::Ack;
use super::codec::{Reader, WireError, Writer};
use super::{NUMBER_MAX, VERSION};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use crate::probes::ProbeInterval;
use bytes::Bytes;
use paceline_sched::{Duration, Instant};

const ACK: u8 = 0x01;
const ACK_NOW: u8 = 0x02;
const NUMBERED: u8 = 0x04;
const DATAGRAMS: u8 = 0x08;
const HELD: u8 = 0x10;
const TRANSIT: u8 = 0x20;
const STAMP: u8 = 0x40;
const ECHO: u8 = 0x80;
/// The offset of [`FrameHeader::held`]; [`FrameHeader::transit`] follows it.
const TIMES_AT: usize = 10;
/// The size of each of these two fields, in bytes.
const TIME_BYTES: usize = 4;
/// The maximum size of [`FrameHeader::probes`], in bytes.
const PROBES_BYTES_MAX: usize = 2;

/// The receiver's newest stamp, sent back to it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Echo {
    /// The value of [`FrameHeader::stamp`] in the receiver's frame.
    pub stamp: u32,
    /// The time from the arrival of that frame until this one was assembled, in whole microseconds.
    pub since: Duration,
}

impl Echo {
    /// The rates of two clocks differ by less than one part in so many: 500 ppm.
    const RATE: u64 = 2_000;

    /// Returns the stamp of an instant: the lowest 32 bits of its microseconds.
    #[must_use]
    pub const fn stamp_of(now: Instant) -> u32 {
        let [a, b, c, d, ..] = (now.as_nanos() / 1_000).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Returns the time since the stamp, modulo 71 minutes.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        Duration::from_micros(Self::stamp_of(now).wrapping_sub(self.stamp).into())
    }

    /// Returns the longest possible time since the frame with this echo was assembled, if it arrives `now`: the
    /// whole round trip, without the time at the other end.
    #[must_use]
    pub fn longest_transit(&self, now: Instant) -> Duration {
        let round = self.age(now).saturating_add(Duration::from_micros(2));
        round.saturating_sub(self.since).saturating_add(Self::drift(self.since))
    }

    /// Returns the largest difference of two clocks that measure this time.
    #[must_use]
    pub const fn drift(since: Duration) -> Duration {
        since.mul_div(1, Self::RATE)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrameHeader {
    /// The sender's epoch on this hop, incremented whenever it restarts the hop.
    pub epoch: u32,
    /// The receiver's epoch as known to the sender; 0 until the sender has received a frame.
    pub known: u32,
    /// The frame's sequence number in the epoch. `None` for frames with only an acknowledgement or a
    /// handshake, which are not acknowledged themselves.
    pub seq: Option<u64>,
    /// The acknowledgement of the receiver's frames.
    pub ack: Option<Ack>,
    /// The sender requests an immediate acknowledgement.
    pub ack_now: bool,
    /// The hop's frames may be lost, reordered or duplicated, and lost segments are retransmitted.
    pub datagrams: bool,
    /// The acknowledgement delay in whole microseconds, from the arrival of the newest acknowledged frame
    /// until this frame has left the wire. Present only with an acknowledgement.
    pub held: Option<Duration>,
    /// The serial transit time of the frame, in whole microseconds; the receiver adds it to the age of the
    /// samples. `None` counts as zero.
    pub transit: Option<Duration>,
    /// The sender's clock when it assembled the frame ([`Echo::stamp_of`]); present if the network has a
    /// subscription with an age limit.
    pub stamp: Option<u32>,
    /// The answer to the receiver's stamp.
    pub echo: Option<Echo>,
    /// The sender's interval of probes, derived from the capacity of its link. Both ends use the longer one.
    pub probes: ProbeInterval,
}

impl FrameHeader {
    /// The maximum size of a header, in bytes.
    pub const BYTES_MAX: usize = Self::UNSTAMPED_BYTES_MAX + 3 * TIME_BYTES;
    /// The maximum size of a header without stamp and echo, in bytes.
    pub const UNSTAMPED_BYTES_MAX: usize =
        TIMES_AT + 2 * TIME_BYTES + PROBES_BYTES_MAX + 10 + Ack::BYTES_MAX;

    /// Appends the header to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(VERSION);
        let mut flags = 0;
        flags |= if self.ack.is_some() { ACK } else { 0 };
        flags |= if self.ack_now { ACK_NOW } else { 0 };
        flags |= if self.seq.is_some() { NUMBERED } else { 0 };
        flags |= if self.datagrams { DATAGRAMS } else { 0 };
        flags |= if self.held.is_some() { HELD } else { 0 };
        flags |= if self.transit.is_some() { TRANSIT } else { 0 };
        flags |= if self.stamp.is_some() { STAMP } else { 0 };
        flags |= if self.echo.is_some() { ECHO } else { 0 };
        out.put_u8(flags);
        out.put_u32(self.epoch);
        out.put_u32(self.known);
        for time in [self.held, self.transit].into_iter().flatten() {
            out.put_u32(micros(time));
        }
        if let Some(stamp) = self.stamp {
            out.put_u32(stamp);
        }
        if let Some(echo) = self.echo {
            out.put_u32(echo.stamp);
            out.put_u32(micros(echo.since));
        }
        out.put_varint(self.probes.tenths());
        if let Some(seq) = self.seq {
            out.put_varint(seq);
        }
        if let Some(ack) = self.ack {
            ack.write(out);
        }
    }

    /// Sets the request for an acknowledgement in the header at the front of `frame`.
    pub fn ask_now(frame: &mut [u8]) {
        if let Some(flags) = frame.get_mut(1) {
            *flags |= ACK_NOW;
        }
    }

    /// Sets the acknowledgement delay in the header at the front of `frame`, if the header has that field.
    pub fn set_held(frame: &mut [u8], held: Duration) {
        set_time(frame, HELD, TIMES_AT, held);
    }

    /// Sets the transit time in the header at the front of `frame`, if the header has that field.
    pub fn set_transit(frame: &mut [u8], transit: Duration) {
        let held = frame.get(1).is_some_and(|flags| flags & HELD != 0);
        let at = if held { TIMES_AT + TIME_BYTES } else { TIMES_AT };
        set_time(frame, TRANSIT, at, transit);
    }

    /// Reads the header from the front of a frame. The segments remain in the reader.
    ///
    /// # Errors
    /// Returns [`WireError::Version`] for another version of the wire format, and other errors for a
    /// malformed header.
    pub fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let version = reader.u8("version")?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let flags = reader.u8("flags")?;
        let epoch = reader.u32("epoch")?;
        if epoch == 0 {
            return Err(WireError::Invalid("epoch"));
        }
        let known = reader.u32("known epoch")?;
        let mut time = |flag, what| match flags & flag {
            0 => Ok(None),
            _ => Ok(Some(Duration::from_micros(reader.u32(what)?.into()))),
        };
        let (held, transit) = (time(HELD, "held")?, time(TRANSIT, "transit")?);
        if held.is_some() && flags & ACK == 0 {
            return Err(WireError::Invalid("held"));
        }
        let stamp = if flags & STAMP != 0 { Some(reader.u32("stamp")?) } else { None };
        let echo = if flags & ECHO != 0 {
            let stamp = reader.u32("echo")?;
            Some(Echo { stamp, since: Duration::from_micros(reader.u32("echo time")?.into()) })
        } else {
            None
        };
        let probes = ProbeInterval::from_tenths(reader.varint("probe interval")?);
        let probes = probes.ok_or(WireError::Invalid("probe interval"))?;
        let numbered = flags & NUMBERED != 0;
        let seq = if numbered { Some(reader.varint_max(NUMBER_MAX, "frame seq")?) } else { None };
        let ack = if flags & ACK != 0 { Some(Ack::read(reader)?) } else { None };
        let (ack_now, datagrams) = (flags & ACK_NOW != 0, flags & DATAGRAMS != 0);
        Ok(Self { epoch, known, seq, ack, ack_now, datagrams, held, transit, stamp, echo, probes })
    }
}

fn set_time(frame: &mut [u8], flag: u8, at: usize, time: Duration) {
    let says = frame.get(1).is_some_and(|flags| flags & flag != 0);
    if let Some(place) = frame.get_mut(at..at + TIME_BYTES).filter(|_| says) {
        place.copy_from_slice(&micros(time).to_le_bytes());
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX)
}

/// A frame under construction: headers and small payloads in one buffer, large payloads shared.
#[derive(Debug, Default)]
pub struct FrameBuf {
    /// Headers and copied payloads.
    pub head: Vec<u8>,
    /// Payloads too large to copy, each with its offset in `head`.
    pub shared: Vec<(usize, Bytes)>,
    shared_bytes: usize,
    /// The other receivers of a frame for a multicast group; `None` for a frame to one neighbour.
    pub group: Option<Box<GroupFrame>>,
}

/// A frame that several neighbours receive with one multicast datagram: each has a frame of its own, and the end of all
/// of them, a piece of a sample, is the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupFrame {
    /// The publisher and the form of the stream, which name the group.
    pub stream: (PublisherId, Form),
    /// The length of the common end, in bytes.
    pub common: usize,
    /// The other neighbours, each with its frame up to the common end.
    pub others: Vec<(NodeId, Vec<u8>)>,
}

impl GroupFrame {
    /// The bytes that a datagram for a group has for each receiver besides the receiver's own part of the frame, at most.
    pub const RECEIVER_BYTES: usize = 24;

    /// Returns the bytes that the other receivers add to the datagram.
    #[must_use]
    pub fn others_bytes(&self) -> usize {
        self.others.iter().map(|(_, own)| own.len() + Self::RECEIVER_BYTES).sum()
    }
}

/// The minimum size of payloads that are shared instead of copied, in bytes.
const SHARE_FROM: usize = 2_048;

impl FrameBuf {
    /// Clears the frame and keeps the buffers' capacity.
    pub fn clear(&mut self) {
        self.head.clear();
        self.shared.clear();
        self.shared_bytes = 0;
        self.group = None;
    }

    /// Returns the length of the frame so far, in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.head.len() + self.shared_bytes
    }

    /// Returns `true` if the frame is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a payload, shared if that is cheaper than a copy.
    pub fn put_payload(&mut self, payload: Bytes) {
        if payload.len() < SHARE_FROM {
            self.head.extend_from_slice(&payload);
        } else {
            self.shared_bytes += payload.len();
            self.shared.push((self.head.len(), payload));
        }
    }

    /// Iterates over the pieces of the frame, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> + '_ {
        let mut at = 0;
        let tail = self.shared.last().map_or(0, |(place, _)| *place);
        self.shared
            .iter()
            .flat_map(move |(place, payload)| {
                let before = self.head.get(at..*place).unwrap_or_default();
                at = *place;
                [Piece::Copied(before), Piece::Shared(payload)]
            })
            .chain([Piece::Copied(self.head.get(tail..).unwrap_or_default())])
    }

    /// Returns the whole frame in one buffer.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.len());
        for piece in self.pieces() {
            match piece {
                Piece::Copied(bytes) => out.extend_from_slice(bytes),
                Piece::Shared(bytes) => out.extend_from_slice(bytes),
            }
        }
        out.into()
    }
}

/// A piece of a [`FrameBuf`].
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Bytes of the frame's own buffer; may be empty.
    Copied(&'a [u8]),
    /// A payload that is shared with its sample.
    Shared(&'a Bytes),
}

#[cfg(test)]
mod tests {
    use super::super::ack::Arrivals;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip(epoch in 1u32.., known: u32, seq in prop::option::of(0..u64::MAX / 2),
                             frames in prop::collection::vec(0..9_000u64, 0..20), with_ack: bool, ack_now: bool, datagrams: bool,
                             held in prop::option::of(any::<u32>()), transit in prop::option::of(any::<u32>()),
                             stamp in prop::option::of(any::<u32>()), echo in prop::option::of(any::<(u32, u32)>()),
                             tenths in 6..=6_000u64) {
            let mut arrivals = Arrivals::default();
            frames.into_iter().for_each(|frame| arrivals.note(frame));
            let ack = with_ack.then(|| arrivals.ack());
            let held = held.filter(|_| with_ack).map(|held| Duration::from_micros(held.into()));
            let transit = transit.map(|transit| Duration::from_micros(transit.into()));
            let echo = echo.map(|(stamp, since)| Echo { stamp, since: Duration::from_micros(since.into()) });
            let probes = ProbeInterval::from_tenths(tenths).unwrap();
            let mut header =
                FrameHeader { epoch, known, seq, ack, ack_now, datagrams, held, transit, stamp, echo, probes };
            let mut out = Vec::new();
            header.write(&mut out);
            // The setters overwrite fields that exist, and have no effect otherwise.
            header.held = header.held.map(|_| Duration::from_micros(5));
            header.transit = header.transit.map(|_| Duration::from_micros(7));
            FrameHeader::set_held(&mut out, Duration::from_micros(5));
            FrameHeader::set_transit(&mut out, Duration::from_micros(7));
            prop_assert!(out.len() <= FrameHeader::BYTES_MAX);
            let mut reader = Reader::new(out.into());
            prop_assert_eq!(FrameHeader::read(&mut reader), Ok(header));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn garbage_is_an_error_or_a_header(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = FrameHeader::read(&mut Reader::new(bytes.into()));
        }
    }

    #[test]
    fn the_longest_transit_is_the_round_trip_without_the_time_at_the_other_end() {
        let sent = Instant::from_millis(5_000);
        // The stamp is under way for 30 ms, waits for 400 ms, and the answer is under way for 50 ms.
        let echo = Echo { stamp: Echo::stamp_of(sent), since: Duration::from_millis(400) };
        let longest = echo.longest_transit(Instant::from_millis(5_480));
        assert_eq!(longest, Duration::from_micros(80_000 + 2 + 200));
        // The stamp wraps after 71 minutes.
        let sent = Instant::from_nanos((u64::from(u32::MAX) - 9) * 1_000);
        let echo = Echo { stamp: Echo::stamp_of(sent), since: Duration::ZERO };
        let longest = echo.longest_transit(sent + Duration::from_millis(3));
        assert_eq!(longest, Duration::from_micros(3_002));
    }

    #[test]
    fn another_version_is_named() {
        let mut reader = Reader::new(Bytes::from_static(&[1, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
        let err = FrameHeader::read(&mut reader).unwrap_err();
        assert_eq!(err, WireError::Version(1));
        assert_eq!(err.to_string(), "wire format version 1: this node speaks version 7");
    }

    #[test]
    fn large_payloads_are_shared_and_in_place() {
        let mut frame = FrameBuf::default();
        frame.head.extend_from_slice(b"ab");
        frame.put_payload(Bytes::from(vec![b'x'; 3_000]));
        frame.head.extend_from_slice(b"cd");
        frame.put_payload(Bytes::from_static(b"small"));
        assert_eq!(frame.len(), 3_009);
        let flat = frame.to_bytes();
        assert_eq!(flat.len(), 3_009);
        assert_eq!(&flat[..3], b"abx");
        assert_eq!(&flat[3_001..], b"xcdsmall");
    }
}
