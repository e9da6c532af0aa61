//! RTP headers, sender reports, and the reports of receivers (RFC 3550).

use rtcp_types::{
    Bye, Compound, Packet, ReceiverReport, ReportBlock, RtcpPacketWriter, RtcpPacketWriterExt as _,
    Sdes, SdesChunk, SdesItem, SenderReport,
};
use std::time::Duration;

/// The bytes of a header without extensions.
pub const RTP_HEADER_BYTES: usize = 12;
/// The seconds from 1900 to 1970.
const NTP_UNIX: u64 = 2_208_988_800;
/// The longest plausible round trip of a report.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(60);
/// Most reports of a packet that are read.
const REPORTS_MAX: usize = 31;

/// The header of an RTP packet (5.1).
///
/// ```
/// use paceline_edge::RtpHeader;
///
/// let header = RtpHeader { marker: true, payload_type: 96, sequence: 258, time: 1, ssrc: 2 };
/// assert_eq!(header.to_bytes(), [0x80, 0xe0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// The marker bit.
    pub marker: bool,
    /// The payload type, at most 127.
    pub payload_type: u8,
    /// The sequence number.
    pub sequence: u16,
    /// The RTP time.
    pub time: u32,
    /// The identity of the sender.
    pub ssrc: u32,
}

impl RtpHeader {
    /// Returns the header as it is sent.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; RTP_HEADER_BYTES] {
        let marker = if self.marker { 0x80 } else { 0 };
        let [s0, s1] = self.sequence.to_be_bytes();
        let [t0, t1, t2, t3] = self.time.to_be_bytes();
        let [i0, i1, i2, i3] = self.ssrc.to_be_bytes();
        [0x80, marker | self.payload_type & 0x7f, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3]
    }
}

/// The state of a sender for its report (6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentReport {
    /// The identity of the sender.
    pub ssrc: u32,
    /// The time of the report in nanoseconds since 1970 UTC.
    pub nanos: u64,
    /// The RTP time of the same moment.
    pub time: u32,
    /// The packets that were sent.
    pub packets: u32,
    /// The bytes of their payloads.
    pub bytes: u32,
}

impl SentReport {
    /// Returns a compound packet with the report and the name of the sender, which is the same for all tracks of a session.
    #[must_use]
    pub fn to_bytes(&self, name: &str) -> Vec<u8> {
        let report = SenderReport::builder(self.ssrc)
            .ntp_timestamp(ntp(self.nanos))
            .rtp_timestamp(self.time)
            .packet_count(self.packets)
            .octet_count(self.bytes);
        written(&Compound::builder().add_packet(report).add_packet(named(self.ssrc, name)))
    }

    /// Returns the end of the stream as a compound packet: a report, the name, and BYE (6.6).
    #[must_use]
    pub fn to_bye(&self, name: &str) -> Vec<u8> {
        let mut bytes = self.to_bytes(name);
        bytes.extend(written(&Bye::builder().add_source(self.ssrc)));
        bytes
    }
}

fn named<'a>(ssrc: u32, name: &'a str) -> rtcp_types::SdesBuilder<'a> {
    let item = SdesItem::builder(SdesItem::CNAME, name);
    Sdes::builder().add_chunk(SdesChunk::builder(ssrc).add_item(item))
}

/// Returns a packet as bytes; none if a value is out of range.
fn written(packet: &impl RtcpPacketWriter) -> Vec<u8> {
    let mut bytes = vec![0; packet.calculate_size().unwrap_or_default()];
    match packet.write_into(&mut bytes) {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}

/// Returns an NTP timestamp: seconds since 1900 in 32 bits, which wrap in 2036, and a fraction.
fn ntp(nanos: u64) -> u64 {
    let seconds = nanos / 1_000_000_000 + NTP_UNIX;
    let fraction = (u128::from(nanos % 1_000_000_000) << 32) / 1_000_000_000;
    seconds << 32 | u64::try_from(fraction).unwrap_or_default()
}

/// Returns the middle half of an NTP timestamp: 16 bits of seconds and 16 bits of the fraction.
fn middle(ntp: u64) -> u32 {
    u32::try_from(ntp >> 16 & u64::from(u32::MAX)).unwrap_or_default()
}

/// The report of a player about one sender (6.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The sender.
    pub ssrc: u32,
    /// The packets that were lost since the report before, of 256.
    pub lost_of_256: u8,
    /// The packets that were lost so far; below 0 if packets arrived twice.
    pub lost: i32,
    /// The highest sequence number that arrived, with the number of wraps in the upper half.
    pub highest: u32,
    /// The variation of arrival times, in units of the clock rate.
    pub jitter: u32,
    /// The middle half of the NTP time of the last sender report that arrived; 0 if none has.
    pub last_report: u32,
    /// The time between its arrival and this report in 1/65,536 s.
    pub since_report: u32,
}

impl Reception {
    /// Returns the jitter for a clock rate in Hz.
    #[must_use]
    pub fn jitter_time(&self, rate: u32) -> Duration {
        let nanos = u64::from(self.jitter) * 1_000_000_000 / u64::from(rate.max(1));
        Duration::from_nanos(nanos)
    }

    /// Returns the round trip of a report that arrived at `nanos` since 1970 UTC, on the clock of the sender reports (6.4.1).
    ///
    /// Returns `None` if the player has received no sender report, or for a time that is implausible: below 0 or above a minute.
    #[must_use]
    pub fn round_trip(&self, nanos: u64) -> Option<Duration> {
        if self.last_report == 0 {
            return None;
        }
        let since_sent = middle(ntp(nanos)).wrapping_sub(self.last_report);
        // The fractions of both ends are cut, by up to two units together.
        let trip = since_sent.wrapping_add(2).checked_sub(self.since_report)?.saturating_sub(2);
        let time = Duration::from_nanos((u64::from(trip) * 1_000_000_000) >> 16);
        (time <= ROUND_TRIP_MAX).then_some(time)
    }
}

/// The content of an RTCP packet of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerReport {
    /// Its reports, at most 31.
    pub receptions: Vec<Reception>,
    /// The player has left.
    pub bye: bool,
}

impl PlayerReport {
    /// Reads a compound packet. Parts that are no reports are ignored.
    ///
    /// # Errors
    /// Returns the reason if the bytes are no RTCP.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut report = Self::default();
        for packet in Compound::parse(bytes).map_err(|error| error.to_string())? {
            match packet {
                Ok(Packet::Rr(rr)) => report.add(ReceiverReport::report_blocks(&rr)),
                Ok(Packet::Sr(sr)) => report.add(SenderReport::report_blocks(&sr)),
                Ok(Packet::Bye(_)) => report.bye = true,
                Ok(_) | Err(_) => {}
            }
        }
        Ok(report)
    }

    fn add<'a>(&mut self, blocks: impl Iterator<Item = ReportBlock<'a>>) {
        let room = REPORTS_MAX.saturating_sub(self.receptions.len());
        self.receptions.extend(blocks.take(room).map(|block| Reception {
            ssrc: block.ssrc(),
            lost_of_256: block.fraction_lost(),
            // 24 bits with a sign.
            lost: (block.cumulative_lost() << 8).cast_signed() >> 8,
            highest: block.extended_sequence_number(),
            jitter: block.interarrival_jitter(),
            last_report: block.last_sender_report_timestamp(),
            since_report: block.delay_since_last_sender_report_timestamp(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_state_the_time_since_1900_and_the_counts() {
        let report =
            SentReport { ssrc: 7, nanos: 1_500_000_000, time: 90_000, packets: 3, bytes: 400 };
        let bytes = report.to_bye("paceline");
        let mut packets = Compound::parse(&bytes).unwrap();
        let Some(Ok(Packet::Sr(sr))) = packets.next() else { panic!("{bytes:?}") };
        assert_eq!(sr.ntp_timestamp(), (NTP_UNIX + 1) << 32 | 1 << 31);
        assert_eq!((sr.ssrc(), sr.rtp_timestamp(), sr.packet_count()), (7, 90_000, 3));
        assert!(matches!(packets.next(), Some(Ok(Packet::Sdes(_)))));
        assert!(matches!(packets.next(), Some(Ok(Packet::Bye(_)))));
        assert_eq!(
            PlayerReport::parse(&bytes),
            Ok(PlayerReport { bye: true, ..PlayerReport::default() })
        );
    }

    #[test]
    fn reports_of_players_are_read() {
        let block = ReportBlock::builder(9)
            .fraction_lost(64)
            .cumulative_lost(0xff_ffff)
            .extended_sequence_number(0x1_0002)
            .interarrival_jitter(12)
            .last_sender_report_timestamp(5)
            .delay_since_last_sender_report_timestamp(6);
        let bytes = written(&ReceiverReport::builder(1).add_report_block(block));
        let found = Reception {
            ssrc: 9,
            lost_of_256: 64,
            lost: -1,
            highest: 0x1_0002,
            jitter: 12,
            last_report: 5,
            since_report: 6,
        };
        assert_eq!(PlayerReport::parse(&bytes).unwrap().receptions, [found]);
        for cut in 1..bytes.len() {
            assert!(PlayerReport::parse(&bytes[..cut]).is_err(), "{cut}");
        }
        assert!(PlayerReport::parse(b"").is_err());
    }

    #[test]
    fn the_round_trip_is_the_time_since_the_sender_report_less_the_wait_of_the_player() {
        let sent = 1_700_000_000_250_000_000;
        let report = |last_report, since_report| Reception {
            ssrc: 9,
            lost_of_256: 0,
            lost: 0,
            highest: 0,
            jitter: 90,
            last_report,
            since_report,
        };
        let last = middle(ntp(sent));
        // The player waits for 2 s.
        let found = report(last, 2 << 16);
        let trip = found.round_trip(sent + 2_030_000_000).unwrap();
        assert!(trip.abs_diff(Duration::from_millis(30)) < Duration::from_micros(50), "{trip:?}");
        assert_eq!(found.round_trip(sent + 2_000_000_000), Some(Duration::ZERO));
        assert_eq!(found.round_trip(sent + 1_900_000_000), None, "the clock was set back");
        assert_eq!(found.round_trip(sent + 63_000_000_000), None);
        assert_eq!(report(0, 0).round_trip(sent), None, "no sender report has arrived");
        assert_eq!(found.jitter_time(90_000), Duration::from_millis(1));
        assert_eq!(found.jitter_time(0), Duration::from_secs(90));
    }
}
