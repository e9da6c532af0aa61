//! A test card: pictures that contain their number, readable by people and by programs.
//!
//! From top to bottom, in twentieths of the height: 10 of moving colour bars, 4 of digits (picture
//! number, time of day), 6 rows of 24 black or white blocks. Block edges are fractions of the picture,
//! so the blocks can be found at any scale.

mod code;
mod font;
mod scenery;

pub use code::{CardReading, read_card, read_card_jpeg};

use crate::error::MediaError;
use crate::jpeg;
use crate::picture::{Picture, PictureBuf};
use crate::pixel::PixelFormat;
use crate::size::Size;
use scenery::Scenery;

/// The smallest test card. Smaller ones could not be scaled down and still be read.
const SIZE_MIN: Size = Size { width: 160, height: 120 };

/// The brightness of black; with [`WHITE`] inside the range that every player displays.
const BLACK: u8 = 16;
const WHITE: u8 = 235;

/// Draws test cards of one size. The scenery is computed once; each picture only moves it.
///
/// ```
/// use paceline_media::{Size, TestCard, read_card};
///
/// let mut card = TestCard::new(Size::new(640, 480)?)?;
/// let reading = read_card(&card.draw(42, 1_400_000)).unwrap();
/// assert_eq!((reading.frame, reading.micros), (42, 1_400_000));
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TestCard {
    picture: PictureBuf,
    scenery: Scenery,
}

impl TestCard {
    /// Returns a test card of `size`, at least 160x120.
    ///
    /// # Errors
    /// [`MediaError::CardSize`] for a smaller size, or the errors of [`Size::check`].
    pub fn new(size: Size) -> Result<Self, MediaError> {
        let picture = PictureBuf::grey(PixelFormat::I420, size)?;
        if !SIZE_MIN.fits(size) {
            return Err(MediaError::CardSize { size, min: SIZE_MIN });
        }
        Ok(Self { picture, scenery: Scenery::new(size) })
    }

    /// Returns the width and height of the cards.
    #[must_use]
    pub fn size(&self) -> Size {
        self.picture.size()
    }

    /// Draws picture number `frame` with the time `micros` (microseconds, of any clock).
    ///
    /// The picture depends only on the size and these two numbers. The digits show `frame`, and `micros`
    /// as hours, minutes, seconds and milliseconds of a day. The blocks contain both in full. Use
    /// [`Picture::to_rgb8`] for a raw RGB payload.
    pub fn draw(&mut self, frame: u64, micros: u64) -> Picture<'_> {
        let size = self.picture.size();
        if let Some(planes) = self.picture.planes_mut() {
            let [luma, cb, cr] = planes;
            self.scenery.draw(frame, [&mut *luma, cb, cr]);
            font::draw_lines(size, luma, &[format!("#{frame}"), time_of_day(micros)]);
            code::draw(size, luma, CardReading { frame, micros });
        }
        self.picture.as_picture()
    }

    /// Draws the same picture as [`TestCard::draw`], encoded as JPEG of `quality` 1 to 100.
    ///
    /// The blocks are readable at quality 30 and above, even if the picture is scaled down afterwards.
    ///
    /// # Errors
    /// [`MediaError::Quality`] for a quality out of range.
    pub fn draw_jpeg(
        &mut self,
        frame: u64,
        micros: u64,
        quality: u8,
    ) -> Result<Vec<u8>, MediaError> {
        jpeg::encode(&self.draw(frame, micros), quality)
    }
}

/// Formats a time as `12:34:56.789`, in UTC if `micros` counts from the Unix epoch.
fn time_of_day(micros: u64) -> String {
    let millis = micros / 1000;
    let (hours, minutes) = (millis / 3_600_000 % 24, millis / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:03}", millis / 1000 % 60, millis % 1000)
}

/// Returns the first row at or below the twentieth `part` of the height.
fn part_row(size: Size, part: u32) -> usize {
    (size.height * part).div_ceil(20) as usize
}

#[cfg(test)]
mod tests;
