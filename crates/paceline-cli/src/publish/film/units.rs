//! The samples of one track.

use super::reader::FilmReader;
use crate::publish::news::News;
use anyhow::Context as _;
use paceline_media::film::{FilmSample, FilmSamples, FilmUnit, TimeBase};
use paceline_media::stream::Skipped;

/// Turns the units of a track into samples.
#[derive(Debug, Default)]
pub(super) struct TrackSamples {
    samples: Option<FilmSamples>,
    /// Pictures before the first key picture.
    early: u64,
}

/// A sample with its times.
#[derive(Debug)]
pub(super) struct TimedSample {
    pub(super) bytes: Vec<u8>,
    /// The presentation time and the decoding time in nanoseconds.
    pub(super) shown_ns: i64,
    pub(super) decode_ns: Option<i64>,
    pub(super) outside: bool,
}

impl TrackSamples {
    /// Returns the sample of a unit; `None` if it is left out, which is noted.
    pub(super) fn take(
        &mut self,
        unit: &FilmUnit,
        reader: &mut FilmReader,
        name: &str,
    ) -> anyhow::Result<Option<TimedSample>> {
        let Some(track) = reader.demuxer.tracks().get(unit.track) else { return Ok(None) };
        let tick: TimeBase = track.tick;
        let samples = match &mut self.samples {
            Some(samples) => {
                samples.extend(track);
                samples
            }
            None => self.samples.insert(FilmSamples::new(track).with_context(|| name.to_owned())?),
        };
        let bytes = match samples.take(unit) {
            Ok(FilmSample::Sample { bytes, .. }) => bytes,
            Ok(FilmSample::Early) => {
                self.early += 1;
                return Ok(None);
            }
            Err(error) => {
                reader.demuxer.fault(unit, &error);
                return Ok(None);
            }
        };
        Ok(Some(TimedSample {
            bytes,
            shown_ns: tick.nanos(unit.shown),
            decode_ns: unit.decode.map(|decode| tick.nanos(decode)),
            outside: unit.outside,
        }))
    }

    /// Returns the media type of the samples.
    pub(super) fn encoding(&self) -> &str {
        self.samples.as_ref().map_or("", FilmSamples::encoding)
    }

    /// Reports the parts that are left out.
    pub(super) fn report(&self, reader: &FilmReader, news: &News) {
        let damage = reader.demuxer.damage();
        news.set(&Skipped { damage: damage.clone(), early: self.early });
        if !damage.is_empty() {
            news.damaged(damage);
        }
    }
}
