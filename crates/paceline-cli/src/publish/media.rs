//! Pictures, video and sound from files, pipes and sockets. A separate thread reads them: a silent input must not
//! prevent the command from ending.

mod choice;
mod flow;
mod survey;

use super::args::PubArgs;
use super::film::{self, FilmFeed, LiveSound};
use super::input::{Input, Place};
use super::news::News;
use super::pieces::{self, Cut};
pub(super) use super::reading::{AHEAD, Message, Streamed, head, origin, spawn};
use super::sound::Sound;
use super::source::{Opened, Origin, Piece};
use bytes::Bytes;
pub(super) use choice::is_media;
use choice::{Choice, Hints, Kind};
use flow::Flow;
use paceline_media::stream::Properties;
use paceline_tool::stop::Stop;
use paceline_tool::{exit, show};
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Instant;
use survey::Survey;

/// Default rate of files that do not state one, in pictures per second.
const HZ: f64 = 30.0;
/// Opens a file or a live input whose type is found by its content, its name or `--encoding`. Returns `None` if the user
/// interrupts the wait for its first bytes.
pub(super) fn open(
    args: &PubArgs,
    file: Option<&Path>,
    stop: &Stop,
) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    let place = Place::of(file);
    let hints = Hints::new(args.encoding.as_deref(), file);
    if place.is_file() {
        return open_file(args, &place, hints).map(Some);
    }
    if args.repeat {
        return Err(exit::usage(format!(
            "--loop: {} cannot be read again; write it to a file, and give --file FILE",
            place.name()
        )));
    }
    open_live(args, &place, hints, stop)
}

/// Opens a file or a live input that is cut into lines or pieces.
pub(super) fn open_pieces(args: &PubArgs, file: Option<&Path>, cut: Cut) -> anyhow::Result<Opened> {
    let place = Place::of(file);
    if args.repeat && (!place.is_file() || args.hertz().is_none()) {
        let why = if place.is_file() {
            "has no rate; give --hz or --period"
        } else {
            "cannot be read again; give --file FILE"
        };
        return Err(exit::usage(format!("--loop: {} {why}", place.name())));
    }
    let (to, messages) = sync_channel(AHEAD);
    let (from, repeat) = (place.clone(), args.repeat);
    spawn(to, move |to| {
        let mut input = BufReader::new(from.open()?);
        let failed = |error: io::Error| from.cannot(&error);
        loop {
            let sent = pieces::feed(&mut input, cut, |sample| give(to, sample)).map_err(failed)?;
            let again = sent > 0 && repeat;
            if !again || !input.get_mut().rewind().map_err(failed)? {
                return Ok(());
            }
        }
    });
    let origin = pieces::origin(args, &place.name(), cut);
    let streamed = Streamed { messages, has_end: !args.repeat, keeps_time: false };
    Ok(Opened::new(origin, streamed))
}

fn open_file(
    args: &PubArgs,
    place: &Place,
    hints: Hints,
) -> anyhow::Result<(Opened, Option<Sound>)> {
    let mut input = place.open()?;
    let failed = |error: io::Error| place.cannot(&error);
    let kind = match hints.choose_from(&mut input).map_err(failed)? {
        Choice::Media(kind) => kind,
        Choice::Film(format) => return film::open_file(args, place, format),
        Choice::Lines => {
            super::files::check_lines(place)?;
            let file = if let Place::Path(path) = place { Some(path.as_path()) } else { None };
            return Ok((open_pieces(args, file, Cut::Text)?, None));
        }
    };
    Ok((open_stream(args, place, input, (hints, kind))?, None))
}

/// Opens a file of one stream.
fn open_stream(
    args: &PubArgs,
    place: &Place,
    mut input: Input,
    (hints, kind): (Hints, Kind),
) -> anyhow::Result<Opened> {
    let survey = Survey::take(place, &mut input, hints.reader(kind))?;
    let properties = &survey.properties;
    check_encoding(args, place, properties)?;
    let hz = rate(args, place, properties)?.or_else(|| default_rate(place, &survey));
    if args.repeat && hz.is_none() {
        return Err(exit::usage(format!(
            "--loop: {} is one picture without a rate; give --hz or --period",
            place.name()
        )));
    }
    let count = show::count(survey.lengths.len(), noun(properties));
    let news = Arc::new(News::new(place.name()));
    let origin = Origin {
        news: Some(news.clone()),
        bytes_max: survey.lengths.iter().max().map(|bytes| u64::from(*bytes)),
        traffic: hz.and_then(|hz| survey.traffic(hz)),
        ..origin(args, &place.name(), &count, (properties, hz))
    };
    let (to, messages) = sync_channel(AHEAD);
    let keeps_time = !is_sound(properties);
    let (repeat, from) = (args.repeat, place.clone());
    spawn(to, move |to| {
        let failed = |error: io::Error| from.cannot(&error);
        while input.rewind().map_err(failed)? {
            let mut flow = Flow::new(hints.reader(kind), news.clone());
            let more = flow.run(&mut input, &from, |sample, _| give(to, sample.into()))?;
            if !more || !repeat {
                break;
            }
        }
        Ok(())
    });
    let streamed = Streamed { messages, has_end: !args.repeat, keeps_time };
    Ok(Opened::new(origin, streamed))
}

fn open_live(
    args: &PubArgs,
    place: &Place,
    hints: Hints,
    stop: &Stop,
) -> anyhow::Result<Option<(Opened, Option<Sound>)>> {
    let (to, messages) = sync_channel(AHEAD);
    let news = Arc::new(News::new(place.name()));
    let (from, reports, hz) = (place.clone(), news.clone(), args.hertz());
    let sound = args.sound.clone().map(|tag| LiveSound::new(tag, &place.name()));
    let (lane, sound, rest) = match sound {
        Some((lane, sound, rest)) => (Some(lane), Some(sound), Some(rest)),
        None => (None, None, None),
    };
    spawn(to, move |to| live(&from, &hints, (reports, hz), (to, lane)));
    let Some(head) = head(&place.name(), (&messages, &news), stop)? else { return Ok(None) };
    let origin = match &head {
        None => pieces::origin(args, &place.name(), Cut::Text),
        Some(properties) => {
            check_encoding(args, place, properties)?;
            let hz = rate(args, place, properties)?;
            let origin =
                origin(args, &place.name(), &format!("{}s", noun(properties)), (properties, hz));
            Origin { live: true, news: Some(news), ..origin }
        }
    };
    let streamed = Streamed { messages, has_end: true, keeps_time: false };
    let feed = FilmFeed { streamed, start: Arc::default(), rest };
    Ok(Some((Opened::new(origin, feed), sound)))
}

/// Reads a live input to its end.
fn live(
    place: &Place,
    hints: &Hints,
    (news, hz): (Arc<News>, Option<f64>),
    (to, sound): (&SyncSender<Message>, Option<LiveSound>),
) -> anyhow::Result<()> {
    let mut input = place.open()?;
    let failed = |error: io::Error| place.cannot(&error);
    let mut start = Vec::new();
    let choice = hints.gather(&mut input, &mut start).map_err(failed)?;
    let kind = match choice {
        Choice::Film(format) => {
            return film::run_live(place, (input, &start), format, (to, news), sound);
        }
        _ if sound.is_some() => return Err(no_film(&place.name())),
        Choice::Media(kind) => kind,
        Choice::Lines => {
            let _ = to.send(Message::Head(None));
            let mut input = BufReader::new(io::Cursor::new(start).chain(input));
            return pieces::feed(&mut input, Cut::Text, |sample| give(to, sample))
                .map(drop)
                .map_err(failed);
        }
    };
    let mut flow = Flow::new(hints.reader(kind), news).live(&start, hz);
    let mut begun = false;
    flow.run(&mut input, place, |sample, properties| {
        let first = !std::mem::replace(&mut begun, true);
        if let Some(properties) = properties.filter(|_| first)
            && to.send(Message::Head(Some(properties))).is_err()
        {
            return false;
        }
        give(to, sample.into())
    })?;
    if begun { Ok(()) } else { Err(flow.nothing(place)) }
}

/// Returns the error of `--sound` for an input without tracks.
pub(super) fn no_film(name: &str) -> anyhow::Error {
    exit::usage(format!("--sound: {name} is neither a film nor a camera; leave --sound out"))
}

/// Sends a sample; returns false once the receiver was dropped.
fn give(to: &SyncSender<Message>, payload: Bytes) -> bool {
    to.send(Message::Sample(Piece { arrived: Some(Instant::now()), ..Piece::from(payload) }))
        .is_ok()
}

/// Rejects `--encoding` if the content is of another type.
fn check_encoding(args: &PubArgs, place: &Place, found: &Properties) -> anyhow::Result<()> {
    match &args.encoding {
        Some(given) if *given != found.encoding => Err(exit::usage(format!(
            "--encoding: {} contains {}s of the type {}; leave --encoding out",
            place.name(),
            noun(found),
            found.encoding
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Returns the rate that the user or the stream states.
fn rate(args: &PubArgs, place: &Place, found: &Properties) -> anyhow::Result<Option<f64>> {
    if is_sound(found) && args.hertz().is_some() {
        return Err(exit::usage(format!(
            "--hz, --period: {} has a fixed pace, that of its sound; leave them out",
            place.name()
        )));
    }
    Ok(args.hertz().or(found.hz))
}

/// Returns the rate of a file that states none; `None` for one picture.
fn default_rate(place: &Place, survey: &Survey) -> Option<f64> {
    let coded = survey.properties.encoding.starts_with("video/");
    if coded {
        show::note(&format!(
            "{} contains no rate; publishing {HZ} pictures per second; --hz sets another rate",
            place.name()
        ));
    }
    (coded || survey.lengths.len() > 1).then_some(HZ)
}

fn is_sound(found: &Properties) -> bool {
    found.encoding.starts_with("audio/")
}

/// Returns the name of a sample for messages.
fn noun(found: &Properties) -> &'static str {
    match found.encoding.as_str() {
        encoding if encoding.starts_with("audio/opus") => "packet",
        _ if is_sound(found) => "block",
        _ => "picture",
    }
}
