//! Opens the source that the command line names.

use super::args::PubArgs;
use super::files::{self, FileType};
use super::pieces::{Cut, Pieces};
use super::source::{Opened, Origin};
use super::{card, pictures, sound, value, video};
use paceline::Encoding;
use paceline_media::Format;
use std::path::Path;
use std::time::Duration;

/// Default JPEG quality of the test card.
const QUALITY: u8 = 80;

/// Opens the source that the command line names.
pub(super) fn open(args: &PubArgs) -> anyhow::Result<Opened> {
    if let Some(spec) = args.test_card {
        return card::open(spec, args.quality.unwrap_or(QUALITY));
    }
    if args.adapt {
        return Err(crate::exit::usage(
            "--adapt: only the test card is encoded here; give --test-card, or leave --adapt out",
        ));
    }
    if args.quality.is_some() {
        return Err(crate::exit::usage(
            "--quality: only the test card is encoded here; give --test-card, or leave --quality \
             out",
        ));
    }
    if let Some(value) = args.value.as_deref().filter(|value| *value != "-") {
        return value::open(args, value);
    }
    let Some(file) = args.file.as_deref().filter(|path| *path != Path::new("-")) else {
        if args.repeat {
            return Err(crate::exit::usage(
                "--loop: standard input cannot be read again; give --file FILE",
            ));
        }
        return Ok(pieces(args, None));
    };
    if file.is_dir() {
        anyhow::bail!("cannot read {}: it is a folder; give a file in it", file.display());
    }
    let format = FileType::of(file);
    if args.chunk.is_some() && format.has_samples() {
        return Err(crate::exit::usage(format!(
            "--chunk: {} is published sample by sample; leave --chunk out",
            file.display()
        )));
    }
    match format {
        FileType::Mjpeg => pictures::open_mjpeg(args, file),
        FileType::Y4m => pictures::open_y4m(args, file),
        FileType::Still(format) => pictures::open_still(args, file, format),
        FileType::Video(codec) => video::open(args, file, codec),
        FileType::Wav => sound::open(args, file),
        FileType::Other => {
            if args.repeat && args.hertz().is_none() {
                return Err(crate::exit::usage(format!(
                    "--loop: {} has no rate; give --hz or --period",
                    file.display()
                )));
            }
            files::check_lines(args, file)?;
            Ok(pieces(args, Some(file)))
        }
    }
}

fn pieces(args: &PubArgs, file: Option<&Path>) -> Opened {
    let encoding = match (&args.encoding, args.chunk) {
        (Some(name), _) => Encoding::new(name),
        (None, Some(_)) => Encoding::Bytes,
        (None, None) => Encoding::Text,
    };
    let is_jpeg = encoding.as_str() == Format::Jpeg.to_string();
    let cut = match (args.chunk, &args.encoding) {
        (None, Some(_)) if is_jpeg => Cut::Pictures,
        (Some(bytes), _) => Cut::Bytes(bytes),
        // An explicit encoding allows lines with arbitrary bytes.
        (None, Some(_)) => Cut::Lines,
        (None, None) => Cut::Text,
    };
    let from = file.map_or_else(|| "standard input".to_owned(), |file| file.display().to_string());
    // A file that is all there already is published at its rate.
    let live = matches!(cut, Cut::Pictures) && file.is_none_or(|file| !file.is_file());
    let how = match args.chunk {
        Some(bytes) => format!("in pieces of {bytes} bytes"),
        None if matches!(cut, Cut::Pictures) => "picture by picture".to_owned(),
        None => "line by line".to_owned(),
    };
    let hz = args.hertz();
    let rate = hz.map_or_else(|| "as it arrives".to_owned(), |hz| format!("at {hz} Hz"));
    Opened {
        origin: Origin {
            encoding: encoding.clone(),
            hz,
            size: None,
            bytes_max: args.chunk.map(|bytes| bytes as u64),
            traffic: None,
            live,
            wait: Duration::from_secs(u64::from(!args.repeat)),
            damage: None,
            what: format!("{from} {how} {rate}, {encoding}"),
        },
        feed: Box::new(Pieces::start(file, cut, args.repeat)),
    }
}
