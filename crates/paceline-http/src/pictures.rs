//! Previews of a subscriber's pictures: small, at a low rate, and only while a client displays
//! them.

use super::look::Look;
use super::watched::{NoPicture, Watched, id};
use bytes::Bytes;
use paceline::{Node, Sample};
use paceline_media::codec::Codec;
use paceline_media::{Format, Picture, PixelFormat, Scaler, Size, jpeg};
use paceline_tool::ros::unwrapped;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The longest side of a preview in pixels.
const SIDE_MAX: u32 = 320;
/// The smallest interval between two previews of a subscription. It allows five per second, with a
/// margin for inexact client clocks.
const EVERY: Duration = Duration::from_millis(190);
/// The time without requests after which a subscription is no longer observed.
const UNWATCHED: Duration = Duration::from_secs(3);
/// The rate of each publisher at an observer.
const OBSERVED_HZ: f64 = 5.0;
/// The JPEG quality of previews.
const QUALITY: u8 = 80;

/// The media type of H.264 pictures in the format of Annex B.
pub(super) const H264: &str = "video/h264";

/// A preview.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The sample's sequence number.
    pub seq: u64,
    /// The sample's age at delivery in microseconds.
    pub age_us: u64,
    /// The size that the subscriber receives.
    pub size: (u32, u32),
    /// The size of the sample in bytes.
    pub bytes: u64,
    /// The media type of the preview.
    pub kind: &'static str,
    /// The encoded preview.
    pub picture: Bytes,
}

/// An observed subscription, and its newest preview.
struct Preview {
    look: Look,
    made: Option<(Instant, Result<Shown, NoPicture>)>,
}

/// The observed subscriptions.
#[derive(Default)]
pub(crate) struct Pictures {
    watched: Watched<Preview>,
    scaler: Scaler,
}

impl Pictures {
    /// Returns the newest picture of a subscription of `node`. Returns `None` if its sequence
    /// number is `after`, or if no picture has arrived yet.
    pub(crate) fn newest(
        &mut self,
        node: &Node,
        subscription: &str,
        after: Option<u64>,
    ) -> Result<Option<Shown>, NoPicture> {
        let id = id(subscription)?;
        let now = Instant::now();
        let watched = self
            .watched
            .get(id, || Ok(Preview { look: Look::open(node, id, OBSERVED_HZ)?, made: None }))?;
        if watched.look.is_closed() {
            self.watched.remove(id);
            return Err(NoPicture::Unknown);
        }
        let newest = watched.look.newest(node);
        if let Err(why) = newest {
            self.watched.remove(id);
            return Err(why);
        }
        let rested = watched.made.as_ref().is_none_or(|(at, _)| now.duration_since(*at) >= EVERY);
        if rested && let Ok(Some(delivery)) = newest {
            let last = watched.made.as_ref().and_then(|(_, made)| made.as_ref().ok());
            if last.is_none_or(|last| last.seq != delivery.seq) {
                watched.made = Some((now, show(&mut self.scaler, &delivery)));
            }
        }
        match &watched.made {
            Some((_, Ok(shown))) if after != Some(shown.seq) => Ok(Some(shown.clone())),
            Some((_, Err(why))) => Err(why.clone()),
            Some((_, Ok(_))) | None => Ok(None),
        }
    }

    /// Returns the ids of the observers, which the page does not show.
    pub(super) fn observers(&self) -> BTreeSet<String> {
        self.watched.all().filter_map(|preview| preview.look.observer()).collect()
    }

    /// Ends the observation of subscriptions without recent requests.
    pub(crate) fn forget_unwatched(&mut self) {
        self.watched.forget(UNWATCHED, |_| false);
    }
}

/// Returns the largest preview size with the same aspect ratio.
fn fitting(size: Size) -> Size {
    let longest = size.width.max(size.height);
    if longest <= SIDE_MAX {
        return size;
    }
    let scaled = |side: u32| {
        let side = u64::from(side) * u64::from(SIDE_MAX) / u64::from(longest);
        u32::try_from(side).unwrap_or(SIDE_MAX).max(1)
    };
    Size { width: scaled(size.width), height: scaled(size.height) }
}

fn show(scaler: &mut Scaler, delivery: &Sample) -> Result<Shown, NoPicture> {
    let encoding = delivery.encoding.as_str();
    let not_shown = |why: &dyn std::fmt::Display| NoPicture::NotShown(format!("{encoding}: {why}"));
    let format: Format = encoding.parse().map_err(|_| not_shown(&"no picture"))?;
    if format.codec().is_some_and(|codec| codec != Codec::H264) {
        return Err(not_shown(&"the dashboard shows no video but H.264; subscribe to it"));
    }
    let made = (|| {
        let size = format.picture_size(&delivery.payload)?;
        if format == Format::H264 {
            // The page decodes it.
            return Ok((size, H264, delivery.payload.clone()));
        }
        let to = fitting(size);
        let picture = if to == size {
            delivery.payload.clone()
        } else {
            scaler.scale(&format, &delivery.payload, to)?.into()
        };
        let (format, picture) = unwrapped(format, &picture)?;
        let (kind, picture) = match format {
            Format::Png => ("image/png", picture),
            Format::Jpeg | Format::H264 | Format::H265 | Format::Av1 | Format::Ros(_) => {
                ("image/jpeg", picture)
            }
            Format::I420(_, range) => {
                let picture = Picture::new(PixelFormat::I420, to, &picture)?;
                let full = picture.to_full_range(range);
                ("image/jpeg", jpeg::encode(&full.as_picture(), QUALITY)?.into())
            }
            Format::Rgb8(_) => {
                let picture = Picture::new(PixelFormat::Rgb8, to, &picture)?;
                ("image/jpeg", jpeg::encode(&picture, QUALITY)?.into())
            }
        };
        Ok((size, kind, picture))
    })();
    let (size, kind, picture) =
        made.map_err(|error: paceline_media::MediaError| not_shown(&error))?;
    Ok(Shown {
        seq: delivery.seq,
        age_us: paceline_tool::show::micros(delivery.age),
        size: (size.width, size.height),
        bytes: delivery.payload.len() as u64,
        kind,
        picture,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_pictures_are_small_and_keep_their_aspect_ratio() {
        let fitted = |width, height| {
            let Size { width, height } = fitting(Size { width, height });
            (width, height)
        };
        assert_eq!(fitted(640, 480), (320, 240));
        assert_eq!(fitted(480, 640), (240, 320));
        assert_eq!(fitted(160, 120), (160, 120));
        assert_eq!(fitted(16_384, 1), (320, 1));
    }
}
