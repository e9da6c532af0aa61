//! The packets of one track of one player: sequence numbers, times and reports of its own, payloads of all.

use crate::feeds::MediaUnit;
use paceline_edge::{
    CatchUp, PayloadPart, RTP_HEADER_BYTES, RtpHeader, SentReport, SetUpTrack, ticks,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time between two sender reports (RFC 3550, 6.2).
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// The sender of a track.
pub(super) struct TrackSender {
    pub(super) set_up: SetUpTrack,
    payload_type: u8,
    rate: u32,
    sequence: u16,
    /// The difference of the player's RTP times and the feed's.
    offset: u32,
    catch_up: CatchUp,
    reported: Option<Instant>,
    pub(super) packets: u64,
    bytes: u64,
    skew: i64,
}

/// A unit that is being sent.
pub(super) struct Departure {
    pub(super) unit: Arc<MediaUnit>,
    first: u16,
    time: u32,
    ssrc: u32,
    payload_type: u8,
}

/// Returns the lower half of a time.
fn low(time: i64) -> u32 {
    let [_, _, _, _, a, b, c, d] = time.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

impl TrackSender {
    /// Returns a sender with random numbers.
    pub(super) fn new(
        set_up: SetUpTrack,
        (payload_type, rate): (u8, u32),
        random: [u8; 6],
    ) -> Self {
        let [a, b, c, d, e, f] = random;
        Self {
            set_up,
            payload_type,
            rate,
            sequence: u16::from_be_bytes([a, b]),
            offset: u32::from_be_bytes([c, d, e, f]),
            catch_up: CatchUp::default(),
            reported: None,
            packets: 0,
            bytes: 0,
            skew: 0,
        }
    }

    /// Returns the next sequence number, and the RTP time of a time of the feed.
    pub(super) fn next(&self, time: Option<i64>) -> (u16, Option<u32>) {
        (self.sequence, time.map(|time| low(time).wrapping_add(self.offset)))
    }

    /// Begins to send a unit. The first one after the player joined has the times of those that precede the newest one.
    pub(super) fn depart(&mut self, unit: Arc<MediaUnit>, start: Option<CatchUp>) -> Departure {
        self.catch_up = start.unwrap_or(self.catch_up);
        let time = low(self.catch_up.time(unit.time)).wrapping_add(self.offset);
        let first = self.sequence;
        let count = u16::try_from(unit.parts.len()).unwrap_or(u16::MAX);
        self.sequence = self.sequence.wrapping_add(count);
        self.packets += u64::from(count);
        self.bytes += u64::try_from(unit.bytes).unwrap_or_default();
        self.skew = unit.skew;
        let (ssrc, payload_type) = (self.set_up.ssrc, self.payload_type);
        Departure { unit, first, time, ssrc, payload_type }
    }

    /// Returns a report if one is due; the first one precedes the packets. `nanos` is the time since 1970 UTC.
    pub(super) fn report(&mut self, now: Instant, nanos: u64, name: &str) -> Option<Vec<u8>> {
        if self.reported.is_some_and(|at| now - at < REPORT_EVERY) {
            return None;
        }
        self.reported = Some(now);
        Some(self.sent(nanos).to_bytes(name))
    }

    /// Returns the end of the track as a report.
    pub(super) fn bye(&self, nanos: u64, name: &str) -> Vec<u8> {
        self.sent(nanos).to_bye(name)
    }

    fn sent(&self, nanos: u64) -> SentReport {
        let now = i64::try_from(nanos).unwrap_or(i64::MAX);
        let time = ticks(now, self.rate).saturating_sub(self.skew);
        let wrapping = |count: u64| u32::try_from(count & u64::from(u32::MAX)).unwrap_or_default();
        SentReport {
            ssrc: self.set_up.ssrc,
            nanos,
            time: low(time).wrapping_add(self.offset),
            packets: wrapping(self.packets),
            bytes: wrapping(self.bytes),
        }
    }
}

impl Departure {
    /// Returns a packet of the unit, and its header.
    pub(super) fn packet(&self, number: usize) -> Option<([u8; RTP_HEADER_BYTES], &PayloadPart)> {
        let part = self.unit.parts.get(number)?;
        let step = u16::try_from(number).unwrap_or_default();
        let header = RtpHeader {
            marker: part.marker,
            payload_type: self.payload_type,
            sequence: self.first.wrapping_add(step),
            time: self.time.wrapping_add(part.after),
            ssrc: self.ssrc,
        };
        Some((header.to_bytes(), part))
    }
}
