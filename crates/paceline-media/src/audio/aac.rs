//! AAC: its configuration in containers (AudioSpecificConfig of ISO/IEC 14496-3, 1.6.2.1), and the header of blocks that state
//! theirs (ADTS).

/// The sample rates of AAC in Hz, by the index in its headers (ISO/IEC 14496-3, table 1.18).
const RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];
/// The bytes of an ADTS header without a checksum.
const ADTS_BYTES: usize = 7;
/// The longest ADTS block in bytes: its length has 13 bits.
const ADTS_MAX: usize = 0x1fff;
/// The object type AAC-LC.
const LC: u32 = 2;
/// The object types of AAC-LC with its extensions for low bit rates (HE-AAC), version 1 and 2.
const HE: [u32; 2] = [5, 29];

/// The format of AAC-LC, also with the extensions of HE-AAC.
///
/// ```
/// use paceline_media::audio::AacFormat;
///
/// let format = AacFormat::read(&[0x12, 0x10])?;
/// assert_eq!((format.rate(), format.channels()), (44_100, 2));
/// let block = format.block(&[1, 2, 3]).expect("a short block");
/// assert_eq!(AacFormat::of_block(&block), Some((format, 7, 10)));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AacFormat {
    /// The index of the sample rate.
    index: u8,
    /// The channel configuration, 1 to 7.
    channels: u8,
}

impl AacFormat {
    /// The samples of a block, per channel.
    pub const BLOCK: u32 = 1_024;

    /// Returns the format of a sample rate of the table, in Hz, and 1 to 6 or 8 channels.
    #[must_use]
    pub fn new(rate: u32, channels: u8) -> Option<Self> {
        let index = RATES.iter().position(|known| *known == rate)?;
        let channels = match channels {
            1..=6 => channels,
            8 => 7,
            _ => return None,
        };
        Some(Self { index: u8::try_from(index).ok()?, channels })
    }

    /// Returns the sample rate in Hz of an index in the headers of AAC.
    #[must_use]
    pub fn rate_of(index: u8) -> Option<u32> {
        RATES.get(usize::from(index)).copied()
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// The name of the kind of AAC, if it is another one.
    pub fn read(config: &[u8]) -> Result<Self, &'static str> {
        let mut bits = Bits(config, 0);
        let cut = "AAC without a configuration that can be read";
        let object = bits.object().ok_or(cut)?;
        let index = bits.index().ok_or(cut)?;
        let channels = bits.take(4).ok_or(cut)?;
        let core = if HE.contains(&object) {
            // The rate of the extension, which decoders find by themselves.
            bits.index().ok_or(cut)?;
            bits.object().ok_or(cut)?
        } else {
            object
        };
        if core != LC {
            return Err("AAC of another profile than LC");
        }
        if bits.take(1).ok_or(cut)? == 1 {
            return Err("AAC with blocks of 960 samples");
        }
        let index = index.ok_or("AAC of a rate outside the table")?;
        let channels = u8::try_from(channels).ok().filter(|channels| (1..=7).contains(channels));
        Ok(Self { index, channels: channels.ok_or("AAC with channels of its own order")? })
    }

    /// Returns the format of a block with an ADTS header, the bytes of its header and its length in bytes. `None` if there is no
    /// such header.
    #[must_use]
    pub fn of_block(block: &[u8]) -> Option<(Self, usize, usize)> {
        let [s0, s1, b2, b3, b4, b5, _] = *block.first_chunk::<ADTS_BYTES>()?;
        // The layer is 0.
        if s0 != 0xff || s1 & 0xf6 != 0xf0 {
            return None;
        }
        let index = b2 >> 2 & 0xf;
        let channels = (b2 & 1) << 2 | b3 >> 6;
        let length = usize::from(b3 & 3) << 11 | usize::from(b4) << 3 | usize::from(b5) >> 5;
        let header = if s1 & 1 == 1 { ADTS_BYTES } else { ADTS_BYTES + 2 };
        let known = usize::from(index) < RATES.len() && channels != 0 && length > header;
        known.then_some((Self { index, channels }, header, length))
    }

    /// Returns the samples per second.
    #[must_use]
    pub fn rate(&self) -> u32 {
        RATES.get(usize::from(self.index)).copied().unwrap_or(48_000)
    }

    /// Returns the number of channels.
    #[must_use]
    pub const fn channels(&self) -> u8 {
        if self.channels == 7 { 8 } else { self.channels }
    }

    /// Returns the configuration for containers.
    #[must_use]
    pub const fn config(&self) -> [u8; 2] {
        [2 << 3 | self.index >> 1, (self.index & 1) << 7 | self.channels << 3]
    }

    /// Returns a block with an ADTS header; `None` if it is empty or above 8184 bytes.
    #[must_use]
    pub fn block(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let length = bytes.len() + ADTS_BYTES;
        let short =
            u16::try_from(length).ok().filter(|_| length <= ADTS_MAX && !bytes.is_empty())?;
        let [high, low] = (short << 5).to_be_bytes();
        let mut block = Vec::with_capacity(length);
        // MPEG-4, no checksum; AAC-LC; a buffer of any fullness; one block.
        block.extend_from_slice(&[0xff, 0xf1, 1 << 6 | self.index << 2 | self.channels >> 2]);
        block.extend_from_slice(&[
            self.channels << 6 | u8::try_from(short >> 11).ok()?,
            high,
            low | 0x1f,
            0xfc,
        ]);
        block.extend_from_slice(bytes);
        Some(block)
    }
}

/// Bytes, and the number of bits that were read.
struct Bits<'a>(&'a [u8], usize);

impl Bits<'_> {
    fn take(&mut self, count: usize) -> Option<u32> {
        (0..count).try_fold(0, |value, _| {
            let bit = *self.0.get(self.1 / 8)? >> (7 - self.1 % 8) & 1;
            self.1 += 1;
            Some(value << 1 | u32::from(bit))
        })
    }

    fn object(&mut self) -> Option<u32> {
        match self.take(5)? {
            31 => Some(32 + self.take(6)?),
            object => Some(object),
        }
    }

    /// Returns the index of a rate; `Some(None)` for a rate outside the table.
    fn index(&mut self) -> Option<Option<u8>> {
        match self.take(4)? {
            15 => {
                let rate = self.take(24)?;
                let index = RATES.iter().position(|known| *known == rate);
                Some(index.and_then(|index| u8::try_from(index).ok()))
            }
            index => {
                Some(u8::try_from(index).ok().filter(|index| usize::from(*index) < RATES.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_ffmpeg_and_others_are_read() {
        // 48 kHz stereo with the extension that ffmpeg appends, and HE-AAC of 24 kHz with 48 kHz.
        let plain = AacFormat::read(&[0x11, 0x90, 0x56, 0xe5, 0x00]).unwrap();
        assert_eq!((plain.rate(), plain.channels(), plain.config()), (48_000, 2, [0x11, 0x90]));
        let high = AacFormat::read(&[0x2b, 0x11, 0x88, 0x00]).unwrap();
        assert_eq!((high.rate(), high.channels()), (24_000, 2));
        for (config, part) in [
            (&[][..], "configuration"),
            (&[0x11], "configuration"),
            (&[0x09, 0x90], "profile"),
            (&[0x11, 0x94], "960"),
            (&[0x11, 0x80], "order"),
            (&[0x17, 0x80, 0x00, 0x00, 0x90], "table"),
        ] {
            let error = AacFormat::read(config).unwrap_err();
            assert!(error.contains(part), "{config:?}: {error}");
        }
    }

    #[test]
    fn blocks_have_a_header_with_their_length() {
        let format = AacFormat { index: 3, channels: 7 };
        for length in [1, 300, ADTS_MAX - ADTS_BYTES] {
            let block = format.block(&vec![5; length]).unwrap();
            assert_eq!(AacFormat::of_block(&block), Some((format, 7, length + 7)));
        }
        assert_eq!(format.block(&[]), None);
        assert_eq!(format.block(&vec![5; ADTS_MAX - ADTS_BYTES + 1]), None);
        assert_eq!(AacFormat::of_block(&[0xff, 0xfb, 0x90, 0, 0, 0, 0]), None, "MP3");
    }
}
