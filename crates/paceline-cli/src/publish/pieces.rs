//! Lines and pieces of files and standard input, read on a separate thread: a silent input must not prevent
//! the command from ending.

use super::files::is_text;
use super::source::{Next, Source};
use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use paceline_media::{MediaError, mjpeg};
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Limit of a line in bytes.
const LINE_MAX: usize = 4 * 1024 * 1024;
/// Limit of a picture in bytes.
const PICTURE_MAX: usize = 16 * 1024 * 1024;
/// Number of samples read ahead.
const AHEAD: usize = 16;

/// The division of an input into samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Lines of text; other bytes are an error.
    Text,
    /// Lines with arbitrary content.
    Lines,
    /// Pieces of this many bytes.
    Bytes(usize),
    /// JPEG pictures, one after the other.
    Pictures,
}

/// Samples from a reading thread.
pub(crate) struct Pieces {
    samples: Receiver<io::Result<Bytes>>,
    from: String,
    has_end: bool,
}

impl Pieces {
    /// Starts reading `file`, or standard input if it is `None`.
    pub(crate) fn start(file: Option<&Path>, cut: Cut, repeat: bool) -> Self {
        let (to, samples) = sync_channel(AHEAD);
        let from =
            file.map_or_else(|| "standard input".to_owned(), |file| file.display().to_string());
        let file = file.map(Path::to_owned);
        std::thread::spawn(move || {
            let read = match file {
                Some(file) => read_file(file, cut, repeat, &to),
                None => feed(&mut io::stdin().lock(), cut, &to).map(drop),
            };
            if let Err(error) = read {
                // Sending fails only after the receiver was dropped.
                let _ = to.send(Err(error));
            }
        });
        Self { samples, from, has_end: !repeat }
    }
}

impl Source for Pieces {
    /// Returns the next sample, or [`Next::Wait`] after 50 ms.
    fn next(&mut self, _number: u64) -> anyhow::Result<Next> {
        match self.samples.recv_timeout(Duration::from_millis(50)) {
            Ok(Ok(sample)) => Ok(Next::Sample(sample)),
            Ok(Err(error)) => {
                Err(anyhow!(error)).with_context(|| format!("cannot read {}", self.from))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Next::Wait),
            Err(RecvTimeoutError::Disconnected) => Ok(Next::End),
        }
    }

    fn has_end(&self) -> bool {
        self.has_end
    }
}

fn read_file(
    file: PathBuf,
    cut: Cut,
    repeat: bool,
    to: &SyncSender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut input = BufReader::new(std::fs::File::open(file)?);
    loop {
        let fed = feed(&mut input, cut, to)?;
        if fed == 0 || !repeat {
            return Ok(());
        }
        input.seek(SeekFrom::Start(0))?;
    }
}

/// Sends the input sample by sample; returns the number of samples, 0 once the receiver was dropped.
fn feed(input: &mut impl BufRead, cut: Cut, to: &SyncSender<io::Result<Bytes>>) -> io::Result<u64> {
    let (mut sent, mut begun) = (0, Vec::new());
    loop {
        let sample = match cut {
            Cut::Pictures => picture(input, &mut begun, sent + 1)?,
            Cut::Bytes(bytes) => piece(input, bytes)?,
            Cut::Lines => line(input, sent + 1)?,
            Cut::Text => text(input, sent + 1)?,
        };
        let Some(sample) = sample else { return Ok(sent) };
        if to.send(Ok(sample)).is_err() {
            return Ok(0);
        }
        sent += 1;
    }
}

/// Reads the next `bytes` bytes, or fewer at the end.
fn piece(input: &mut impl BufRead, bytes: usize) -> io::Result<Option<Bytes>> {
    let mut piece = Vec::new();
    input.take(bytes as u64).read_to_end(&mut piece)?;
    Ok((!piece.is_empty()).then(|| piece.into()))
}

/// Reads the next picture; `begun` is the part of it that was read with the one before.
fn picture(
    input: &mut impl BufRead,
    begun: &mut Vec<u8>,
    number: u64,
) -> io::Result<Option<Bytes>> {
    let (mut at_end, mut worth_reading) = (false, true);
    loop {
        if worth_reading {
            let mut pictures = mjpeg::split(begun);
            match pictures.next() {
                Some(Ok(picture)) => {
                    let picture = Bytes::copy_from_slice(picture);
                    begun.drain(..pictures.offset());
                    return Ok(Some(picture));
                }
                Some(Err(MediaError::JpegTruncated { .. })) | None => {}
                Some(Err(error)) => {
                    return Err(io::Error::other(format!("picture {number}: {error}")));
                }
            }
        }
        if at_end {
            // A picture that was cut off is left out.
            return Ok(None);
        }
        if begun.len() > PICTURE_MAX {
            return Err(io::Error::other(format!(
                "picture {number} has more than {PICTURE_MAX} bytes without an end; reduce its size"
            )));
        }
        let more = input.fill_buf()?;
        let read = more.len();
        let from = begun.len().saturating_sub(1);
        begun.extend_from_slice(more);
        input.consume(read);
        let new = begun.get(from..).unwrap_or_default();
        at_end = read == 0;
        // The first bytes must begin a picture, and only bytes with a marker of an end can end one.
        let has_end = new.windows(2).any(|marker| marker == [0xff, 0xd9]);
        worth_reading = from == 0 || at_end || has_end;
    }
}

/// Reads the next line of text without its line break.
fn text(input: &mut impl BufRead, number: u64) -> io::Result<Option<Bytes>> {
    let line = line(input, number)?;
    match &line {
        Some(line) if !is_text(line, false) => Err(io::Error::other(format!(
            "line {number} is not UTF-8 text; give --chunk SIZE to publish the bytes in pieces, \
             or --encoding TYPE if each line is a sample of that type"
        ))),
        _ => Ok(line),
    }
}

/// Reads the next line without its line break.
fn line(input: &mut impl BufRead, number: u64) -> io::Result<Option<Bytes>> {
    let mut line = Vec::new();
    input.take(LINE_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    } else if line.len() > LINE_MAX {
        return Err(io::Error::other(format!(
            "line {number} has more than {LINE_MAX} bytes; give --chunk to publish it in pieces"
        )));
    }
    Ok(Some(line.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8], cut: Cut) -> Vec<Bytes> {
        let (to, samples) = sync_channel(64);
        feed(&mut input, cut, &to).unwrap();
        drop(to);
        samples.iter().map(Result::unwrap).collect()
    }

    #[test]
    fn lines_lose_their_ends_and_empty_ones_count() {
        assert_eq!(all(b"a\r\n\nlast", Cut::Text), ["a", "", "last"]);
        assert!(all(b"", Cut::Text).is_empty());
    }

    #[test]
    fn pieces_have_the_size_asked_for_save_the_last() {
        assert_eq!(all(b"abcde", Cut::Bytes(2)), ["ab", "cd", "e"]);
    }

    #[test]
    fn pictures_are_split_as_they_arrive() {
        let size = paceline_media::Size::new(16, 9).unwrap();
        let grey =
            paceline_media::PictureBuf::grey(paceline_media::PixelFormat::I420, size).unwrap();
        let one = paceline_media::jpeg::encode(&grey.as_picture(), 80).unwrap();
        let stream = [&one[..], &one, &one[..one.len() - 5]].concat();
        // Each read returns only seven bytes.
        let mut input = BufReader::with_capacity(7, &stream[..]);
        let (to, samples) = sync_channel(64);
        assert_eq!(feed(&mut input, Cut::Pictures, &to).unwrap(), 2, "the last one is cut off");
        drop(to);
        assert!(samples.iter().all(|sample| sample.unwrap() == one));
        let (to, _samples) = sync_channel(64);
        let error = feed(&mut &b"no picture"[..], Cut::Pictures, &to).unwrap_err().to_string();
        assert!(error.starts_with("picture 1: "), "{error}");
    }

    #[test]
    fn bytes_are_not_text_unless_an_encoding_is_given() {
        let (to, samples) = sync_channel(64);
        let error =
            feed(&mut &b"good\n\xff\xd8\nmore\n"[..], Cut::Text, &to).unwrap_err().to_string();
        assert!(error.contains("line 2 is not UTF-8 text; give --chunk SIZE"), "{error}");
        assert_eq!(samples.try_iter().map(Result::unwrap).collect::<Vec<_>>(), ["good"]);
        assert_eq!(all(b"\xff\xd8\n\0", Cut::Lines), [&b"\xff\xd8"[..], b"\0"]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut endless = BufReader::new(io::repeat(b'x'));
        let error = line(&mut endless, 1).unwrap_err();
        assert!(error.to_string().contains("line 1 has more than 4194304 bytes; give --chunk"));
    }
}
