//! Reading of a film with the demuxer.

use paceline_media::film::{
    FilmAccess, FilmDemuxer, FilmDetected, FilmFormat, FilmTrack, FilmUnit,
};

/// The most reads of a film.
const ROUNDS_MAX: u32 = 1_000_000;

/// A film with all its units.
#[derive(Debug)]
pub(crate) struct Film {
    pub(crate) tracks: Vec<FilmTrack>,
    pub(crate) units: Vec<FilmUnit>,
    pub(crate) damage: String,
}

/// Reads a film. `only` selects a track, as soon as it is known.
pub(crate) fn film(bytes: &[u8], access: FilmAccess, only: Option<usize>) -> Result<Film, String> {
    let FilmDetected::Film(format) = FilmFormat::detect(bytes, true) else {
        return Err("the format is not found".to_owned());
    };
    let mut demuxer = FilmDemuxer::new(format, access);
    if let Some(only) = only {
        demuxer.select(only);
    }
    let mut units = Vec::new();
    let mut place = 0;
    for round in 0.. {
        assert!(round < ROUNDS_MAX, "the demuxer makes no progress");
        while let Some(unit) = demuxer.poll().map_err(|error| error.to_string())? {
            units.push(unit);
        }
        let Some(want) = demuxer.wanted() else { break };
        let at = usize::try_from(want.at).unwrap_or(usize::MAX);
        if access == FilmAccess::Pipe {
            assert_eq!(at, place, "a pipe is read in order");
        }
        // Pipes deliver what they have.
        let length = if access == FilmAccess::Pipe { 1_000 } else { want.bytes };
        let rest = bytes.get(at..).unwrap_or_default();
        let part = &rest[..length.min(rest.len())];
        if part.is_empty() {
            demuxer.end();
        } else {
            demuxer.push(part);
        }
        place = at + part.len();
    }
    let damage = demuxer.damage();
    let damage = if damage.is_empty() { String::new() } else { damage.to_string() };
    Ok(Film { tracks: demuxer.tracks().to_vec(), units, damage })
}
