//! Ogg files of Opus (RFC 7845).

use std::fmt;

use ::ogg::{PacketWriteEndInfo, PacketWriter};

use super::opus::{OPUS_LOOK_AHEAD_US, OpusFormat, opus_micros};
use crate::error::MediaError;

/// The number of the only stream in a file.
const SERIAL: u32 = 1;

/// Writes packets of Opus as an Ogg file (`.opus`), one page per packet.
///
/// A file without its last page is complete for players: they play all whole pages.
///
/// ```
/// use paceline_media::audio::{OggOpus, OpusFormat};
///
/// let mut file = OggOpus::new(OpusFormat::new(48_000, 1)?)?;
/// let header = file.take();
/// assert_eq!(&header[..4], b"OggS");
/// file.append(&[0b11111_0_00, 1, 2, 3])?;
/// assert_eq!(file.take().len(), 28 + 4);
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
pub struct OggOpus {
    writer: PacketWriter<'static, Vec<u8>>,
    /// The duration so far, in frames of 48 kHz.
    frames: u64,
}

impl fmt::Debug for OggOpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OggOpus").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl OggOpus {
    /// Begins a file for packets of this format, with its two header packets.
    ///
    /// # Errors
    /// [`MediaError::OpusRange`] for an unchecked format that Opus does not have.
    pub fn new(format: OpusFormat) -> Result<Self, MediaError> {
        format.check()?;
        let mut file = Self { writer: PacketWriter::new(Vec::new()), frames: 0 };
        file.write(head(format), 0)?;
        file.write(tags(), 0)?;
        Ok(file)
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// [`MediaError::OpusPacket`] for a payload that has no duration; the file is then unchanged.
    pub fn append(&mut self, packet: &[u8]) -> Result<(), MediaError> {
        let micros = opus_micros(packet).ok_or_else(|| MediaError::OpusPacket {
            bytes: packet.len(),
            reason: "it has no duration from 2.5 to 120 ms".to_owned(),
        })?;
        let frames = self.frames + u64::from(micros) * 48 / 1_000;
        self.write(packet.to_vec(), frames)?;
        self.frames = frames;
        Ok(())
    }

    /// Returns the bytes of the file since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.inner_mut())
    }

    fn write(&mut self, packet: Vec<u8>, frames: u64) -> Result<(), MediaError> {
        let end = PacketWriteEndInfo::EndPage;
        self.writer
            .write_packet(packet, SERIAL, end, frames)
            .map_err(|error| MediaError::OpusCodec { reason: error.to_string() })
    }
}

/// Returns the identification header (RFC 7845, section 5.1).
fn head(format: OpusFormat) -> Vec<u8> {
    let skipped = u16::try_from(OPUS_LOOK_AHEAD_US * 48 / 1_000).unwrap_or(u16::MAX);
    let mut head = b"OpusHead\x01".to_vec();
    head.push(format.channels);
    head.extend(skipped.to_le_bytes());
    head.extend(format.rate.to_le_bytes());
    // No gain, and the channels in the order of the only stream.
    head.extend([0, 0, 0]);
    head
}

/// Returns the comment header (RFC 7845, section 5.2), without comments.
fn tags() -> Vec<u8> {
    let vendor = b"paceline";
    let mut tags = b"OpusTags".to_vec();
    tags.extend(u32::try_from(vendor.len()).unwrap_or(0).to_le_bytes());
    tags.extend(vendor);
    tags.extend([0; 4]);
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_frames_of_48_khz() {
        let mut file = OggOpus::new(OpusFormat::new(8_000, 2).unwrap()).unwrap();
        let header = file.take();
        assert_eq!(header.windows(4).filter(|part| part == b"OggS").count(), 2);
        let head = &header[28..47];
        assert_eq!(head, b"OpusHead\x01\x02\x38\x01\x40\x1f\x00\x00\x00\x00\x00");
        for packets in 1..4_u8 {
            file.append(&[0b1111_1000, 9]).unwrap();
            let page = file.take();
            assert_eq!(page[6..14], (u64::from(packets) * 960).to_le_bytes());
        }
        let error = file.append(&[]).unwrap_err().to_string();
        assert!(error.starts_with("Opus packet of 0 bytes: it has no duration"), "{error}");
        assert!(file.take().is_empty());
    }
}
