//! Samples of a file in memory: pictures, access units, blocks of sound.

use super::args::PubArgs;
use super::source::{Next, Opened, Origin, Source};
use crate::{exit, show};
use anyhow::{anyhow, bail};
use bytes::Bytes;
use paceline::{Encoding, Size};
use paceline_media::MediaError;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

/// Limit of a file in bytes; it stays in memory while it is published.
const FILE_MAX: u64 = 4 << 30;

/// The samples of a file; they share its bytes.
struct Stored {
    samples: Vec<Bytes>,
    repeat: bool,
    keeps_time: bool,
}

/// The properties of a file's samples.
pub(super) struct About {
    /// Plural noun for messages, such as "pictures".
    pub(super) name: &'static str,
    /// Media type.
    pub(super) encoding: String,
    pub(super) size: Option<paceline_media::Size>,
    /// Samples per second.
    pub(super) hz: Option<f64>,
    /// True if a late sample is skipped, false if it is only delayed.
    pub(super) keeps_time: bool,
}

impl Source for Stored {
    /// Returns sample `number` of the file; starts again at the end if the file repeats.
    fn next(&mut self, number: u64) -> anyhow::Result<Next> {
        let length = self.samples.len() as u64;
        let place = if self.repeat && length > 0 { number % length } else { number };
        let sample = usize::try_from(place).ok().and_then(|place| self.samples.get(place));
        Ok(sample.map_or(Next::End, |sample| Next::Sample(sample.clone())))
    }

    fn has_end(&self) -> bool {
        !self.repeat
    }

    fn keeps_time(&self) -> bool {
        self.keeps_time
    }
}

/// Reads a whole file of at most [`FILE_MAX`] bytes.
pub(super) fn read(file: &Path) -> anyhow::Result<Bytes> {
    let cannot =
        |error: io::Error| anyhow!("cannot read {}: {}", file.display(), exit::file_error(&error));
    let length = std::fs::metadata(file).map_err(cannot)?.len();
    if length > FILE_MAX {
        bail!(
            "{} has {length} bytes, at most {FILE_MAX} are published sample by sample; split the \
             file",
            file.display()
        );
    }
    // The length of a pipe is not known in advance.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    let opened = std::fs::File::open(file).map_err(cannot)?;
    opened.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > FILE_MAX {
        bail!(
            "{} has more than the {FILE_MAX} bytes that are published sample by sample; split it",
            file.display()
        );
    }
    Ok(bytes.into())
}

/// The samples of a file, and its damage.
pub(super) struct Gathered {
    pub(super) samples: Vec<Bytes>,
    /// The damaged places between samples, in words.
    damage: Option<String>,
}

impl From<Vec<Bytes>> for Gathered {
    fn from(samples: Vec<Bytes>) -> Self {
        Self { samples, damage: None }
    }
}

/// Returns the samples of a file without its damaged places, and prints a note about those. A file that ends with an
/// incomplete sample is not damaged.
///
/// # Errors
/// Errors if there is no sample.
pub(super) fn gather<P>(
    file: &Path,
    name: &str,
    samples: impl Iterator<Item = Result<P, MediaError>>,
    share: impl Fn(P) -> Bytes,
) -> anyhow::Result<Gathered> {
    let mut shared = Vec::new();
    let (mut errors, mut behind) = (Vec::new(), 0_usize);
    for sample in samples {
        match sample {
            Ok(sample) => {
                shared.push(share(sample));
                behind = errors.len();
            }
            // Each is one place; the first one is named.
            Err(error) => errors.push(error),
        }
    }
    let first = errors.into_iter().next();
    let file = file.display();
    if shared.is_empty() {
        return Err(match first {
            Some(error) => anyhow!(error).context(file.to_string()),
            None => anyhow!("{file} has no {name}; give a file with at least one"),
        });
    }
    let count = shared.len();
    let damage = first.as_ref().filter(|_| behind > 0).map(|error| match behind {
        1 => format!("a damaged place is skipped: {error}"),
        places => format!("{places} damaged places are skipped; the first: {error}"),
    });
    match (&damage, first) {
        (Some(damage), _) => show::note(&format!("{file}: {damage}; publishing {count} {name}")),
        (None, Some(error)) => {
            show::note(&format!("{file}: {error}; publishing the {count} {name} before it"));
        }
        (None, None) => {}
    }
    Ok(Gathered { samples: shared, damage })
}

/// Creates a source from the samples of a file.
pub(super) fn opened(
    args: &PubArgs,
    file: &Path,
    gathered: impl Into<Gathered>,
    about: About,
) -> anyhow::Result<Opened> {
    let Gathered { samples, damage } = gathered.into();
    let About { name, encoding, size, hz, keeps_time } = about;
    if args.encoding.as_ref().is_some_and(|given| *given != encoding) {
        return Err(exit::usage(format!(
            "--encoding: {} contains {name} of the type {encoding}; leave --encoding out",
            file.display()
        )));
    }
    let at = size.map(|size| format!(" of {size}")).unwrap_or_default();
    let rate = hz.map_or_else(String::new, |hz| format!(" at {hz} Hz"));
    let what = format!("{}, {} {name}{at}{rate}, {encoding}", file.display(), samples.len());
    Ok(Opened {
        origin: Origin {
            encoding: Encoding::new(&encoding),
            hz,
            size: size.map(|size| Size { width: size.width, height: size.height }),
            bytes_max: samples.iter().map(|sample| sample.len() as u64).max(),
            traffic: hz.and_then(|hz| traffic(&samples, hz)),
            live: false,
            wait: Duration::from_secs(u64::from(!args.repeat)),
            damage: damage.map(|damage| format!("{}: {damage}", file.display())),
            what,
        },
        feed: Box::new(Stored { samples, repeat: args.repeat, keeps_time }),
    })
}

/// Returns the traffic of a file that is published at `hz`, also again and again: a rate a tenth above its mean in
/// bits per second, and the most bytes at once at that rate. Returns `None` if the largest sample in each period
/// describes it well.
fn traffic(samples: &[Bytes], hz: f64) -> Option<(u64, u64)> {
    let all: usize = samples.iter().map(Bytes::len).sum();
    let largest = samples.iter().map(Bytes::len).max()?;
    // The bytes that each period serves.
    let served = (all + all / 10) / samples.len() + 1;
    if served > largest / 10 * 7 {
        return None;
    }
    let twice = samples.iter().chain(samples);
    let (most, _) = twice.fold((0, 0_usize), |(most, waiting), sample| {
        let waiting = waiting.saturating_sub(served) + sample.len();
        (waiting.max(most), waiting)
    });
    // Pictures may get parameter sets in front, and the pace is not exact.
    let burst = most + most / 16 + 2 * served;
    let bits = Duration::try_from_secs_f64(8.0 * served as f64 * hz).ok()?;
    // A mean of 0 would bound nothing.
    let whole = bits.as_secs() + u64::from(bits.subsec_nanos() > 0);
    Some((whole.max(1), u64::try_from(burst).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traffic_of_a_file_is_its_mean_and_its_largest_backlog() {
        let sized = |bytes: usize| Bytes::from(vec![0; bytes]);
        let film: Vec<Bytes> =
            (0..50).map(|number| sized(if number == 0 { 60_000 } else { 4_000 })).collect();
        let (bits, burst) = traffic(&film, 25.0).unwrap();
        let mean = 8 * 25 * (60_000 + 49 * 4_000) / 50;
        assert!((mean..mean * 12 / 10).contains(&bits), "{bits}");
        assert!((60_000..80_000).contains(&burst), "{burst}");
        let slow = traffic(&film, 1e-6).unwrap();
        assert_eq!(slow, (1, burst), "no mean is 0");
        assert_eq!(traffic(&[sized(100), sized(101)], 25.0), None);
        assert_eq!(traffic(&[], 25.0), None);
    }

    fn sample(source: &mut Stored, number: u64) -> Option<Bytes> {
        match source.next(number).unwrap() {
            Next::Sample(bytes) => Some(bytes),
            Next::Wait | Next::End => None,
        }
    }

    #[test]
    fn samples_come_in_order_and_again_if_asked() {
        let samples = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let mut once = Stored { samples: samples.clone(), repeat: false, keeps_time: true };
        let mut again = Stored { samples, repeat: true, keeps_time: true };
        assert_eq!(sample(&mut once, 1).unwrap(), "b");
        assert_eq!(sample(&mut once, 2), None);
        assert_eq!(sample(&mut again, 2).unwrap(), "a");
    }

    #[test]
    fn samples_around_a_corrupt_one_are_kept() {
        let bad = || Err(MediaError::SizeText { text: "x".to_owned() });
        let file = Path::new("x.mjpeg");
        let kept = gather(file, "pictures", [Ok(1), bad(), Ok(2)].into_iter(), |_| Bytes::new());
        let kept = kept.unwrap();
        assert_eq!(kept.samples.len(), 2);
        assert!(kept.damage.unwrap().starts_with("a damaged place is skipped: size"));
        let cut = gather(file, "pictures", [Ok(1), bad()].into_iter(), |_| Bytes::new()).unwrap();
        assert_eq!((cut.samples.len(), cut.damage), (1, None), "a cut is no damage");
        let error = gather::<u8>(file, "pictures", [bad()].into_iter(), |_| Bytes::new());
        assert!(format!("{:#}", error.err().unwrap()).starts_with("x.mjpeg: size"));
        let none = gather::<u8>(file, "pictures", std::iter::empty(), |_| Bytes::new());
        assert!(none.err().unwrap().to_string().contains("has no pictures"));
    }
}
