//! The pictures and sound of a film: a file with tracks, whose units have times of their own.

mod feed;
mod live;
mod plan;
mod reader;
mod units;

use super::args::PubArgs;
use super::input::Place;
use super::news::News;
use super::reading::{self, Streamed};
use super::sound::Sound;
use super::source::{Opened, Origin};
use super::traffic::traffic;
use anyhow::anyhow;
use feed::Lane;
pub(super) use feed::{FilmFeed, Start};
pub(super) use live::{LiveSound, run as run_live};
use paceline_media::film::{FilmFormat, FilmKind, FilmTrack};
use paceline_tool::{exit, show};
use plan::{FilmPlan, TrackPlan};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Opens a file. Its pictures are published, or its sound if it has no pictures; `--sound` also publishes its sound.
pub(super) fn open_file(
    args: &PubArgs,
    place: &Place,
    format: FilmFormat,
) -> anyhow::Result<(Opened, Option<Sound>)> {
    refuse_pace(args, &place.name())?;
    let plan = FilmPlan::survey(place, format, args.sound.is_some())?;
    let name = place.name();
    let main = &plan.main;
    if !args.json {
        describe(&name, main, plan.silent.as_deref());
    }
    let news = Arc::new(News::new(name.clone()));
    let count = show::count(main.count(), noun(main.kind));
    let traffic = main.hz.and_then(|hz| traffic(&main.lengths, hz));
    let origin = reading::origin(args, &name, &count, (&main.properties(), main.hz));
    let origin = Origin {
        live: true,
        news: Some(news.clone()),
        bytes_max: main.lengths.iter().max().map(|bytes| u64::from(*bytes)),
        traffic,
        ..origin
    };
    let start = Arc::new(Start::default());
    let (length, repeat) = (plan.length_ns, args.repeat);
    let lane = |track: TrackPlan, news: Arc<News>| Lane {
        place: place.clone(),
        format,
        track,
        news,
        start: start.clone(),
        length_ns: length,
        repeat,
    };
    let alive = Arc::new(());
    let sound = plan.sound.zip(args.sound.clone()).map(|(track, tag)| {
        let (to, messages) = sync_channel(reading::AHEAD);
        let news = Arc::new(News::new(name.clone()));
        let lane = lane(track, news.clone());
        reading::spawn(to, move |to| lane.run(to, true));
        Sound::new(tag, messages, news).with_end(alive.clone())
    });
    let rest = sound.is_some().then(|| Arc::downgrade(&alive));
    let (to, messages) = sync_channel(reading::AHEAD);
    let lane = lane(plan.main, news);
    reading::spawn(to, move |to| lane.run(to, false));
    let streamed = Streamed { messages, has_end: !args.repeat, keeps_time: false };
    let feed = FilmFeed { streamed, start, rest };
    Ok((Opened::new(origin, feed), sound))
}

/// Rejects a rate: a film has its own.
fn refuse_pace(args: &PubArgs, name: &str) -> anyhow::Result<()> {
    match args.hertz() {
        Some(_) => Err(exit::usage(format!(
            "--hz, --period: {name} is a film, and its units have times of their own; leave them out"
        ))),
        None => Ok(()),
    }
}

fn noun(kind: FilmKind) -> &'static str {
    if kind == FilmKind::Sound { "block" } else { "picture" }
}

/// Notes the properties of a film that its samples do not have.
fn describe(name: &str, main: &TrackPlan, silent: Option<&str>) {
    if !main.turn.is_none() {
        show::note(&format!(
            "{name}: its pictures are to be shown {}, which only samples of H.264 and H.265 at full size contain; with \
             ffmpeg, -vf transpose turns them before they are coded",
            main.turn
        ));
    }
    if main.hidden() > 0 {
        let hidden = show::count(main.hidden(), noun(main.kind));
        show::note(&format!(
            "{name}: it is cut, and {hidden} before its beginning are published since later ones need them"
        ));
    }
    if let Some(codec) = silent {
        show::note(&format!(
            "{name}: its sound ({codec}) is not published; --sound TAG publishes it"
        ));
    }
}

/// Returns the position of the first track of this medium.
fn find(tracks: &[FilmTrack], kind: FilmKind) -> Option<usize> {
    tracks.iter().position(|track| track.kind() == kind)
}

/// Returns the error for a film without a track of a medium.
fn missing(name: &str, tracks: &[FilmTrack], what: &str) -> anyhow::Error {
    let found: Vec<String> = tracks.iter().map(FilmTrack::codec_name).collect();
    match found.is_empty() {
        true => anyhow!("{name} has no tracks; give a film with pictures or sound"),
        false => anyhow!("{name} has no {what}; its tracks are {}", found.join(", ")),
    }
}
