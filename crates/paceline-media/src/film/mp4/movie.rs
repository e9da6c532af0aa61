//! The index of a film: its tracks and the samples that they list.

use super::defaults::Defaults;
use super::edits::{Edited, Part, Timed, parts};
use super::entry;
use super::tables::Tables;
use super::{Boxes, MOOV, REPAIR, Sample, fields, find};
use crate::error::MediaError;
use crate::film::log::Log;
use crate::film::track::{FilmTrack, FilmTurn, TimeBase};
use crate::film::{FilmCodec, FilmKind, TRACKS_MAX, refuse};
use crate::size::Size;
use mp4_atom::{Elst, FourCC, Mdhd, Mvhd, Tkhd, Trex};

/// The tracks of a film.
#[derive(Debug)]
pub(super) struct Movie {
    pub(super) tracks: Vec<MovieTrack>,
}

/// A track, in the same position as in the demuxer's list.
#[derive(Debug)]
pub(super) struct MovieTrack {
    pub(super) id: u32,
    tick: TimeBase,
    listed: Option<Edited>,
    /// The first part of its edit list, which holds for all fragments.
    pub(super) part: Part,
    pub(super) defaults: Defaults,
    /// The decoding time of the next fragment that states none.
    pub(super) next: i64,
    /// The time by which decoding times precede the fragments' times.
    pub(super) shift: i64,
}

impl Movie {
    /// Reads a `moov` box.
    pub(super) fn read(moov: &[u8], at: u64, log: &mut Log) -> Result<Self, MediaError> {
        let film = fields::<Mvhd>(moov).map_or(0, |header| header.timescale);
        let mut tracks = Vec::new();
        for (_, trak) in
            Boxes(moov).filter(|(kind, _)| *kind == FourCC::new(b"trak")).take(TRACKS_MAX)
        {
            match MovieTrack::read(trak, film) {
                Ok((track, described)) => {
                    tracks.push(track);
                    log.tracks.push(described);
                }
                Err(reason) => log.damage.add(at, moov.len() as u64, || reason.to_owned()),
            }
        }
        let extends = find(moov, b"mvex").unwrap_or_default();
        for (_, mut body) in Boxes(extends).filter(|(kind, _)| *kind == FourCC::new(b"trex")) {
            let Ok(trex) = <Trex as mp4_atom::Atom>::decode_body(&mut body) else { continue };
            for track in tracks.iter_mut().filter(|track| track.id == trex.track_id) {
                track.defaults = Defaults::from(&trex);
            }
        }
        if tracks.is_empty() {
            return Err(refuse(
                "mp4",
                at,
                format!("its {MOOV} box has no track that can be read"),
                REPAIR,
            ));
        }
        Ok(Self { tracks })
    }

    /// Returns the sample of the tables that is decoded first.
    pub(super) fn next_by_time(&mut self, log: &Log) -> Option<Sample> {
        let before = |one: (i64, TimeBase), other: (i64, TimeBase)| {
            let nanos = |(time, tick): (i64, TimeBase)| tick.nanos(time);
            nanos(one) < nanos(other)
        };
        let mut first: Option<(usize, Timed, TimeBase)> = None;
        for (number, track) in
            self.tracks.iter_mut().enumerate().filter(|(number, _)| log.wants(*number))
        {
            let Some(timed) = track.listed.as_mut().and_then(Edited::peek) else { continue };
            let key = (timed.decode, track.tick);
            if first.is_none_or(|(_, timed, tick)| before(key, (timed.decode, tick))) {
                first = Some((number, timed, track.tick));
            }
        }
        let (number, timed, _) = first?;
        Some(self.take(number, timed))
    }

    /// Returns the sample of the tables that is stored first, if it begins before `end`.
    pub(super) fn next_by_place(&mut self, log: &Log, end: u64) -> Option<Sample> {
        let wanted = self.tracks.iter_mut().enumerate().filter(|(number, _)| log.wants(*number));
        let samples = wanted.filter_map(|(number, track)| {
            let timed = track.listed.as_mut().and_then(Edited::peek)?;
            Some((number, timed))
        });
        let (number, timed) = samples.min_by_key(|(_, timed)| timed.listed.at)?;
        (timed.listed.at < end).then(|| self.take(number, timed))
    }

    fn take(&mut self, number: usize, timed: Timed) -> Sample {
        if let Some(listed) = self.tracks.get_mut(number).and_then(|track| track.listed.as_mut()) {
            listed.take();
        }
        let Timed { listed, decode, shown, outside } = timed;
        Sample {
            track: number,
            entry: listed.entry,
            at: listed.at,
            size: listed.size,
            decode,
            shown,
            key: listed.key,
            outside,
        }
    }

    /// Ends the samples of a track's tables: the file ends before them.
    pub(super) fn end(&mut self, track: usize) {
        if let Some(listed) = self.tracks.get_mut(track).and_then(|track| track.listed.as_mut()) {
            listed.end();
        }
    }
}

impl MovieTrack {
    /// Reads a `trak` box; `film` are ticks per second.
    fn read(trak: &[u8], film: u32) -> Result<(Self, FilmTrack), &'static str> {
        let header = fields::<Tkhd>(trak).ok_or("a track has no header that can be read")?;
        let mdia = find(trak, b"mdia").ok_or("a track has no media")?;
        let media = fields::<Mdhd>(mdia).ok_or("a track has no media header that can be read")?;
        let scale = Some(media.timescale).filter(|scale| *scale > 0);
        let scale = scale.ok_or("a track has 0 ticks per second")?;
        // Its name, which may have any form, is not needed.
        let handler = find(mdia, b"hdlr").and_then(|handler| handler.get(8..12));
        let kind = match handler {
            Some(b"vide") => FilmKind::Pictures,
            Some(b"soun") => FilmKind::Sound,
            _ => FilmKind::Other,
        };
        let stbl = find(mdia, b"minf").and_then(|minf| find(minf, b"stbl")).unwrap_or_default();
        let codecs = entry::codecs(find(stbl, b"stsd").unwrap_or_default(), kind);
        let list = find(trak, b"edts").and_then(fields::<Elst>);
        let parts = parts(list, film, scale);
        let part = parts.first().copied().ok_or("a track has no part that is presented")?;
        let frames = matches!(codecs.first(), Some(FilmCodec::Sound { .. }));
        let tables = Tables::read(stbl).filter(|tables| tables.count() > 0);
        let listed = tables.map(|mut tables| {
            tables.frames_max = if frames { entry::PCM_FRAMES } else { 1 };
            Edited::new(tables, parts, kind == FilmKind::Sound, scale)
        });
        let tick = TimeBase { num: 1, den: scale };
        let (width, height) = (header.width.integer(), header.height.integer());
        let size =
            Size::new(width.into(), height.into()).ok().filter(|_| kind == FilmKind::Pictures);
        let described =
            FilmTrack { id: header.track_id.into(), codecs, tick, size, turn: turn(&header) };
        let track = Self {
            id: header.track_id,
            tick,
            listed,
            part,
            defaults: Defaults::default(),
            next: 0,
            shift: 0,
        };
        Ok((track, described))
    }
}

/// Returns the orientation that a matrix states.
fn turn(header: &Tkhd) -> FilmTurn {
    const ONE: i32 = 0x1_0000;
    const MINUS: i32 = -ONE;
    let matrix = &header.matrix;
    let degrees = match (matrix.a, matrix.b, matrix.c, matrix.d) {
        (ONE, 0, 0, ONE) => 0,
        (0, ONE, MINUS, 0) => 90,
        (MINUS, 0, 0, MINUS) => 180,
        (0, MINUS, ONE, 0) => 270,
        _ => return FilmTurn { degrees: 0, other: true },
    };
    FilmTurn { degrees, other: false }
}
