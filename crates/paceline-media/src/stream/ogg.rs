//! Ogg with Opus (RFC 3533, RFC 7845).

use std::collections::VecDeque;

use ::ogg::reading::{BasePacketReader, PageParser};

use super::{End, SAMPLE_MAX, Step, seek};
use crate::audio::OpusFormat;
use crate::error::MediaError;

/// The beginning of each page.
const PAGE: &[u8] = b"OggS";
/// The length of the fixed part of a page's header.
const HEADER: usize = 27;

/// Puts packets together from pages.
pub(super) struct OggCutter {
    packets: BasePacketReader,
    ready: VecDeque<Vec<u8>>,
    /// The number of the stream of Opus.
    serial: Option<u32>,
    /// The bytes of pages since the last packet.
    held: usize,
    pub(super) format: Option<OpusFormat>,
}

impl Default for OggCutter {
    fn default() -> Self {
        Self {
            packets: BasePacketReader::new(),
            ready: VecDeque::new(),
            serial: None,
            held: 0,
            format: None,
        }
    }
}

impl std::fmt::Debug for OggCutter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OggCutter").field("format", &self.format).finish_non_exhaustive()
    }
}

fn refuse(reason: String) -> MediaError {
    let fix = "code it as Opus, with ffmpeg: -c:a libopus -ac 2 -f ogg";
    MediaError::Stream { format: "ogg", at: 0, reason, fix }
}

impl OggCutter {
    pub(super) fn step(&mut self, bytes: &[u8], end: End) -> Result<Step, MediaError> {
        if let Some(packet) = self.ready.pop_front() {
            return Ok(Step::Sample(0, packet));
        }
        if bytes.is_empty() {
            return Ok(Step::More);
        }
        match self.page(bytes) {
            Some(Ok(used)) => {
                self.held += used;
                while let Some(packet) = self.packets.read_packet() {
                    self.held = 0;
                    self.take(packet.stream_serial(), packet.first_in_stream(), packet.data)?;
                }
                if self.held > SAMPLE_MAX {
                    let reason = format!("a packet has more than {SAMPLE_MAX} bytes");
                    *self = Self { serial: self.serial, format: self.format, ..Self::default() };
                    return Ok(Step::Damaged(used, refuse(reason)));
                }
                Ok(Step::Used(used))
            }
            None if end != End::Ended => Ok(Step::More),
            // A damaged length may hide the pages behind it.
            None => Ok(self.skip(bytes, end, "the last page is cut off".to_owned())),
            Some(Err(reason)) => Ok(self.skip(bytes, end, reason)),
        }
    }

    /// Skips to the next page.
    fn skip(&mut self, bytes: &[u8], end: End, reason: String) -> Step {
        // Packets that continue from the damaged page are lost with it.
        self.packets.update_after_seek();
        let next = seek(bytes, 1, PAGE);
        let found = bytes.get(next..).unwrap_or_default().starts_with(PAGE);
        let skipped = if found || end != End::Ended { next } else { bytes.len() };
        Step::Damaged(skipped, refuse(reason))
    }

    /// Takes the page at the beginning of `bytes` and returns its length; `None` if more bytes are needed.
    fn page(&mut self, bytes: &[u8]) -> Option<Result<usize, String>> {
        if !PAGE.starts_with(bytes.get(..PAGE.len()).unwrap_or(bytes)) {
            return Some(Err("no page begins here".to_owned()));
        }
        let header = *bytes.first_chunk::<HEADER>()?;
        let damaged = |error| Some(Err(format!("damaged page: {error}")));
        let (mut parser, segments) = match PageParser::new(header) {
            Ok(parsed) => parsed,
            Err(error) => return damaged(error),
        };
        let body = HEADER + segments;
        let len = parser.parse_segments(bytes.get(HEADER..body)?.to_vec());
        let data = bytes.get(body..body + len)?.to_vec();
        let taken = parser.parse_packet_data(data).and_then(|page| self.packets.push_page(page));
        match taken {
            Ok(()) => Some(Ok(body + len)),
            Err(error) => damaged(error),
        }
    }

    fn take(&mut self, serial: u32, first: bool, packet: Vec<u8>) -> Result<(), MediaError> {
        if first && packet.starts_with(b"OpusHead") {
            let format = format(&packet)?;
            if self.format.is_some_and(|before| before != format) {
                return Err(refuse("the format changes within the stream".to_owned()));
            }
            (self.serial, self.format) = (Some(serial), Some(format));
        } else if self.serial == Some(serial) && !packet.starts_with(b"OpusTags") {
            self.ready.push_back(packet);
        } else if self.serial.is_none() && !first {
            return Err(refuse("it contains no Opus".to_owned()));
        }
        Ok(())
    }
}

/// Returns the format of an identification header (RFC 7845, section 5.1).
fn format(head: &[u8]) -> Result<OpusFormat, MediaError> {
    let [_, channels, _, _, r0, r1, r2, r3, _, _, family] = *head
        .get(8..)
        .and_then(<[u8]>::first_chunk)
        .ok_or_else(|| refuse("its header is cut off".to_owned()))?;
    if family != 0 || !(1..=2).contains(&channels) {
        return Err(refuse(format!(
            "it has {channels} channels (mapping family {family}), must be 1 or 2"
        )));
    }
    Ok(OpusFormat::nearest(u32::from_le_bytes([r0, r1, r2, r3]), channels))
}
