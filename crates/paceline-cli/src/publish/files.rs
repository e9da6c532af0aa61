//! File types, recognised by file extension. Text files of unknown type are published line by line.

use super::args::PubArgs;
use crate::exit;
use anyhow::{Context as _, anyhow};
use paceline_media::Format;
use paceline_media::codec::Codec;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes at the start of a file that are examined to recognise text.
const LOOK_BYTES: u64 = 64 * 1024;

/// The supported types, for error messages.
const KNOWN: &str = ".mjpeg, .mjpg, .y4m, .png, .jpg, .jpeg, .264, .h264, .265, .h265, .hevc, .obu, .wav and .ulg files, and text line by line";

/// A type of file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FileType {
    /// Concatenated JPEG pictures.
    Mjpeg,
    /// Raw pictures.
    Y4m,
    /// One picture.
    Still(Format),
    /// A stream of coded video.
    Video(Codec),
    /// Sound.
    Wav,
    /// Any other type.
    Other,
}

impl FileType {
    /// Returns the type for the file's extension.
    pub(super) fn of(file: &Path) -> Self {
        match extension(file).as_str() {
            "mjpeg" | "mjpg" => Self::Mjpeg,
            "y4m" => Self::Y4m,
            "png" => Self::Still(Format::Png),
            "jpg" | "jpeg" => Self::Still(Format::Jpeg),
            "264" | "h264" => Self::Video(Codec::H264),
            "265" | "h265" | "hevc" => Self::Video(Codec::H265),
            "obu" => Self::Video(Codec::Av1),
            "wav" => Self::Wav,
            _ => Self::Other,
        }
    }

    /// Returns true if the format itself delimits samples.
    pub(super) fn has_samples(self) -> bool {
        self != Self::Other
    }
}

fn extension(file: &Path) -> String {
    let name = file.extension().and_then(|name| name.to_str()).unwrap_or_default();
    name.to_ascii_lowercase()
}

/// Rejects a file that would be published line by line although it is not text.
pub(super) fn check_lines(args: &PubArgs, file: &Path) -> anyhow::Result<()> {
    let cannot =
        |error: io::Error| anyhow!("cannot open {}: {}", file.display(), exit::file_error(&error));
    // A pipe or device can be read only once: its lines are checked as they are read.
    let is_file = std::fs::metadata(file).map_err(cannot)?.is_file();
    if args.chunk.is_some() || args.encoding.is_some() || !is_file {
        return Ok(());
    }
    let opened = File::open(file).map_err(cannot)?;
    let mut start = Vec::new();
    let read = opened.take(LOOK_BYTES).read_to_end(&mut start);
    read.with_context(|| format!("cannot read {}", file.display()))?;
    if is_text(&start, start.len() as u64 == LOOK_BYTES) {
        return Ok(());
    }
    let fix = match extension(file).as_str() {
        "mcap" => "publish a recording with paceline replay".to_owned(),
        "mp4" | "m4v" | "mov" | "mkv" | "avi" | "webm" | "flv" | "ts" => format!(
            "extract its video with ffmpeg -i '{}' -c:v copy -bsf:v h264_mp4toannexb OUT.264, and \
             publish OUT.264",
            file.display()
        ),
        _ => "give --chunk SIZE to publish it in pieces, or --encoding TYPE if each line is a sample of that type"
            .to_owned(),
    };
    Err(exit::usage(format!(
        "--file {}: its type is unknown and it is not UTF-8 text; {fix}; the known types are \
         {KNOWN}",
        file.display()
    )))
}

/// Returns true for UTF-8 without a zero byte; the last character may be incomplete if `cut`.
pub(super) fn is_text(bytes: &[u8], cut: bool) -> bool {
    if bytes.contains(&0) {
        return false;
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => cut && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_the_end_of_the_name_in_any_case() {
        assert_eq!(FileType::of(Path::new("a/b.MJPG")), FileType::Mjpeg);
        assert_eq!(FileType::of(Path::new("b.jpeg")), FileType::Still(Format::Jpeg));
        for other in ["png", "x.txt", "x.mp4", "x", ".264"] {
            assert!(!FileType::of(Path::new(other)).has_samples(), "{other}");
        }
    }

    #[test]
    fn text_is_utf8_without_zeros() {
        assert!(is_text(b"", false) && is_text("a\tä\r\n\x1b[1mb".as_bytes(), false));
        let cut = "ä".as_bytes().split_last().unwrap().1;
        assert!(is_text(cut, true) && !is_text(cut, false));
        assert!(!is_text(b"\xff\xd8\xff\xe0", true) && !is_text(b"a\0b", true));
    }
}
