//! The port to subscribers of this node.

use super::super::mailbox::Mailbox;
use super::super::sink::SinkPort;
use super::JOIN_PORTION;
use paceline_node::deliver::{Acceptance, Needed, Origin};
use paceline_proto::video::{DecodeGate, Group, Joining, Next};
use paceline_proto::{DropReason, PublisherId, RawSample, SubscriptionId, Tag};
use paceline_sched::{Instant, Late};
use std::sync::Arc;

/// A change of the subscribers of a [`LocalPort`].
pub(crate) enum SinkChange {
    Join(SubscriptionId, SinkPort),
    Leave(SubscriptionId),
    /// The treatment of late samples has changed.
    Late(Late),
}

/// A subscriber and its decoding state.
struct LocalSink {
    id: SubscriptionId,
    port: SinkPort,
    gate: DecodeGate,
    /// The delivered video pictures.
    needed: Needed,
    joining: Joining,
    /// The next sample is not for it: it waits in the group of pictures, or was counted as dropped.
    passes_over: bool,
}

/// The subscribers of this node for one publisher and form.
///
/// They are added and removed by posted changes, so that the cost of a change does not depend on
/// their number.
pub(crate) struct LocalPort {
    tag: Tag,
    publisher: PublisherId,
    late: Late,
    changes: Arc<Mailbox<SinkChange>>,
    /// The number of applied changes.
    seen: u64,
    sinks: Vec<LocalSink>,
    /// True if a subscriber was added since the last query.
    newcomer: bool,
    next_seq: u64,
}

impl LocalPort {
    /// Creates a port without subscribers.
    pub(crate) fn new(
        tag: Tag,
        publisher: PublisherId,
        late: Late,
        changes: Arc<Mailbox<SinkChange>>,
    ) -> Self {
        let sinks = Vec::new();
        Self { tag, publisher, late, changes, seen: 0, sinks, newcomer: false, next_seq: 0 }
    }

    /// Applies the posted changes.
    fn settle(&mut self) {
        let Self { tag, changes, seen, sinks, newcomer, late, .. } = self;
        // Pulled samples are selected in advance: a page may begin inside a group of pictures.
        let pulled = tag.is_private();
        let gate = DecodeGate::starting(pulled);
        changes.collect(seen, |change| match change {
            SinkChange::Join(id, port) => {
                // An old picture is of no use to a subscription with a delay bound.
                let joins = !pulled && !port.sink().delivery().has_bound();
                let joining = if joins { Joining::default() } else { Joining::live() };
                let needed = Needed::default();
                sinks.push(LocalSink { id, port, gate, needed, joining, passes_over: false });
                *newcomer = true;
            }
            SinkChange::Leave(id) => sinks.retain(|place| place.id != id),
            SinkChange::Late(new) => *late = new,
        });
    }

    /// Returns true if a subscriber was added since the last call. A new subscriber needs a picture
    /// that can be decoded alone.
    pub(crate) fn has_newcomer(&mut self) -> bool {
        self.settle();
        std::mem::take(&mut self.newcomer)
    }

    /// Lets new subscribers join in the middle of a group of pictures.
    pub(super) fn join(&mut self, now: Instant, group: &Group, next: Option<&RawSample>) -> Next {
        self.settle();
        let Self { tag, publisher, late, sinks, .. } = self;
        let from = Origin { tag, publisher: *publisher, late: *late };
        let joining = sinks.iter_mut().filter(|sink| !sink.joining.is_live());
        let joins = joining.fold(false, |joins, sink| sink.join(now, &from, group, next) | joins);
        if joins { Next::Follow } else { Next::Wait(0) }
    }

    pub(super) fn deliver(&mut self, now: Instant, sample: RawSample) -> bool {
        self.settle();
        if sample.seq < self.next_seq {
            self.count(DropReason::Duplicate, 1);
            // A duplicate of a video picture breaks nothing: the picture was delivered before.
            return sample.kind.is_video();
        }
        self.next_seq = sample.seq.saturating_add(1);
        let Self { tag, publisher, late, sinks, .. } = self;
        let from = Origin { tag, publisher: *publisher, late: *late };
        let Some((last, others)) = sinks.split_last_mut() else { return true };
        if sample.kind.is_video() {
            // A subscriber that cannot decode the picture must not block it for the others.
            let mut delivered = false;
            for sink in others {
                delivered |= sink.deliver_video(now, &from, sample.clone());
            }
            return delivered | last.deliver_video(now, &from, sample);
        }
        let mut delivered = true;
        for other in others {
            let accepted = other.port.sink().deliver(now, &from, Needed::default(), sample.clone());
            delivered &= accepted != Acceptance::Dropped;
        }
        let accepted = last.port.sink().deliver(now, &from, Needed::default(), sample);
        delivered & (accepted != Acceptance::Dropped)
    }

    /// Counts samples that no subscriber receives, including subscribers added since the last
    /// sample.
    pub(super) fn count(&mut self, reason: DropReason, samples: u64) {
        self.settle();
        self.sinks.iter().for_each(|place| place.port.sink().count(reason, samples));
    }
}

impl LocalSink {
    /// Delivers units of the group; returns false if the subscriber waits for the next key picture.
    fn join(
        &mut self,
        now: Instant,
        from: &Origin<'_>,
        group: &Group,
        next: Option<&RawSample>,
    ) -> bool {
        let room = self.port.sink().delivery().room().min(JOIN_PORTION);
        let (units, treatment) = self.joining.step(group, next, room);
        let delivered = units.iter().all(|unit| self.deliver_video(now, from, unit.clone()));
        match if delivered { treatment } else { Next::Wait(self.joining.give_up()) } {
            Next::Follow => {}
            Next::Defer => self.passes_over = true,
            Next::Skip if next.is_some() => {
                self.passes_over = true;
                self.port.sink().count(DropReason::Undecodable, 1);
            }
            Next::Skip => {}
            Next::Wait(lost) => {
                self.port.sink().count(DropReason::Undecodable, lost);
                return false;
            }
        }
        true
    }

    /// Delivers a video picture if the previously delivered ones allow decoding it.
    fn deliver_video(&mut self, now: Instant, from: &Origin<'_>, sample: RawSample) -> bool {
        if std::mem::take(&mut self.passes_over) {
            return true;
        }
        let kind = sample.kind;
        if !self.gate.admit(kind) {
            self.port.sink().count(DropReason::Undecodable, 1);
            return false;
        }
        let accepted = self.port.sink().deliver(now, from, self.needed, sample);
        match accepted {
            Acceptance::Accepted => self.needed.add(kind),
            Acceptance::Dropped => self.gate.broke(kind),
            // The port before a change of the subscription has delivered it.
            Acceptance::Repeated => {}
        }
        accepted != Acceptance::Dropped
    }
}
