//! Fuzz body for films: all formats that are read, from files and pipes, and their units as samples.

use paceline_media::film::{
    FilmAccess, FilmDemuxer, FilmDetected, FilmFormat, FilmSample, FilmSamples, FilmUnit,
};

/// The units of a film that are read: tables may list the same bytes many times.
const UNITS_MAX: usize = 20_000;
/// The bytes of one read.
const STEPS: [usize; 2] = [64, 4_096];

/// Checks a film. Each read makes progress, each unit lies within the film, and an error is one line.
pub fn film(data: &[u8]) {
    let FilmDetected::Film(format) = FilmFormat::detect(data, true) else { return };
    for (access, step) in [FilmAccess::Seek, FilmAccess::Pipe].into_iter().zip(STEPS) {
        let mut demuxer = FilmDemuxer::new(format, access);
        let mut units = Vec::new();
        if let Err(error) = read(&mut demuxer, data, access, step, &mut units) {
            assert!(error.len() < 1_000, "an error is one line: {error}");
        }
        let damage = demuxer.damage().to_string();
        assert!(damage.len() < 1_000, "{damage}");
        check(&demuxer, &units, data.len());
    }
}

fn read(
    demuxer: &mut FilmDemuxer,
    data: &[u8],
    access: FilmAccess,
    step: usize,
    units: &mut Vec<FilmUnit>,
) -> Result<(), String> {
    let mut last = 0;
    for round in 0.. {
        assert!(round < 4 * data.len() + UNITS_MAX + 1_000, "no progress");
        while let Some(unit) = demuxer.poll().map_err(|error| error.to_string())? {
            units.push(unit);
            if units.len() >= UNITS_MAX {
                return Ok(());
            }
        }
        let Some(want) = demuxer.wanted() else { return Ok(()) };
        assert!(want.bytes > 0);
        assert!(access == FilmAccess::Seek || want.at >= last, "a pipe does not go back");
        last = want.at;
        let at = usize::try_from(want.at).unwrap_or(usize::MAX);
        let rest = data.get(at..).unwrap_or_default();
        match &rest[..step.min(rest.len())] {
            [] => demuxer.end(),
            part => demuxer.push(part),
        }
    }
    Ok(())
}

fn check(demuxer: &FilmDemuxer, units: &[FilmUnit], length: usize) {
    let mut samples: Vec<Option<FilmSamples>> =
        demuxer.tracks().iter().map(|track| FilmSamples::new(track).ok()).collect();
    for unit in units {
        let track = &demuxer.tracks()[unit.track];
        assert!(!track.codecs.is_empty() && track.tick.num > 0 && track.tick.den > 0);
        // Matroska may strip the same bytes from each frame.
        assert!(unit.bytes.len() <= 2 * length, "{} bytes of {length}", unit.bytes.len());
        let Some(samples) = &mut samples[unit.track] else { continue };
        samples.extend(track);
        match samples.take(unit) {
            // Parameter sets are inserted at key pictures.
            Ok(FilmSample::Sample { bytes, .. }) => assert!(bytes.len() <= 8 * length + 64),
            Ok(FilmSample::Early) => {}
            Err(error) => assert!(error.to_string().len() < 1_000),
        }
    }
}
