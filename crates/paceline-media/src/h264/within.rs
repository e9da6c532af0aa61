//! Pictures within a number of bytes: less and less detail, down to one colour.
//!
//! An encoded picture cannot be taken back without a key picture, because the encoder has changed its reference. So
//! enough bytes for a key picture of one colour always remain, and pictures of that colour follow it until there are
//! bytes for another attempt.

use super::Class;
use super::coder::{Coder, Planes};
use super::limit::{Limit, key_bytes_min};
use crate::error::MediaError;
use crate::picture::split_planes;
use crate::pixel::PixelFormat;
use crate::size::Size;

/// The greatest level of blur: each sample is a mean of 16 by 16.
const LEVEL_MAX: u8 = 4;
/// The steps of the level after a picture that exceeded its limit.
const STEPS: [u8; 2] = [1, 2];
/// The sample of the one colour, which prediction expects: nothing else is coded.
const GREY: u8 = 128;

impl Coder {
    /// Encodes the planes of a picture within a limit. Returns `None` if there is no room, not even for one colour.
    pub(super) fn code_within(
        &mut self,
        samples: &mut [u8],
        size: Size,
        limit: Limit,
    ) -> Result<Option<(Class, Vec<u8>)>, MediaError> {
        let key = key_bytes_min(size);
        self.limited = true;
        if limit.now < key || self.detail.grey && limit.now < limit.full / 2 {
            return self.code_grey(samples, size, limit.now);
        }
        for step in [0].into_iter().chain(STEPS) {
            self.detail.level = (self.detail.level + step).min(LEVEL_MAX);
            self.blur(samples, size)?;
            // openh264 fails if a picture exceeds its buffer, as noise does at a low quantizer.
            let unit = self.encode_planes(samples, size).ok();
            if let Some(unit) = unit
                && let bytes = unit.1.len() as u64
                && bytes + key <= limit.now
            {
                (self.detail.grey, self.detail.broken) = (false, false);
                self.adapt(limit.now - bytes, limit.full);
                return Ok(Some(unit));
            }
            self.request_key();
            self.detail.broken = true;
        }
        self.code_grey(samples, size, limit.now)
    }

    /// Encodes a picture of one colour.
    fn code_grey(
        &mut self,
        samples: &mut [u8],
        size: Size,
        now: u64,
    ) -> Result<Option<(Class, Vec<u8>)>, MediaError> {
        let lacks_key = now < key_bytes_min(size);
        let needs_key = self.detail.broken || !self.detail.grey;
        if needs_key && lacks_key {
            return Ok(None);
        }
        if needs_key {
            self.request_key();
        }
        samples.fill(GREY);
        self.keeps_reference = lacks_key;
        let unit = self.encode_planes(samples, size);
        self.keeps_reference = false;
        let unit = unit?;
        let fits = unit.1.len() as u64 <= now;
        (self.detail.grey, self.detail.broken) = (fits, !fits);
        Ok(fits.then_some(unit))
    }

    fn encode_planes(
        &mut self,
        samples: &mut [u8],
        size: Size,
    ) -> Result<(Class, Vec<u8>), MediaError> {
        let planes = split_planes(size, samples).ok_or(MediaError::Pixels { size })?;
        let planes = planes.map(|plane| &*plane);
        self.encode(&Planes { planes, size }, size)
    }

    /// Changes the level of detail if few bytes are left, or nearly all.
    fn adapt(&mut self, left: u64, full: u64) {
        let detail = &mut self.detail;
        detail.pause = detail.pause.saturating_sub(1);
        if detail.pause > 0 {
            return;
        }
        let level = detail.level;
        if left < full / 4 {
            detail.level = (level + 1).min(LEVEL_MAX);
        } else if left > full / 4 * 3 {
            detail.level = level.saturating_sub(1);
        }
        if detail.level != level {
            detail.pause = self.key_every / 8;
        }
    }

    /// Removes detail by the current level.
    fn blur(&mut self, samples: &mut [u8], size: Size) -> Result<(), MediaError> {
        let level = self.detail.level;
        if level == 0 {
            return Ok(());
        }
        let less = |side: u32| (side >> level).max(1);
        let len = PixelFormat::I420.payload_len(size);
        debug_assert_eq!(Ok(samples.len()), usize::try_from(len));
        let planes = split_planes(size, samples).ok_or(MediaError::Pixels { size })?;
        let mut small = Vec::new();
        for (plane, size) in planes.into_iter().zip([size, size.chroma(), size.chroma()]) {
            let fewer = Size { width: less(size.width), height: less(size.height) };
            small.resize(crate::picture::area(fewer), 0);
            self.resize.rows((&*plane, size.width as usize, size), (&mut small, fewer))?;
            self.resize.rows((&small, fewer.width as usize, fewer), (plane, size))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bit rate would allow a quantizer at which openh264 fails.
    #[test]
    fn noise_is_coded_at_any_bit_rate() {
        let (size, mut random) = (Size { width: 64, height: 64 }, 1_u64);
        let coder = || {
            let mut coder = Coder::new(25.0).unwrap();
            coder.set_bits(Some(100_000_000));
            coder
        };
        let (mut limited, mut unlimited, mut failed) = (coder(), coder(), 0);
        for _ in 0..50 {
            let mut noise = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                u8::from(random >> 63 == 0) * 255
            };
            let samples: Vec<u8> = (0..64 * 96).map(|_| noise()).collect();
            let (luma, chroma) = samples.split_at(64 * 64);
            let (cb, cr) = chroma.split_at(32 * 32);
            let picture = Planes { planes: [luma, cb, cr], size };
            let limit = Limit { now: 1_000_000, full: 1_000_000 };
            let unit = limited.code(&picture, Some(size), Some(limit)).unwrap();
            assert!(unit.is_some_and(|unit| unit.1.len() > 100));
            failed += u32::from(unlimited.encode(&picture, size).is_err());
        }
        assert!(failed > 0, "the encoder fails without a limit");
    }
}
