//! Motion JPEG: a file of concatenated JPEG pictures.

use std::iter::FusedIterator;

use crate::error::MediaError;
use crate::markers::picture_end;

/// Splits a concatenation of JPEG pictures into pictures, each from `ff d8` to `ff d9`.
///
/// Segments are skipped by length, so a thumbnail inside a picture does not split it. Zero bytes between
/// pictures are skipped. Pixels are not decoded. After an error, which stands for one damaged place, the
/// iterator continues at the next start of a picture.
///
/// ```
/// use paceline_media::{Size, TestCard, mjpeg};
///
/// let mut card = TestCard::new(Size::new(320, 240)?)?;
/// let mut file = card.draw_jpeg(0, 0, 80)?;
/// file.extend(card.draw_jpeg(1, 40_000, 80)?);
/// assert_eq!(mjpeg::split(&file).filter(Result::is_ok).count(), 2);
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
///
/// # Errors
/// Items are [`MediaError::NotJpeg`], [`MediaError::JpegTruncated`] or [`MediaError::JpegCorrupt`], with
/// offsets from the start of `bytes`.
#[must_use]
pub fn split(bytes: &[u8]) -> MjpegPictures<'_> {
    MjpegPictures { bytes, at: 0 }
}

/// The pictures of a motion JPEG file; see [`split`].
#[derive(Debug, Clone)]
pub struct MjpegPictures<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl MjpegPictures<'_> {
    /// Returns the offset of the byte behind the last picture returned.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Returns the offset of the next start of a picture from `from` on, or the end.
    ///
    /// Another marker follows a start.
    fn next_start(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let start = rest.windows(3).position(|bytes| bytes == [0xff, 0xd8, 0xff]);
        start.map_or(self.bytes.len(), |at| from + at)
    }
}

impl<'a> Iterator for MjpegPictures<'a> {
    type Item = Result<&'a [u8], MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let begin = self.at + rest.iter().position(|&byte| byte != 0)?;
        match picture_end(self.bytes, begin) {
            Ok(end) => {
                self.at = end;
                Some(Ok(self.bytes.get(begin..end).unwrap_or_default()))
            }
            Err(error) => {
                self.at = self.next_start(begin + 1);
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for MjpegPictures<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PictureBuf, PixelFormat, Size, jpeg};

    fn picture(width: u32) -> Vec<u8> {
        let size = Size::new(width, 9).unwrap();
        let picture = PictureBuf::grey(PixelFormat::I420, size).unwrap();
        jpeg::encode(&picture.as_picture(), 80).unwrap()
    }

    /// Returns a picture with a whole picture in an APP1 segment, fill bytes and a comment.
    fn with_thumbnail() -> Vec<u8> {
        let (outer, inner) = (picture(20), picture(8));
        let mut out = outer[..2].to_vec();
        out.extend([0xff, 0xff, 0xff, 0xe1]);
        out.extend(u16::try_from(inner.len() + 2).unwrap().to_be_bytes());
        out.extend(inner);
        out.extend([0xff, 0xfe, 0, 4, 0xff, 0xd9]);
        out.extend(&outer[2..]);
        out
    }

    #[test]
    fn thumbnails_do_not_split_a_picture() {
        let parts = [picture(16), with_thumbnail(), picture(33)];
        let mut file = parts[0].clone();
        file.extend(&parts[1]);
        file.extend([0, 0, 0]);
        file.extend(&parts[2]);
        file.push(0);
        let found: Vec<_> = split(&file).map(Result::unwrap).collect();
        assert_eq!(found, parts);
        assert_eq!(jpeg::dimensions(found[1]).unwrap().width, 20);
        assert!(jpeg::decode(found[1], PixelFormat::Rgb8).is_ok());
    }

    #[test]
    fn stuffing_and_restarts_do_not_end_a_picture() {
        let bytes = [
            0xff, 0xd8, 0xff, 0xda, 0, 2, 1, 0xff, 0, 0xff, 0xd0, 2, 0xff, 0xff, 0xd7, 0xff, 0xff,
            0xd9,
        ];
        assert_eq!(split(&bytes).collect::<Vec<_>>(), [Ok(&bytes[..])]);
    }

    #[test]
    fn every_truncation_is_reported_with_its_offset() {
        let (first, second) = (picture(16), with_thumbnail());
        for cut in 1..second.len() {
            let file = [&first[..], &second[..cut]].concat();
            let mut items = split(&file);
            assert_eq!(items.next(), Some(Ok(&first[..])));
            let (begin, len) = (first.len(), file.len());
            assert_eq!(items.next(), Some(Err(MediaError::JpegTruncated { begin, at: len, len })));
        }
    }

    #[test]
    fn garbage_is_named() {
        assert_eq!(split(&[]).next(), None);
        let message = split(b"\0hello").next().unwrap().unwrap_err().to_string();
        assert_eq!(
            message,
            "no jpeg picture at byte 1: found 68 65, must begin with ff d8; pass bytes that begin with a whole jpeg picture"
        );
        let nested = split(&[0xff, 0xd8, 0xff, 0xd8]).next().unwrap().unwrap_err();
        assert!(nested.to_string().starts_with("corrupt jpeg picture at byte 3: marker ff d8"));
    }

    proptest::proptest! {
        #[test]
        fn every_undamaged_picture_is_found(
            at in proptest::prelude::any::<proptest::sample::Index>(),
            damage in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..700),
        ) {
            let parts: Vec<_> = (0..20).map(|number| picture(16 + number * 8)).collect();
            let whole = parts.concat();
            let mut file = whole.clone();
            let at = at.index(file.len());
            for (byte, new) in file[at..].iter_mut().zip(&damage) {
                *byte = *new;
            }
            let found: Vec<_> = split(&file).flatten().collect();
            let (mut begin, mut next) = (0, 0);
            for part in &parts {
                let end = begin + part.len();
                if file[begin..end] == whole[begin..end] {
                    let place = found[next..].iter().position(|one| one == part);
                    proptest::prop_assert!(place.is_some(), "the picture at {begin}");
                    next += place.unwrap() + 1;
                }
                begin = end;
            }
        }

        #[test]
        fn random_bytes_never_panic(
            mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        ) {
            for prefix in [&[][..], &[0xff, 0xd8], &[0xff, 0xd8, 0xff, 0xda, 0, 2]] {
                bytes.splice(0..0, prefix.iter().copied());
                let items: Vec<_> = split(&bytes).collect();
                assert!(items.len() <= bytes.len());
            }
        }
    }
}
