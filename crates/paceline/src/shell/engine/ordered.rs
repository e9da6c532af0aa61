//! Pull buffers that other nodes ordered here.
//!
//! Each is a subscription of this node. It ends when no pull has used it for a minute.

use super::super::held::HeldBuffer;
use super::super::sink::Sink;
use super::Engine;
use crate::history::History;
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::{Pattern, SubscriptionId, Tag};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A buffer ends if no request for its tag arrived for this time.
const IDLE: Duration = Duration::from_secs(60);
/// The most ordered buffers of a node.
const BUFFERS_MAX: usize = 16;
/// The most samples of an ordered buffer.
const SAMPLES_MAX: u32 = 10_000;
/// The most payload bytes of an ordered buffer; beyond them the oldest samples are dropped.
const BYTES_MAX: u64 = 64 << 20;

/// The ordered buffers by tag and number of samples, with the time of the last request.
#[derive(Default)]
pub(super) struct OrderedBuffers(BTreeMap<(Tag, u32), (SubscriptionId, Instant)>);

impl OrderedBuffers {
    /// Notes a request for a tag, which keeps its buffers.
    pub(super) fn note_used(&mut self, now: Instant, tag: &Tag) {
        let of_tag = self.0.iter_mut().filter(|((other, _), _)| other == tag);
        of_tag.for_each(|(_, (_, used))| *used = now);
    }

    /// Returns the subscription of a buffer, or `None` if there is room for a new one.
    ///
    /// # Errors
    /// Returns the reason if there are too many samples or buffers.
    fn find(&self, tag: &Tag, samples: u32) -> Result<Option<SubscriptionId>, String> {
        if !(1..=SAMPLES_MAX).contains(&samples) {
            return Err(format!(
                "an ordered buffer of {samples} samples: must be from 1 to {SAMPLES_MAX}; a larger one \
                 needs `paceline node --buffer` there"
            ));
        }
        let found = self.0.get(&(tag.clone(), samples)).map(|(id, _)| *id);
        if found.is_none() && self.0.len() >= BUFFERS_MAX {
            let seconds = IDLE.as_nanos() / 1_000_000_000;
            return Err(format!(
                "it keeps {BUFFERS_MAX} ordered buffers, the most: one ends {seconds} s after its \
                 last use"
            ));
        }
        Ok(found)
    }

    /// Removes the buffers that are no longer used, and returns their subscriptions.
    fn take_unused(&mut self, now: Instant) -> Vec<SubscriptionId> {
        let mut unused = Vec::new();
        self.0.retain(|_, (id, used)| {
            let is_used = now.since(*used) < IDLE;
            unused.extend((!is_used).then_some(*id));
            is_used
        });
        unused
    }
}

impl Engine {
    /// Opens a buffer that another node orders, or renews it.
    ///
    /// # Errors
    /// Returns the reason if there are too many samples or buffers, or if a path refuses the samples.
    pub(super) fn order(&mut self, now: Instant, tag: &Tag, samples: u32) -> Result<(), String> {
        if let Some(id) = self.ordered.find(tag, samples)? {
            return self.refusal_of(id).map_or(Ok(()), Err);
        }
        let pattern = Pattern::new(tag.as_str()).map_err(|error| error.to_string())?;
        let spec = SubscriptionSpec { holds: true, ..SubscriptionSpec::all_of(pattern) };
        let count = usize::try_from(samples).map_err(|error| error.to_string())?;
        let history = History::new().samples(count).bytes(BYTES_MAX);
        let held = HeldBuffer::open(history).map_err(|error| error.to_string())?;
        let sink = Sink::with_callback(&spec, Box::new(drop)).holding(Some(held));
        let id = self.subscribe(now, spec, Arc::new(sink));
        let id = id.ok_or_else(|| crate::limits::TOO_MANY.to_owned())?;
        self.ordered.0.insert((tag.clone(), samples), (id, now));
        Ok(())
    }

    /// Returns the reason why a subscription receives nothing, if all its paths refuse it.
    fn refusal_of(&self, id: SubscriptionId) -> Option<String> {
        if self.heard.get(&id).is_some_and(|publishers| !publishers.is_empty()) {
            return None;
        }
        let mut refusals = self.control.nodes().flat_map(|node| node.refusals);
        let found = refusals.find(|((subscription, _), _)| *subscription == id);
        found.map(|(_, refusal)| refusal.to_string())
    }

    /// Ends the ordered buffers that are no longer used.
    pub(super) fn end_unused_buffers(&mut self, now: Instant) {
        for id in self.ordered.take_unused(now) {
            self.unsubscribe(now, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::NodeId;

    #[test]
    fn a_buffer_ends_without_a_request_for_its_tag() {
        let (camera, log) = (Tag::new("camera").unwrap(), Tag::new("log").unwrap());
        let mut ordered = OrderedBuffers::default();
        let id = |index| SubscriptionId { node: NodeId(1), index };
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        for (tag, samples, index) in [(&camera, 10, 0), (&camera, 20, 1), (&log, 10, 2)] {
            assert_eq!(ordered.find(tag, samples), Ok(None));
            ordered.0.insert((tag.clone(), samples), (id(index), at(0)));
        }
        assert_eq!(ordered.find(&camera, 20), Ok(Some(id(1))));
        ordered.note_used(at(30), &camera);
        assert_eq!(ordered.take_unused(at(59)), []);
        assert_eq!(ordered.take_unused(at(60)), [id(2)], "the log");
        assert_eq!(ordered.take_unused(at(89)), []);
        assert_eq!(ordered.take_unused(at(90)), [id(0), id(1)]);
        assert_eq!(ordered.find(&camera, 10), Ok(None));
    }

    #[test]
    fn too_many_samples_and_buffers_are_refused() {
        let tag = Tag::new("camera").unwrap();
        let mut ordered = OrderedBuffers::default();
        for samples in [0, SAMPLES_MAX + 1] {
            let why = ordered.find(&tag, samples).unwrap_err();
            assert!(why.contains(&format!("{samples} samples: must be from 1 to 10000")), "{why}");
        }
        for samples in 1..=16 {
            let id = SubscriptionId { node: NodeId(1), index: samples };
            ordered.0.insert((tag.clone(), samples), (id, Instant::ZERO));
        }
        assert!(ordered.find(&tag, 16).is_ok_and(|id| id.is_some()));
        let why = ordered.find(&tag, 17).unwrap_err();
        assert!(why.contains("it keeps 16 ordered buffers"), "{why}");
    }
}
