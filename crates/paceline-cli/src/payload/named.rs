//! The content of an `--out` file, determined by its file extension.

use super::film;
use anyhow::anyhow;
use paceline::Sample;
use paceline_media::film::FilmFormat;
use paceline_tool::exit;
use std::path::Path;

/// The supported file types, for error messages.
const WRITTEN: &str = ".mjpeg (JPEG pictures), .264 (H.264), .265 (H.265), .obu (AV1), .y4m (raw pictures), .wav (sound), \
     .opus (audio/opus), .mp4, .mkv and .ts (films), .png and .jpg (the newest picture), and any other ending, such as .txt or .bin, for \
     unchanged payloads";
/// Types with a container or coding that this command does not write.
const CONTAINERS: [&str; 8] = ["avi", "webm", "mpg", "mpeg", "flv", "ogv", "vob", "ivf"];
const OTHERS: [&str; 18] = [
    "mp3", "ogg", "oga", "m4a", "flac", "gif", "bmp", "tif", "tiff", "webp", "avif", "bag", "db3",
    "ulg", "zip", "gz", "zst", "pcap",
];

/// The content of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Holds {
    /// Sound after a WAV header.
    Sound,
    /// Packets of Opus in an Ogg container.
    Opus,
    /// Pictures and sound in this format.
    Film(FilmFormat),
    /// The newest picture, in this encoding.
    Still(&'static str),
    /// Raw pictures, each after a header.
    RawPictures,
    /// Concatenated payloads of this encoding.
    Only(&'static str),
    /// Concatenated payloads of any encoding.
    Any,
}

impl Holds {
    /// Returns the content for the path's extension.
    ///
    /// # Errors
    /// Errors if files of this type are not supported.
    pub(super) fn of(path: &Path) -> anyhow::Result<Self> {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let end = end.to_ascii_lowercase();
        if let Some(format) = film::format_of(&end) {
            return Ok(Self::Film(format));
        }
        let fix = match end.as_str() {
            "wav" => return Ok(Self::Sound),
            "opus" => return Ok(Self::Opus),
            "png" => return Ok(Self::Still("image/png")),
            "jpg" | "jpeg" => return Ok(Self::Still("image/jpeg")),
            "y4m" => return Ok(Self::RawPictures),
            "mjpeg" | "mjpg" => return Ok(Self::Only("image/jpeg")),
            "264" | "h264" => return Ok(Self::Only("video/h264")),
            "265" | "h265" | "hevc" => return Ok(Self::Only("video/h265")),
            "obu" => return Ok(Self::Only("video/av1")),
            "mcap" => "record with paceline record TAG --out FILE.mcap".to_owned(),
            end if CONTAINERS.contains(&end) => {
                format!("write FILE.mkv, then run ffmpeg -i FILE.mkv -c copy FILE.{end}")
            }
            end if OTHERS.contains(&end) => "give a name of another type".to_owned(),
            _ => return Ok(Self::Any),
        };
        Err(exit::usage(format!(
            "--out {}: cannot write .{end} files; {fix}; the known types are {WRITTEN}",
            path.display()
        )))
    }
}

/// Rejects a sample whose encoding differs from the encoding of the file.
pub(super) fn check(path: &Path, encoding: &str, delivery: &Sample) -> anyhow::Result<()> {
    if delivery.encoding.as_str() == encoding {
        return Ok(());
    }
    let end = path.extension().unwrap_or_default().display();
    Err(anyhow!(
        "--out {}: sample {} of {} is {}, a .{end} file contains {encoding}; give another name; \
         the known types are {WRITTEN}",
        path.display(),
        delivery.seq,
        delivery.tag,
        delivery.encoding
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::test_delivery;
    use paceline::Encoding;

    #[test]
    fn the_name_selects_the_file_type() {
        let holds = |name: &str| Holds::of(Path::new(name)).unwrap();
        assert_eq!(holds("a/b.MJPG"), Holds::Only("image/jpeg"));
        assert_eq!(holds("b.MP4"), Holds::Film(FilmFormat::Mp4));
        assert_eq!(holds("b.jpg"), Holds::Still("image/jpeg"));
        for any in ["b", "b.txt", "b.bin", "b.cdr", "mp4", "/dev/null"] {
            assert_eq!(holds(any), Holds::Any, "{any}");
        }
        for (name, fix) in [
            ("x.avi", "ffmpeg -i FILE.mkv -c copy FILE.avi"),
            ("x.MCAP", "paceline record TAG --out FILE.mcap"),
            ("x.mp3", "give a name of another type"),
        ] {
            let error = Holds::of(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(fix) && error.contains(".264 (H.264)"), "{error}");
        }
    }

    #[test]
    fn a_sample_of_another_encoding_is_refused() {
        let sample = test_delivery(Encoding::new("video/h264"), vec![0]);
        assert!(check(Path::new("x.264"), "video/h264", &sample).is_ok());
        let error = check(Path::new("x.mjpeg"), "image/jpeg", &sample).unwrap_err().to_string();
        assert!(error.contains("is video/h264, a .mjpeg file contains image/jpeg"), "{error}");
    }
}
