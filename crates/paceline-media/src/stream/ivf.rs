//! IVF with AV1.

use super::{End, SAMPLE_MAX, Step, seek};
use crate::av1;
use crate::error::MediaError;

/// The length of the header of a frame: its length and its time.
const FRAME_HEADER: usize = 12;
/// The highest number of ticks per second that counts as a rate of pictures.
const HZ_MAX: f64 = 300.0;
/// A temporal delimiter, which begins a temporal unit.
const DELIMITER: [u8; 2] = [0x12, 0];
/// A temporal delimiter and the header of a sequence header, where decoding can start.
const START: [u8; 3] = [0x12, 0, 0x0a];

/// Reads the header, then frames.
#[derive(Debug, Default)]
pub(super) struct IvfCutter {
    begun: bool,
    /// The ticks per second, which usually are the pictures per second.
    pub(super) hz: Option<f64>,
}

fn refuse(reason: String, fix: &'static str) -> MediaError {
    MediaError::Stream { format: "ivf", at: 0, reason, fix }
}

/// Skips to the next frame where decoding can start.
fn skip(bytes: &[u8], ended: bool, error: MediaError) -> Step {
    let at = seek(bytes, FRAME_HEADER + 1, &START);
    let found = bytes.get(at..).unwrap_or_default().starts_with(&START);
    match at.saturating_sub(FRAME_HEADER) {
        _ if !found && ended => Step::Damaged(bytes.len(), error),
        // The next frame must have its header before it.
        0 => Step::More,
        next => Step::Damaged(next, error),
    }
}

impl IvfCutter {
    pub(super) fn step(&mut self, bytes: &[u8], end: End) -> Result<Step, MediaError> {
        if bytes.is_empty() {
            return Ok(Step::More);
        }
        if !self.begun {
            return self.header(bytes, end);
        }
        let cut = || refuse("the last frame is cut off".to_owned(), "pass whole frames");
        let ended = end == End::Ended;
        let Some((len, rest)) = bytes.split_first_chunk::<4>() else {
            return Ok(if ended { Step::Damaged(bytes.len(), cut()) } else { Step::More });
        };
        let len = u32::from_le_bytes(*len) as usize;
        let rest = rest.get(FRAME_HEADER - 4..).unwrap_or_default();
        let frame = rest.get(..len).unwrap_or(rest);
        // The OBUs of a frame have lengths, which end where it ends. With a damaged length it would hide the frames behind
        // it.
        let valid = (1..=SAMPLE_MAX).contains(&len)
            && match av1::first_unit(frame) {
                Ok(end) => end.is_some() || frame.len() < len || len == 0,
                Err(_) => false,
            };
        if !valid {
            return Ok(skip(
                bytes,
                ended,
                refuse(
                    format!("no frame of AV1 (length {len})"),
                    "pass a file as the encoder wrote it",
                ),
            ));
        }
        if frame.len() < len {
            return Ok(if ended { skip(bytes, true, cut()) } else { Step::More });
        }
        let mut unit = Vec::with_capacity(len + DELIMITER.len());
        if !frame.starts_with(&DELIMITER) {
            unit.extend_from_slice(&DELIMITER);
        }
        unit.extend_from_slice(frame);
        Ok(Step::Sample(FRAME_HEADER + len, unit))
    }

    fn header(&mut self, bytes: &[u8], end: End) -> Result<Step, MediaError> {
        let [l0, l1, c0, c1, c2, c3, _, _, _, _, n0, n1, n2, n3, d0, d1, d2, d3] =
            match bytes.get(6..24).and_then(|fields| fields.first_chunk()) {
                Some(fields) => *fields,
                None if end == End::Ended => {
                    return Err(refuse("the header is cut off".to_owned(), "pass a whole file"));
                }
                None => return Ok(Step::More),
            };
        if !bytes.starts_with(b"DKIF") {
            let fix = "pass a file from its beginning";
            return Err(refuse("it does not begin with DKIF".to_owned(), fix));
        }
        let code = [c0, c1, c2, c3];
        if code != *b"AV01" {
            let reason = format!("it contains {}, not AV1", code.escape_ascii());
            let fix = "code it as AV1 or H.264, with ffmpeg: -c:v libsvtav1 -f ivf, or -c:v libx264 -f h264";
            return Err(refuse(reason, fix));
        }
        let ticks = f64::from(u32::from_le_bytes([n0, n1, n2, n3]));
        let hz = ticks / f64::from(u32::from_le_bytes([d0, d1, d2, d3]));
        self.hz = (hz > 0.0 && hz <= HZ_MAX).then_some(hz);
        let len = usize::from(u16::from_le_bytes([l0, l1])).max(32);
        if bytes.len() < len && end != End::Ended {
            return Ok(Step::More);
        }
        self.begun = true;
        Ok(Step::Used(len.min(bytes.len())))
    }
}
