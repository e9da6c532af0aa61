//! Commands within an age limit, and the safe action when a stream falls silent.

use crate::delivery::{
    Actuation, Decisions, Otherwise, Resumption, Silence, TimedMethod, TimedStatus,
};
use crate::sample::Sample;
use crate::shell::lock;
use bytes::Bytes;
use paceline_proto::{RawSample, Tag};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::fresh::{CommandVerdict, Freshness, age_by_clocks, fresh_until};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit of tags with a state of their own. Commands of further tags are dropped as stale.
const TAGS_MAX: usize = 4_096;

/// The commands of one tag.
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

/// A released command.
pub(in crate::shell::sink) struct Released {
    /// The next silence.
    pub(in crate::shell::sink) silence: Option<Instant>,
    /// It ended a silence.
    pub(in crate::shell::sink) resumption: Option<Resumption>,
}

/// The age limit of a subscription.
pub(crate) struct Fresh {
    limit: Duration,
    otherwise: Otherwise,
    streams: Mutex<BTreeMap<Tag, Stream>>,
    released: AtomicU64,
    stale: AtomicU64,
    silences: AtomicU64,
}

impl Fresh {
    pub(crate) fn new(limit: Duration, otherwise: Otherwise) -> Self {
        Self {
            limit,
            otherwise,
            streams: Mutex::default(),
            released: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            silences: AtomicU64::new(0),
        }
    }

    /// Returns the decisions so far.
    pub(crate) fn decisions(&self) -> Decisions {
        Decisions {
            released: self.released.load(Ordering::Relaxed),
            stale: self.stale.load(Ordering::Relaxed),
            silences: self.silences.load(Ordering::Relaxed),
        }
    }

    /// Returns the instant at which a sample reaches the limit; `None` if it may have reached it.
    ///
    /// Two bounds of its age count, the smaller one decides: by clocks whose errors are known, and by the times that
    /// the hops have measured. `clocks` are the capture time and the present time.
    pub(in crate::shell::sink) fn until(
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
    pub(in crate::shell::sink) fn count_stale(&self) {
        self.stale.fetch_add(1, Ordering::Relaxed);
    }

    /// Decides on a command as the last step before the application. Returns `None` if it may not act.
    pub(in crate::shell::sink) fn release(
        &self,
        now: Instant,
        until: Option<Instant>,
        delivery: &mut Sample,
    ) -> Option<Released> {
        let std_now = std::time::Instant::now();
        let mut streams = lock(&self.streams);
        if !streams.contains_key(&delivery.tag) && streams.len() >= TAGS_MAX {
            streams.retain(|_, stream| stream.due || stream.freshness.next_silence().is_some());
            if streams.len() >= TAGS_MAX {
                self.count_stale();
                return None;
            }
        }
        let known = streams.get(&delivery.tag);
        let silent_since = known.and_then(|stream| stream.silent_since);
        let mut freshness = known.map(|stream| stream.freshness).unwrap_or_default();
        let CommandVerdict::Fresh { until, .. } = freshness.release(now, until) else {
            self.count_stale();
            return None;
        };
        let bytes = delivery.payload.len();
        let payload = std::mem::take(&mut delivery.payload);
        let last = delivery.clone();
        delivery.payload = payload;
        let stream = Stream { freshness, last, bytes, due: false, silent_since: None };
        streams.insert(delivery.tag.clone(), stream);
        let left = std::time::Duration::from(until.since(now));
        delivery.actuation = Some(Actuation::Command { until: std_now + left });
        self.released.fetch_add(1, Ordering::Relaxed);
        let resumption = silent_since.map(|since| Resumption {
            tag: delivery.tag.clone(),
            publisher: delivery.publisher,
            seq: delivery.seq,
            silent: now.since(since).into(),
        });
        Some(Released { silence: freshness.next_silence(), resumption })
    }

    /// Returns the setting and the decisions.
    pub(in crate::shell::sink) fn status(&self) -> TimedStatus {
        let action = match self.otherwise {
            Otherwise::Hold => "hold",
            Otherwise::Zero => "zero",
            Otherwise::Call(_) => "call",
        };
        let setting = format!("{:?}:{action}", std::time::Duration::from(self.limit));
        let Decisions { released, stale, silences } = self.decisions();
        let status = TimedStatus::new(TimedMethod::Fresh, setting);
        TimedStatus { released, refused: stale, silences, ..status }
    }

    /// Returns the streams that have fallen silent. Their safe actions start now.
    pub(in crate::shell::sink) fn poll_silences(&self, now: Instant) -> Vec<Silence> {
        let mut silences = Vec::new();
        for (tag, stream) in lock(&self.streams).iter_mut() {
            if stream.freshness.poll_silence(now) {
                stream.due = true;
                stream.silent_since = Some(now);
                let Sample { publisher, seq, .. } = stream.last;
                silences.push(Silence { tag: tag.clone(), publisher, seq });
            }
        }
        self.silences.fetch_add(silences.len() as u64, Ordering::Relaxed);
        if let Otherwise::Call(act) = &self.otherwise {
            silences.iter().for_each(act);
        }
        silences
    }

    /// Returns the next safe action that is due as a sample, if it is one.
    pub(in crate::shell::sink) fn pop_safe(&self) -> Option<Sample> {
        if !matches!(self.otherwise, Otherwise::Zero) {
            return None;
        }
        let mut streams = lock(&self.streams);
        let stream = streams.values_mut().find(|stream| stream.due)?;
        stream.due = false;
        Some(Sample {
            payload: Bytes::from(vec![0; stream.bytes]),
            actuation: Some(Actuation::Safe),
            age: std::time::Duration::ZERO,
            ..stream.last.clone()
        })
    }

    /// Returns true if a safe action waits to be delivered.
    pub(in crate::shell::sink) fn has_safe(&self) -> bool {
        matches!(self.otherwise, Otherwise::Zero)
            && lock(&self.streams).values().any(|stream| stream.due)
    }

    /// Returns the next time at which a stream falls silent.
    pub(in crate::shell::sink) fn next_silence(&self) -> Option<Instant> {
        lock(&self.streams).values().filter_map(|stream| stream.freshness.next_silence()).min()
    }
}
