//! The type of an input: by its content, by `--encoding`, and by the name of the file.

use crate::publish::files;
use crate::publish::input::Input;
use paceline_media::Format;
use paceline_media::codec::Codec;
use paceline_media::film::{FilmDetected, FilmFormat};
use paceline_media::stream::{Container, Detected, StreamReader, detect};
use std::io::{self, Read as _};
use std::path::Path;

/// The bytes of one read.
const READ: usize = 64 * 1024;

/// The division of an input into samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    Media(Kind),
    /// A film with tracks.
    Film(FilmFormat),
    /// Lines of text.
    Lines,
}

/// The kind of a stream with samples of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Container(Container),
    /// Raw pictures or sound of the type `--encoding`.
    Raw,
}

/// The user's statements about an input.
pub(super) struct Hints {
    encoding: Option<String>,
    by_encoding: Option<Kind>,
    by_name: Option<Container>,
}

/// Returns the kind of a stream without a beginning that shows it.
pub(in crate::publish) fn is_media(encoding: &str) -> bool {
    kind_of(encoding).is_some()
}

fn kind_of(encoding: &str) -> Option<Kind> {
    let container = match encoding.parse::<Format>() {
        Ok(Format::Jpeg) => Container::Jpeg,
        Ok(Format::Png) => Container::Png,
        Ok(Format::H264) => Container::Video(Codec::H264),
        Ok(Format::H265) => Container::Video(Codec::H265),
        Ok(Format::Av1) => Container::Video(Codec::Av1),
        Ok(Format::I420(..) | Format::Rgb8(_) | Format::Ros(_)) | Err(_) => {
            return StreamReader::raw(encoding).map(|_| Kind::Raw);
        }
    };
    Some(Kind::Container(container))
}

impl Hints {
    pub(super) fn new(encoding: Option<&str>, file: Option<&Path>) -> Self {
        Self {
            encoding: encoding.map(str::to_owned),
            by_encoding: encoding.and_then(kind_of),
            by_name: file.and_then(files::container),
        }
    }

    /// Returns the choice for an input that begins with `start`; `None` if more bytes are needed.
    fn choose(&self, start: &[u8], ended: bool) -> Option<Choice> {
        let hint = self.by_encoding.or(self.by_name.map(Kind::Container));
        match FilmFormat::detect(start, ended) {
            FilmDetected::Film(format) => return Some(Choice::Film(format)),
            FilmDetected::More => return None,
            FilmDetected::Other => {}
        }
        match detect(start, ended) {
            Detected::Container(container) => Some(Choice::Media(Kind::Container(container))),
            // A pipe may begin in the middle of a picture.
            Detected::More if self.by_encoding.is_none() => None,
            Detected::More if start.len() < 16 && !ended => None,
            Detected::More | Detected::Other => Some(hint.map_or(Choice::Lines, Choice::Media)),
        }
    }

    /// Reads the beginning of an input into `start` up to the choice.
    pub(super) fn gather(&self, input: &mut Input, start: &mut Vec<u8>) -> io::Result<Choice> {
        let mut part = vec![0; READ];
        loop {
            let read = input.read(&mut part)?;
            start.extend_from_slice(part.get(..read).unwrap_or_default());
            if let Some(choice) = self.choose(start, read == 0) {
                return Ok(choice);
            }
        }
    }

    /// Returns the choice for a file, which is read again afterwards.
    pub(super) fn choose_from(&self, input: &mut Input) -> io::Result<Choice> {
        self.gather(input, &mut Vec::new())
    }

    pub(super) fn reader(&self, kind: Kind) -> StreamReader {
        let raw = || StreamReader::raw(self.encoding.as_deref().unwrap_or_default());
        match kind {
            Kind::Container(container) => StreamReader::new(container),
            // The encoding was found to be raw before.
            Kind::Raw => raw().unwrap_or_else(|| StreamReader::new(Container::Jpeg)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_more_than_the_encoding_and_the_name() {
        let choose = |encoding, name: Option<&str>, start: &[u8]| {
            Hints::new(encoding, name.map(Path::new)).choose(start, false)
        };
        let media = |container| Some(Choice::Media(Kind::Container(container)));
        let (h264, h265) = (Container::Video(Codec::H264), Container::Video(Codec::H265));
        assert_eq!(choose(None, Some("x.obu"), b"DKIF\0\0"), media(Container::Ivf));
        assert_eq!(choose(Some("video/av1"), None, b"DKIF\0\0"), media(Container::Ivf));
        assert_eq!(choose(None, Some("x.264"), b"FLV\x01"), Some(Choice::Film(FilmFormat::Flv)));
        assert_eq!(choose(None, None, b"hello"), Some(Choice::Lines));
        assert_eq!(choose(None, Some("x.264"), b"hello"), media(h264));
        assert_eq!(choose(Some("video/h265"), Some("x.264"), b"hello"), media(h265));
        // Slices do not show the codec.
        let slices = [&[0, 0, 1, 0x41, 9, 9][..]; 9].concat();
        assert_eq!(choose(None, None, &slices), None);
        assert_eq!(choose(Some("video/h264"), None, &slices), media(h264));
        let raw = "video/raw;format=rgb;width=2;height=2";
        assert_eq!(choose(Some(raw), None, b"\xff\xd8\xfe"), Some(Choice::Media(Kind::Raw)));
        assert!(is_media("image/png") && !is_media("application/json") && !is_media("text/plain"));
    }
}
