//! One unit of a film.

/// One unit of a track: a coded picture or a block of sound, as the container has it.
///
/// Times are ticks of the track's time base. Presentation begins at 0 in formats that state it (MP4 with edit lists), and at any
/// time in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilmUnit {
    /// The position of the track in the demuxer's list.
    pub track: usize,
    /// The position of the unit's codec in [`FilmTrack::codecs`](super::FilmTrack::codecs). It changes where a film changes its
    /// size or parameter sets.
    pub entry: usize,
    /// The decoding time; `None` if the container states none.
    pub decode: Option<i64>,
    /// The presentation time.
    pub shown: i64,
    /// True if the container marks the unit as a point where decoding can start.
    pub key: bool,
    /// True if an edit list excludes the unit from presentation. Others may need it.
    pub outside: bool,
    /// The coded bytes.
    pub bytes: Vec<u8>,
}
