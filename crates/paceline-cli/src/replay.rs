//! `paceline replay`: publishes the messages of an MCAP file at their recorded times.

mod args;
mod lanes;
mod notes;

pub(crate) use args::ReplayArgs;
pub(crate) use notes::jumps;

use crate::playback::{Playback, Whole, report_links};
use crate::record::open;
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use lanes::Lanes;
use notes::print_notes;
use paceline::PublishError;
use paceline_record::{Attachments, McapReader, Order, Ordered, ReplaySpan, Survey};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::show;
use paceline_tool::stop::Stop;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Replays until the end, `--count` or a signal.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let file = args.file.as_path();
    let survey = survey(args, file)?;
    let span = span(args, file, &survey)?;
    lanes::check(args, &survey)?;
    let node = args.node.open("replay", "*")?;
    let (lanes, topics) = lanes::open(args, &node, &survey)?;
    lanes.left_out.iter().for_each(|what| show::note(&format!("{}: {what}", file.display())));
    if lanes.played.is_empty() {
        bail!("{}: none of its topics can be published", file.display());
    }
    let name = file.display().to_string();
    if !args.json {
        show::note(&describe(args, &lanes, &span, (&name, survey.order())));
    }
    let playback = Playback::new(&name, args.json, topics, &stop);
    let replay = Replay { args, survey: &survey, lanes, span, playback, disordered: 0, unfit: 0 };
    let wait = args.wait.unwrap_or(Duration::from_secs(u64::from(!args.repeat)));
    let done = replay.run(&node, wait);
    if !stop.requested() {
        report_links(&node, args.json)?;
    }
    node.close();
    let whole = done?;
    // The valid parts were published. The error about the others repeats the note, for the exit code.
    if !survey.damage.is_empty() {
        return Err(anyhow!(survey.damage).context(name));
    }
    match survey.end {
        Some(error) if !error.is_cut() => Err(anyhow!(error).context(name)),
        Some(_) | None if whole => Ok(ExitCode::SUCCESS),
        Some(_) | None => Ok(ExitCode::from(INTERRUPTED)),
    }
}

/// Scans the file and prints notes about its defects.
fn survey(args: &ReplayArgs, file: &Path) -> anyhow::Result<Survey> {
    let name = file.display();
    let survey = Survey::of(open(file)?, args.by, |_| {});
    let mut survey = survey.map_err(|error| anyhow!("{name} {error}"))?;
    if survey.strays > 0 || !survey.damage.is_empty() {
        // Damaged declarations of channels are repeated at the end of the file.
        survey = Survey::read(McapReader::knowing(open(file)?, survey.declared)?, args.by, |_| {});
    }
    print_notes(&name.to_string(), args.by, &survey);
    Ok(survey)
}

fn span(args: &ReplayArgs, file: &Path, survey: &Survey) -> anyhow::Result<ReplaySpan> {
    let Some(times) = survey.times(|lane| lane.is_samples()) else {
        let name = file.display();
        return Err(match &survey.end {
            Some(error) => anyhow!("{name} has no whole sample: it {error}"),
            None => anyhow!("{name} has no samples; give a file with at least one"),
        });
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let part = (args.from.map_or(0, nanos), args.to.map(nanos));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0.01 to 1000 times is 10 to 1,000,000 thousandths"
    )]
    let speed = args.times().map(|times| (times * 1_000.0).round() as u64);
    let gap = survey.lanes.values().filter_map(paceline_record::Lane::period).min();
    ReplaySpan::new(times, part, speed, gap.unwrap_or_default()).map_err(exit::usage)
}

fn describe(
    args: &ReplayArgs,
    lanes: &Lanes,
    span: &ReplaySpan,
    (name, order): (&str, Order),
) -> String {
    let by = if order == Order::Came { "arrival" } else { "published" };
    let speed = match args.times() {
        None => "at the subscribers' pace".to_owned(),
        Some(times) => format!("at {times}x speed"),
    };
    let seconds = Duration::from_nanos(span.lasts()).as_secs_f64();
    let messages = lanes.messages;
    let channels = show::count(lanes.played.len(), "channel");
    format!(
        "replaying {seconds:.3} s of {name}, {messages} messages of {channels} in all, {speed}, by {by} times"
    )
}

/// A file during replay.
struct Replay<'a> {
    args: &'a ReplayArgs,
    survey: &'a Survey,
    lanes: Lanes,
    span: ReplaySpan,
    playback: Playback,
    disordered: u64,
    /// Messages that the publisher rejected.
    unfit: u64,
}

impl Replay<'_> {
    /// Replays the file. Returns false if the user interrupts it before its end.
    fn run(mut self, node: &paceline::Node, wait: Duration) -> anyhow::Result<bool> {
        if !self.playback.wait(node, wait) {
            return Ok(false);
        }
        let began = Instant::now();
        let mut pass = 0;
        let whole = loop {
            let before = self.playback.published();
            let whole = self.play(began, pass)?;
            let came = self.playback.published() > before;
            pass += 1;
            // Repeating a part without samples would loop forever without waiting.
            if !whole || !self.args.repeat || self.is_enough() || !came {
                break whole;
            }
        };
        if self.disordered > 0 {
            let (late, name) = (self.disordered, self.args.file.display());
            show::note(&format!(
                "{name}: {late} messages are too far out of order in the file; they were late"
            ));
        }
        if self.unfit > 0 {
            show::note(&format!("{} messages were left out", self.unfit));
        }
        let unbounded = self.args.repeat && self.args.count.is_none();
        self.playback.end()?;
        Ok(whole || unbounded)
    }

    fn is_enough(&self) -> bool {
        self.args.count.is_some_and(|count| self.playback.published() >= count)
    }

    /// Publishes the file once; returns false if the user interrupts it.
    fn play(&mut self, began: Instant, pass: u64) -> anyhow::Result<bool> {
        let name = || self.args.file.display().to_string();
        let file = open(&self.args.file)?;
        let reader = McapReader::knowing(file, self.survey.declared.clone()).with_context(name)?;
        let mut messages = Ordered::new(reader, self.survey.timeline());
        let mut attachments = Attachments::default();
        let mut states: BTreeMap<usize, Whole> = BTreeMap::new();
        // At maximum speed messages wait for room, unless a newer one may replace them.
        let waits = self.args.late || self.args.times().is_none();
        while !self.is_enough() {
            let (time, message) = match messages.next_message() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                // The scan has already reported it.
                Err(error) if error.is_cut() => break,
                Err(error) => return Err(error).with_context(name),
            };
            let Some((message, attachment)) = attachments.join(message) else { continue };
            let Some(played) = self.lanes.played.get(&message.id) else { continue };
            let data = Bytes::from(message.data);
            let Ok(payload) = played.body.payload(&data).map(|payload| data.slice_ref(payload))
            else {
                continue;
            };
            let (topic, latched) = (played.topic, played.latched);
            let attachment = attachment.map(Into::into);
            if !self.span.has(time) {
                // A latched topic has its value at the beginning of the part.
                if latched && self.span.is_before(time) {
                    states.insert(topic, (payload, attachment));
                }
                continue;
            }
            for (topic, state) in std::mem::take(&mut states) {
                self.put(topic, state, waits)?;
            }
            let due = began.checked_add(Duration::from_nanos(self.span.due(pass, time)));
            let due = due.context("the replay would exceed the range of the clock")?;
            if !self.playback.wait_until(due)? {
                return Ok(false);
            }
            self.put(topic, (payload, attachment), waits)?;
        }
        self.disordered += messages.out_of_order();
        Ok(true)
    }

    /// Publishes a message. Omits a message that the publisher rejects, such as a corrupt video picture.
    fn put(&mut self, topic: usize, sample: Whole, waits: bool) -> anyhow::Result<()> {
        let Err(error) = self.playback.put(topic, sample, waits) else { return Ok(()) };
        if !matches!(
            error.downcast_ref(),
            Some(
                PublishError::NoAccessUnit { .. }
                    | PublishError::TooLarge { .. }
                    | PublishError::AttachmentTooLong { .. }
            )
        ) {
            return Err(error);
        }
        if self.unfit == 0 {
            let name = self.args.file.display();
            show::note(&format!("{name}: {error:#}; such messages are left out"));
        }
        self.unfit += 1;
        Ok(())
    }
}
