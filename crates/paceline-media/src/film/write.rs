//! Writing of films that grow: each part can be played when it was written, whatever happens then.

mod entry;
mod fragment;
mod lane;
mod matroska;
mod packets;
mod payload;

use super::{FilmFormat, FilmKind};
use crate::error::MediaError;
use fragment::Fragments;
use lane::Lane;
use packets::Packets;

/// A unit in a part of a film. Times count from the beginning of the film, in nanoseconds.
#[derive(Debug, Clone)]
struct Written {
    lane: usize,
    shown_ns: i64,
    decode_ns: i64,
    duration_ns: i64,
    key: bool,
    bytes: Vec<u8>,
}

/// Writes a film from samples: fragments of MP4, clusters of Matroska, or packets of MPEG-TS.
///
/// Samples are placed by their capture times, so that pictures and sound are in sync. The film begins at the first of the
/// pictures, which is a key picture, and sound before it is left out.
///
/// ```
/// use paceline_media::film::{FilmFormat, FilmWriter};
///
/// let mut film = FilmWriter::new(FilmFormat::Matroska, 1)?;
/// film.push(0, "audio/pcmu;rate=8000;channels=1", 5_000_000_000, &[0xff; 160])?;
/// film.push(0, "audio/pcmu;rate=8000;channels=1", 5_020_000_000, &[0xff; 160])?;
/// let bytes = film.part(true)?;
/// assert!(bytes.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]));
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug)]
pub struct FilmWriter {
    format: FilmFormat,
    lanes: Vec<Lane>,
    /// The capture time of the beginning, once it is written.
    begin_ns: Option<i64>,
    mux: Mux,
    left_out: u64,
}

/// The state of a format.
#[derive(Debug)]
enum Mux {
    Fragments(Fragments),
    Clusters,
    Packets(Box<Packets>),
}

impl FilmWriter {
    /// Returns a writer of a film with this number of tracks, 1 or 2.
    ///
    /// # Errors
    /// [`MediaError::Stream`] for a format that is not written: MPEG-PS and FLV.
    pub fn new(format: FilmFormat, tracks: usize) -> Result<Self, MediaError> {
        let mux = match format {
            FilmFormat::Mp4 => Mux::Fragments(Fragments::default()),
            FilmFormat::Matroska => Mux::Clusters,
            FilmFormat::MpegTs => Mux::Packets(Box::default()),
            FilmFormat::MpegPs | FilmFormat::Flv => {
                return Err(super::refuse(
                    format.name(),
                    0,
                    "films of this format are not written",
                    "write .mp4, .mkv or .ts",
                ));
            }
        };
        let lanes = (0..tracks).map(|_| Lane::default()).collect();
        Ok(Self { format, lanes, begin_ns: None, mux, left_out: 0 })
    }

    /// Adds a sample of a track, in the order of publication. `captured_ns` is its capture time.
    ///
    /// # Errors
    /// [`MediaError::FilmCodec`] for a type that the format does not contain, or that differs from the track's first one.
    pub fn push(
        &mut self,
        track: usize,
        encoding: &str,
        captured_ns: i64,
        sample: &[u8],
    ) -> Result<(), MediaError> {
        let begun = self.begin_ns.is_some();
        let Some(lane) = self.lanes.get_mut(track) else { return Ok(()) };
        if begun && lane.payload().is_none() {
            // Its header would have had to be written before.
            self.left_out += 1;
            return Ok(());
        }
        if !lane.push((self.format, track), encoding, captured_ns, sample)? {
            self.left_out += 1;
        }
        Ok(())
    }

    /// Returns true if all tracks have samples, or the film has begun.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.begin_ns.is_some() || self.lanes.iter().all(|lane| lane.payload().is_some())
    }

    /// Returns the number of samples that were left out: before the first key picture, or of a track that began after the film.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the media of the tracks in the film, once it has begun.
    #[must_use]
    pub fn kinds(&self) -> Vec<FilmKind> {
        self.lanes.iter().filter_map(|lane| lane.payload()).map(payload::Payload::kind).collect()
    }

    /// Returns the next bytes of the film, with the header first. The last samples stay, since others may precede them in
    /// presentation, unless `all`.
    ///
    /// # Errors
    /// [`MediaError::Stream`] for values that the format cannot contain, such as a picture above 4 GiB.
    pub fn part(&mut self, all: bool) -> Result<Vec<u8>, MediaError> {
        let mut out = Vec::new();
        // Players expect a picture at the beginning.
        let pictures = self.lanes.iter().filter(|lane| lane.kind() == Some(FilmKind::Pictures));
        let first = pictures.filter_map(Lane::first_ns).min();
        let first = first.or_else(|| self.lanes.iter().filter_map(Lane::first_ns).min());
        let Some(first) = self.begin_ns.or(first) else { return Ok(out) };
        let mut units = Vec::new();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            self.left_out += lane.begin(first);
            lane.take(number, first, all, &mut units);
        }
        if units.is_empty() {
            return Ok(out);
        }
        units.sort_by_key(|unit| unit.decode_ns);
        let begins = self.begin_ns.replace(first).is_none();
        let lanes = &self.lanes;
        match &mut self.mux {
            Mux::Fragments(fragments) => {
                if begins {
                    fragments.begin(lanes, &units, &mut out)?;
                }
                fragments.part(lanes, &units, &mut out)?;
            }
            Mux::Clusters => {
                if begins {
                    matroska::begin(lanes, &mut out);
                }
                matroska::part(&units, &mut out);
            }
            Mux::Packets(packets) => packets.part(lanes, &units, &mut out),
        }
        Ok(out)
    }
}
