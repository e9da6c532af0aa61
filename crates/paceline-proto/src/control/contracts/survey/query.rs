//! The question of a survey to each node of a path, and the answer.

use super::variant::Trial;
use crate::control::contracts::booking::Replaced;
use crate::control::data::codec::{
    put_pair, put_refusal, put_subscription, read_pair, read_refusal, read_subscription,
};
use crate::control::data::ids::HOPS_MAX;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::control::data::spec::SubscriptionSpec;
use crate::control::data::split::Split;
use crate::control::data::trial::TrafficTrial;
use crate::ids::{NodeId, PublisherId};
use crate::tag::Pattern;
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;

/// A request for a pair, and its path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Half {
    pub(super) pair: PairKey,
    pub(super) replaced: Replaced,
    pub(super) request: SubscriptionSpec,
    pub(super) path: Vec<NodeId>,
    pub(super) split: Split,
}

/// The question to each node of the paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    pub(super) first: Half,
    /// The opposite pair, or the same pair on the path of its spare: both are granted, or neither.
    pub(super) opposite: Option<Half>,
    /// True if the trials are for the opposite pair: then the caller's request is that one.
    pub(super) follows: bool,
    /// At most [`TrafficTrial::TRIALS_MAX`], for one of the pairs.
    pub(super) trials: Vec<Trial>,
}

/// The obstacles of a node's links: of the first pair, and of the opposite one beside it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Obstacles {
    pub(super) first: Option<Refusal>,
    pub(super) opposite: Option<Refusal>,
    /// The trials that the node would grant, one bit each.
    pub(super) fits: u64,
}

impl Half {
    fn write(&self, out: &mut Vec<u8>) {
        put_pair(out, self.pair.0, self.pair.1);
        self.replaced.write(out);
        put_subscription(out, &self.request);
        out.put_varint(self.path.len() as u64);
        for node in &self.path {
            out.put_u64(node.0);
        }
        out.put_varint(self.split.code().into());
    }

    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let (pair, replaced) = (read_pair(reader)?, Replaced::read(reader)?);
        let request = read_subscription(reader)?;
        let count = reader.len(HOPS_MAX + 1, "path")?;
        let path = (0..count).map(|_| reader.u64("path").map(NodeId)).collect::<Result<_, _>>()?;
        let split = Split::from_code(count, reader.varint32("split")?);
        Ok(Self { pair, replaced, request, path, split })
    }
}

impl Query {
    /// Returns a question without trials.
    pub(super) const fn new(first: Half, opposite: Option<Half>, follows: bool) -> Self {
        Self { first, opposite, follows, trials: Vec::new() }
    }

    /// Returns the pair of the trials, and the other one.
    pub(super) const fn tried(&self) -> (&Half, Option<&Half>) {
        match &self.opposite {
            Some(opposite) if self.follows => (opposite, Some(&self.first)),
            other => (&self.first, other.as_ref()),
        }
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut out = vec![Topic::Room.code()];
        self.first.write(&mut out);
        out.put_flag(self.opposite.is_some());
        self.opposite.iter().for_each(|half| half.write(&mut out));
        out.put_flag(self.follows);
        out.put_varint(self.trials.len() as u64);
        self.trials.iter().for_each(|trial| trial.write(&mut out));
        out.into()
    }

    /// Returns the publishers of the pairs, with the pattern of each request.
    pub(super) fn pairs(self) -> Vec<(PublisherId, Pattern)> {
        let pairs = [Some(self.first), self.opposite].into_iter().flatten();
        pairs.map(|half| (half.pair.1, half.request.pattern)).collect()
    }

    /// Decodes the body after the topic.
    pub(super) fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let first = Half::read(&mut reader)?;
        let tied = reader.flag("opposite")?;
        let opposite = if tied { Some(Half::read(&mut reader)?) } else { None };
        let follows = reader.flag("follows")?;
        let count = reader.len(TrafficTrial::TRIALS_MAX, "trials")?;
        let trials = (0..count).map(|_| Trial::read(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { first, opposite, follows, trials })
    }
}

impl Obstacles {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u64(self.fits);
        for refusal in [&self.first, &self.opposite] {
            out.put_flag(refusal.is_some());
            refusal.iter().for_each(|refusal| put_refusal(&mut out, refusal));
        }
        out.into()
    }

    pub(super) fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let fits = reader.u64("trials")?;
        let mut next = || {
            let refused = reader.flag("refusal")?;
            if refused { read_refusal(&mut reader).map(Some) } else { Ok(None) }
        };
        let found = Self { first: next()?, opposite: next()?, fits };
        reader.finish()?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::contracts::survey::variant::Variant;
    use crate::control::data::refusal::{Offer, RefusalReason};
    use crate::envelope::Envelope;
    use crate::form::Size;
    use crate::ids::SubscriptionId;
    use crate::tag::Tag;
    use core::num::NonZeroU32;
    use paceline_sched::{Duration, LossTolerance};
    use proptest::prelude::*;

    fn half(node: u64, tag: &str, with: Option<&str>) -> Half {
        let request = SubscriptionSpec::all_of(Pattern::new(tag).unwrap());
        let path = vec![NodeId(node), NodeId(9), NodeId(3)];
        Half {
            pair: (
                SubscriptionId { node: NodeId(3), index: 1 },
                PublisherId { node: NodeId(node), index: 2 },
            ),
            replaced: Replaced::Only,
            request: SubscriptionSpec { with: with.map(|tag| Tag::new(tag).unwrap()), ..request },
            split: Split::new([true, false].into_iter()).with_proxy(1),
            path,
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_to_a_question_with_one_encoding_or_fail(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            end in any::<prop::sample::Index>(),
            tail in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let replaced = Replaced::Number(300);
            let first = Half { replaced, ..half(1, "camera", Some("cmd")) };
            let query = Query::new(first, Some(half(2, "cmd", None)), true);
            let mut bytes = query.encode().slice(1..).to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let cut = end.index(bytes.len());
            prop_assert!(Query::decode(query.encode().slice(1..=cut)).is_err());
            if let Ok(found) = Query::decode(bytes.clone().into()) {
                prop_assert_eq!(Query::decode(found.encode().slice(1..)), Ok(found));
            }
            bytes.truncate(cut);
            bytes.extend(tail);
            if let Ok(found) = Query::decode(bytes.into()) {
                prop_assert_eq!(Query::decode(found.encode().slice(1..)), Ok(found));
            }
        }
    }

    #[test]
    fn questions_and_answers_keep_both_halves() {
        let first = half(1, "camera", Some("cmd"));
        for replaced in [Replaced::Nothing, Replaced::Number(0), Replaced::Number(u64::MAX)] {
            let query = Query::new(Half { replaced, ..first.clone() }, None, false);
            assert_eq!(Query::decode(query.encode().slice(1..)), Ok(query));
        }
        for opposite in [None, Some(half(2, "cmd", None))] {
            let envelope = Envelope::declared(9_000, 700);
            let within = Duration::from_millis(80);
            let period = Duration::from_millis(40);
            let traffic = TrafficTrial { period, bytes_max: 500, envelope, within };
            let (rate, size) = (NonZeroU32::new(7_500).unwrap(), Size { width: 120, height: 90 });
            let mut trials = vec![
                Trial::Traffic(traffic),
                Trial::Variant(Variant::Rate(rate)),
                Trial::Variant(Variant::Size(size)),
                Trial::Variant(Variant::Both(rate, size)),
                Trial::Variant(Variant::Bitrate(rate)),
                Trial::Variant(Variant::Bytes(700)),
                Trial::Variant(Variant::Within(within)),
                Trial::Variant(Variant::Loss(LossTolerance::new(1, 5).unwrap())),
            ];
            trials.truncate(if opposite.is_some() { 8 } else { 0 });
            let follows = opposite.is_some();
            let query = Query { first: first.clone(), opposite, follows, trials };
            let body = query.encode();
            assert_eq!(Query::decode(body.slice(1..)), Ok(query));
            assert!(Query::decode(body.slice(1..body.len() - 1)).is_err(), "cut");
        }
        let refusal = Refusal {
            subscription: first.pair.0,
            publisher: first.pair.1,
            revision: 0,
            node: NodeId(9),
            node_name: "mast".into(),
            link: "radio".into(),
            class: String::new(),
            needed_bytes_per_s: 7,
            available_bytes_per_s: 6,
            reason: RefusalReason::Capacity,
            offer: Offer::default(),
            spare: false,
        };
        let some = || Some(refusal.clone());
        for (first, opposite) in [(None, None), (some(), None), (None, some()), (some(), some())] {
            let found = Obstacles { first, opposite, fits: 5 };
            assert_eq!(Obstacles::decode(found.encode()), Ok(found));
        }
    }
}
