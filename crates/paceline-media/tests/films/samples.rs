//! The units of films as samples: ffmpeg decodes them without a message.

use crate::compare::read;
use crate::made::FILMS;
use crate::read::film;
use paceline_media::film::{FilmAccess, FilmKind, FilmSample, FilmSamples};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The films, the medium, the demuxer of ffmpeg for the samples one after the other, and the number of frames.
const DECODED: &[(&str, FilmKind, &str, usize)] = &[
    ("b.mp4", FilmKind::Pictures, "h264", 50),
    ("b.mp4", FilmKind::Sound, "aac", 95),
    ("fragments.mp4", FilmKind::Pictures, "h264", 50),
    ("h265.mp4", FilmKind::Pictures, "hevc", 50),
    ("av1.mp4", FilmKind::Pictures, "obu", 50),
    ("pcm.mov", FilmKind::Pictures, "mjpeg", 50),
    ("alaw.mov", FilmKind::Sound, "alaw -ar 8000", 16_000),
    ("gst.mp4", FilmKind::Sound, "aac", 91),
    ("b.mkv", FilmKind::Pictures, "h264", 50),
    ("b.mkv", FilmKind::Sound, "aac", 95),
    ("h265.mkv", FilmKind::Pictures, "hevc", 50),
    ("av1.webm", FilmKind::Pictures, "obu", 50),
    ("live.mkv", FilmKind::Sound, "s16le -ar 48000 -ac 1", 96_000),
    ("b.ts", FilmKind::Pictures, "h264", 50),
    ("b.ts", FilmKind::Sound, "aac", 95),
    ("h265.ts", FilmKind::Pictures, "hevc", 50),
    ("gst.ts", FilmKind::Pictures, "h264", 50),
    ("b.flv", FilmKind::Pictures, "h264", 50),
    ("b.flv", FilmKind::Sound, "aac", 95),
];

/// Returns the frames that ffmpeg decodes, or the samples of raw sound, and its messages.
fn decoded(format: &str, stream: &[u8]) -> Option<(usize, String)> {
    let raw = format.contains("-ar");
    let output: &[&str] =
        if raw { &["-f", "u8", "-ac", "1", "-"] } else { &["-vsync", "0", "-f", "framecrc", "-"] };
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-f"]).args(format.split(' ')).args(["-i", "-"]).args(output);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ffmpeg = command.spawn().ok()?;
    let mut stdin = ffmpeg.stdin.take()?;
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(stream)));
        ffmpeg.wait_with_output().ok()
    })?;
    let text = String::from_utf8_lossy(&ended.stdout);
    let count = if raw {
        ended.stdout.len()
    } else {
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    Some((count, String::from_utf8_lossy(&ended.stderr).into_owned()))
}

#[test]
fn samples_of_all_codecs_are_decoded() {
    let folder = std::env::temp_dir().join(format!("paceline-samples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut checked, mut wrong) = (0, Vec::new());
    for (name, kind, format, count) in DECODED {
        let entry = FILMS.iter().find(|entry| entry.name == *name).unwrap();
        let Some(file) = entry.make(&folder) else { continue };
        let film = film(&read(&file).unwrap(), FilmAccess::Seek, None).unwrap();
        let track = film.tracks.iter().position(|track| track.kind() == *kind).unwrap();
        let mut samples = FilmSamples::new(&film.tracks[track]).unwrap();
        let mut stream = Vec::new();
        for unit in film.units.iter().filter(|unit| unit.track == track) {
            match samples.take(unit) {
                Ok(FilmSample::Sample { bytes, .. }) => stream.extend(bytes),
                other => wrong.push(format!("{name}: {other:?}")),
            }
        }
        let Some((found, said)) = decoded(format, &stream) else { continue };
        checked += 1;
        if found != *count || !said.is_empty() {
            wrong.push(format!("{name} as {format}: {found} of {count}: {said}"));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    println!("{checked} tracks");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
