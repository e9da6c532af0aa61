//! One track on its way into a film.

use super::Written;
use super::payload::Payload;
use crate::error::MediaError;
use crate::film::{FilmFormat, FilmKind};
use std::collections::VecDeque;

/// The difference between the capture times of blocks and their lengths up to which sound is continuous: a block in 20 ms and
/// the jitter of a clock.
const JITTER_NS: i64 = 60_000_000;
/// The most samples that wait for a part.
const HELD_MAX: usize = 4_096;
/// The period of the last picture, if nothing else is known.
const PERIOD_NS: i64 = 40_000_000;
const PARTS: &str = "write it to another file, from this sample on";

/// A track.
#[derive(Debug, Default)]
pub(super) struct Lane {
    payload: Option<Payload>,
    held: VecDeque<Held>,
    /// The decoding time of the next unit at the earliest, from the begin of the film on.
    next_ns: i64,
    /// The expected capture time of the next block.
    expected_ns: Option<i64>,
    period_ns: i64,
}

/// A sample that waits.
#[derive(Debug)]
struct Held {
    captured_ns: i64,
    duration_ns: Option<i64>,
    key: bool,
    bytes: Vec<u8>,
}

impl Lane {
    pub(super) const fn payload(&self) -> Option<&Payload> {
        self.payload.as_ref()
    }

    /// Returns the earliest capture time of the samples that wait.
    pub(super) fn first_ns(&self) -> Option<i64> {
        self.held.iter().map(|held| held.captured_ns).min()
    }

    /// Adds a sample. Returns false if it is left out.
    pub(super) fn push(
        &mut self,
        (format, track): (FilmFormat, usize),
        encoding: &str,
        captured_ns: i64,
        sample: &[u8],
    ) -> Result<bool, MediaError> {
        let payload = match &mut self.payload {
            Some(payload) if payload.is(encoding) => payload,
            Some(_) => {
                let codec = format!("{encoding} behind samples of another type");
                return Err(MediaError::FilmCodec { track: track as u64 + 1, codec, fix: PARTS });
            }
            None => match Payload::new((format, track), encoding, sample)? {
                Some(payload) => self.payload.insert(payload),
                None => return Ok(false),
            },
        };
        let Some(contained) = payload.contain(format, sample)? else { return Ok(false) };
        if self.held.len() >= HELD_MAX {
            return Ok(false);
        }
        let captured_ns = match (self.expected_ns, contained.duration_ns) {
            (Some(expected), Some(_)) if captured_ns - expected < JITTER_NS => expected,
            _ => captured_ns,
        };
        self.expected_ns =
            contained.duration_ns.map(|duration| captured_ns.saturating_add(duration));
        self.held.push_back(Held {
            captured_ns,
            duration_ns: contained.duration_ns,
            key: contained.key,
            bytes: contained.bytes,
        });
        Ok(true)
    }

    /// Returns the medium, once it is known.
    pub(super) fn kind(&self) -> Option<FilmKind> {
        self.payload.as_ref().map(Payload::kind)
    }

    /// Leaves out the sound before the begin of the film. Returns the number of samples.
    pub(super) fn begin(&mut self, begin_ns: i64) -> u64 {
        let mut left_out = 0;
        while self
            .held
            .front()
            .is_some_and(|held| held.duration_ns.is_some() && held.captured_ns < begin_ns)
        {
            self.held.pop_front();
            left_out += 1;
        }
        left_out
    }

    /// Moves the samples that no later one precedes in presentation.
    pub(super) fn take(&mut self, lane: usize, begin_ns: i64, all: bool, to: &mut Vec<Written>) {
        let pictures =
            self.payload.as_ref().is_some_and(|payload| payload.kind() == FilmKind::Pictures);
        let count = match pictures && !all {
            true => self.latest(),
            false => self.held.len(),
        };
        let mut order: Vec<i64> =
            self.held.iter().take(count).map(|held| held.captured_ns - begin_ns).collect();
        order.sort_unstable();
        let next = self.held.iter().skip(count).map(|held| held.captured_ns - begin_ns).min();
        for (number, held) in self.held.drain(..count).enumerate() {
            let shown_ns = held.captured_ns - begin_ns;
            let at = order.get(number).copied().unwrap_or(shown_ns).max(self.next_ns);
            let until =
                |following: i64| Some(following.saturating_sub(at)).filter(|step| *step > 0);
            let step = order.get(number + 1).copied().and_then(until);
            self.period_ns = step.unwrap_or(self.period_ns);
            let usual = if self.period_ns > 0 { self.period_ns } else { PERIOD_NS };
            // One that arrives later may be presented before those that wait.
            let last = next.and_then(until).map_or(usual, |step| step.min(usual));
            let duration_ns = held.duration_ns.unwrap_or_else(|| step.unwrap_or(last));
            self.next_ns = at + if held.duration_ns.is_some() { 0 } else { 1 };
            let Held { key, bytes, .. } = held;
            to.push(Written { lane, shown_ns, decode_ns: at, duration_ns, key, bytes });
        }
    }

    /// Returns the position of the picture that is presented last: those behind it may be followed by others that precede it.
    fn latest(&self) -> usize {
        let latest = self.held.iter().enumerate().max_by_key(|(_, held)| held.captured_ns);
        latest.map_or(0, |(position, _)| position)
    }
}
