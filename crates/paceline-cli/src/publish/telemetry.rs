//! Telemetry files: each topic on its own tag, each message at its recorded time.

use super::args::PubArgs;
use super::flight_times::FlightTimes;
use super::stored;
use crate::args::{Speed, Telemetry};
use crate::playback::{Playback, Topic, declare_with, declared, report_links};
use crate::replay::jumps;
use anyhow::{Context as _, anyhow, bail};
use paceline::{Encoding, Node, PublishError, Publisher};
use paceline_media::ulog::{self, ULog, ULogMessage};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::show;
use paceline_tool::stop::Stop;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Returns the file if it is a telemetry file.
pub(super) fn log_file(args: &PubArgs) -> Option<&Path> {
    let is_log = |file: &&Path| file.extension().is_some_and(|e| e.eq_ignore_ascii_case("ulg"));
    args.file.as_deref().filter(is_log)
}

/// Publishes a telemetry file.
pub(super) fn run(args: &PubArgs, file: &Path) -> anyhow::Result<ExitCode> {
    refuse_others(args, file)?;
    let stop = Stop::on_signals()?;
    let here = || file.display().to_string();
    let bytes = stored::read(file)?;
    let log = ULog::from_vec(bytes.into()).with_context(here)?;
    if let Some(warning) = log.warning() {
        show::note(&format!("{}: {warning}", here()));
    }
    if !log.damage().is_empty() {
        show::note(&format!("{}: {}", here(), log.damage()));
    }
    if log.topics().is_empty() {
        bail!("{} has no messages; give a file with at least one", here());
    }
    let times = FlightTimes::of(&log);
    let names = log.topics().iter().map(|topic| topic.suffix());
    if let Some(what) = jumps(times.jumps(), times.first(), &(0..).zip(names).collect()) {
        show::note(&format!("{}: {what}", here()));
    }
    let node = args.node.open("pub", args.tag.as_str())?;
    let topics = log.topics().iter().enumerate().map(|(place, topic)| {
        let publisher = declare(&node, args, topic, times.hz(place)).map_err(declared);
        publisher.map(Topic::new).with_context(|| format!("topic {}", topic.name))
    });
    let topics = topics.collect::<anyhow::Result<Vec<_>>>()?;
    let playback = Playback::new(args.tag.as_str(), args.json, topics, &stop);
    let flight = Flight { args, log: &log, times: &times, playback };
    if !args.json {
        show::note(&format!("publishing {}/**: {}", args.tag, flight.describe(file)));
    }
    let wait = args.wait.unwrap_or(Duration::from_secs(u64::from(!args.repeat)));
    let done = flight.run(&node, wait);
    if !stop.requested() {
        report_links(&node, args.json)?;
    }
    node.close();
    let whole = done?;
    // The rest was published. The error repeats the note, for the exit code.
    if !log.damage().is_empty() {
        return Err(anyhow!(log.damage().clone()).context(here()));
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

/// Rejects flags for properties that a telemetry file defines itself.
fn refuse_others(args: &PubArgs, file: &Path) -> anyhow::Result<()> {
    let given = [
        ("--hz or --period", args.hertz().is_some(), "its messages have times; give --speed"),
        (
            "--rate, --largest or --tenet",
            args.declares_traffic(),
            "each topic has sizes of its own",
        ),
        ("--chunk", args.chunk.is_some(), "it is published message by message"),
        ("--encoding", args.encoding.is_some(), "its messages have types; give --as raw or json"),
    ];
    match given.iter().find(|(_, given, _)| *given) {
        Some((flag, _, why)) => {
            Err(exit::usage(format!("{flag}: {}: {why}, and leave {flag} out", file.display())))
        }
        None => Ok(()),
    }
}

fn declare(
    node: &Node,
    args: &PubArgs,
    topic: &ulog::ULogTopic,
    hz: f64,
) -> Result<Publisher, PublishError> {
    let mut builder = node.publisher(&format!("{}/{}", args.tag, topic.suffix()));
    builder = match args.form.unwrap_or(Telemetry::Raw) {
        Telemetry::Raw => builder
            .encoding(Encoding::new(&format!("application/x-ulog;message={}", topic.name)))
            .bytes_max(topic.bytes_max as u64),
        Telemetry::Json => builder.encoding(Encoding::Json),
    };
    // With `--speed max` the declared rate is the recorded one.
    let times = match args.speed {
        Some(Speed::Times(times)) => times,
        Some(Speed::Max) | None => 1.0,
    };
    if hz > 0.0 {
        builder = builder.hz((hz * times).clamp(0.001, 1_000_000.0));
    }
    if let Some(kind) = args.kind {
        builder = builder.kind(kind);
    }
    if let Some(bound) = args.within {
        builder = builder.within(bound);
    }
    declare_with(builder, args.late, args.loss, args.history)
}

/// A telemetry file during playback.
struct Flight<'a> {
    args: &'a PubArgs,
    log: &'a ULog,
    times: &'a FlightTimes,
    playback: Playback,
}

impl Flight<'_> {
    fn describe(&self, file: &Path) -> String {
        let topics = self.log.topics();
        let messages: u64 = topics.iter().map(|topic| topic.messages).sum();
        let speed = match self.speed() {
            Speed::Max => "at the subscribers' pace".to_owned(),
            Speed::Times(times) => format!("at {times}x speed"),
        };
        format!("{}, {messages} messages of {} topics {speed}", file.display(), topics.len())
    }

    fn speed(&self) -> Speed {
        self.args.speed.unwrap_or(Speed::Times(1.0))
    }

    /// Plays the file. Returns false if the user interrupts it before its end.
    fn run(mut self, node: &Node, wait: Duration) -> anyhow::Result<bool> {
        if !self.playback.wait(node, wait) {
            return Ok(false);
        }
        let whole = loop {
            let whole = self.play()?;
            if !whole || !self.args.repeat || self.is_enough() {
                break whole;
            }
        };
        let unbounded = self.args.repeat && self.args.count.is_none();
        self.playback.end()?;
        Ok(whole || unbounded)
    }

    fn is_enough(&self) -> bool {
        self.args.count.is_some_and(|count| self.playback.published() >= count)
    }

    /// Publishes the file once; returns false if the user interrupts it.
    fn play(&mut self) -> anyhow::Result<bool> {
        let (began, log) = (Instant::now(), self.log);
        for (message, passed) in log.messages().zip(self.times.passed()) {
            if self.is_enough() {
                return Ok(true);
            }
            let due = match self.speed() {
                Speed::Max => began,
                Speed::Times(times) => began + passed.div_f64(times),
            };
            if !self.playback.wait_until(due)? {
                return Ok(false);
            }
            self.put(&message)?;
        }
        Ok(true)
    }

    fn put(&mut self, message: &ULogMessage<'_>) -> anyhow::Result<()> {
        let payload = match self.args.form.unwrap_or(Telemetry::Raw) {
            Telemetry::Raw => message.payload.to_vec(),
            Telemetry::Json => {
                let number = self.playback.published();
                let json = self.log.to_json(message);
                json.with_context(|| format!("cannot publish message {number}"))?.into_bytes()
            }
        };
        // A stream without room must not delay the later messages of the file.
        let waits = self.args.late || self.speed() == Speed::Max;
        self.playback.put(message.topic, (payload.into(), None), waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PubArgs,
    }

    fn args(more: &[&str]) -> PubArgs {
        let line = ["pub", "t", "--file", "a/flight.ULG"];
        Line::parse_from(line.iter().chain(more)).args
    }

    #[test]
    fn a_telemetry_file_decides_its_own_times_and_types() {
        let file = Path::new("flight.ulg");
        assert_eq!(log_file(&args(&[])), Some(Path::new("a/flight.ULG")));
        assert!(refuse_others(&args(&["--speed", "max", "--as", "json"]), file).is_ok());
        for (flags, part) in [
            (["--hz", "10"], "--hz or --period: flight.ulg: its messages have times; give --speed"),
            (["--chunk", "10B"], "--chunk: flight.ulg: it is published message by message"),
            (["--encoding", "a/b"], "--encoding: flight.ulg: its messages have types; give --as"),
        ] {
            let error = refuse_others(&args(&flags), file).unwrap_err().to_string();
            assert!(error.starts_with(part), "{error}");
        }
    }
}
