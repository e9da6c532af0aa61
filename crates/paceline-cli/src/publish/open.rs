//! Opens the source that the command line names.

use super::args::PubArgs;
use super::pieces::Cut;
use super::sound::Sound;
use super::source::Opened;
use super::{camera, card, files, media, value};
use paceline_tool::stop::Stop;
use std::path::Path;

/// Default JPEG quality of the test card.
const QUALITY: u8 = 80;

/// Opens the source that the command line names, and the sound of a camera. Returns `None` if the user interrupts the wait for
/// its first bytes.
pub(super) fn open(args: &PubArgs, stop: &Stop) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    if let Some(spec) = args.test_card {
        let opened = card::open(spec, args.quality.unwrap_or(QUALITY))?;
        return Ok(Some((opened, None)));
    }
    if args.adapt {
        return Err(paceline_tool::exit::usage(
            "--adapt: only the test card is encoded here; give --test-card, or leave --adapt out",
        ));
    }
    if args.quality.is_some() {
        return Err(paceline_tool::exit::usage(
            "--quality: only the test card is encoded here; give --test-card, or leave --quality \
             out",
        ));
    }
    match (&args.rtsp, &args.rtp) {
        (Some(address), _) => camera::open(args, &address.0, stop),
        (None, Some(file)) => camera::open_rtp(args, file, stop),
        (None, None) => {
            let opened = open_input(args, stop)?;
            match (&opened, args.sound.is_some()) {
                (Some((opened, None)), true) => Err(media::no_film(&opened.origin.what)),
                _ => Ok(opened),
            }
        }
    }
}

/// Opens a value, a file or an input, and the sound of a film.
fn open_input(args: &PubArgs, stop: &Stop) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    let alone = |opened: anyhow::Result<Opened>| opened.map(|opened| Some((opened, None)));
    if let Some(value) = args.value.as_deref().filter(|value| *value != "-") {
        return alone(value::open(args, value));
    }
    let file = args.file.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(file) = file.filter(|file| file.is_dir()) {
        anyhow::bail!("cannot read {}: it is a folder; give a file in it", file.display());
    }
    let known = file.and_then(files::container);
    match (args.chunk, &args.encoding) {
        (Some(_), _) if known.is_some() => Err(paceline_tool::exit::usage(format!(
            "--chunk: {} is published sample by sample; leave --chunk out",
            file.unwrap_or(Path::new("-")).display()
        ))),
        (Some(bytes), _) => alone(media::open_pieces(args, file, Cut::Bytes(bytes))),
        // An explicit encoding allows lines with arbitrary bytes.
        (None, Some(encoding)) if known.is_none() && !media::is_media(encoding) => {
            alone(media::open_pieces(args, file, Cut::Lines))
        }
        (None, _) => media::open(args, file, stop),
    }
}
