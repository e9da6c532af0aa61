//! Coding of blocks of sound to packets of Opus.

use super::codec::Coder;
use super::format::OpusFormat;
use super::packet::DURATIONS_US;
use crate::audio::format::{AudioFormat, Coding};
use crate::audio::samples;
use crate::audio::scale::AudioScaler;
use crate::error::MediaError;

/// The smallest packet in bytes. A smaller one would contain no sound.
const PACKET_MIN: usize = 10;

/// The largest step between two durations of packets, in microseconds.
const STEP_US: u64 = 20_000;

/// Codes a stream of blocks of sound as packets of Opus at a constant bit rate.
///
/// Each block returns at most one packet, of the longest duration that is complete: 2.5, 5, 10, 20, 40, 60, 80, 100
/// or 120 ms. A packet of d seconds has exactly bit rate · d / 8 bytes, rounded down, for silence and noise alike.
/// The remaining sound, less than 20 ms, begins the next packet. Blocks of 10, 20, 40 or 60 ms leave nothing over.
///
/// Blocks return nothing until there are 10 bytes to code: 20 ms at 6 kbit/s, 10 ms at 8 kbit/s, 5 ms at 16 kbit/s.
///
/// The codec delays the sound by [`OPUS_LOOK_AHEAD_US`](super::OPUS_LOOK_AHEAD_US), and a change of the sample rate by
/// the delay of [`AudioScaler`]. The encoder uses about 50 kB, and 4 MiB more if it changes the sample rate.
pub struct OpusEncoder {
    from: AudioFormat,
    to: OpusFormat,
    bits_per_s: u32,
    /// The largest packet in bytes.
    limit: usize,
    scaler: AudioScaler,
    coder: Coder,
    /// Interleaved samples that are not yet coded.
    waiting: Vec<i16>,
}

impl OpusEncoder {
    /// Returns an encoder for blocks of format `from`.
    ///
    /// # Errors
    /// [`MediaError::AudioRange`] and [`MediaError::OpusRange`] for a rate, a number of channels or a bit rate out
    /// of range, and [`MediaError::OpusMissing`] in builds without the codec.
    pub fn new(from: AudioFormat, to: OpusFormat, bits_per_s: u32) -> Result<Self, MediaError> {
        to.check()?;
        OpusFormat::check_bits(bits_per_s)?;
        let linear = AudioFormat { coding: Coding::S16le, ..from };
        let scaler = AudioScaler::new(linear, to.rate, to.channels)?;
        let coder = Coder::new(to, bits_per_s)?;
        Ok(Self { from, to, bits_per_s, limit: usize::MAX, scaler, coder, waiting: Vec::new() })
    }

    /// Returns the format of the packets.
    #[must_use]
    pub fn output(&self) -> OpusFormat {
        self.to
    }

    /// Limits the bytes of later packets by their duration; `None` removes the limit.
    pub fn set_limit(&mut self, bytes: Option<usize>) {
        self.limit = bytes.unwrap_or(usize::MAX);
    }

    /// Returns the most bytes that [`Self::push`] returns for a block of this length.
    #[must_use]
    pub fn bytes_for(&self, block: &[u8]) -> usize {
        // A change of the rate rounds down, but may return a frame that an earlier block lacked.
        let frames = (self.frames() as u64 + 1) * 1_000_000;
        let before = frames.div_ceil(u64::from(self.to.rate));
        self.due(before + self.micros(block)).map_or(0, |micros| self.bytes(micros))
    }

    /// Takes the next block and returns a packet, or nothing if the sound is too short for one.
    ///
    /// # Errors
    /// [`MediaError::AudioBlock`] for a block that ends inside a frame, or that is longer than 120 ms or than the
    /// longest packet within the limit; the encoder is then unchanged.
    pub fn push(&mut self, block: &[u8]) -> Result<Vec<u8>, MediaError> {
        self.check(block)?;
        let scaled = match self.from.coding {
            Coding::S16le => self.scaler.push(block)?,
            coding @ (Coding::Ulaw | Coding::Alaw) => {
                let mut levels = Vec::new();
                samples::decode(coding, block, &mut levels);
                self.scaler.push(&samples::encode(Coding::S16le, &levels))?
            }
        };
        let added = scaled.as_chunks().0;
        self.waiting.extend(added.iter().map(|&bytes| i16::from_le_bytes(bytes)));
        let whole = self.frames() as u64 * 1_000_000 / u64::from(self.to.rate);
        let Some(micros) = self.due(whole) else { return Ok(Vec::new()) };
        let frames = u64::from(micros) * u64::from(self.to.rate) / 1_000_000;
        let samples = usize::try_from(frames).unwrap_or(0) * usize::from(self.to.channels);
        let bytes = self.bytes(micros);
        let packet = self.coder.encode(self.waiting.get(..samples).unwrap_or_default(), bytes);
        self.waiting.drain(..samples.min(self.waiting.len()));
        packet
    }

    /// Returns the waiting frames.
    fn frames(&self) -> usize {
        self.waiting.len() / usize::from(self.to.channels)
    }

    /// Returns the duration of a block, rounded up.
    fn micros(&self, block: &[u8]) -> u64 {
        let frames = (block.len() / self.from.frame_bytes()) as u64;
        (frames * 1_000_000).div_ceil(u64::from(self.from.rate))
    }

    fn bytes(&self, micros: u32) -> usize {
        let bits = u64::from(self.bits_per_s) * u64::from(micros) / 1_000_000;
        usize::try_from(bits / 8).unwrap_or(usize::MAX)
    }

    /// Returns the durations of packets that contain sound and fit the limit.
    fn permitted(&self) -> impl DoubleEndedIterator<Item = u32> {
        let fits = |micros: &u32| (PACKET_MIN..=self.limit).contains(&self.bytes(*micros));
        DURATIONS_US.into_iter().filter(fits)
    }

    /// Returns the duration of the packet that is due with this much sound.
    fn due(&self, micros: u64) -> Option<u32> {
        self.permitted().rev().find(|one| u64::from(*one) <= micros)
    }

    fn check(&self, block: &[u8]) -> Result<(), MediaError> {
        let frame = self.from.frame_bytes();
        let refuse = |must, fix| {
            Err(MediaError::AudioBlock { what: "holds", bytes: block.len() as u64, must, fix })
        };
        if !block.len().is_multiple_of(frame) {
            let must = format!("a multiple of {frame}, one frame of {}", self.from);
            return refuse(must, "cut blocks between frames");
        }
        let longest = u64::from(self.permitted().next_back().unwrap_or(0));
        let waiting = self.frames() as u64 * 1_000_000 / u64::from(self.to.rate);
        if self.micros(block) > longest || waiting + self.micros(block) >= longest + STEP_US {
            let most = longest * u64::from(self.from.rate) / 1_000_000 * frame as u64;
            let must = format!("at most {most} for packets of {} ms", longest / 1_000);
            return refuse(must, "send shorter blocks, 20 ms are usual");
        }
        Ok(())
    }
}
