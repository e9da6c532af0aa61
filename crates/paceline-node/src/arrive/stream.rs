//! An arriving stream, and the neighbours from which its samples may arrive.

use super::item::ArrivedItem;
use paceline_proto::NodeId;
use paceline_proto::entry::{EntryLimits, EntryPolice};
use paceline_proto::ingress::Ingress;
use paceline_proto::reason::DropReason;
use paceline_proto::receive::Lost;
use paceline_sched::{Duration, Instant};

/// The longest time for which samples may be in flight on a path that was replaced.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(2);
/// The most neighbours on former paths that are known.
const FORMER_MAX: usize = 16;

/// An arriving stream.
#[derive(Debug)]
pub(super) struct ArrivingStream<P> {
    pub(super) ingress: Ingress<P>,
    /// The time of its installation.
    pub(super) began: Instant,
    /// The neighbour from which its samples arrive.
    via: Option<NodeId>,
    /// The neighbours on its paths.
    from: Vec<NodeId>,
    /// The neighbours on former paths, newest first, each with the time until which its samples are accepted.
    former: Vec<(NodeId, Instant)>,
    /// The limits of its samples, and their use.
    pub(super) entry: EntryLimits,
}

impl<P> ArrivingStream<P> {
    pub(super) fn new(began: Instant, period: Option<Duration>) -> Self {
        let (ingress, entry) = (Ingress::new(period), EntryLimits::default());
        Self { ingress, began, via: None, from: Vec::new(), former: Vec::new(), entry }
    }

    /// Sets the neighbours on its paths. Samples in flight on the old paths are still accepted.
    pub(super) fn set_paths(&mut self, now: Instant, from: Vec<NodeId>) {
        if self.from == from {
            return;
        }
        for node in std::mem::replace(&mut self.from, from) {
            self.former.retain(|(known, _)| *known != node);
            self.former.insert(0, (node, now + IN_FLIGHT_MAX));
        }
        self.former.truncate(FORMER_MAX);
    }

    /// Returns true if the item may arrive from this neighbour. Items from elsewhere are forged.
    pub(super) fn accepts(&self, now: Instant, node: NodeId, item: &ArrivedItem) -> bool {
        let in_time = |until: Instant| now < until || matches!(item, ArrivedItem::Lost(_));
        let former = || self.former.iter().any(|(it, until)| *it == node && in_time(*until));
        self.from.contains(&node) || former()
    }

    /// Records the neighbour that sends the stream. After a change of path, samples in flight on the old path may be missing:
    /// each path alone delivers decodable video, but a mix of both may not.
    pub(super) fn come_by(&mut self, from: NodeId) {
        if self.via.replace(from).is_some_and(|before| before != from) {
            self.ingress.handle_lost(None);
        }
    }

    /// Returns the loss of a sample that exceeds the rights of its publisher; other items as they are.
    pub(super) fn policed(
        &mut self,
        police: &mut EntryPolice,
        now: Instant,
        item: ArrivedItem,
    ) -> ArrivedItem {
        let ArrivedItem::Sample(sample) = &item else { return item };
        if police.admits(now, &mut self.entry, sample.bytes() as u64) {
            return item;
        }
        let begun = Some((sample.seq, sample.kind));
        ArrivedItem::Lost(Lost { samples: 1, reason: DropReason::OverRights, begun })
    }
}
