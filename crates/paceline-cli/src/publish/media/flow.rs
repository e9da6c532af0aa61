//! The flow of an input through its reader.

use crate::publish::input::{Input, Place};
use crate::publish::news::News;
use anyhow::{Context as _, anyhow};
use paceline_media::stream::{Properties, StreamReader};
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

/// The bytes of one read.
const READ: usize = 64 * 1024;
/// The silence after which the last picture of a live video counts as whole: half of its period, within these bounds.
const SILENCE_MIN: Duration = Duration::from_millis(5);
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// The silence for a video of unknown rate.
const SILENCE: Duration = Duration::from_millis(20);

/// An input on its way through a reader.
pub(super) struct Flow {
    reader: StreamReader,
    news: Arc<News>,
    /// The time without bytes after which a unit is whole; `None` for a file.
    silence: Option<Duration>,
    /// The user states the rate.
    stated: bool,
    /// The stream is silent, and its reader knows it.
    paused: bool,
    /// The damaged places that were known when the stream went on after a silence.
    resumed: Option<u64>,
}

impl Flow {
    pub(super) fn new(reader: StreamReader, news: Arc<News>) -> Self {
        Self { reader, news, silence: None, stated: false, paused: false, resumed: None }
    }

    /// Returns the flow of a live input that begins with `start`, of the rate `hz` if it is known.
    pub(super) fn live(mut self, start: &[u8], hz: Option<f64>) -> Self {
        self.reader.push(start);
        self.silence = Some(hz.map_or(SILENCE, half_period));
        self.stated = hz.is_some();
        self
    }

    /// Gives all samples to `give`, with the properties of the stream. Returns false if `give` does.
    pub(super) fn run(
        &mut self,
        input: &mut Input,
        place: &Place,
        mut give: impl FnMut(Vec<u8>, Option<Properties>) -> bool,
    ) -> anyhow::Result<bool> {
        let mut part = vec![0; READ];
        let mut first = true;
        // The damaged places before the first sample: it may begin within another one.
        let mut before = 0;
        let mut ended = false;
        loop {
            while let Some(sample) = self.reader.poll().with_context(|| place.name())? {
                let damage = &self.reader.skipped().damage;
                let properties = if std::mem::take(&mut first) {
                    before = damage.places;
                    Some(self.reader.properties(&sample).with_context(|| place.name())?)
                } else {
                    if damage.places > before {
                        self.news.damaged(damage);
                    }
                    None
                };
                let own = properties.as_ref().and_then(|found| found.hz);
                if let Some(hz) = own.filter(|_| !self.stated) {
                    self.silence = self.silence.map(|_| half_period(hz));
                }
                if !give(sample, properties) {
                    return Ok(false);
                }
            }
            self.news.set(self.reader.skipped());
            if ended {
                return Ok(true);
            }
            if self.is_silent(input).map_err(|error| place.cannot(&error))? {
                self.reader.pause();
                continue;
            }
            let read = input.read(&mut part).map_err(|error| place.cannot(&error))?;
            if std::mem::take(&mut self.paused) {
                self.resumed = Some(self.reader.skipped().damage.places);
            }
            ended = read == 0;
            if ended {
                self.reader.end();
            } else {
                self.reader.push(part.get(..read).unwrap_or_default());
            }
        }
    }

    /// Waits for more bytes of a unit whose end is not known. Returns true after a silence, once.
    fn is_silent(&mut self, input: &Input) -> std::io::Result<bool> {
        let Some(silence) = &mut self.silence else { return Ok(false) };
        let places = self.reader.skipped().damage.places;
        if self.resumed.take().is_some_and(|before| places > before) {
            // The unit went on after the silence: its writer is slower than that.
            *silence = (*silence * 2).min(SILENCE_MAX);
        }
        if !self.paused && self.reader.is_open() {
            self.paused = !input.wait(Some(*silence))?;
            return Ok(self.paused);
        }
        Ok(false)
    }

    /// Returns the error for an input without samples.
    pub(super) fn nothing(&self, place: &Place) -> anyhow::Error {
        nothing(&self.reader, place)
    }
}

/// Returns the error for an input without samples.
pub(super) fn nothing(reader: &StreamReader, place: &Place) -> anyhow::Error {
    match &reader.skipped().damage.first {
        Some((_, reason)) => anyhow!("{}: {reason}", place.name()),
        None => {
            anyhow!("{} has no {}; give one with at least one sample", place.name(), reader.noun())
        }
    }
}

/// Returns half of the period of a rate.
fn half_period(hz: f64) -> Duration {
    let half = Duration::try_from_secs_f64(0.5 / hz).unwrap_or(SILENCE_MAX);
    half.clamp(SILENCE_MIN, SILENCE_MAX)
}
