//! Telemetry files: every topic on a tag of its own, every message at its own time.

mod topic;

use super::args::PubArgs;
use super::session::{Counts, Teller};
use super::{heard, links, not_all_sent, stored};
use crate::args::{Speed, Telemetry};
use crate::exit::{self, INTERRUPTED};
use crate::show;
use crate::stop::Stop;
use anyhow::{Context as _, bail};
use paceline::Node;
use paceline_media::ulog::{Message, ULog};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use topic::{Topic, TopicsLine};

/// How often it is looked whether anybody wants a topic.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The file, if it is a telemetry file.
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
    if log.topics().is_empty() {
        bail!("{} has no messages; give a file with at least one", here());
    }
    let node = args.node.open()?;
    let topics = log.topics().iter().map(|topic| Topic::declare(&node, args, topic));
    let topics = topics.collect::<anyhow::Result<Vec<_>>>()?;
    let flight = Flight { args, log: &log, topics, counts: Counts::default() };
    if !args.json {
        show::note(&format!("publishing {}/**: {}", args.tag, flight.told(file)));
    }
    let wait = args.wait.unwrap_or(Duration::from_secs(u64::from(!args.repeat)));
    let done = flight.run(&node, wait, &stop);
    if !stop.requested() {
        links::tell(&node, args)?;
    }
    node.close();
    Ok(if done? { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

/// What a telemetry file decides by itself.
fn refuse_others(args: &PubArgs, file: &Path) -> anyhow::Result<()> {
    let given = [
        ("--hz or --period", args.rate().is_some(), "its messages have times; give --speed"),
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

/// A file on its way.
struct Flight<'a> {
    args: &'a PubArgs,
    log: &'a ULog,
    topics: Vec<Topic>,
    counts: Counts,
}

impl Flight<'_> {
    fn told(&self, file: &Path) -> String {
        let messages: u64 = self.log.topics().iter().map(|topic| topic.messages).sum();
        let speed = match self.speed() {
            Speed::Max => "as fast as they are taken".to_owned(),
            Speed::Times(times) => format!("at {times} times their speed"),
        };
        format!("{}, {messages} messages of {} topics {speed}", file.display(), self.topics.len())
    }

    fn speed(&self) -> Speed {
        self.args.speed.unwrap_or(Speed::Times(1.0))
    }

    /// True if it came to its end, false if the user ended it before.
    fn run(mut self, node: &Node, wait: Duration, stop: &Stop) -> anyhow::Result<bool> {
        let wanted = |slice: Duration| {
            std::thread::sleep(slice.min(LOOK_AGAIN));
            self.topics.iter().any(|topic| topic.publisher.matching())
        };
        if !super::wait_for_subscriber(self.args, wait, stop, wanted) {
            return Ok(false);
        }
        if !wait.is_zero() && self.topics.iter().any(|topic| topic.publisher.matching()) {
            heard::wait(node, self.topics.iter().map(|topic| &topic.publisher), stop);
        }
        let mut teller = Teller::new(self.args);
        let whole = loop {
            let whole = self.play(&mut teller, stop)?;
            if !whole || !self.args.repeat || self.is_enough() {
                break whole;
            }
        };
        teller.end(self.counts, self.wanted())?;
        let unbounded = self.args.repeat && self.args.count.is_none();
        self.end(stop)?;
        Ok(whole || unbounded)
    }

    fn is_enough(&self) -> bool {
        self.args.count.is_some_and(|count| self.counts.published >= count)
    }

    /// Publishes the file once; false if the user ended it.
    fn play(&mut self, teller: &mut Teller<'_>, stop: &Stop) -> anyhow::Result<bool> {
        let (began, log) = (Instant::now(), self.log);
        // Some topics say time 0 always: the first moment is the first that is none.
        let mut first = None::<u64>;
        for message in log.messages() {
            if self.is_enough() {
                return Ok(true);
            }
            first = first.or((message.time_us > 0).then_some(message.time_us));
            let passed_us = first.map_or(0, |first| message.time_us.saturating_sub(first));
            let due = match self.speed() {
                Speed::Max => began,
                Speed::Times(times) => {
                    let passed = Duration::from_micros(passed_us);
                    began + passed.div_f64(times)
                }
            };
            loop {
                if stop.wait_until(due.min(teller.next())) {
                    return Ok(false);
                }
                teller.tick(self.counts, || self.wanted())?;
                if due <= Instant::now() {
                    break;
                }
            }
            self.put(&message)?;
        }
        Ok(true)
    }

    fn put(&mut self, message: &Message<'_>) -> anyhow::Result<()> {
        let payload = match self.args.form.unwrap_or(Telemetry::Raw) {
            Telemetry::Raw => message.payload.to_vec(),
            Telemetry::Json => {
                let number = self.counts.published;
                let json = self.log.to_json(message);
                json.with_context(|| format!("cannot publish message {number}"))?.into_bytes()
            }
        };
        // What nobody waits for must not hold up what comes after it in the file.
        let waits = self.args.late || self.speed() == Speed::Max;
        let Some(topic) = self.topics.get_mut(message.topic) else { return Ok(()) };
        self.counts.add(topic.put(payload, waits)?);
        Ok(())
    }

    /// Whether anybody wants a topic, and in words.
    fn wanted(&self) -> (bool, String) {
        let wanted = self.topics.iter().filter(|topic| topic.publisher.matching()).count();
        (wanted > 0, format!("{wanted} of {} topics wanted", self.topics.len()))
    }

    /// Waits until all was sent, and tells the totals of each topic.
    fn end(self, stop: &Stop) -> anyhow::Result<()> {
        let until = Instant::now() + super::SENT_WITHIN;
        let mut rows = Vec::new();
        let mut sent = true;
        for topic in self.topics {
            let left = until.saturating_duration_since(Instant::now());
            let (row, all) = topic.close(if stop.requested() { Duration::ZERO } else { left });
            rows.push(row);
            sent &= all;
        }
        if !sent && !stop.requested() {
            not_all_sent();
        }
        if self.args.json {
            return show::json(&TopicsLine { topics: rows });
        }
        rows.iter().try_for_each(|row| show::line(&row.to_string()))
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
            (["--chunk", "10"], "--chunk: flight.ulg: it is published message by message"),
            (["--encoding", "a/b"], "--encoding: flight.ulg: its messages have types; give --as"),
        ] {
            let error = refuse_others(&args(&flags), file).unwrap_err().to_string();
            assert!(error.starts_with(part), "{error}");
        }
    }
}
