//! Multicast: one frame for several neighbours that receive the same samples.
//!
//! Each neighbour has a stream and a hop of its own. If the heads of some of these streams are at the same byte of the same
//! sample, one frame carries the next piece for all of them: each neighbour gets a header and the heads of segments of its
//! own, and only the piece is common. So each hop has its own frame numbers, acknowledgements and repairs, which are
//! unicast, and a stream that is not at the same byte is sent by unicast. The owner sends the frame to the group of the
//! stream ([`FrameBuf::group`]).

use super::hops::Neighbour;
use super::limits::Limits;
use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use crate::retransmit::Retransmit;
use crate::wire::frame::{FrameBuf, GroupFrame};
use bytes::Bytes;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The part of a frame for the receivers besides the first, at most, as the fraction 1/`OTHERS_PART` of the frame.
const OTHERS_PART: usize = 2;

/// The neighbours that receive the group of a stream, by its publisher and form.
pub type GroupMembers = BTreeMap<(PublisherId, Form), BTreeSet<NodeId>>;

/// The multicast groups of a link.
#[derive(Debug, Default)]
pub(super) struct Groups {
    members: GroupMembers,
    /// The streams to these members.
    streams: BTreeMap<(PublisherId, Form), Vec<StreamIndex>>,
}

impl Groups {
    /// Adds a stream that was opened.
    pub(super) fn note_opened(&mut self, index: StreamIndex, stream: (PublisherId, Form)) {
        if self.members.contains_key(&stream) {
            self.streams.entry(stream).or_default().push(index);
        }
    }

    /// Removes a stream that was closed.
    pub(super) fn note_closed(&mut self, index: StreamIndex, stream: (PublisherId, Form)) {
        if let Some(its) = self.streams.get_mut(&stream) {
            its.retain(|it| *it != index);
        }
    }
}

impl Link {
    /// Sets the neighbours that receive each group. Frames with samples for several of them have [`FrameBuf::group`] set.
    /// A neighbour that is new in a group is assumed to receive all of them again.
    ///
    /// Only neighbours on carriers that may lose frames take part, and only on links without classes.
    pub fn set_groups(&mut self, members: GroupMembers) {
        if self.class_streams.is_some() {
            return;
        }
        for (stream, now) in &members {
            let before = self.groups.members.get(stream);
            for node in now.iter().filter(|node| before.is_none_or(|it| !it.contains(node))) {
                let hop = self.hops.get_mut(*node).and_then(|neighbour| neighbour.hop.ledger());
                hop.into_iter().for_each(|ledger| ledger.forget_group_losses());
            }
        }
        self.groups = Groups { members, streams: BTreeMap::new() };
        for (index, stream) in self.streams.iter() {
            self.groups.note_opened(index, (stream.spec.publisher, stream.spec.form));
        }
    }

    /// Returns the streams that a group could carry, with their hops: the live ones to two or more of `able`.
    #[must_use]
    pub fn shared_by(&self, able: &BTreeSet<NodeId>) -> GroupMembers {
        let mut shared = GroupMembers::new();
        let live = self.streams.iter().map(|(_, stream)| &stream.spec);
        let live = live.filter(|it| !it.background && it.retransmit != Retransmit::GoBackN);
        for spec in live.filter(|spec| able.contains(&spec.hop)) {
            shared.entry((spec.publisher, spec.form)).or_default().insert(spec.hop);
        }
        shared.retain(|_, hops| hops.len() > 1);
        shared
    }

    /// Returns the streams to other members of the group of stream `index` whose heads are at the same byte of the same
    /// sample; `None` if there are none.
    pub(super) fn copies(&mut self, now: Instant, index: StreamIndex) -> Option<Vec<StreamIndex>> {
        let first = self.streams.get(index)?;
        let stream = (first.spec.publisher, first.spec.form);
        let its = self.groups.streams.get(&stream)?.clone();
        if !self.takes_part(now, index, stream) {
            return None;
        }
        let mut hops = vec![self.streams.get(index)?.spec.hop];
        let mut copies = Vec::new();
        for other in its {
            let Some(hop) = self.streams.get(other).map(|it| it.spec.hop) else { continue };
            if !hops.contains(&hop)
                && self.is_copy(index, other)
                && self.takes_part(now, other, stream)
            {
                hops.push(hop);
                copies.push(other);
            }
        }
        (!copies.is_empty()).then_some(copies)
    }

    /// Returns `true` if two streams have the same sample at their head, and have sent the same part of it.
    fn is_copy(&self, index: StreamIndex, other: StreamIndex) -> bool {
        let begun = |index| self.streams.get(index).map(|stream| stream.head_begun);
        begun(index) == begun(other) && self.lead(index, other) == Some(0)
    }

    /// Returns the number of bytes by which stream `index` is ahead of `other` in the sample that both have at their heads;
    /// `None` if it is behind, or they have different samples.
    fn lead(&self, index: StreamIndex, other: StreamIndex) -> Option<usize> {
        let (one, other) = (self.streams.get(index)?, self.streams.get(other)?);
        let (head, its) = (one.head()?, other.head()?);
        let place = |payload: &Bytes| (payload.as_ptr(), payload.len());
        let same = head.seq == its.seq && place(&head.payload) == place(&its.payload);
        let differ = one.spec.hop != other.spec.hop;
        one.head_sent.checked_sub(other.head_sent).filter(|_| same && differ)
    }

    /// Returns a copy of stream `index` that is so little behind that it should catch up: at most two frames.
    pub(super) fn behind(&self, now: Instant, index: StreamIndex) -> Option<StreamIndex> {
        let first = self.streams.get(index)?;
        let stream = (first.spec.publisher, first.spec.form);
        let its = self.groups.streams.get(&stream)?;
        let near = 1..=2 * self.pacer.wire.limit();
        let is_near = |other| self.lead(index, other).is_some_and(|lead| near.contains(&lead));
        let is_promised = self.streams.is_promised(index);
        let may = |other| {
            is_near(other)
                && (self.streams.is_promised(other) || !is_promised)
                && self.takes_part(now, other, stream)
        };
        if !self.takes_part(now, index, stream) {
            return None;
        }
        its.iter().copied().find(|other| may(*other))
    }

    /// Returns the number of bytes after which a copy of stream `index` that is ahead has come; `usize::MAX` if there is
    /// none.
    pub(super) fn gap(&self, index: StreamIndex) -> usize {
        let its = self
            .streams
            .get(index)
            .and_then(|stream| self.groups.streams.get(&(stream.spec.publisher, stream.spec.form)));
        let leads = its.into_iter().flatten().filter_map(|ahead| self.lead(*ahead, index));
        leads.filter(|lead| *lead > 0).min().unwrap_or(usize::MAX)
    }

    /// Returns `true` if the head of a stream may be sent to its group now.
    fn takes_part(&self, now: Instant, index: StreamIndex, key: (PublisherId, Form)) -> bool {
        let Some(stream) = self.streams.get(index) else { return false };
        let hop = stream.spec.hop;
        let listens = self.groups.members.get(&key).is_some_and(|members| members.contains(&hop));
        let able = |stream: &Stream| {
            stream.up
                && !stream.suspended
                && !stream.spec.background
                && stream.spec.retransmit != Retransmit::GoBackN
                && !stream.head_is_demoted()
        };
        let hears =
            |neighbour: &Neighbour| neighbour.hop.is_lossy() && !neighbour.hop.misses_groups();
        listens
            && able(stream)
            && self.hops.get(hop).is_some_and(hears)
            && self.hops.has_credit(now, hop, &self.pacer.wire)
            && self.expiry(now, index).is_none()
            && !self.is_hopeless(now, index)
    }

    /// Puts the next piece of the head of stream `index` and of its `copies` into the frame, whose header is written.
    pub(super) fn put_group(
        &mut self,
        now: Instant,
        index: StreamIndex,
        copies: &[StreamIndex],
        out: &mut FrameBuf,
    ) {
        let Some(stream) = self.streams.get(index).map(|it| (it.spec.publisher, it.spec.form))
        else {
            return;
        };
        let most = self.pacer.wire.limit() / OTHERS_PART;
        let (mut others, mut bytes) = (Vec::new(), GroupFrame::RECEIVER_BYTES);
        for &copy in copies {
            let Some((hop, own, heads)) = self.begin_copy(now, copy) else { continue };
            let more = own.len() + heads + GroupFrame::RECEIVER_BYTES;
            if bytes + more > most {
                break;
            }
            bytes += more;
            others.push((copy, hop, own));
        }
        let mut limits = Limits::new(self.pacer.wire.limit().saturating_sub(bytes));
        let before = self.streams.get(index).map_or(0, Stream::head_left);
        let number = self.streams.get(index).map(|stream| stream.number);
        if !self.put_segment(now, index, &mut limits, out) {
            // The parts of the copies, with their attachments, leave too little room.
            self.put_segment(now, index, &mut Limits::new(self.pacer.wire.limit()), out);
            return;
        }
        let after = self.streams.get(index).filter(|stream| Some(stream.number) == number);
        let common = before - after.map_or(0, Stream::head_left);
        let mut group = GroupFrame { stream, common, others: Vec::new() };
        for (copy, hop, own) in others {
            let own = self.put_copy(now, copy, own, common);
            group.others.push((hop, own));
        }
        out.group = (!group.others.is_empty()).then(|| Box::new(group));
    }

    /// Returns the hop of a copy, the header of the hop's next frame, and the size of all else before the piece, at most.
    fn begin_copy(&self, now: Instant, copy: StreamIndex) -> Option<(NodeId, Vec<u8>, usize)> {
        let stream = self.streams.get(copy)?;
        let neighbour = self.hops.get(stream.spec.hop)?;
        let mut own = Vec::new();
        self.header(now, neighbour).write(&mut own);
        let head = self.sample_head(now, stream, stream.head()?);
        Some((stream.spec.hop, own, self.heads_max(copy, stream, &head)))
    }

    /// Sends `common` bytes of the head of a copy. Returns `own`, the header, with all else before the piece.
    fn put_copy(
        &mut self,
        now: Instant,
        copy: StreamIndex,
        own: Vec<u8>,
        common: usize,
    ) -> Vec<u8> {
        let mut frame = FrameBuf::default();
        frame.head = own;
        let items = core::mem::take(&mut self.items);
        let mut limits = Limits::new(self.pacer.wire.limit());
        self.put_piece(now, copy, Some(common), (&mut limits, &mut frame));
        self.copied.push(core::mem::replace(&mut self.items, items));
        let piece = if frame.shared.is_empty() { common } else { 0 };
        frame.head.truncate(frame.head.len().saturating_sub(piece));
        frame.head
    }

    /// Records the frame of a group as sent to its receivers: `wire` bytes, which the hop to `first` counts.
    pub(super) fn note_group_frame(
        &mut self,
        now: Instant,
        (first, wire): (NodeId, u64),
        group: &mut GroupFrame,
    ) {
        let copied = core::mem::take(&mut self.copied);
        for ((node, own), items) in group.others.iter_mut().zip(copied) {
            self.note_frame(now, (*node, wire), items, own);
            self.hops.get_mut(*node).into_iter().for_each(|it| it.hop.note_group(true));
        }
        self.hops.get_mut(first).into_iter().for_each(|it| it.hop.note_group(false));
    }
}
