//! The comparison with the probe.

use crate::made::{FILMS, Rule};
use crate::read::{Film, film};
use paceline_media::film::{FilmAccess, FilmKind, FilmUnit};
use std::path::Path;
use std::process::Command;

/// The least number of films that must be made.
const FILMS_MIN: usize = 40;

/// A packet of the probe: its presentation and decoding time.
#[derive(Clone, Copy, Debug)]
struct Packet {
    shown: Option<i64>,
    decode: Option<i64>,
}

/// A stream of the probe.
#[derive(Debug, Default)]
struct Probed {
    kind: String,
    base: String,
    packets: Vec<Packet>,
}

fn ffprobe(file: &Path, entries: &str) -> Option<String> {
    let args = ["-v", "error", "-show_entries", entries, "-of", "compact=p=0"];
    let ran = Command::new("ffprobe").args(args).arg(file).output().ok()?;
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let mut fields = line.split('|').filter_map(|field| field.split_once('='));
    fields.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}

fn probed(file: &Path) -> Option<Vec<Probed>> {
    let mut streams: Vec<Probed> = Vec::new();
    for line in
        ffprobe(file, "stream=index,codec_type,time_base")?.lines().filter(|line| !line.is_empty())
    {
        // Programs list their streams again.
        if field(line, "index").parse() != Ok(streams.len()) {
            continue;
        }
        let (kind, base) =
            (field(line, "codec_type").to_owned(), field(line, "time_base").to_owned());
        streams.push(Probed { kind, base, packets: Vec::new() });
    }
    // Side data has lines of its own.
    let packets = ffprobe(file, "packet=stream_index,pts,dts")?;
    for line in packets.lines().filter(|line| line.starts_with("stream_index=")) {
        let stream: usize = field(line, "stream_index").parse().ok()?;
        let (shown, decode) = (field(line, "pts").parse().ok(), field(line, "dts").parse().ok());
        streams.get_mut(stream)?.packets.push(Packet { shown, decode });
    }
    Some(streams)
}

/// Compares a track, and returns the first difference.
fn difference(units: &[&FilmUnit], packets: &[Packet], rule: Rule) -> Option<String> {
    if units.len() != packets.len() {
        return Some(format!("{} units, {} packets", units.len(), packets.len()));
    }
    let shift = match (rule.relative, units.first(), packets.first()) {
        (true, Some(unit), Some(packet)) => packet.shown? - unit.shown,
        _ => 0,
    };
    let differs = |ours: i64, theirs: i64| (ours + shift - theirs).abs() > 1;
    units.iter().zip(packets).enumerate().find_map(|(number, (unit, packet))| {
        let shown = packet.shown.is_some_and(|shown| differs(unit.shown, shown));
        let decode = unit.decode.zip(packet.decode).filter(|_| !rule.no_decode);
        let decode = decode.is_some_and(|(ours, theirs)| differs(ours, theirs));
        (shown || decode).then(|| {
            let Packet { shown, decode } = packet;
            format!("unit {number}: {} {:?}, not {shown:?} {decode:?}", unit.shown, unit.decode)
        })
    })
}

/// Returns the differences of a film.
fn differences(film: &Film, streams: &[Probed], rule: Rule) -> Vec<String> {
    let mut found = Vec::new();
    for stream in streams {
        let kind = match stream.kind.as_str() {
            "video" => FilmKind::Pictures,
            "audio" => FilmKind::Sound,
            _ => continue,
        };
        let Some(number) = film.tracks.iter().position(|track| track.kind() == kind) else {
            found.push(format!("no {} track: {:?}", stream.kind, film.tracks));
            continue;
        };
        let tick = film.tracks[number].tick;
        let same = stream.base.split_once('/').is_some_and(|(num, den)| {
            let number = |text: &str| text.parse::<u64>().unwrap_or(0);
            number(num) * u64::from(tick.den) == number(den) * u64::from(tick.num)
        });
        if !same {
            found.push(format!("{}: {tick:?}, not {}", stream.kind, stream.base));
        }
        let units: Vec<_> = film.units.iter().filter(|unit| unit.track == number).collect();
        if kind == FilmKind::Sound && rule.free_sound {
            continue;
        }
        let different = difference(&units, &stream.packets, rule);
        found.extend(different.map(|it| format!("{}: {it}", stream.kind)));
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "films are made outside the repository")]
pub(crate) fn read(file: &Path) -> Option<Vec<u8>> {
    std::fs::read(file).ok()
}

#[test]
fn order_number_and_times_equal_those_of_ffprobe() {
    let test = "order_number_and_times_equal_those_of_ffprobe";
    let folder = std::env::temp_dir().join(format!("paceline-films-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut made, mut wrong) = (0, Vec::new());
    for entry in FILMS {
        let Some(file) = entry.make(&folder) else { continue };
        let Some(streams) = probed(&file) else {
            println!("skipped: {test} (ffprobe is not installed)");
            return;
        };
        made += 1;
        let bytes = read(&file).unwrap();
        let accesses: &[_] = match entry.rule.no_pipe {
            true => &[FilmAccess::Seek],
            false => &[FilmAccess::Seek, FilmAccess::Pipe],
        };
        for access in accesses {
            match film(&bytes, *access, None) {
                Ok(film) => {
                    let turned = film.tracks.iter().any(|track| track.turn.degrees == 270);
                    if turned != (entry.name == "turned.mp4") {
                        wrong.push(format!("{}: {:?}", entry.name, film.tracks));
                    }
                    let lines = differences(&film, &streams, entry.rule);
                    wrong.extend(
                        lines.iter().map(|line| format!("{} ({access:?}): {line}", entry.name)),
                    );
                    if !film.damage.is_empty() {
                        wrong.push(format!("{} ({access:?}): {}", entry.name, film.damage));
                    }
                }
                Err(error) => wrong.push(format!("{} ({access:?}): {error}", entry.name)),
            }
        }
        if entry.rule.no_pipe {
            let error = film(&bytes, FilmAccess::Pipe, None).err();
            if !error.as_ref().is_some_and(|error| error.contains("a pipe cannot go back")) {
                wrong.push(format!("{}: from a pipe: {error:?}", entry.name));
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    println!("{made} films");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(made >= FILMS_MIN, "{made} films were made");
}

#[test]
fn a_recorded_film_has_the_times_of_ffprobe() {
    let Some(folder) = std::env::var_os("PACELINE_DATA") else {
        println!("skipped: a_recorded_film_has_the_times_of_ffprobe (PACELINE_DATA is not set)");
        return;
    };
    let file = Path::new(&folder).join("video/big_buck_bunny.flv");
    let (Some(bytes), Some(streams)) = (read(&file), probed(&file)) else {
        println!("skipped: a_recorded_film_has_the_times_of_ffprobe (no film, or no ffprobe)");
        return;
    };
    let film = film(&bytes, FilmAccess::Pipe, None).unwrap();
    assert_eq!(differences(&film, &streams, Rule::default()), Vec::<String>::new());
    assert_eq!(
        (film.units.len(), film.damage.as_str()),
        (streams.iter().map(|it| it.packets.len()).sum(), "")
    );
}
