//! The format of a film, by its first bytes.

/// The format of a film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilmFormat {
    /// MP4, QuickTime and fragmented MP4 (ISO/IEC 14496-12).
    Mp4,
    /// Matroska and WebM.
    Matroska,
    /// The transport stream of MPEG-2 (ISO/IEC 13818-1).
    MpegTs,
    /// The program stream of MPEG-1 and MPEG-2.
    MpegPs,
    /// Flash video.
    Flv,
}

/// The result of [`FilmFormat::detect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilmDetected {
    /// A film.
    Film(FilmFormat),
    /// No film.
    Other,
    /// More bytes are needed.
    More,
}

/// The boxes with which an MP4 file may begin.
const BOXES: [&[u8; 4]; 9] =
    [b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"moof", b"pnot"];
/// The formats with a fixed beginning.
const MARKS: [(&[u8], FilmFormat); 3] = [
    (b"\x1a\x45\xdf\xa3", FilmFormat::Matroska),
    (b"FLV\x01", FilmFormat::Flv),
    (b"\0\0\x01\xba", FilmFormat::MpegPs),
];
/// The lengths of the packets of a transport stream, and the offset of the first one: plain, and with a time in front.
const PACKETS: [(usize, usize); 2] = [(188, 0), (192, 4)];

impl FilmFormat {
    /// Finds the format of a film that begins with `start`; `ended` states that no more bytes follow.
    #[must_use]
    pub fn detect(start: &[u8], ended: bool) -> FilmDetected {
        match Self::begun(start) {
            Ok(format) => FilmDetected::Film(format),
            Err(true) if !ended => FilmDetected::More,
            Err(_) => FilmDetected::Other,
        }
    }

    /// Returns whether more bytes may show a format.
    fn begun(start: &[u8]) -> Result<Self, bool> {
        let mut more = false;
        for (mark, format) in MARKS {
            if start.starts_with(mark) {
                return Ok(format);
            }
            more |= mark.starts_with(start);
        }
        match (start.get(..4), start.get(4..8)) {
            (Some(size), Some(kind)) => {
                let size = size.try_into().map_or(0, u32::from_be_bytes);
                if BOXES.iter().any(|known| kind == *known) && !(2..8).contains(&size) {
                    return Ok(Self::Mp4);
                }
            }
            // Box sizes are small; a start code of a byte stream is not.
            _ => more |= start.starts_with(&[0, 0]) && start.get(2).is_none_or(|byte| *byte != 1),
        }
        match transport(start) {
            Ok(()) => Ok(Self::MpegTs),
            Err(part) => Err(more || part),
        }
    }

    /// Returns the name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Matroska => "matroska",
            Self::MpegTs => "mpeg-ts",
            Self::MpegPs => "mpeg-ps",
            Self::Flv => "flv",
        }
    }
}

/// Returns whether more bytes may show a transport stream.
fn transport(start: &[u8]) -> Result<(), bool> {
    let mut part = false;
    for (length, first) in PACKETS {
        let syncs =
            (0..3).map(|number| start.get(first + number * length).map(|byte| *byte == 0x47));
        let found: Vec<Option<bool>> = syncs.collect();
        if found.iter().all(|sync| *sync == Some(true)) {
            return Ok(());
        }
        let possible = found.iter().all(|sync| *sync != Some(false)) && !start.is_empty();
        // Text that begins with a G is none.
        let text = std::str::from_utf8(start).is_ok_and(|text| !text.contains('\0'));
        part |= possible && start.len() > first && !(text && start.len() >= 4);
    }
    Err(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_show_the_format() {
        let mut ts = vec![0xff; 600];
        for at in [0, 188, 376] {
            ts[at] = 0x47;
        }
        assert_eq!(FilmFormat::begun(&ts), Ok(FilmFormat::MpegTs));
        assert_eq!(FilmFormat::begun(&ts[..300]), Err(true));
        let late = [&[0, 0, 0, 9][..], &ts[..188], &[0, 0, 0, 9], &ts[..188], &[0; 4], &ts[..9]];
        assert_eq!(FilmFormat::begun(&late.concat()), Ok(FilmFormat::MpegTs));
        assert_eq!(FilmFormat::begun(b"\0\0\0\x20ftypisom"), Ok(FilmFormat::Mp4));
        assert_eq!(FilmFormat::begun(b"\0\0\0"), Err(true));
        assert_eq!(FilmFormat::begun(b"\x1a\x45"), Err(true));
        assert_eq!(FilmFormat::begun(b"FLV\x01\x05"), Ok(FilmFormat::Flv));
        for other in
            [&b"\0\0\0\x01\x67\x42\0\x1f"[..], b"GPS1,2", b"hello", b"\xff\xd8\xff", b"\0\0\x01"]
        {
            // It may be a program stream.
            let more = other == b"\0\0\x01";
            assert_eq!(FilmFormat::begun(other), Err(more), "{other:?}");
        }
    }
}
