//! File types, recognised by file extension. Text files of unknown type are published line by line.

use super::input::Place;
use paceline_media::codec::Codec;
use paceline_media::stream::Container;
use paceline_tool::exit;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes at the start of a file that are examined to recognise text.
const LOOK_BYTES: u64 = 64 * 1024;

/// The supported types, for error messages.
const KNOWN: &str = "JPEG, PNG, Y4M, H.264, H.265, AV1 (OBU, IVF), WAV, Ogg with Opus, MP4, MOV, Matroska, WebM, MPEG-TS, MPEG-PS, \
     FLV and .ulg files, and text line by line";

/// Returns the type of stream that the name of a file states.
pub(super) fn container(file: &Path) -> Option<Container> {
    Some(match extension(file).as_str() {
        "mjpeg" | "mjpg" | "jpg" | "jpeg" => Container::Jpeg,
        "png" => Container::Png,
        "y4m" => Container::Y4m,
        "264" | "h264" => Container::Video(Codec::H264),
        "265" | "h265" | "hevc" => Container::Video(Codec::H265),
        "obu" => Container::Video(Codec::Av1),
        "ivf" => Container::Ivf,
        "wav" => Container::Wav,
        "opus" | "ogg" | "oga" => Container::Ogg,
        _ => return None,
    })
}

fn extension(file: &Path) -> String {
    let name = file.extension().and_then(|name| name.to_str()).unwrap_or_default();
    name.to_ascii_lowercase()
}

/// Rejects a file that would be published line by line although it is not text.
pub(super) fn check_lines(place: &Place) -> anyhow::Result<()> {
    let (file, flag) = match place {
        Place::Path(file) => (file.as_path(), "--file "),
        // The lines of other inputs are checked as they are read.
        Place::Stdin | Place::Tcp(_) => return Ok(()),
    };
    let cannot = |error: io::Error| place.cannot(&error);
    let opened = File::open(file).map_err(cannot)?;
    let mut start = Vec::new();
    opened.take(LOOK_BYTES).read_to_end(&mut start).map_err(cannot)?;
    if is_text(&start, start.len() as u64 == LOOK_BYTES) {
        return Ok(());
    }
    let fix = match extension(file).as_str() {
        "mcap" => "publish a recording with paceline replay".to_owned(),
        "mp4" | "m4v" | "mov" | "mkv" | "webm" | "flv" | "ts" | "mpg" | "vob" => {
            "its beginning is damaged: record or copy it again".to_owned()
        }
        "avi" | "wmv" | "asf" | "3gp" => format!(
            "convert it with ffmpeg -i '{}' -c copy OUT.mkv, and publish OUT.mkv",
            file.display()
        ),
        _ => "give --chunk SIZE to publish it in pieces, or --encoding TYPE if each line is a sample of that type"
            .to_owned(),
    };
    Err(exit::usage(format!(
        "{flag}{}: its type is unknown and it is not UTF-8 text; {fix}; the known types are \
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
        assert_eq!(container(Path::new("a/b.MJPG")), Some(Container::Jpeg));
        assert_eq!(container(Path::new("b.Ivf")), Some(Container::Ivf));
        for other in ["png", "x.txt", "x.mp4", "x", ".264"] {
            assert_eq!(container(Path::new(other)), None, "{other}");
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
