//! Reads the sources that the node publishes itself. Their keys are the options of `paceline pub`.

use super::section::{Problems, Section};
use super::units;
use super::value::text;
use crate::args::SourceSpec;
use paceline::Tag;
use paceline_edge::{AddressError, CameraAddress};
use std::path::Path;
use toml::de::DeValue;

/// The keys of a source.
pub(super) const SOURCE_KEYS: [&str; 14] = [
    "tag",
    "rtsp",
    "rtsp_login",
    "rtsp_udp",
    "rtp",
    "file",
    "test_card",
    "sound",
    "loop",
    "hz",
    "within",
    "loss",
    "late",
    "history",
];
/// The keys of which each source has one.
const ORIGINS: [&str; 4] = ["rtsp", "rtp", "file", "test_card"];
/// The keys that are true or false.
const TRUTHS: [&str; 3] = ["rtsp_udp", "loop", "late"];
/// The keys with the path of a file.
const FILES: [&str; 3] = ["rtsp_login", "rtp", "file"];
/// The largest number of sources of a node.
const SOURCES_MAX: usize = 64;
const TRUTH: &str = "must be true or false";
const FILE: &str = "must be an absolute path, such as \"/etc/paceline/camera.sdp\"";
const LOGIN: &str = "the address contains a login; write USER:PASSWORD into a file, and give its path as rtsp_login";
const VALUE: &str = "must be text or a number, as of the option of paceline pub";
const TAG: &str = "must be text, such as \"robot/camera\"";

/// Reads all sources.
pub(super) fn sources(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Vec<SourceSpec> {
    let tables = section.tables("source", &SOURCE_KEYS, problems);
    if let Some(first) = tables.get(SOURCES_MAX) {
        let given = tables.len();
        problems.add(
            &first.span,
            format!(
                "{given} sources, a node has at most {SOURCES_MAX}; start paceline pub for others"
            ),
        );
    }
    tables.iter().filter_map(|table| source(table, problems)).collect()
}

fn source(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<SourceSpec> {
    if table.is_without("tag") {
        problems.add(&table.span, format!("{}tag is missing: it {TAG}", table.place));
    }
    let origins = ORIGINS.iter().filter(|key| !table.is_without(key)).count();
    if origins != 1 {
        let what = format!("{}{origins} of rtsp, rtp, file and test_card: give one", table.place);
        problems.add(&table.span, what);
    }
    let tag = table.read("tag", problems, |value| {
        text(value, TAG, |text| Tag::new(text).map_err(|error| error.to_string()))
    });
    let mut options = Vec::new();
    for key in SOURCE_KEYS.into_iter().filter(|key| *key != "tag") {
        // Its value is not shown: it may contain a password, which is the error.
        if key == "rtsp"
            && let Some(Err(error)) = table.text(key).map(str::parse::<CameraAddress>)
        {
            let reason = match error {
                AddressError::Login => LOGIN.to_owned(),
                AddressError::Scheme(_) | AddressError::Host(_) => error.to_string(),
            };
            problems.add(&table.span_of(key), format!("{}rtsp: {reason}", table.place));
            continue;
        }
        let option = format!("--{}", key.replace('_', "-"));
        match table.read(key, problems, |value| part(key, value)) {
            Some(Part::Switch(true)) => options.push(option),
            Some(Part::Value(value)) => options.push(format!("{option}={value}")),
            Some(Part::Switch(false)) | None => {}
        }
    }
    Some(SourceSpec { tag: tag?, options })
}

/// The value of a key, as a part of a command line.
enum Part {
    /// An option without a value, and whether it is given.
    Switch(bool),
    /// The value of an option.
    Value(String),
}

fn part(key: &str, value: &DeValue<'_>) -> Result<Part, String> {
    if TRUTHS.contains(&key) {
        return value.as_bool().map(Part::Switch).ok_or_else(|| TRUTH.to_owned());
    }
    let text = units::written(value).ok_or_else(|| VALUE.to_owned())?;
    let is_path = Path::new(&text).is_absolute() || key == "file" && text.starts_with("tcp/");
    if FILES.contains(&key) && !is_path {
        return Err(FILE.to_owned());
    }
    Ok(Part::Value(text))
}
