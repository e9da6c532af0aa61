//! What was asked, granted and delivered, by a file alone.

use crate::event::{Ages, Asked, Delivered, Event};
use crate::reader::Message;
use crate::survey::Survey;
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether a stream got what it asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing was late or missing beyond what was asked for.
    Kept,
    /// Something was.
    Broken,
    /// It was told no, and got nothing.
    Refused,
    /// Nothing was promised.
    BestEffort,
    /// The file does not say.
    Unknown,
}

/// One publisher's samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamJudgement {
    /// The tag.
    pub tag: String,
    /// Whose samples; empty in files of others.
    pub publisher: String,
    /// Their media types.
    pub encodings: Vec<String>,
    /// What was granted, in words; null if nobody said.
    pub granted: Option<String>,
    /// Why it was refused, in words.
    pub refused: Option<String>,
    /// Samples in the file.
    pub samples: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Samples a second, from the first to the last.
    pub rate_hz: f64,
    /// How old they were when they came.
    pub age_us: Option<Ages>,
    /// Later than the delay bound.
    pub late: Option<u64>,
    /// Never came.
    pub missing: Option<u64>,
    /// Windows with more misses than the loss tolerance allows.
    pub beyond: Option<u64>,
    /// What links dropped of them, by reason.
    pub dropped_on_links: BTreeMap<String, u64>,
    /// Whether it got what it asked for.
    pub verdict: Verdict,
}

/// What a file says of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judgement {
    /// Who recorded it.
    pub recorder: Option<String>,
    /// What was asked for.
    pub asked: Option<Asked>,
    /// Samples in all.
    pub samples: u64,
    /// From the first to the last.
    pub seconds: f64,
    /// Why the recording ended; null if it does not say.
    pub ended: Option<String>,
    /// Where and why the file stops being whole; null if it is.
    pub cut: Option<String>,
    /// What was dropped at the recorder, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Each publisher's samples, by tag.
    pub streams: Vec<StreamJudgement>,
}

/// Gathers events on the way through a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    recorder: Option<String>,
    asked: Option<Asked>,
    ended: Option<String>,
    dropped: BTreeMap<String, u64>,
    delivered: BTreeMap<(String, String), Delivered>,
    /// What was said last: granted, or refused.
    answers: BTreeMap<(String, String), Result<String, String>>,
    on_links: BTreeMap<(String, String), BTreeMap<String, u64>>,
}

impl Told {
    pub(crate) fn take(&mut self, event: Event) {
        match event {
            Event::Begin { name, asked, .. } => {
                (self.recorder, self.asked) = (Some(name), Some(asked));
            }
            Event::Changed { asked, .. } => self.asked = Some(asked),
            Event::Granted { tag, publisher, bound_us, hops, .. } => {
                let links: Vec<String> =
                    hops.iter().map(|hop| format!("{} of {}", hop.link, hop.name)).collect();
                let told = format!("within {bound_us} us over {}", links.join(", "));
                self.answers.insert((tag, publisher), Ok(told));
            }
            Event::Refused { tag, publisher, reason, .. } => {
                self.answers.insert((tag, publisher), Err(reason));
            }
            Event::Delivered(delivered) => {
                let key = (delivered.tag.clone(), delivered.publisher.clone());
                self.delivered.insert(key, delivered);
            }
            Event::Dropped { dropped } => self.dropped = dropped,
            Event::Link { tag, publisher, dropped, .. } => {
                let sums = self.on_links.entry((tag, publisher)).or_default();
                for (reason, count) in dropped {
                    *sums.entry(reason).or_default() += count;
                }
            }
            Event::End { why, .. } => self.ended = Some(why),
            Event::Joined { .. } | Event::Left { .. } | Event::Gap { .. } => {}
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
        // What came too late was dropped, and without numbers nobody knows of which stream it was.
        let late = self.dropped.get("deadline_missed").is_some_and(|late| *late > 0);
        match broken {
            true => Verdict::Broken,
            false if late && delivered.missing.is_none() => Verdict::Unknown,
            false => Verdict::Kept,
        }
    }
}

impl Judgement {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// [`crate::ReadError`] if not even its beginning can be read.
    pub fn of<R: std::io::Read>(from: R) -> Result<Self, crate::ReadError> {
        let mut told = Told::default();
        let survey = Survey::of(from, crate::Order::Came, |message: &Message| {
            // Events of a later version may have more kinds: what is not known is left out.
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
                streams.entry(key.clone()).or_insert_with(|| (told.stream(&key), lane.came));
            stream.samples += lane.messages;
            stream.bytes += lane.bytes;
            if !stream.encodings.contains(&lane.encoding) {
                stream.encodings.push(lane.encoding.clone());
            }
            *came = (came.0.min(lane.came.0), came.1.max(lane.came.1));
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
            cut: survey.end.as_ref().map(ToString::to_string),
            dropped: told.dropped.clone(),
            streams,
        }
    }
}

impl Told {
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
