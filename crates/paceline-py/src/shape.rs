//! The numpy shape of a sample.

use paceline_media::Format;
use paceline_media::audio::{AudioFormat, Coding};

/// Returns the array shape and numpy's name of the element type. Raw pictures and linear audio get
/// their usual shape, all other samples are one-dimensional bytes.
pub(crate) fn of(encoding: &str, bytes: usize) -> (Vec<usize>, &'static str) {
    let (shape, element, size) =
        picture(encoding).or_else(|| sound(encoding, bytes)).unwrap_or_default();
    // A sample whose length contradicts its encoding is one-dimensional bytes, too.
    if shape.is_empty() || shape.iter().product::<usize>() * size != bytes {
        return (vec![bytes], "|u1");
    }
    (shape, element)
}

type Shape = (Vec<usize>, &'static str, usize);

fn picture(encoding: &str) -> Option<Shape> {
    let sides = |size: paceline_media::Size| {
        Some((usize::try_from(size.width).ok()?, usize::try_from(size.height).ok()?))
    };
    let shape = match encoding.parse().ok()? {
        Format::Rgb8(size) => sides(size).map(|(width, height)| vec![height, width, 3])?,
        // The planes are stacked vertically, as `cv2.cvtColor(…, COLOR_YUV2RGB_I420)` expects.
        Format::I420(size, _) => sides(size)
            .filter(|(width, height)| width % 2 == 0 && height % 2 == 0)
            .map(|(width, height)| vec![height / 2 * 3, width])?,
        Format::Jpeg | Format::Png | Format::H264 | Format::H265 | Format::Av1 | Format::Ros(_) => {
            return None;
        }
    };
    Some((shape, "|u1", 1))
}

fn sound(encoding: &str, bytes: usize) -> Option<Shape> {
    let format: AudioFormat = encoding.parse().ok()?;
    let channels = usize::from(format.channels);
    match format.coding {
        Coding::S16le => Some((vec![bytes / 2 / channels.max(1), channels], "<i2", 2)),
        Coding::Ulaw | Coding::Alaw => Some((vec![bytes / channels.max(1), channels], "|u1", 1)),
    }
}
