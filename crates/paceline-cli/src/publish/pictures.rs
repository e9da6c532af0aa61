//! Picture files: motion JPEG, Y4M, PNG and JPEG.

use super::args::PubArgs;
use super::source::Opened;
use super::stored::{About, gather, opened, read};
use anyhow::Context as _;
use paceline_media::{Format, Y4mReader, mjpeg};
use std::path::Path;

/// Default rate of files that do not state one, in pictures per second.
pub(super) const HZ: f64 = 30.0;

/// Opens a file of concatenated JPEG pictures.
pub(super) fn open_mjpeg(args: &PubArgs, file: &Path) -> anyhow::Result<Opened> {
    let bytes = read(file)?;
    let share = |picture: &[u8]| bytes.slice_ref(picture);
    let pictures = gather(file, "pictures", mjpeg::split(&bytes), share)?;
    let first = pictures.samples.first().map(|picture| Format::Jpeg.picture_size(picture));
    let size = first.transpose().with_context(|| file.display().to_string())?;
    let hz = Some(args.hertz().unwrap_or(HZ));
    opened(args, file, pictures, about(Format::Jpeg, size, hz))
}

/// Opens an uncompressed video file.
pub(super) fn open_y4m(args: &PubArgs, file: &Path) -> anyhow::Result<Opened> {
    let bytes = read(file)?;
    let reader = Y4mReader::new(&bytes).with_context(|| file.display().to_string())?;
    let (size, rate) = (reader.size(), reader.rate());
    let pictures = gather(file, "pictures", reader, |picture| bytes.slice_ref(picture.bytes()))?;
    let own = f64::from(rate.num) / f64::from(rate.den);
    let hz = Some(args.hertz().unwrap_or(own));
    opened(args, file, pictures, about(Format::I420(size), Some(size), hz))
}

/// Opens a file with one picture.
pub(super) fn open_still(args: &PubArgs, file: &Path, format: Format) -> anyhow::Result<Opened> {
    if args.repeat && args.hertz().is_none() {
        return Err(crate::exit::usage(format!(
            "--loop: {} is one picture without a rate; give --hz or --period",
            file.display()
        )));
    }
    let bytes = read(file)?;
    let size = format.picture_size(&bytes).with_context(|| file.display().to_string())?;
    let about = about(format, Some(size), args.hertz());
    opened(args, file, vec![bytes], About { name: "picture", ..about })
}

fn about(format: Format, size: Option<paceline_media::Size>, hz: Option<f64>) -> About {
    About { name: "pictures", encoding: format.to_string(), size, hz, keeps_time: true }
}
