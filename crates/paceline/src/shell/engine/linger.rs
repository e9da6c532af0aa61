//! A publisher that goes: what it has published is sent before anybody is told.
//!
//! The news would overtake the samples, since control goes first, and nodes on the way would have
//! closed the streams that the last samples arrive on.

use super::super::handle::LinkCommand;
use super::Engine;
use paceline_proto::control::SourceKey;
use paceline_proto::{Form, PublisherId};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// No longer than this, whatever still waits.
const LINGER_MAX: Duration = Duration::from_millis(500);

/// A publisher that has gone and the streams that still carry its samples.
pub(crate) struct Lingering {
    until: Instant,
    streams: BTreeSet<(usize, StreamIndex)>,
}

impl Engine {
    /// The publisher has gone.
    pub(super) fn linger(&mut self, now: Instant, id: PublisherId) {
        if self.lingering.contains_key(&id) {
            return;
        }
        self.drain(now);
        let source = SourceKey { publisher: id, form: Form::FULL };
        let streams: BTreeSet<_> =
            self.outgoing.get(&source).into_iter().flat_map(|o| o.open_streams()).collect();
        for (link, stream) in &streams {
            if let Some(link) = self.links.get(*link) {
                link.handle.send(LinkCommand::Watch(*stream));
            }
        }
        self.lingering.insert(id, Lingering { until: now + LINGER_MAX, streams });
        self.stop_lingering(now);
    }

    /// A link says that a stream carries nothing any more.
    pub(super) fn handle_settled(&mut self, now: Instant, link: usize, stream: StreamIndex) {
        for lingering in self.lingering.values_mut() {
            lingering.streams.remove(&(link, stream));
        }
        self.stop_lingering(now);
    }

    /// Tells everybody of the publishers that have nothing under way any more.
    pub(super) fn stop_lingering(&mut self, now: Instant) {
        let gone: Vec<_> = self
            .lingering
            .iter()
            .filter(|(_, lingering)| lingering.streams.is_empty() || now >= lingering.until)
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.lingering.remove(&id);
            self.control.unpublish(now, id);
            self.drain(now);
            if let Some(shared) = self.publishers.remove(&id) {
                shared.closed.store(true, Ordering::Release);
                shared.change.notify(usize::MAX);
            }
        }
    }

    /// When [`Self::stop_lingering`] has something to do at the latest.
    pub(super) fn linger_until(&self) -> Instant {
        self.lingering.values().map(|lingering| lingering.until).min().unwrap_or(Instant::FAR)
    }
}
