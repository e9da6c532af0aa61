//! Fragments: runs of samples with their times.

use super::defaults::Defaults;
use super::movie::{Movie, MovieTrack};
use super::{Boxes, Sample, fields};
use mp4_atom::{Atom as _, FourCC, Tfdt, Tfhd, Trun};

/// The most samples of a fragment.
const SAMPLES_MAX: usize = 1_000_000;
/// The flag of a sample that needs others.
const NO_KEY: u32 = 0x1_0000;

/// A run of samples: its track, and the place of its data.
struct Place {
    track: usize,
    at: u64,
}

impl Movie {
    /// Reads a `moof` box that begins at `at`. Returns its samples in the reverse order of their places.
    pub(super) fn fragment(&mut self, moof: &[u8], at: u64) -> Result<Vec<Sample>, String> {
        let mut samples = Vec::new();
        // Without a stated place, data follows the data of the track before.
        let mut end = at;
        for (_, traf) in Boxes(moof).filter(|(kind, _)| *kind == FourCC::new(b"traf")) {
            let header = fields::<Tfhd>(traf)
                .ok_or("a fragment has a track without a header that can be read")?;
            let mut tracks = self.tracks.iter_mut().enumerate();
            let Some((number, track)) = tracks.find(|(_, track)| track.id == header.track_id)
            else {
                continue;
            };
            let base = match header.base_data_offset {
                Some(base) => base,
                None if header.default_base_is_moof => at,
                None => end,
            };
            let defaults = track.defaults.with(&header);
            if let Some(time) = fields::<Tfdt>(traf) {
                track.next = i64::try_from(time.base_media_decode_time).unwrap_or(i64::MAX);
            }
            let mut place = Place { track: number, at: base };
            for (_, mut body) in Boxes(traf).filter(|(kind, _)| *kind == FourCC::new(b"trun")) {
                let run = Trun::decode_body(&mut body)
                    .map_err(|error| format!("a run of samples: {error}"))?;
                if let Some(offset) = run.data_offset {
                    place.at = base.saturating_add_signed(offset.into());
                }
                if samples.len().saturating_add(run.samples.len()) > SAMPLES_MAX {
                    return Err(format!("a fragment has more than {SAMPLES_MAX} samples"));
                }
                track.run(&run, &defaults, &mut place, &mut samples);
            }
            end = place.at;
        }
        samples.sort_by_key(|sample| std::cmp::Reverse(sample.at));
        Ok(samples)
    }
}

impl MovieTrack {
    /// Lists the samples of a run.
    fn run(&mut self, run: &Trun, defaults: &Defaults, place: &mut Place, to: &mut Vec<Sample>) {
        let lowest = run.samples.iter().filter_map(|sample| sample.cts).min().unwrap_or(0);
        self.shift = self.shift.max(lowest.saturating_neg());
        let entry = usize::try_from(defaults.entry).map_or(0, |entry| entry.saturating_sub(1));
        for sample in run.samples.iter() {
            let size = sample.size.unwrap_or(defaults.size);
            if size == 0 {
                // A gap without data.
                let duration = sample.duration.unwrap_or(defaults.duration);
                self.next = self.next.saturating_add(duration.into());
                continue;
            }
            let shown = self.part.shown(self.next.saturating_add(sample.cts.unwrap_or(0)));
            to.push(Sample {
                track: place.track,
                entry,
                at: place.at,
                size,
                decode: self.part.shown(self.next).saturating_sub(self.shift),
                shown,
                key: sample.flags.unwrap_or(defaults.flags) & NO_KEY == 0,
                outside: shown < self.part.begin,
            });
            place.at = place.at.saturating_add(size.into());
            self.next =
                self.next.saturating_add(sample.duration.unwrap_or(defaults.duration).into());
        }
    }
}
