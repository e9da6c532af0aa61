//! The type of a stream by its first bytes.

use crate::annexb::Nals;
use crate::codec::Codec;

/// The number of first bytes within which H.264 or H.265 must show its parameter sets.
const LOOK_MAX: usize = 1024 * 1024;

/// The type of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// JPEG pictures, one after the other.
    Jpeg,
    /// PNG pictures, one after the other.
    Png,
    /// YUV4MPEG2: raw pictures.
    Y4m,
    /// A byte stream of H.264 or H.265 in Annex B, or of AV1 in low-overhead OBUs.
    Video(Codec),
    /// IVF with AV1.
    Ivf,
    /// WAV, also RF64 and BW64.
    Wav,
    /// Ogg with Opus.
    Ogg,
}

/// The result of [`detect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// A known type.
    Container(Container),
    /// None of the known types.
    Other,
    /// More bytes are needed.
    More,
}

/// The types with a fixed beginning.
const MARKS: [(&[u8], Container); 6] = [
    (b"\xff\xd8\xff", Container::Jpeg),
    (b"\x89PNG\r\n\x1a\n", Container::Png),
    (b"YUV4MPEG2 ", Container::Y4m),
    (b"DKIF", Container::Ivf),
    (b"OggS", Container::Ogg),
    // A temporal delimiter and the header of a sequence header.
    (b"\x12\x00\x0a", Container::Video(Codec::Av1)),
];

/// Finds the type of a stream that begins with `start`; `ended` states that no more bytes follow.
///
/// H.264 and H.265 are found by their parameter sets in the first MiB. A stream that begins in the middle of a sample
/// is [`Detected::Other`].
#[must_use]
pub fn detect(start: &[u8], ended: bool) -> Detected {
    let more = if ended { Detected::Other } else { Detected::More };
    for (mark, container) in MARKS {
        if start.starts_with(mark) {
            return Detected::Container(container);
        }
        if mark.starts_with(start) {
            return more;
        }
    }
    if let Some(is_riff) = riff(start) {
        return is_riff.map_or(more, |wav| {
            if wav { Detected::Container(Container::Wav) } else { Detected::Other }
        });
    }
    annexb(start).unwrap_or(if ended || start.len() > LOOK_MAX { Detected::Other } else { more })
}

/// Returns `None` if the stream does not begin like a RIFF file, `Some(None)` if more bytes are needed, and otherwise
/// whether it is a WAV file.
fn riff(start: &[u8]) -> Option<Option<bool>> {
    let [id, form] = [start.get(..4).unwrap_or(start), start.get(8..).unwrap_or_default()];
    let begins = [b"RIFF", b"RF64", b"BW64"].into_iter().any(|known| known.starts_with(id));
    let form = form.get(..4).unwrap_or(form);
    begins.then(|| {
        if form.len() < 4 && b"WAVE".starts_with(form) { None } else { Some(form == b"WAVE") }
    })
}

/// Returns the codec of an Annex B byte stream; `None` if more bytes are needed.
fn annexb(start: &[u8]) -> Option<Detected> {
    let zeros = start.iter().take_while(|byte| **byte == 0).count();
    match start.get(zeros) {
        None if zeros <= 16 => return None,
        Some(1) if (2..=16).contains(&zeros) => {}
        None | Some(_) => return Some(Detected::Other),
    }
    // The first parameter set or delimiter decides: no slice of the other codec begins like it.
    Nals::new(start).find_map(|nal| {
        let codec = match *nal.bytes {
            [0x40 | 0x42 | 0x44 | 0x46 | 0x4e, 1, ..] => Codec::H265,
            [0x09 | 0x27 | 0x47 | 0x67, _, ..] => Codec::H264,
            _ => return None,
        };
        Some(Detected::Container(Container::Video(codec)))
    })
}
