//! Commands within an age limit, and the safe action when a stream falls silent.

use super::super::queue::Unread;
use super::super::report::{Decisions, Resumption, Silence};
use crate::status::{TimedMethod, TimedStatus};
use crate::{Actuation, Sample};
use bytes::Bytes;
use paceline_proto::{RawSample, Tag};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::fresh::{CommandVerdict, Freshness, age_by_clocks, fresh_until};
use std::collections::BTreeMap;

/// The limit of tags with a state of their own. Commands of further tags are dropped as stale.
const TAGS_MAX: usize = 4_096;

/// The safe action when the last command of a tag reaches the age limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SafeAction {
    /// Delivers nothing.
    Hold,
    /// Delivers one sample whose payload is zero.
    Zero,
    /// Only the caller acts, on each [`Silence`].
    Call,
}

/// The commands of one tag.
#[derive(Debug)]
struct Stream {
    freshness: Freshness,
    /// The last released command, without its payload, and the length of that.
    last: Sample,
    bytes: usize,
    /// The safe action has started and has not been delivered.
    due: bool,
    /// The start of the safe action, until the next release.
    silent_since: Option<Instant>,
}

/// A command that may act.
#[derive(Debug)]
pub(in crate::deliver) struct Passed {
    /// The instant at which it reaches the limit.
    pub(in crate::deliver) until: Instant,
    /// It ended a silence.
    pub(in crate::deliver) resumption: Option<Resumption>,
}

/// The age limit of a subscription.
#[derive(Debug)]
pub struct Fresh {
    limit: Duration,
    action: SafeAction,
    streams: BTreeMap<Tag, Stream>,
    decisions: Decisions,
}

impl Fresh {
    /// Returns the limit of an age, with the safe action at its end.
    #[must_use]
    pub fn new(limit: Duration, action: SafeAction) -> Self {
        Self { limit, action, streams: BTreeMap::new(), decisions: Decisions::default() }
    }

    /// Returns the decisions so far.
    #[must_use]
    pub const fn decisions(&self) -> Decisions {
        self.decisions
    }

    /// Returns the instant at which a sample reaches the limit; `None` if it may have reached it.
    ///
    /// Two bounds of its age count, the smaller one decides: by clocks whose errors are known, and by the times that
    /// the hops have measured. `clocks` are the capture time and the present time.
    pub(in crate::deliver) fn until(
        &self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
    ) -> Option<Instant> {
        let by_hops = sample.oldest(now);
        let by_clocks = clocks.and_then(|(captured, utc)| age_by_clocks(captured, utc));
        let oldest = by_hops.into_iter().chain(by_clocks).min();
        fresh_until(now, self.limit, oldest)
    }

    /// Counts a command that may be too old.
    pub(in crate::deliver) const fn count_stale(&mut self) {
        self.decisions.stale += 1;
    }

    /// Decides on a command as the last step before the application. Returns `None` if it may not act.
    pub(in crate::deliver) fn release(
        &mut self,
        now: Instant,
        unread: &mut Unread,
    ) -> Option<Passed> {
        let passed = self.decide(now, unread);
        match passed {
            Some(_) => self.decisions.released += 1,
            None => self.count_stale(),
        }
        passed
    }

    fn decide(&mut self, now: Instant, unread: &mut Unread) -> Option<Passed> {
        let (delivery, streams) = (&mut unread.delivery, &mut self.streams);
        if !streams.contains_key(&delivery.tag) && streams.len() >= TAGS_MAX {
            streams.retain(|_, stream| stream.due || stream.freshness.next_silence().is_some());
            if streams.len() >= TAGS_MAX {
                return None;
            }
        }
        let known = streams.get(&delivery.tag);
        let silent_since = known.and_then(|stream| stream.silent_since);
        let mut freshness = known.map(|stream| stream.freshness).unwrap_or_default();
        let CommandVerdict::Fresh { until, .. } = freshness.release(now, unread.until) else {
            return None;
        };
        let bytes = delivery.payload.len();
        let payload = std::mem::take(&mut delivery.payload);
        let last = delivery.clone();
        delivery.payload = payload;
        let stream = Stream { freshness, last, bytes, due: false, silent_since: None };
        streams.insert(delivery.tag.clone(), stream);
        let resumption = silent_since.map(|since| Resumption {
            tag: delivery.tag.clone(),
            publisher: delivery.publisher,
            seq: delivery.seq,
            silent: now.since(since).into(),
        });
        Some(Passed { until, resumption })
    }

    /// Returns the setting and the decisions.
    pub(in crate::deliver) fn status(&self) -> TimedStatus {
        let action = match self.action {
            SafeAction::Hold => "hold",
            SafeAction::Zero => "zero",
            SafeAction::Call => "call",
        };
        let setting = format!("{:?}:{action}", std::time::Duration::from(self.limit));
        let Decisions { released, stale, silences } = self.decisions;
        let status = TimedStatus::new(TimedMethod::Fresh, setting);
        TimedStatus { released, refused: stale, silences, ..status }
    }

    /// Returns the streams that have fallen silent. Their safe actions start now.
    pub(in crate::deliver) fn poll_silences(&mut self, now: Instant) -> Vec<Silence> {
        let mut silences = Vec::new();
        for (tag, stream) in &mut self.streams {
            if stream.freshness.poll_silence(now) {
                stream.due = true;
                stream.silent_since = Some(now);
                let Sample { publisher, seq, .. } = stream.last;
                silences.push(Silence { tag: tag.clone(), publisher, seq });
            }
        }
        self.decisions.silences += silences.len() as u64;
        silences
    }

    /// Returns the next safe action that is due as a sample, if it is one.
    pub(in crate::deliver) fn pop_safe(&mut self) -> Option<Sample> {
        if self.action != SafeAction::Zero {
            return None;
        }
        let stream = self.streams.values_mut().find(|stream| stream.due)?;
        stream.due = false;
        Some(Sample {
            payload: Bytes::from(vec![0; stream.bytes]),
            actuation: Some(Actuation::Safe),
            age: std::time::Duration::ZERO,
            ..stream.last.clone()
        })
    }

    /// Returns true if a safe action waits to be delivered.
    pub(in crate::deliver) fn has_safe(&self) -> bool {
        self.action == SafeAction::Zero && self.streams.values().any(|stream| stream.due)
    }

    /// Returns the next time at which a stream falls silent.
    pub(in crate::deliver) fn next_silence(&self) -> Option<Instant> {
        self.streams.values().filter_map(|stream| stream.freshness.next_silence()).min()
    }
}
