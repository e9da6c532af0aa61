//! Publishers and subscriptions of this node.

use super::Engine;
use crate::shell::sink::Sink;
use crate::shell::source::PublisherShared;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::{PublisherId, SubscriptionId};
use paceline_sched::Instant;
use std::sync::Arc;

impl Engine {
    /// Adds a publisher; returns `None` if this node can declare no more.
    pub(super) fn publish(
        &mut self,
        now: Instant,
        spec: PublisherSpec,
        shared: Arc<PublisherShared>,
    ) -> Option<PublisherId> {
        let id = self.control.publish(now, spec);
        self.control.publisher(id)?;
        self.publishers.insert(id, shared);
        self.begin_opening(now, id);
        // Connect subscribers on this node before the caller continues.
        if self.control.is_wanted_here(id) {
            self.drain(now);
        }
        Some(id)
    }

    /// Adds a subscription; returns `None` if this node can declare no more.
    pub(super) fn subscribe(
        &mut self,
        now: Instant,
        spec: SubscriptionSpec,
        sink: Arc<Sink>,
    ) -> Option<SubscriptionId> {
        let id = self.control.subscribe(now, spec);
        self.control.subscription(id)?;
        if let Some(held) = sink.held() {
            self.holder.hold(id, held.clone());
        }
        self.sinks.insert(id, sink);
        // Connect publishers on this node before the caller continues.
        if self.control.hears_here(id) {
            self.drain(now);
        }
        Some(id)
    }

    pub(super) fn unsubscribe(&mut self, now: Instant, id: SubscriptionId) {
        self.control.unsubscribe(now, id);
        self.sinks.remove(&id);
        self.holder.release(id);
        self.heard.remove(&id);
    }
}
