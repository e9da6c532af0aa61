//! Fragmented MP4: an index without samples, then fragments.

use super::entry::{entry_of, name_codings};
use super::payload::Payload;
use super::{Lane, Written};
use crate::error::MediaError;
use crate::film::{FilmKind, FilmTurn, refuse};
use mp4_atom::{
    Dinf, Dref, DrefEntry, Edts, Elst, ElstEntry, Encode as _, FixedPoint, FourCC, Ftyp, Hdlr,
    Matrix, Mdhd, Mdia, Mfhd, Minf, Moof, Moov, Mvex, Mvhd, Smhd, Stbl, Stco, Stsd, Tfdt, Tfhd,
    Tkhd, Traf, Trak, Trex, Trun, TrunEntry, Url, Vmhd,
};

const SECOND: i64 = 1_000_000_000;
/// The flags of samples: one that needs others, and one that does not.
const NEEDS: u32 = 0x0101_0000;
const KEY: u32 = 0x0200_0000;
/// Ticks per second of the film.
const FILM_SCALE: u32 = 1_000;

/// The state of the file.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    number: u32,
    /// The time by which presentation is behind decoding, so that no picture is presented before it is decoded.
    lead_ns: i64,
    /// The decoding time of the next sample of each track at the earliest, in ticks.
    ends: Vec<i64>,
}

fn ticks(time_ns: i64, scale: u32) -> i64 {
    let ticks = (i128::from(time_ns) * i128::from(scale)).div_euclid(i128::from(SECOND / 2)) + 1;
    i64::try_from(ticks.div_euclid(2)).unwrap_or(i64::MAX)
}

fn failed(error: &mp4_atom::Error) -> MediaError {
    refuse("mp4", 0, error.to_string(), "write .mkv")
}

impl Fragments {
    /// Writes the index. `units` is the first part.
    pub(super) fn begin(
        &mut self,
        lanes: &[Lane],
        units: &[Written],
        out: &mut Vec<u8>,
    ) -> Result<(), MediaError> {
        self.lead_ns =
            units.iter().map(|unit| unit.decode_ns - unit.shown_ns).max().unwrap_or(0).max(0);
        self.ends = vec![0; lanes.len()];
        let brand = |name: &[u8; 4]| FourCC::new(name);
        let ftyp = Ftyp {
            major_brand: brand(b"iso5"),
            minor_version: 512,
            compatible_brands: vec![brand(b"iso5"), brand(b"iso6"), brand(b"mp41")],
        };
        let tracks = lanes.iter().enumerate().filter_map(|(lane, it)| Some((lane, it.payload()?)));
        let moov = Moov {
            mvhd: Mvhd {
                timescale: FILM_SCALE,
                rate: FixedPoint::from(1),
                volume: FixedPoint::from(1),
                next_track_id: 3,
                ..Mvhd::default()
            },
            mvex: Some(Mvex {
                mehd: None,
                trex: tracks
                    .clone()
                    .map(|(lane, _)| Trex {
                        track_id: id(lane),
                        default_sample_description_index: 1,
                        ..Trex::default()
                    })
                    .collect(),
            }),
            trak: tracks
                .map(|(lane, payload)| self.track(lane, payload))
                .collect::<Result<_, _>>()?,
            ..Moov::default()
        };
        let mut index = Vec::new();
        ftyp.encode(out).and_then(|()| moov.encode(&mut index)).map_err(|error| failed(&error))?;
        let payloads: Vec<&Payload> = lanes.iter().filter_map(Lane::payload).collect();
        name_codings(&mut index, &payloads);
        out.append(&mut index);
        Ok(())
    }

    fn track(&self, lane: usize, payload: &Payload) -> Result<Trak, MediaError> {
        let pictures = payload.kind() == FilmKind::Pictures;
        let side = |side: u32| FixedPoint::from(u16::try_from(side).unwrap_or(u16::MAX));
        let (width, height) = payload.size().map_or((0, 0), |size| (size.width, size.height));
        let scale = payload.scale();
        let lead = u64::try_from(ticks(self.lead_ns, scale)).unwrap_or(0);
        let edits = pictures && lead > 0;
        let entry = ElstEntry {
            segment_duration: 0,
            media_time: Some(lead),
            media_rate: FixedPoint::from(1),
        };
        Ok(Trak {
            tkhd: Tkhd {
                track_id: id(lane),
                enabled: true,
                in_movie: true,
                volume: FixedPoint::from(u8::from(!pictures)),
                width: side(width),
                height: side(height),
                matrix: matrix(payload.turn(), (width, height)),
                ..Tkhd::default()
            },
            edts: edits.then(|| Edts { elst: Some(Elst { entries: vec![entry] }) }),
            mdia: Mdia {
                mdhd: Mdhd { timescale: scale, language: "und".to_owned(), ..Mdhd::default() },
                hdlr: Hdlr {
                    handler: FourCC::new(if pictures { b"vide" } else { b"soun" }),
                    name: String::new(),
                },
                minf: Minf {
                    vmhd: pictures.then(Vmhd::default),
                    smhd: (!pictures).then(Smhd::default),
                    dinf: Dinf { dref: Dref { entries: vec![DrefEntry::Url(Url::default())] } },
                    stbl: Stbl {
                        stsd: Stsd { codecs: vec![entry_of(payload)?] },
                        stco: Some(Stco::default()),
                        ..Stbl::default()
                    },
                    ..Minf::default()
                },
            },
            ..Trak::default()
        })
    }

    /// Writes a fragment with these units.
    pub(super) fn part(
        &mut self,
        lanes: &[Lane],
        units: &[Written],
        out: &mut Vec<u8>,
    ) -> Result<(), MediaError> {
        self.number += 1;
        let mut moof = Moof { mfhd: Mfhd { sequence_number: self.number }, traf: Vec::new() };
        let mut data = Vec::new();
        let mut places = Vec::new();
        for (lane, payload) in
            lanes.iter().enumerate().filter_map(|(lane, it)| Some((lane, it.payload()?)))
        {
            let own: Vec<&Written> = units.iter().filter(|unit| unit.lane == lane).collect();
            if own.is_empty() {
                continue;
            }
            places.push(data.len());
            own.iter().for_each(|unit| data.extend_from_slice(&unit.bytes));
            moof.traf.push(self.run(lane, payload, &own));
        }
        // The length of the box does not depend on the places in it.
        let mut sized = Vec::new();
        moof.encode(&mut sized).map_err(|error| failed(&error))?;
        let header = sized.len() + 8;
        for (traf, place) in moof.traf.iter_mut().zip(places) {
            for run in &mut traf.trun {
                run.data_offset = i32::try_from(header + place).ok();
            }
        }
        moof.encode(out).map_err(|error| failed(&error))?;
        let length = u32::try_from(data.len() + 8);
        let length =
            length.map_err(|_| refuse("mp4", 0, "a fragment has more than 4 GiB", "write .mkv"))?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(b"mdat");
        out.append(&mut data);
        Ok(())
    }

    fn run(&mut self, lane: usize, payload: &Payload, units: &[&Written]) -> Traf {
        let scale = payload.scale();
        let pictures = payload.kind() == FilmKind::Pictures;
        let lead = if pictures { ticks(self.lead_ns, scale) } else { 0 };
        let end = self.ends.get(lane).copied().unwrap_or(0);
        let times =
            if pictures { decoding(units, scale, lead, end) } else { heard(units, scale, end) };
        let mut entries = Vec::new();
        let mut at = times.first().copied().unwrap_or(end);
        let begin = at;
        for (number, unit) in units.iter().enumerate() {
            let usual = at.saturating_add(ticks(unit.duration_ns, scale));
            let next = times.get(number + 1).copied().unwrap_or(usual).max(at);
            let offset = ticks(unit.shown_ns, scale) + lead - at;
            entries.extend(samples(payload, unit, next - at, offset.max(0)));
            at = next;
        }
        // The picture that follows the last one may be presented before those that are known.
        let last = times.last().map_or(at, |last| last.saturating_add(1));
        if let Some(end) = self.ends.get_mut(lane) {
            *end = if pictures { last } else { at };
        }
        Traf {
            tfhd: Tfhd { track_id: id(lane), default_base_is_moof: true, ..Tfhd::default() },
            tfdt: Some(Tfdt { base_media_decode_time: u64::try_from(begin).unwrap_or(0) }),
            trun: vec![Trun { data_offset: Some(0), samples: entries.into() }],
            ..Traf::default()
        }
    }
}

/// Returns the transformation of pictures that are to be shown rotated, which keeps them right of and below the origin.
fn matrix(turn: FilmTurn, (width, height): (u32, u32)) -> Matrix {
    const ONE: i32 = 1 << 16;
    let side = |side: u32| i32::try_from(side).unwrap_or(0).saturating_mul(ONE);
    let (a, b, c, d, x, y) = match turn.degrees {
        90 => (0, ONE, -ONE, 0, side(height), 0),
        180 => (-ONE, 0, 0, -ONE, side(width), side(height)),
        270 => (0, -ONE, ONE, 0, 0, side(width)),
        _ => (ONE, 0, 0, ONE, 0, 0),
    };
    Matrix { a, b, c, d, x, y, ..Matrix::default() }
}

/// Returns the decoding times of pictures: none is above the presentation time of a later one.
fn decoding(units: &[&Written], scale: u32, lead: i64, end: i64) -> Vec<i64> {
    let mut latest = i64::MAX;
    let bounds = units.iter().rev().map(|unit| {
        latest = latest.min(ticks(unit.shown_ns, scale).saturating_add(lead));
        latest
    });
    let mut bounds: Vec<i64> = bounds.collect();
    bounds.reverse();
    let mut last = end;
    let bounded = units.iter().zip(bounds).map(|(unit, bound)| {
        last = ticks(unit.decode_ns, scale).min(bound).max(last);
        last
    });
    bounded.collect()
}

/// Returns the times of blocks of sound. Times in nanoseconds round to neighbouring ticks.
fn heard(units: &[&Written], scale: u32, end: i64) -> Vec<i64> {
    let mut expected = end;
    let times = units.iter().map(|unit| {
        let stated = ticks(unit.decode_ns, scale);
        let at = if (stated - expected).abs() <= 1 { expected } else { stated.max(expected) };
        expected = at.saturating_add(ticks(unit.duration_ns, scale));
        at
    });
    times.collect()
}

/// Returns the entries of a unit: uncompressed sound has one per frame.
fn samples(payload: &Payload, unit: &Written, duration: i64, offset: i64) -> Vec<TrunEntry> {
    let pictures = payload.kind() == FilmKind::Pictures;
    let entry = |size: usize, duration: i64| TrunEntry {
        duration: u32::try_from(duration).ok(),
        size: u32::try_from(size).ok(),
        flags: Some(if unit.key { KEY } else { NEEDS }),
        cts: pictures.then_some(offset),
    };
    match payload.frame_bytes() {
        Some(frame) => {
            let parts = unit.bytes.chunks(frame.max(1));
            let others = i64::try_from(parts.len()).unwrap_or(1) - 1;
            // The last frame lasts until the next block.
            let length =
                |number: i64| if number == others { (duration - others).max(1) } else { 1 };
            (0..).zip(parts).map(|(number, part)| entry(part.len(), length(number))).collect()
        }
        None => vec![entry(unit.bytes.len(), duration)],
    }
}

/// Returns the number of a track, from 1.
fn id(lane: usize) -> u32 {
    u32::try_from(lane).unwrap_or(0) + 1
}
