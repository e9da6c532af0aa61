//! Marks samples that a node puts on the plain side, for loop detection. Without a mark, two nodes
//! with connected plain sides would forward a sample between them forever.
//!
//! The mark is the id in the sample's timestamp. Every Zenoh router forwards it unchanged and no
//! program interprets it. Payload, encoding and attachment are not touched.

use paceline::Timestamp;
use paceline::status::NodeId;
use std::time::Duration;
use zenoh::sample::Sample;
use zenoh::time::{NTP64, Timestamp as ZenohTimestamp, TimestampId};

/// The first bytes of every mark. The last byte of a mark is never zero, because Zenoh omits
/// trailing zeros.
const MAGIC: [u8; 4] = *b"pcln";
const LAST: u8 = 1;

/// The origin of a marked sample.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Mark {
    /// The node.
    pub(crate) node: NodeId,
    /// The number of its export rule, from 1.
    pub(crate) rule: u16,
}

impl Mark {
    /// Returns a timestamp with this mark for a sample captured at `captured`.
    pub(crate) fn stamp(self, captured: Timestamp) -> Option<ZenohTimestamp> {
        let [n0, n1, n2, n3, n4, n5, n6, n7] = self.node.0.to_be_bytes();
        let [r0, r1] = self.rule.to_be_bytes();
        let [m0, m1, m2, m3] = MAGIC;
        let id = [m0, m1, m2, m3, n0, n1, n2, n3, n4, n5, n6, n7, r0, r1, 0, LAST];
        let time = NTP64::from(Duration::from_nanos(captured.nanos));
        Some(ZenohTimestamp::new(time, TimestampId::try_from(&id).ok()?))
    }

    /// Returns the mark of a sample from the plain side, or `None` if no node put it there.
    pub(crate) fn of(sample: &Sample) -> Option<Self> {
        Self::read(sample.timestamp()?.get_id().to_le_bytes())
    }

    fn read(id: [u8; 16]) -> Option<Self> {
        let [m0, m1, m2, m3, n0, n1, n2, n3, n4, n5, n6, n7, r0, r1, 0, LAST] = id else {
            return None;
        };
        let node = NodeId(u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]));
        let rule = u16::from_be_bytes([r0, r1]);
        ([m0, m1, m2, m3] == MAGIC).then_some(Self { node, rule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mark_decodes_as_a_mark() {
        for node in [0, 1, u64::MAX, 0x0011_2233_4455_6677] {
            let mark = Mark { node: NodeId(node), rule: 7 };
            let captured = Timestamp { nanos: 1_700_000_000_123_456_789, error: 3 };
            let stamp = mark.stamp(captured).unwrap();
            assert_eq!(Mark::read(stamp.get_id().to_le_bytes()), Some(mark));
            // Zenoh's clock has a resolution of 2^-32 s.
            assert!(stamp.get_time().as_nanos().abs_diff(captured.nanos) <= 1);
        }
        assert_eq!(Mark::read([0x33; 16]), None);
        let mut almost = *b"pcln000000000000";
        assert_eq!(Mark::read(almost), None);
        almost[14] = 0;
        almost[15] = 2;
        assert_eq!(Mark::read(almost), None);
    }
}
