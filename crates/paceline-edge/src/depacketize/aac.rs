//! AAC in RTP (RFC 3640, mode AAC-hbr), as blocks of ADTS (ISO/IEC 13818-7).

use super::{RtpEvent, RtpPacket, fits};
use crate::fault::UnitFault;
use paceline_media::audio::AacFormat;
use std::cmp::Ordering;

/// The samples of a block per channel.
const BLOCK: i64 = 1_024;

/// Cuts packets into blocks.
#[derive(Clone, Debug)]
pub(super) struct Aac {
    /// Known for each track that was chosen.
    format: Option<AacFormat>,
    open: Option<Open>,
}

/// A block whose last fragment has not arrived.
#[derive(Clone, Debug)]
struct Open {
    time: i64,
    length: usize,
    bytes: Vec<u8>,
    /// Fragments before the first one are lost, which was counted.
    counted: bool,
}

impl Open {
    /// Returns the fault of a block that does not go on.
    fn left(&self) -> Option<RtpEvent> {
        (!self.counted).then_some(RtpEvent::Fault(UnitFault::Malformed(
            "a block of AAC without its last fragment",
        )))
    }
}

impl Aac {
    pub(super) fn new(rate: u32, channels: u8) -> Self {
        Self { format: AacFormat::new(rate, channels), open: None }
    }

    pub(super) fn push(&mut self, packet: &RtpPacket<'_>, events: &mut Vec<RtpEvent>) {
        if packet.lost > 0 {
            self.open = None;
            events.push(RtpEvent::Fault(UnitFault::Lost));
        }
        if let Err(reason) = self.add(packet, events) {
            self.open = None;
            events.push(RtpEvent::Fault(UnitFault::Malformed(reason)));
        }
    }

    fn add(
        &mut self,
        packet: &RtpPacket<'_>,
        events: &mut Vec<RtpEvent>,
    ) -> Result<(), &'static str> {
        let cut = "a packet of AAC that is cut off";
        let (bits, rest) = packet.payload.split_first_chunk().ok_or(cut)?;
        let bits = usize::from(u16::from_be_bytes(*bits));
        let (headers, mut data) = rest.split_at_checked(bits.div_ceil(8)).ok_or(cut)?;
        let (headers, odd) = headers.as_chunks::<2>();
        if headers.is_empty() || !odd.is_empty() {
            return Err(
                "a packet of AAC whose headers are none, or have another size than 16 bits",
            );
        }
        let lengths = headers.iter().map(|header| usize::from(u16::from_be_bytes(*header) >> 3));
        let mut time = packet.time;
        for length in lengths {
            if length > data.len() && headers.len() == 1 {
                return self.fragment(packet, length, data, events);
            }
            events.extend(self.open.take().and_then(|open| open.left()));
            let (block, more) = data.split_at_checked(length).ok_or(cut)?;
            events.push(self.unit(time, block)?);
            (time, data) = (time.saturating_add(BLOCK), more);
        }
        Ok(())
    }

    /// Takes a part of a block of `length` bytes.
    fn fragment(
        &mut self,
        packet: &RtpPacket<'_>,
        length: usize,
        part: &[u8],
        events: &mut Vec<RtpEvent>,
    ) -> Result<(), &'static str> {
        let fresh = Open { time: packet.time, length, bytes: Vec::new(), counted: packet.lost > 0 };
        let mut open = match self.open.take() {
            Some(open) if (open.time, open.length) == (packet.time, length) => open,
            Some(open) => {
                events.extend(open.left());
                fresh
            }
            None => fresh,
        };
        if !fits(open.bytes.len(), part.len()) {
            return Err("a block of AAC above the limit");
        }
        open.bytes.extend_from_slice(part);
        match open.bytes.len().cmp(&length) {
            Ordering::Equal => events.push(self.unit(packet.time, &open.bytes)?),
            Ordering::Greater => return Err("a block of AAC longer than its length"),
            Ordering::Less if packet.marker => events.extend(open.left()),
            Ordering::Less => self.open = Some(open),
        }
        Ok(())
    }

    fn unit(&self, time: i64, block: &[u8]) -> Result<RtpEvent, &'static str> {
        let block = self.format.and_then(|format| format.block(block));
        let bytes = block.ok_or("a block of AAC that is empty or above 8184 bytes")?;
        Ok(RtpEvent::Unit { time, bytes })
    }
}
