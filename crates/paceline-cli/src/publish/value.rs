//! A value from the command line.

use super::args::PubArgs;
use super::files;
use super::source::{Next, Opened, Origin, Source};
use bytes::Bytes;
use paceline::Encoding;
use paceline_tool::exit::usage;
use paceline_tool::show;
use std::path::Path;
use std::time::Duration;

/// The value, once or at a rate.
struct Value {
    payload: Bytes,
    repeats: bool,
}

impl Source for Value {
    fn next(&mut self, number: u64) -> anyhow::Result<Next> {
        Ok(match number {
            0 => Next::Sample(self.payload.clone().into()),
            _ if self.repeats => Next::Sample(self.payload.clone().into()),
            _ => Next::End,
        })
    }

    fn has_end(&self) -> bool {
        !self.repeats
    }
}

/// Opens the value `text`.
pub(super) fn open(args: &PubArgs, text: &str) -> anyhow::Result<Opened> {
    if args.repeat {
        return Err(usage("--loop: a value repeats at --hz or --period; leave --loop out"));
    }
    if args.chunk.is_some() {
        return Err(usage("--chunk: a value is one sample; leave --chunk out"));
    }
    let path = Path::new(text);
    if args.encoding.is_none() && (files::container(path).is_some() || path.is_file()) {
        return Err(usage(format!(
            "VALUE: '{text}' is the name of a file; to publish its content, write --file {text}; to publish the name \
             as text, add --encoding text/plain"
        )));
    }
    let encoding = encoding(args, text)?;
    let hz = args.hertz();
    let how = hz.map_or_else(|| "once".to_owned(), |hz| format!("at {hz} Hz"));
    Ok(Opened::new(
        Origin {
            encoding: encoding.clone(),
            hz,
            size: None,
            bytes_max: Some(text.len() as u64),
            traffic: None,
            live: false,
            wait: Duration::from_secs(u64::from(hz.is_none() && !args.latch)),
            news: None,
            what: format!("{} {how}, {encoding}", show::count(text.len(), "byte")),
        },
        Value { payload: Bytes::from(text.to_owned()), repeats: hz.is_some() },
    ))
}

/// Returns the media type: JSON for an object or a list, else text.
fn encoding(args: &PubArgs, text: &str) -> anyhow::Result<Encoding> {
    if let Some(name) = &args.encoding {
        return Ok(Encoding::new(name));
    }
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(Encoding::Text);
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(Encoding::Json),
        Err(error) => Err(usage(format!(
            "VALUE: begins like JSON but is none: {error}; correct it, or publish it as text with \
             --encoding text/plain"
        ))),
    }
}
