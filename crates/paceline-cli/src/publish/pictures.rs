//! Picture files: motion JPEG and Y4M.

use super::args::PubArgs;
use super::source::{Next, Opened, Origin, Source};
use crate::show;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use paceline::{Encoding, Size};
use paceline_media::{Format, MediaError, Y4mReader, mjpeg};
use std::path::Path;
use std::time::Duration;

/// Picture files are held in memory while they are published.
const FILE_MAX: u64 = 4 << 30;
const HZ: f64 = 30.0;

/// The pictures of a file, sharing its bytes.
pub(crate) struct Pictures {
    pictures: Vec<Bytes>,
    repeat: bool,
}

impl Pictures {
    /// Picture `number` of the file, over and over if it repeats.
    pub(crate) fn next(&self, number: u64) -> Next {
        let length = self.pictures.len() as u64;
        let place = if self.repeat && length > 0 { number % length } else { number };
        let picture = usize::try_from(place).ok().and_then(|place| self.pictures.get(place));
        picture.map_or(Next::End, |picture| Next::Sample(picture.clone()))
    }

    /// True if it begins again at its end.
    pub(crate) const fn repeats(&self) -> bool {
        self.repeat
    }
}

/// Opens a file of concatenated JPEG pictures.
pub(crate) fn open_mjpeg(args: &PubArgs, file: &Path) -> anyhow::Result<Opened> {
    let bytes = read(file)?;
    let pictures = gather(file, mjpeg::split(&bytes), |picture| bytes.slice_ref(picture))?;
    let first = pictures.first().map(|picture| Format::Jpeg.picture_size(picture));
    let size = first.transpose().with_context(|| file.display().to_string())?;
    Ok(opened(args, file, pictures, Format::Jpeg, size, args.rate().unwrap_or(HZ)))
}

/// Opens an uncompressed video file.
pub(crate) fn open_y4m(args: &PubArgs, file: &Path) -> anyhow::Result<Opened> {
    let bytes = read(file)?;
    let reader = Y4mReader::new(&bytes).with_context(|| file.display().to_string())?;
    let (size, rate) = (reader.size(), reader.rate());
    let pictures = gather(file, reader, |picture| bytes.slice_ref(picture.bytes()))?;
    let own = f64::from(rate.num) / f64::from(rate.den);
    let hz = args.rate().unwrap_or(own);
    Ok(opened(args, file, pictures, Format::I420(size), Some(size), hz))
}

fn read(file: &Path) -> anyhow::Result<Bytes> {
    let what = || format!("cannot read {}", file.display());
    let length = std::fs::metadata(file).with_context(what)?.len();
    if length > FILE_MAX {
        bail!(
            "{} has {length} bytes, at most {FILE_MAX} are published as pictures; split the file",
            file.display()
        );
    }
    Ok(std::fs::read(file).with_context(what)?.into())
}

/// The pictures up to the first bad one, which is told; an error if there is none before it.
fn gather<P>(
    file: &Path,
    pictures: impl Iterator<Item = Result<P, MediaError>>,
    share: impl Fn(P) -> Bytes,
) -> anyhow::Result<Vec<Bytes>> {
    let mut shared = Vec::new();
    for picture in pictures {
        match picture {
            Ok(picture) => shared.push(share(picture)),
            Err(error) if shared.is_empty() => {
                return Err(error).with_context(|| file.display().to_string());
            }
            Err(error) => show::note(&format!(
                "{}: {error}; publishing the {} pictures before it",
                file.display(),
                shared.len()
            )),
        }
    }
    if shared.is_empty() {
        bail!("{} has no pictures; give a file with at least one", file.display());
    }
    Ok(shared)
}

fn opened(
    args: &PubArgs,
    file: &Path,
    pictures: Vec<Bytes>,
    format: Format,
    size: Option<paceline_media::Size>,
    hz: f64,
) -> Opened {
    let encoding = args.encoding.as_deref().map_or_else(|| format.to_string(), str::to_owned);
    let at = size.map(|size| format!(" of {size}")).unwrap_or_default();
    let what =
        format!("{}, {} pictures{at} at {hz} Hz, {encoding}", file.display(), pictures.len());
    Opened {
        origin: Origin {
            encoding: Encoding::new(&encoding),
            hz: Some(hz),
            size: size.map(|size| Size { width: size.width, height: size.height }),
            bytes_max: pictures.iter().map(|picture| picture.len() as u64).max(),
            wait: Duration::from_secs(u64::from(!args.repeat)),
            what,
        },
        feed: Source::Pictures(Pictures { pictures, repeat: args.repeat }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(next: Next) -> Option<Bytes> {
        match next {
            Next::Sample(bytes) => Some(bytes),
            Next::Wait | Next::End => None,
        }
    }

    #[test]
    fn pictures_come_in_order_and_again_if_asked() {
        let pictures = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let once = Pictures { pictures: pictures.clone(), repeat: false };
        let again = Pictures { pictures, repeat: true };
        assert_eq!(sample(once.next(1)).unwrap(), "b");
        assert_eq!(sample(once.next(2)), None);
        assert_eq!(sample(again.next(2)).unwrap(), "a");
    }

    #[test]
    fn what_comes_before_a_bad_picture_is_kept() {
        let bad = || Err(MediaError::SizeText { text: "x".to_owned() });
        let file = Path::new("x.mjpeg");
        let kept = gather(file, [Ok(1), bad()].into_iter(), |_| Bytes::new()).unwrap();
        assert_eq!(kept.len(), 1);
        let error = gather::<u8>(file, [bad()].into_iter(), |_| Bytes::new()).unwrap_err();
        assert!(format!("{error:#}").starts_with("x.mjpeg: size"));
        let none = gather::<u8>(file, std::iter::empty(), |_| Bytes::new()).unwrap_err();
        assert!(none.to_string().contains("has no pictures"));
    }
}
