//! The samples of a file and their times, before it is published.

use super::reader::FilmReader;
use super::units::{TimedSample, TrackSamples};
use super::{find, missing};
use crate::publish::input::Place;
use anyhow::anyhow;
use paceline_media::film::{FilmFormat, FilmKind, FilmTrack, FilmTurn};
use paceline_media::stream::Properties;
use paceline_media::{Format, Size};

/// The rate is the mean rate if no two samples are closer than this part of the mean distance.
const EVEN: f64 = 0.8;
const SECOND: f64 = 1e9;

/// The tracks of a film that are published.
pub(super) struct FilmPlan {
    /// The pictures, or the sound of a film without pictures.
    pub(super) main: TrackPlan,
    pub(super) sound: Option<TrackPlan>,
    /// The codec of sound that is not published.
    pub(super) silent: Option<String>,
    /// The time from the first sample to the first one of the next repetition.
    pub(super) length_ns: i64,
}

/// A track, and the times of its samples.
pub(super) struct TrackPlan {
    pub(super) track: usize,
    pub(super) kind: FilmKind,
    pub(super) turn: FilmTurn,
    pub(super) hz: Option<f64>,
    /// The lengths of all samples in bytes.
    pub(super) lengths: Vec<u32>,
    encoding: String,
    size: Option<Size>,
    times: Times,
}

/// The times of a track's samples, in the film's time.
#[derive(Default)]
struct Times {
    /// The positions of the first and the last sample that are published.
    first: usize,
    last: usize,
    /// The samples that an edit list excludes before the first presented one.
    hidden: usize,
    /// The decoding times, if the film states none.
    order: Option<Vec<i64>>,
    /// The film's time at its start, and the time by which captures precede presentation.
    zero_ns: i64,
    lead_ns: i64,
    /// The last departure and the usual time between two.
    end_ns: i64,
}

/// The instants of a sample, from the start of the film on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) depart_ns: i64,
    /// The time from capture to departure.
    pub(super) age_ns: u64,
}

/// The samples of a track as they are found.
#[derive(Default)]
struct Found {
    samples: TrackSamples,
    lengths: Vec<u32>,
    shown: Vec<i64>,
    decode: Vec<Option<i64>>,
    outside: Vec<bool>,
    size: Option<Size>,
}

impl FilmPlan {
    /// Reads a file to its present end.
    ///
    /// # Errors
    /// Errors if it has no track that can be published, or not the sound that is wanted.
    pub(super) fn survey(
        place: &Place,
        format: FilmFormat,
        wants_sound: bool,
    ) -> anyhow::Result<Self> {
        let name = place.name();
        let mut reader = FilmReader::file(place, format)?;
        let (mut pictures, mut sound) = (None, None);
        let (mut seen, mut heard) = (Found::default(), Found::default());
        while let Some(unit) = reader.next()? {
            // Tracks may be found late.
            pictures = pictures.or_else(|| find(reader.demuxer.tracks(), FilmKind::Pictures));
            sound = sound.or_else(|| find(reader.demuxer.tracks(), FilmKind::Sound));
            let found = match Some(unit.track) {
                track if track == pictures => &mut seen,
                track if track == sound && (wants_sound || pictures.is_none()) => &mut heard,
                _ => continue,
            };
            if let Some(sample) = found.samples.take(&unit, &mut reader, &name)? {
                found.add(&sample);
            }
        }
        let tracks = reader.demuxer.tracks();
        let silent = sound.and_then(|sound| tracks.get(sound)).map(FilmTrack::codec_name);
        let mut main = match (pictures, sound) {
            (Some(track), _) => seen.plan(track, tracks),
            (None, Some(track)) if !wants_sound => heard.plan(track, tracks),
            (None, Some(_)) => {
                return Err(paceline_tool::exit::usage(format!(
                    "--sound: {name} has sound only, which is published on TAG; leave --sound out"
                )));
            }
            (None, None) => None,
        };
        let mut plan = match main.take() {
            Some(main) => Self { main, sound: None, silent, length_ns: 0 },
            None if reader.demuxer.damage().is_empty() => {
                return Err(missing(&name, tracks, "pictures or sound"));
            }
            None => return Err(anyhow!("{name}: {}", reader.demuxer.damage())),
        };
        if wants_sound {
            let found = sound.and_then(|track| heard.plan(track, tracks));
            plan.sound = Some(found.ok_or_else(|| missing(&name, tracks, "sound"))?);
            plan.silent = None;
        } else if pictures.is_none() {
            plan.silent = None;
        }
        plan.align();
        Ok(plan)
    }

    /// Places both tracks on one clock: a picture departs at its decoding time at the earliest, and no sample before its capture.
    fn align(&mut self) {
        let lead = self.main.times.lead_ns;
        let tracks = || std::iter::once(&self.main).chain(&self.sound);
        let first = |track: &TrackPlan| {
            track.times.zero_ns - if track.kind == FilmKind::Sound { lead } else { 0 }
        };
        let last = |track: &TrackPlan| {
            track.times.end_ns - if track.kind == FilmKind::Sound { lead } else { 0 }
        };
        let zero = tracks().map(first).min().unwrap_or(0);
        self.length_ns = tracks().map(last).max().unwrap_or(0).saturating_sub(zero).max(1);
        for track in std::iter::once(&mut self.main).chain(&mut self.sound) {
            (track.times.zero_ns, track.times.lead_ns) = (zero, lead);
        }
    }
}

impl Found {
    fn add(&mut self, sample: &TimedSample) {
        if self.size.is_none() {
            let format = self.samples.encoding().parse::<Format>();
            self.size = format.ok().and_then(|format| format.picture_size(&sample.bytes).ok());
        }
        // Samples have at most 64 MiB.
        self.lengths.push(u32::try_from(sample.bytes.len()).unwrap_or(u32::MAX));
        self.shown.push(sample.shown_ns);
        self.decode.push(sample.decode_ns);
        self.outside.push(sample.outside);
    }

    /// Returns the plan of a track; `None` if it has no samples.
    fn plan(&mut self, track: usize, tracks: &[FilmTrack]) -> Option<TrackPlan> {
        let described = tracks.get(track)?;
        let kind = described.kind();
        let last = self.outside.iter().rposition(|outside| !*outside)?;
        let inside = self.outside.iter().position(|outside| !*outside)?;
        // A decoder of sound needs one block before it.
        let first = if kind == FilmKind::Sound { inside.saturating_sub(1) } else { 0 };
        let order = self.order(kind);
        let decode = |number: usize| match &order {
            Some(order) => order.get(number).copied(),
            None => self.decode.get(number).copied().flatten(),
        };
        let times: Vec<(i64, i64)> = (first..=last)
            .filter_map(|number| Some((decode(number)?, *self.shown.get(number)?)))
            .collect();
        let lead_ns = match kind {
            FilmKind::Pictures => times
                .iter()
                .map(|(decode, shown)| shown.saturating_sub(*decode))
                .max()
                .unwrap_or(0)
                .max(0),
            FilmKind::Sound | FilmKind::Other => 0,
        };
        let departs: Vec<i64> = times.iter().map(|(decode, _)| *decode).collect();
        let hz = rate(&departs);
        #[expect(clippy::cast_possible_truncation, reason = "the period of a plausible rate")]
        let period = hz.map_or(0, |hz| (SECOND / hz) as i64);
        let times = Times {
            first,
            last,
            hidden: self.hidden(),
            order: order.clone(),
            zero_ns: *departs.first()?,
            lead_ns,
            end_ns: departs.last()?.saturating_add(period),
        };
        Some(TrackPlan {
            track,
            kind,
            turn: described.turn,
            hz,
            lengths: self.lengths.get(first..=last)?.to_vec(),
            encoding: self.samples.encoding().to_owned(),
            size: self.size,
            times,
        })
    }

    /// Returns the number of samples that an edit list excludes before the first presented one.
    fn hidden(&self) -> usize {
        let times = || self.shown.iter().zip(&self.outside);
        let begin = times().filter(|(_, outside)| !**outside).map(|(shown, _)| *shown).min();
        times().filter(|(shown, outside)| **outside && Some(**shown) < begin).count()
    }

    /// Returns the decoding times that the film does not state: the presentation times in ascending order.
    fn order(&self, kind: FilmKind) -> Option<Vec<i64>> {
        if self.decode.iter().all(Option::is_some) && kind == FilmKind::Pictures {
            return None;
        }
        let mut order = self.shown.clone();
        if kind == FilmKind::Pictures {
            order.sort_unstable();
        }
        Some(order)
    }
}

impl TrackPlan {
    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the number of samples at the beginning that an edit list excludes.
    pub(super) fn hidden(&self) -> usize {
        if self.kind == FilmKind::Pictures { self.times.hidden } else { 0 }
    }

    pub(super) fn properties(&self) -> Properties {
        Properties { encoding: self.encoding.clone(), size: self.size, hz: self.hz }
    }

    /// Returns the instants of sample `number` of the track; `None` if it is not published.
    pub(super) fn due(&self, number: usize, sample: &TimedSample) -> Option<Due> {
        let Times { first, last, order, zero_ns, lead_ns, .. } = &self.times;
        // A file that has grown has more samples than were found.
        if number < *first || number > *last && sample.outside {
            return None;
        }
        let capture = sample.shown_ns.saturating_sub(*lead_ns);
        let depart = match (self.kind, order) {
            (FilmKind::Pictures, Some(order)) => {
                order.get(number).copied().unwrap_or(sample.shown_ns)
            }
            (FilmKind::Pictures, None) => sample.decode_ns.unwrap_or(sample.shown_ns),
            (FilmKind::Sound | FilmKind::Other, _) => capture,
        };
        let age_ns = u64::try_from(depart.saturating_sub(capture)).unwrap_or(0);
        Some(Due { depart_ns: depart.saturating_sub(*zero_ns), age_ns })
    }
}

/// Returns the rate that samples with these departures keep; `None` for less than two.
#[expect(clippy::cast_precision_loss, reason = "times of a film")]
fn rate(departs: &[i64]) -> Option<f64> {
    let all = departs.last()?.saturating_sub(*departs.first()?);
    let mean = all as f64 / departs.len().checked_sub(1).filter(|steps| *steps > 0)? as f64;
    let steps = departs.iter().zip(departs.get(1..)?).map(|(one, next)| next.saturating_sub(*one));
    let least = steps.filter(|step| *step > 0).min()? as f64;
    let period = if least < mean * EVEN { least } else { mean };
    // Hundredths, since times are rounded to ticks.
    let hz = (SECOND / period * 100.0).round() / 100.0;
    (hz > 0.0 && hz <= 100_000.0).then_some(hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_closest_samples_unless_they_are_even() {
        let millis =
            |times: &[i64]| rate(&times.iter().map(|time| time * 1_000_000).collect::<Vec<_>>());
        assert_eq!(millis(&[0, 40, 80, 120]), Some(25.0));
        assert_eq!(millis(&[0, 33, 67, 100]), Some(30.0), "rounded to milliseconds");
        assert_eq!(millis(&[0, 40, 160, 200]), Some(25.0), "pictures are missing");
        assert_eq!((millis(&[7]), millis(&[]), millis(&[5, 5])), (None, None, None));
    }

    #[test]
    fn pictures_in_decoding_order_are_captured_before_they_depart() {
        let mut found = Found::default();
        // I0 P3 B1 B2, as a container without decoding times has them.
        for shown in [0, 3, 1, 2] {
            found.lengths.push(1);
            found.shown.push(shown);
            found.decode.push(None);
            found.outside.push(false);
        }
        let track = FilmTrack {
            id: 1,
            codecs: vec![paceline_media::film::FilmCodec::Jpeg],
            tick: paceline_media::film::TimeBase { num: 1, den: 1 },
            size: None,
            turn: FilmTurn::default(),
        };
        let main = found.plan(0, &[track]).unwrap();
        let mut plan = FilmPlan { main, sound: None, silent: None, length_ns: 0 };
        plan.align();
        let due = |number: usize, shown_ns: i64| {
            let sample =
                TimedSample { bytes: Vec::new(), shown_ns, decode_ns: None, outside: false };
            let due = plan.main.due(number, &sample).unwrap();
            (due.depart_ns, due.age_ns)
        };
        assert_eq!([due(0, 0), due(1, 3), due(2, 1), due(3, 2)], [(0, 2), (1, 0), (2, 3), (3, 3)]);
    }
}
