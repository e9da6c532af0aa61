//! WAV files (RIFF): locating the sound in a file, and writing a header.

use std::borrow::Cow;

use super::format::{AudioFormat, Coding};
use super::samples::sample;
use crate::error::MediaError;

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const ALAW: u16 = 6;
const ULAW: u16 = 7;
const EXTENSIBLE: u16 = 0xfffe;

/// The last 14 bytes of the GUID of an extensible format, after the two bytes of the tag.
const GUID_TAIL: [u8; 14] = *b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71";

/// The sound of a WAV file; see [`read_wav`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wav<'a> {
    /// The format of `data`.
    pub format: AudioFormat,
    /// Whole frames; borrowed from a file with 16-bit or G.711 sound.
    pub data: Cow<'a, [u8]>,
    /// A description of a defect that still leaves sound, such as a truncated file.
    pub note: Option<String>,
}

/// The representation of a sample in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    As(Coding),
    U8,
    S24,
    S32,
    F32,
}

/// The sound of a file, from its format chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The format after the conversion.
    pub(crate) format: AudioFormat,
    stored: Stored,
    /// The bytes of a frame in the file.
    pub(crate) frame: usize,
}

impl Layout {
    /// Converts frames of the file to [`Self::format`].
    pub(crate) fn convert<'a>(&self, frames: &'a [u8]) -> Cow<'a, [u8]> {
        convert(self.stored, frames)
    }
}

/// The lengths that a file states outside of its chunks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lengths {
    /// The length of the file without its first 8 bytes.
    riff: u64,
    /// The length of the data chunk, if the file has 64-bit lengths.
    data: Option<u64>,
}

impl Lengths {
    /// Reads the first 12 bytes of a file.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, MediaError> {
        let header = bytes.first_chunk::<12>();
        match header.map(|&[a, b, c, d, l0, l1, l2, l3, w, x, y, z]| {
            ([a, b, c, d], u32::from_le_bytes([l0, l1, l2, l3]), [w, x, y, z])
        }) {
            Some((
                [b'R', b'I', b'F', b'F'] | [b'R' | b'B', b'F' | b'W', b'6', b'4'],
                riff,
                form,
            )) if form == *b"WAVE" => Ok(Self { riff: u64::from(riff), data: None }),
            _ => {
                let reason = "it does not begin with RIFF, RF64 or BW64, and WAVE";
                Err(refuse(0, reason, "pass the bytes of a .wav"))
            }
        }
    }

    /// Records the 64-bit lengths of a `ds64` chunk (EBU Tech 3306).
    pub(crate) fn note_ds64(&mut self, body: &[u8]) {
        let number =
            |at: usize| body.get(at..at + 8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        if let Some((riff, data)) = number(0).zip(number(8)) {
            *self = Self { riff, data: Some(data) };
        }
    }

    /// Returns the length of a data chunk that states `len`, with its content at offset `at`; `None` if the data
    /// extends to the end of the file, whose length is `file` if it is known.
    ///
    /// Programs that cannot seek back leave 0 or the highest length.
    pub(crate) fn data(&self, len: u32, at: u64, file: Option<u64>) -> Option<u64> {
        let len = match (len, self.data) {
            (u32::MAX, Some(0) | None) => return None,
            (u32::MAX, Some(data)) => data,
            (len, _) => u64::from(len),
        };
        let covered =
            if self.riff == u64::from(u32::MAX) { 0 } else { self.riff.saturating_add(8) };
        let open = len == 0 && file.map_or(covered <= at, |file| covered < file);
        // With 0 as the length of a file that continues, no chunk can follow.
        (!open && len != u64::MAX).then_some(len)
    }
}

/// Finds the sound of a WAV file.
///
/// Reads PCM of 8, 16, 24 and 32 bits, float of 32 bits, µ-law and A-law, also as
/// WAVE_FORMAT_EXTENSIBLE, 1 to 8 channels, 1,000 to 384,000 Hz. PCM and float are returned as 16 bits:
/// the lower bits of integers are cut off, floats are rounded and clipped. Chunks may be in any order;
/// the first of each kind counts.
///
/// Files beyond 4 GiB (RF64 and BW64) have the length of the data in a `ds64` chunk. Otherwise, a data chunk
/// of length 0xffffffff extends to the end of the file: some programs cannot seek back to
/// write the length. A length of 0 has the same meaning if the RIFF length does not cover the file
/// either. A truncated data chunk returns the available frames, with a `note`.
///
/// Reserves at most twice the length of the file, and nothing for 16-bit and G.711 sound.
///
/// # Errors
/// [`MediaError::Wav`] if the file is not a WAV file, its format is not one of those, or it has no data
/// chunk.
pub fn read_wav(bytes: &[u8]) -> Result<Wav<'_>, MediaError> {
    let mut lengths = Lengths::read(bytes)?;
    let mut chunks = Chunks { bytes, at: 12 };
    let (mut layout, mut data) = (None, None);
    while let Some(chunk) = chunks.next(&lengths) {
        match &chunk.id {
            b"ds64" => lengths.note_ds64(chunk.body),
            b"fmt " if layout.is_none() => layout = Some(read_format(chunk.body, chunk.at)?),
            b"data" if data.is_none() => data = Some(chunk),
            _ => {}
        }
    }
    let fix = "pass a whole file";
    let layout = layout.ok_or_else(|| refuse(bytes.len(), "it has no format chunk", fix))?;
    let data = data.ok_or_else(|| refuse(bytes.len(), "it has no data chunk", fix))?;
    let whole = data.body.len() / layout.frame * layout.frame;
    let note = if data.missing > 0 {
        Some(format!("the data chunk is cut off: {} bytes of it are missing", data.missing))
    } else if whole < data.body.len() {
        let rest = data.body.len() - whole;
        Some(format!("the last {rest} bytes of the data chunk are no whole frame"))
    } else {
        None
    };
    let body = data.body.get(..whole).unwrap_or_default();
    Ok(Wav { format: layout.format, data: convert(layout.stored, body), note })
}

struct Chunk<'a> {
    id: [u8; 4],
    /// The offset of its first byte behind the length.
    at: usize,
    body: &'a [u8],
    /// The bytes of its length that are beyond the end of the file.
    missing: usize,
}

struct Chunks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// Returns the next chunk; `None` at the end of the file, or inside a chunk's header.
    fn next(&mut self, lengths: &Lengths) -> Option<Chunk<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let (id, rest) = rest.split_first_chunk::<4>()?;
        let (len, rest) = rest.split_first_chunk()?;
        let at = self.at + 8;
        let len = u32::from_le_bytes(*len);
        let promised = if id == b"data" {
            let known = lengths.data(len, at as u64, Some(self.bytes.len() as u64));
            known.map_or(rest.len(), |len| usize::try_from(len).unwrap_or(usize::MAX))
        } else {
            len as usize
        };
        let body = rest.get(..promised).unwrap_or(rest);
        // A chunk of odd length is followed by a padding byte.
        self.at = at.saturating_add(promised).saturating_add(promised % 2);
        Some(Chunk { id: *id, at, body, missing: promised - body.len() })
    }
}

/// Reads the content of a format chunk at offset `at`.
pub(crate) fn read_format(body: &[u8], at: usize) -> Result<Layout, MediaError> {
    let short = || refuse(at, "the format chunk is cut off", "pass a whole file");
    let [t0, t1, c0, c1, r0, r1, r2, r3, _, _, _, _, f0, f1, b0, b1] =
        *body.first_chunk::<16>().ok_or_else(short)?;
    let mut tag = u16::from_le_bytes([t0, t1]);
    let (frame, bits) = (u16::from_le_bytes([f0, f1]), u16::from_le_bytes([b0, b1]));
    if tag == EXTENSIBLE {
        let guid = body.get(24..40).and_then(|guid| guid.split_first_chunk::<2>());
        let (sub, tail) = guid.ok_or_else(short)?;
        if tail == GUID_TAIL {
            tag = u16::from_le_bytes(*sub);
        }
    }
    let stored = match (tag, bits) {
        (PCM, 8) => Stored::U8,
        (PCM, 16) => Stored::As(Coding::S16le),
        (PCM, 24) => Stored::S24,
        (PCM, 32) => Stored::S32,
        (FLOAT, 32) => Stored::F32,
        (ULAW, 8) => Stored::As(Coding::Ulaw),
        (ALAW, 8) => Stored::As(Coding::Alaw),
        _ => {
            let reason = format!("format {tag} with {bits} bits per sample is not supported");
            let fix = "convert it to 16-bit PCM, with ffmpeg: -c:a pcm_s16le";
            return Err(refuse(at, &reason, fix));
        }
    };
    let coding = match stored {
        Stored::As(coding) => coding,
        Stored::U8 | Stored::S24 | Stored::S32 | Stored::F32 => Coding::S16le,
    };
    let channels = u16::from_le_bytes([c0, c1]);
    let fix = "mix it down to at most 8 channels, of 1000 to 384000 Hz";
    let rate = u32::from_le_bytes([r0, r1, r2, r3]);
    let format = u8::try_from(channels)
        .ok()
        .and_then(|channels| AudioFormat::new(coding, rate, channels).ok())
        .ok_or_else(|| refuse(at, &format!("{channels} channels of {rate} Hz"), fix))?;
    if u32::from(frame) != u32::from(channels) * u32::from(bits) / 8 {
        let reason = format!("{frame} bytes per frame, for {channels} channels of {bits} bits");
        return Err(refuse(at, &reason, "have the file written again"));
    }
    Ok(Layout { format, stored, frame: usize::from(frame) })
}

/// Converts sound to one of the supported codings.
fn convert(stored: Stored, body: &[u8]) -> Cow<'_, [u8]> {
    let bytes = |samples: Vec<[u8; 2]>| Cow::Owned(samples.into_flattened());
    match stored {
        Stored::As(_) => Cow::Borrowed(body),
        Stored::U8 => bytes(body.iter().map(|&byte| [0, byte ^ 0x80]).collect()),
        Stored::S24 => {
            bytes(body.as_chunks::<3>().0.iter().map(|&[_, low, high]| [low, high]).collect())
        }
        Stored::S32 => {
            bytes(body.as_chunks::<4>().0.iter().map(|&[_, _, low, high]| [low, high]).collect())
        }
        Stored::F32 => {
            let levels = body.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
            bytes(levels.map(|level| sample(level).to_le_bytes()).collect())
        }
    }
}

/// Returns the header of a WAV file with a data chunk of `data_bytes`, up to the beginning of the data.
///
/// 44 bytes for PCM, 58 for G.711. `u32::MAX` stands for data of unknown length. The caller must append
/// one zero byte to data of an odd length.
#[must_use]
pub fn wav_header(format: &AudioFormat, data_bytes: u32) -> Vec<u8> {
    let frame = u16::from(format.channels).saturating_mul(match format.coding {
        Coding::S16le => 2,
        Coding::Ulaw | Coding::Alaw => 1,
    });
    let (tag, bits) = match format.coding {
        Coding::S16le => (PCM, 16_u16),
        Coding::Ulaw => (ULAW, 8),
        Coding::Alaw => (ALAW, 8),
    };
    let mut chunks = b"WAVEfmt ".to_vec();
    let linear = tag == PCM;
    chunks.extend(if linear { 16_u32 } else { 18 }.to_le_bytes());
    chunks.extend(tag.to_le_bytes());
    chunks.extend(u16::from(format.channels).to_le_bytes());
    chunks.extend(format.rate.to_le_bytes());
    chunks.extend(format.rate.saturating_mul(u32::from(frame)).to_le_bytes());
    chunks.extend(frame.to_le_bytes());
    chunks.extend(bits.to_le_bytes());
    if !linear {
        // The extension length of 0 and the number of frames, which the format requires unless it is
        // PCM.
        chunks.extend(0_u16.to_le_bytes());
        chunks.extend(*b"fact\x04\0\0\0");
        chunks.extend((data_bytes / u32::from(frame).max(1)).to_le_bytes());
    }
    chunks.extend(*b"data");
    chunks.extend(data_bytes.to_le_bytes());
    let padded = data_bytes.saturating_add(data_bytes % 2);
    let len = u32::try_from(chunks.len()).unwrap_or(u32::MAX).saturating_add(padded);
    [b"RIFF".as_slice(), &len.to_le_bytes(), &chunks].concat()
}

pub(crate) fn refuse(at: usize, reason: &str, fix: &'static str) -> MediaError {
    MediaError::Wav { at, reason: reason.to_owned(), fix }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the body of a format chunk.
    fn fmt(tag: u16, channels: u16, rate: u32, bits: u16) -> Vec<u8> {
        let frame = channels * bits / 8;
        let mut out = [tag, channels].map(u16::to_le_bytes).as_flattened().to_vec();
        out.extend(rate.to_le_bytes());
        out.extend((rate * u32::from(frame)).to_le_bytes());
        out.extend([frame, bits].map(u16::to_le_bytes).as_flattened());
        out
    }

    fn extensible(tag: u16, bits: u16, tail: &[u8]) -> Vec<u8> {
        let mut out = fmt(EXTENSIBLE, 2, 48_000, bits);
        out.extend([22_u16, bits].map(u16::to_le_bytes).as_flattened());
        out.extend(3_u32.to_le_bytes());
        out.extend(tag.to_le_bytes());
        out.extend(tail);
        out
    }

    fn file(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let mut body = b"WAVE".to_vec();
        for (id, chunk) in chunks {
            body.extend(*id);
            body.extend(u32::try_from(chunk.len()).unwrap().to_le_bytes());
            body.extend(*chunk);
            body.extend(chunk.iter().take(chunk.len() % 2).map(|_| 0));
        }
        let len = u32::try_from(body.len()).unwrap();
        [b"RIFF", &len.to_le_bytes()[..], &body].concat()
    }

    fn read(bytes: &[u8]) -> (String, Vec<u8>, Option<String>) {
        let wav = read_wav(bytes).unwrap();
        (wav.format.to_string(), wav.data.into_owned(), wav.note)
    }

    fn refused(bytes: &[u8]) -> String {
        read_wav(bytes).unwrap_err().to_string()
    }

    #[test]
    fn wav_headers_round_trip() {
        for (coding, channels, len) in
            [(Coding::S16le, 2, 44), (Coding::Ulaw, 1, 58), (Coding::Alaw, 8, 58)]
        {
            let format = AudioFormat::new(coding, 44_100, channels).unwrap();
            let data: Vec<u8> = (0..format.frame_bytes()).map(|n| n.to_le_bytes()[0]).collect();
            let header = wav_header(&format, u32::try_from(data.len()).unwrap());
            assert_eq!(header.len(), len);
            let mut bytes = [header, data.clone()].concat();
            bytes.extend(data.iter().take(data.len() % 2).map(|_| 0));
            let wav = read_wav(&bytes).unwrap();
            assert_eq!((wav.format, wav.note), (format, None));
            assert!(matches!(wav.data, Cow::Borrowed(found) if found == data));
            let riff = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            assert_eq!(riff as usize + 8, bytes.len());
        }
        let format = AudioFormat::new(Coding::S16le, 8_000, 1).unwrap();
        let header = wav_header(&format, u32::MAX);
        assert_eq!((&header[4..8], &header[40..44]), (&[0xff; 4][..], &[0xff; 4][..]));
    }

    #[test]
    fn every_sample_format_is_converted() {
        let (pcm, s16) = ("audio/pcm;format=s16le;rate=8000;channels=1", i16::to_le_bytes);
        let floats: Vec<u8> = [0.5_f32, -1.0, 2.0, f32::NAN].map(f32::to_le_bytes).concat();
        for (format, data, name, expected) in [
            (fmt(1, 1, 8_000, 16), vec![1, 2, 3, 4], pcm, vec![1, 2, 3, 4]),
            (fmt(1, 1, 8_000, 8), vec![0, 128, 255], pcm, [i16::MIN, 0, 32_512].map(s16).concat()),
            (fmt(1, 1, 8_000, 24), vec![9, 1, 2, 9, 3, 4], pcm, vec![1, 2, 3, 4]),
            (fmt(1, 1, 8_000, 32), vec![9, 9, 1, 2], pcm, vec![1, 2]),
            (fmt(3, 1, 8_000, 32), floats, pcm, [16_384, i16::MIN, i16::MAX, 0].map(s16).concat()),
            (fmt(7, 1, 8_000, 8), vec![7, 8], "audio/pcmu;rate=8000;channels=1", vec![7, 8]),
            (fmt(6, 1, 8_000, 8), vec![7, 8], "audio/pcma;rate=8000;channels=1", vec![7, 8]),
        ] {
            let bytes = file(&[(b"fmt ", &format), (b"data", &data)]);
            assert_eq!(read(&bytes), (name.to_owned(), expected, None));
        }
        let stereo = "audio/pcm;format=s16le;rate=48000;channels=2";
        let format = extensible(1, 24, &GUID_TAIL);
        let bytes = file(&[(b"fmt ", &format), (b"data", &[9, 1, 2, 9, 3, 4])]);
        assert_eq!(read(&bytes), (stereo.to_owned(), vec![1, 2, 3, 4], None));
    }

    #[test]
    fn chunks_may_have_any_order_and_odd_chunks_are_padded() {
        let format = fmt(1, 1, 8_000, 16);
        let bytes = file(&[
            (b"LIST", &[1, 2, 3]),
            (b"data", &[5, 6]),
            (b"junk", &[]),
            (b"fmt ", &format),
            (b"data", &[7, 8]),
            (b"fmt ", &[]),
        ]);
        assert_eq!((read(&bytes).1, read(&bytes).2), (vec![5, 6], None));
        let bytes = file(&[(b"fmt ", &format), (b"data", &[1, 2, 3])]);
        let note = "the last 1 bytes of the data chunk are no whole frame";
        assert_eq!((read(&bytes).1, read(&bytes).2.as_deref()), (vec![1, 2], Some(note)));
    }

    #[test]
    fn streamed_and_empty_files_are_distinguished() {
        let format = fmt(1, 1, 8_000, 16);
        let streamed = |riff: u32, data: u32| {
            let mut bytes = file(&[(b"fmt ", &format), (b"data", &[1, 2, 3, 4])]);
            bytes[4..8].copy_from_slice(&riff.to_le_bytes());
            bytes[40..44].copy_from_slice(&data.to_le_bytes());
            read(&bytes)
        };
        for (riff, data) in [(0, 0), (36, 0), (u32::MAX, u32::MAX), (0, u32::MAX), (40, u32::MAX)] {
            assert_eq!((streamed(riff, data).1, streamed(riff, data).2), (vec![1, 2, 3, 4], None));
        }
        let bytes = file(&[(b"fmt ", &format), (b"data", &[]), (b"LIST", &[1, 2])]);
        assert_eq!((read(&bytes).1, read(&bytes).2), (Vec::new(), None));
    }

    #[test]
    fn every_truncation_is_an_error_or_a_note() {
        let format = fmt(1, 1, 8_000, 16);
        let bytes = file(&[(b"fmt ", &format), (b"data", &[1, 2, 3, 4])]);
        for len in 0..bytes.len() {
            match read_wav(&bytes[..len]) {
                Ok(wav) => {
                    assert!(len >= 44, "{len}");
                    let whole = (len - 44) / 2 * 2;
                    assert_eq!(*wav.data, [1, 2, 3, 4][..whole]);
                    let note = format!("the data chunk is cut off: {} bytes", 48 - len);
                    assert!(wav.note.unwrap().starts_with(&note));
                }
                Err(error) => assert!(len < 44, "{len}: {error}"),
            }
        }
        assert!(refused(&[]).starts_with("wav file at byte 0: it does not begin with RIFF"));
        assert!(refused(&bytes[..19]).contains("at byte 19: it has no format chunk"));
        assert!(refused(&bytes[..25]).contains("at byte 20: the format chunk is cut off"));
        assert!(refused(&bytes[..40]).contains("it has no data chunk"));
    }

    #[test]
    fn invalid_files_are_explained() {
        let good = fmt(1, 1, 8_000, 16);
        for (at, part) in [
            (0, "RIFF, RF64 or BW64, and WAVE"),
            (8, "RIFF, RF64 or BW64, and WAVE"),
            (12, "no format chunk"),
        ] {
            let mut bytes = file(&[(b"fmt ", &good), (b"data", &[1, 2])]);
            bytes[at] ^= 1;
            assert!(refused(&bytes).contains(part), "{}", refused(&bytes));
        }
        let mut frame = good.clone();
        frame[12] = 3;
        for (format, part) in [
            (fmt(1, 1, 8_000, 12), "format 1 with 12 bits per sample is not supported; convert it"),
            (fmt(3, 1, 8_000, 64), "format 3 with 64 bits"),
            (fmt(0x55, 1, 8_000, 16), "format 85 with 16 bits"),
            (fmt(1, 0, 8_000, 16), "0 channels of 8000 Hz; mix it down"),
            (fmt(1, 9, 8_000, 16), "9 channels of 8000 Hz"),
            (fmt(1, 300, 8_000, 16), "300 channels"),
            (fmt(1, 1, 999, 16), "1 channels of 999 Hz"),
            (frame, "3 bytes per frame, for 1 channels of 16 bits"),
            (good[..15].to_vec(), "the format chunk is cut off"),
            (extensible(1, 16, &[0; 4]), "the format chunk is cut off"),
            (extensible(1, 16, &[0; 14]), "format 65534 with 16 bits"),
            (extensible(2, 16, &GUID_TAIL), "format 2 with 16 bits"),
        ] {
            let message = refused(&file(&[(b"fmt ", &format), (b"data", &[1, 2])]));
            assert!(message.contains(part), "{part}: {message}");
        }
        let mut far = file(&[(b"fmt ", &good), (b"LIST", &[0; 4]), (b"data", &[1, 2])]);
        far[40..44].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
        assert!(refused(&far).contains("it has no data chunk"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn any_bytes_are_read_within_the_bound(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            changes in proptest::collection::vec((0_usize..48, any::<u8>()), 0..4),
        ) {
            let _ = read_wav(&bytes);
            let format = fmt(1, 1, 8_000, 8);
            let mut file = file(&[(b"fmt ", &format), (b"data", &bytes)]);
            for (at, value) in changes {
                file[at.min(43)] = value;
            }
            if let Ok(wav) = read_wav(&file) {
                prop_assert!(wav.data.len() <= 2 * file.len());
                prop_assert_eq!(wav.data.len() % wav.format.frame_bytes(), 0);
            }
        }
    }
}
