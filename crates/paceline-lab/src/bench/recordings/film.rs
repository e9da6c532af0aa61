//! H.264 at four rates and three sizes: every picture that arrives must decode.

use super::case::{self, Outcome};
use crate::bench::netns::Rig;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{count, float};
use anyhow::{Context as _, Result, bail};
use paceline_tool::scratch::Scratch;
use std::process::Command;
use std::time::Duration;

/// The film's own rate, which its file does not contain.
const HZ: f64 = 30.0;
/// The number of pictures in the film.
const PICTURES: u32 = 300;
/// The number of pictures of a short run, and its step through the sizes and rates.
const SHORT_PICTURES: u32 = 45;
const SHORT_APART: usize = 2;
const RATES: [(&str, &[&str], f64); 4] = [
    ("every picture", &[], 30.0),
    ("1 in 2", &["--every", "2"], 15.0),
    ("10 Hz", &["--max-hz", "10"], 10.0),
    ("5 Hz", &["--max-hz", "5"], 5.0),
];
const SIZES: [(&str, &[&str], u64); 3] = [
    ("1280x720", &[], 1_280 * 720),
    ("640x360", &["--size", "640x360"], 640 * 360),
    ("320x180", &["--size", "320x180"], 320 * 180),
];

pub(super) fn measure(
    rig: &Rig,
    scratch: &Scratch,
    film: &str,
    short: bool,
    mut done: impl FnMut(Section),
) -> Result<()> {
    let (pictures, apart) = if short { (SHORT_PICTURES, SHORT_APART) } else { (PICTURES, 1) };
    let counted = pictures.to_string();
    for (size_name, size, pixels) in SIZES.into_iter().step_by(apart) {
        for (rate_name, rate, hz) in RATES.into_iter().step_by(apart) {
            eprintln!("{rate_name} at {size_name}");
            let file = scratch.host().with_extension("264");
            let out = file.to_str().context("a path that is text")?;
            let publish = ["robot/camera", "--file", film, "--hz", "30", "--count", &counted];
            let subscribe = [&["robot/camera", "--out", out][..], rate, size].concat();
            let outcome = case::run(rig, scratch, &publish, &subscribe, Duration::from_secs(60))?;
            let decoded = decode(out)?;
            let requested = Requested { pictures: f64::from(pictures) * hz / HZ, pixels };
            done(section(
                &format!("{rate_name} at {size_name}"),
                rig,
                requested,
                &outcome,
                &decoded,
            ));
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Requested {
    pictures: f64,
    pixels: u64,
}

fn section(
    name: &str,
    rig: &Rig,
    requested: Requested,
    outcome: &Outcome,
    decoded: &Decoded,
) -> Section {
    let mut section = Section::new(format!("The film, {name}"));
    let delivered = float(outcome.delivered());
    let wanted = requested.pictures;
    section.show("pictures requested", Unit::Count, wanted, f64::NAN);
    section.show("pictures delivered", Unit::Count, delivered, f64::NAN);
    let none = Bound::AtMost(0.0);
    let missing = delivered - count(decoded.pictures);
    let rows = [
        ("pictures delivered but not decoded by ffmpeg", missing.abs()),
        ("errors that ffmpeg reports", count(decoded.errors)),
        ("pictures out of presentation order", count(decoded.out_of_order)),
        ("pictures of another size", count(decoded.other_sizes(requested.pixels))),
        ("samples that no counter explains", float(outcome.unaccounted())),
    ];
    for (name, value) in rows {
        // Without arrivals there is no valid figure.
        let value = if delivered > 0.0 { value } else { f64::NAN };
        section.must(name, Unit::Count, value, f64::NAN, none);
    }
    let above = delivered - wanted;
    section.must(
        "pictures above the requested rate",
        Unit::Count,
        above,
        f64::NAN,
        Bound::AtMost(3.0),
    );
    let fill = 800.0 * outcome.wire_bytes / outcome.seconds / float(rig.bits_per_s());
    section.show("link filled", Unit::Percent, fill, f64::NAN);
    let drops = outcome.drops();
    if !drops.is_empty() {
        let drops: Vec<_> = drops.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
        section.note(format!("dropped: {}", drops.join(", ")));
    }
    section
}

/// The output of ffmpeg for a file.
#[derive(Debug, Default)]
struct Decoded {
    pictures: usize,
    errors: usize,
    out_of_order: usize,
    /// The size of each picture as I420, in bytes.
    bytes: Vec<u64>,
}

impl Decoded {
    fn other_sizes(&self, pixels: u64) -> usize {
        self.bytes.iter().filter(|bytes| **bytes != pixels * 3 / 2).count()
    }
}

fn decode(file: &str) -> Result<Decoded> {
    let run = Command::new("ffmpeg")
        .args(["-v", "error", "-i", file, "-f", "framehash", "-hash", "crc32", "-"])
        .output()
        .context("cannot start ffmpeg; try installing it")?;
    let (hashes, errors) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if !run.status.success() && errors.is_empty() {
        bail!("ffmpeg {file}: {}", run.status);
    }
    let mut decoded = parse(&hashes);
    decoded.errors = errors.lines().filter(|line| !line.trim().is_empty()).count();
    Ok(decoded)
}

/// Parses lines of `stream, dts, pts, duration, bytes, hash`.
fn parse(hashes: &str) -> Decoded {
    let mut decoded = Decoded::default();
    let mut before = None;
    for line in hashes.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [_, _, shown, _, bytes, _] = fields.as_slice() else { continue };
        let shown = shown.parse::<i64>().ok();
        decoded.pictures += 1;
        decoded.out_of_order += usize::from(before.is_some() && shown <= before);
        decoded.bytes.extend(bytes.parse::<u64>());
        before = shown;
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_step_back_in_time_are_counted() {
        let text = "#format: frame checksums\n0, 0, 0, 1, 86400, aa\n0, 2, 2, 1, 86400, ab\n\
                    0, 1, 1, 1, 99, ac\n";
        let decoded = parse(text);
        assert_eq!((decoded.pictures, decoded.out_of_order), (3, 1));
        assert_eq!(decoded.other_sizes(320 * 180), 1);
    }
}
