//! Checks a run against its contracts, from a recording alone.

use crate::event::{AgeQuantiles, Asked, DecisionCounts, DeliveryStatistics, RecordedEvent};
use crate::reader::Message;
use crate::survey::Survey;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of the check of one stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The contract was met.
    Kept,
    /// The contract was violated.
    Broken,
    /// The stream was refused, and no sample arrived.
    Refused,
    /// The stream had no contract.
    BestEffort,
    /// The file does not contain the necessary information.
    Unknown,
}

/// The result for one publisher's samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamJudgement {
    /// The tag.
    pub tag: String,
    /// The id of the publisher. Empty in files of other programs.
    pub publisher: String,
    /// The media types of the samples.
    pub encodings: Vec<String>,
    /// The granted contract, as text; null if the file does not contain it.
    pub granted: Option<String>,
    /// The reason of a refusal, as text.
    pub refused: Option<String>,
    /// The number of samples in the file.
    pub samples: u64,
    /// The number of payload bytes in the file.
    pub bytes: u64,
    /// The rate in samples per second, from the first to the last sample.
    pub rate_hz: f64,
    /// The ages at delivery.
    pub age_us: Option<AgeQuantiles>,
    /// The number of samples later than the delay bound.
    pub late: Option<u64>,
    /// The number of samples that never arrived.
    pub missing: Option<u64>,
    /// The number of windows with more misses than the loss tolerance allows.
    pub beyond: Option<u64>,
    /// The number of samples dropped by links, by reason.
    pub dropped_on_links: BTreeMap<String, u64>,
    /// The result.
    pub verdict: Verdict,
}

/// The result for a whole recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judgement {
    /// The name of the recording node.
    pub recorder: Option<String>,
    /// The request.
    pub asked: Option<Asked>,
    /// The number of samples of all streams.
    pub samples: u64,
    /// The time from the first to the last sample, in seconds.
    pub seconds: f64,
    /// The reason why the recording ended; null if the file does not contain it.
    pub ended: Option<String>,
    /// The position and reason if the file is incomplete; null if it is complete.
    pub cut: Option<String>,
    /// The number of samples dropped at the recorder, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// The decisions on commands; null without an age limit.
    pub decisions: Option<DecisionJudgement>,
    /// The streams, ordered by tag.
    pub streams: Vec<StreamJudgement>,
}

/// The decisions on commands with an age limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DecisionJudgement {
    /// The age limit in microseconds.
    pub limit_us: u64,
    /// Commands that were provably young enough.
    pub released: u64,
    /// Commands that were not, and were dropped.
    pub stale: u64,
    /// Starts of the safe action.
    pub silences: u64,
    /// The longest listed silence that ended, in microseconds; 0 without one.
    pub longest_silence_us: u64,
}

/// Collects the events of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    recorder: Option<String>,
    asked: Option<Asked>,
    ended: Option<String>,
    dropped: BTreeMap<String, u64>,
    delivered: BTreeMap<(String, String), DeliveryStatistics>,
    /// The last answer for each stream: granted or refused.
    answers: BTreeMap<(String, String), Result<String, String>>,
    on_links: BTreeMap<(String, String), BTreeMap<String, u64>>,
    decisions: DecisionCounts,
    longest_silence_us: u64,
}

impl Told {
    pub(crate) fn take(&mut self, event: RecordedEvent) {
        match event {
            RecordedEvent::Begin { name, asked, .. } => {
                (self.recorder, self.asked) = (Some(name), Some(asked));
            }
            RecordedEvent::Changed { asked, .. } => self.asked = Some(asked),
            RecordedEvent::Granted { tag, publisher, bound_us, hops, .. } => {
                let links: Vec<String> =
                    hops.iter().map(|hop| format!("{} of {}", hop.link, hop.name)).collect();
                let told = format!("within {bound_us} us over {}", links.join(", "));
                self.answers.insert((tag, publisher), Ok(told));
            }
            RecordedEvent::Refused { tag, publisher, reason, .. } => {
                self.answers.insert((tag, publisher), Err(reason));
            }
            RecordedEvent::Delivered(delivered) => {
                let key = (delivered.tag.clone(), delivered.publisher.clone());
                self.delivered.insert(key, delivered);
            }
            RecordedEvent::Dropped { dropped } => self.dropped = dropped,
            RecordedEvent::Link { tag, publisher, dropped, .. } => {
                let sums = self.on_links.entry((tag, publisher)).or_default();
                for (reason, count) in dropped {
                    *sums.entry(reason).or_default() += count;
                }
            }
            RecordedEvent::End { why, .. } => self.ended = Some(why),
            RecordedEvent::Decisions(counts) => self.decisions = counts,
            RecordedEvent::Resumed { silent_us, .. } => {
                self.longest_silence_us = self.longest_silence_us.max(silent_us);
            }
            RecordedEvent::Silent { .. }
            | RecordedEvent::Joined { .. }
            | RecordedEvent::Path { .. }
            | RecordedEvent::Left { .. }
            | RecordedEvent::Gap { .. } => {}
        }
    }

    fn verdict(&self, key: &(String, String), samples: u64) -> Verdict {
        let Some(asked) = &self.asked else { return Verdict::Unknown };
        if samples == 0 && matches!(self.answers.get(key), Some(Err(_))) {
            return Verdict::Refused;
        }
        if asked.within_us.is_none() && asked.loss.is_none() {
            return Verdict::BestEffort;
        }
        let Some(delivered) = self.delivered.get(key) else { return Verdict::Unknown };
        let broken = match delivered.beyond {
            Some(beyond) => beyond > 0,
            None => delivered.late > 0 || delivered.missing.is_some_and(|missing| missing > 0),
        };
        // Late samples were dropped, and without sequence numbers it is unknown to which stream
        // they belong.
        let late = self.dropped.get("deadline_missed").is_some_and(|late| *late > 0);
        match broken {
            true => Verdict::Broken,
            false if late && delivered.missing.is_none() => Verdict::Unknown,
            false => Verdict::Kept,
        }
    }
}

impl Judgement {
    /// Reads a file to its end and checks it.
    ///
    /// # Errors
    /// [`crate::ReadError`] if not even the start of the file is readable.
    pub fn of<R: std::io::Read>(from: R) -> Result<Self, crate::ReadError> {
        let mut told = Told::default();
        let survey = Survey::of(from, crate::Order::Came, |message: &Message| {
            // A later version may have more kinds of events. Skip unknown ones.
            if message.channel.is_events()
                && let Ok(event) = serde_json::from_slice(&message.data)
            {
                told.take(event);
            }
        })?;
        Ok(Self::new(&survey, &told))
    }

    fn new(survey: &Survey, told: &Told) -> Self {
        let mut streams: BTreeMap<(String, String), (StreamJudgement, (u64, u64))> =
            BTreeMap::new();
        for lane in survey.lanes.values().filter(|lane| lane.is_samples()) {
            let publisher = lane.channel.metadata.get("publisher").cloned().unwrap_or_default();
            let key = (lane.channel.topic.clone(), publisher);
            let (stream, came) =
                streams.entry(key.clone()).or_insert_with(|| (told.stream(&key), lane.times));
            stream.samples += lane.messages;
            stream.bytes += lane.bytes;
            if !stream.encodings.contains(&lane.encoding) {
                stream.encodings.push(lane.encoding.clone());
            }
            *came = (came.0.min(lane.times.0), came.1.max(lane.times.1));
        }
        for key in told.answers.keys().filter(|key| matches!(told.answers.get(key), Some(Err(_)))) {
            streams.entry(key.clone()).or_insert_with(|| (told.stream(key), (0, 0)));
        }
        let lasts = survey.times(|lane| lane.is_samples()).map_or(0, |(a, b)| b - a);
        let streams = streams.into_iter().map(|(key, (mut stream, came))| {
            stream.rate_hz = rate(stream.samples, came.1 - came.0);
            stream.verdict = told.verdict(&key, stream.samples);
            stream
        });
        let streams: Vec<_> = streams.collect();
        Self {
            recorder: told.recorder.clone(),
            asked: told.asked.clone(),
            samples: streams.iter().map(|stream| stream.samples).sum(),
            seconds: seconds(lasts),
            ended: told.ended.clone(),
            cut: cut(survey),
            dropped: told.dropped.clone(),
            decisions: told.decisions(),
            streams,
        }
    }
}

impl Told {
    fn decisions(&self) -> Option<DecisionJudgement> {
        let limit_us = self.asked.as_ref()?.fresh_us?;
        let DecisionCounts { released, stale, silences, .. } = self.decisions;
        let longest_silence_us = self.longest_silence_us;
        Some(DecisionJudgement { limit_us, released, stale, silences, longest_silence_us })
    }

    fn stream(&self, key: &(String, String)) -> StreamJudgement {
        let delivered = self.delivered.get(key);
        let answer = self.answers.get(key);
        StreamJudgement {
            tag: key.0.clone(),
            publisher: key.1.clone(),
            encodings: Vec::new(),
            granted: answer.and_then(|answer| answer.clone().ok()),
            refused: answer.and_then(|answer| answer.clone().err()),
            samples: 0,
            bytes: 0,
            rate_hz: 0.0,
            age_us: delivered.map(|delivered| delivered.age_us),
            late: delivered.map(|delivered| delivered.late),
            missing: delivered.and_then(|delivered| delivered.missing),
            beyond: delivered.and_then(|delivered| delivered.beyond),
            dropped_on_links: self.on_links.get(key).cloned().unwrap_or_default(),
            verdict: Verdict::Unknown,
        }
    }
}

/// Describes why a file is incomplete.
fn cut(survey: &Survey) -> Option<String> {
    let damaged = (!survey.damage.is_empty()).then(|| format!("has damage: {}", survey.damage));
    survey.end.as_ref().map(ToString::to_string).or(damaged)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn seconds(nanos: u64) -> f64 {
    (nanos / 1_000) as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(samples: u64, nanos: u64) -> f64 {
    if nanos == 0 || samples < 2 {
        return 0.0;
    }
    ((samples - 1) as f64 * 1e12 / nanos as f64).round() / 1e3
}
