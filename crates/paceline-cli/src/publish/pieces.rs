//! Lines and pieces of files and standard input.

use super::args::PubArgs;
use super::files::is_text;
use super::source::Origin;
use bytes::Bytes;
use paceline::Encoding;
use std::io::{self, BufRead, Read};
use std::time::Duration;

/// Limit of a line in bytes.
const LINE_MAX: usize = 4 * 1024 * 1024;

/// The division of an input into samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Lines of text; other bytes are an error.
    Text,
    /// Lines with arbitrary content.
    Lines,
    /// Pieces of this many bytes.
    Bytes(usize),
}

/// Returns the properties of an input that is cut into lines or pieces.
pub(super) fn origin(args: &PubArgs, name: &str, cut: Cut) -> Origin {
    let encoding = match (&args.encoding, cut) {
        (Some(name), _) => Encoding::new(name),
        (None, Cut::Bytes(_)) => Encoding::Bytes,
        (None, Cut::Text | Cut::Lines) => Encoding::Text,
    };
    let (how, bytes_max) = match cut {
        Cut::Bytes(bytes) => (format!("in pieces of {bytes} bytes"), Some(bytes as u64)),
        Cut::Text | Cut::Lines => ("line by line".to_owned(), None),
    };
    let hz = args.hertz();
    let rate = hz.map_or_else(|| "as it arrives".to_owned(), |hz| format!("at {hz} Hz"));
    Origin {
        encoding: encoding.clone(),
        hz,
        size: None,
        bytes_max,
        traffic: None,
        live: false,
        wait: Duration::from_secs(u64::from(!args.repeat)),
        news: None,
        what: format!("{name} {how} {rate}, {encoding}"),
    }
}

/// Gives the input sample by sample to `give`; returns the number of samples, 0 once `give` returns false.
pub(super) fn feed(
    input: &mut impl BufRead,
    cut: Cut,
    mut give: impl FnMut(Bytes) -> bool,
) -> io::Result<u64> {
    let mut sent = 0;
    loop {
        let sample = match cut {
            Cut::Bytes(bytes) => piece(input, bytes)?,
            Cut::Lines => line(input, sent + 1)?,
            Cut::Text => text(input, sent + 1)?,
        };
        let Some(sample) = sample else { return Ok(sent) };
        if !give(sample) {
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
    use std::io::BufReader;

    fn read(mut input: &[u8], cut: Cut) -> (Vec<Bytes>, io::Result<u64>) {
        let mut samples = Vec::new();
        let fed = feed(&mut input, cut, |sample| {
            samples.push(sample);
            true
        });
        (samples, fed)
    }

    fn all(input: &[u8], cut: Cut) -> Vec<Bytes> {
        let (samples, fed) = read(input, cut);
        assert_eq!(fed.unwrap(), samples.len() as u64);
        samples
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
    fn bytes_are_not_text_unless_an_encoding_is_given() {
        let (samples, fed) = read(b"good\n\xff\xd8\nmore\n", Cut::Text);
        let error = fed.unwrap_err().to_string();
        assert!(error.contains("line 2 is not UTF-8 text; give --chunk SIZE"), "{error}");
        assert_eq!(samples, ["good"]);
        assert_eq!(all(b"\xff\xd8\n\0", Cut::Lines), [&b"\xff\xd8"[..], b"\0"]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut endless = BufReader::new(io::repeat(b'x'));
        let error = line(&mut endless, 1).unwrap_err();
        assert!(error.to_string().contains("line 1 has more than 4194304 bytes; give --chunk"));
    }
}
