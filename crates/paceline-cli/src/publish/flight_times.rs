//! The release times of a flight log's messages.

use paceline_media::ulog::ULog;
use paceline_record::{Jumps, MessageTimes, Order, ReplayTimeline};
use std::time::Duration;

/// The release times of a flight log's messages, in the order of the file.
pub(super) struct FlightTimes {
    /// In nanoseconds.
    times: Vec<u64>,
    first: u64,
    jumps: Jumps,
    /// The number of messages of each topic, and the time from its first message to its last in nanoseconds.
    topics: Vec<(u64, u64)>,
}

impl FlightTimes {
    /// Checks the times of a log's messages against each other.
    pub(super) fn of(log: &ULog) -> Self {
        let mut timeline = ReplayTimeline::new(Order::Auto);
        let mut times = Vec::with_capacity(log.messages().len());
        for (number, message) in log.messages().enumerate() {
            timeline.push(MessageTimes {
                channel: u16::try_from(message.topic).unwrap_or(u16::MAX),
                sequence: u32::try_from(number & 0xffff_ffff).unwrap_or_default(),
                // Some topics always have time 0.
                published: (message.time_us > 0).then_some(message.time_us.saturating_mul(1_000)),
                ..MessageTimes::default()
            });
            times.extend(std::iter::from_fn(|| timeline.release(false)));
        }
        times.extend(std::iter::from_fn(|| timeline.release(true)));
        let mut spans = vec![None; log.topics().len()];
        for (message, at) in log.messages().zip(&times) {
            if let Some(span) = spans.get_mut(message.topic) {
                let (count, first, last) = span.unwrap_or((0, *at, *at));
                *span = Some((count + 1, first.min(*at), last.max(*at)));
            }
        }
        let span = |span: &Option<(u64, u64, u64)>| {
            span.map_or((0, 0), |(count, first, last)| (count, last - first))
        };
        let topics = spans.iter().map(span).collect();
        let first = times.iter().min().copied().unwrap_or_default();
        Self { times, first, jumps: timeline.jumps().clone(), topics }
    }

    /// Returns the time of each message after the first one.
    pub(super) fn passed(&self) -> impl Iterator<Item = Duration> {
        self.times.iter().map(|at| Duration::from_nanos(at - self.first))
    }

    /// Returns the release time of the first message in nanoseconds.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Returns the jumps that were cut.
    pub(super) const fn jumps(&self) -> &Jumps {
        &self.jumps
    }

    /// Returns the mean rate of a topic in Hz: the number of intervals divided by the time from the first message to
    /// the last. 0 for a single message, or if that time is 0.
    #[expect(clippy::cast_precision_loss, reason = "a declared rate")]
    pub(super) fn hz(&self, topic: usize) -> f64 {
        match self.topics.get(topic) {
            Some((count, lasts)) if *lasts > 0 => {
                count.saturating_sub(1) as f64 * 1e9 / *lasts as f64
            }
            Some(_) | None => 0.0,
        }
    }
}
