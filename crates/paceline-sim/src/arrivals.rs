//! The counters of the streams that arrive at a node.

use crate::lookup::Lookup;
use crate::outlet::StreamKey;
use paceline_proto::reason::Drops;

/// Counters of the arrivals of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalCount {
    pub(super) whole: u64,
    pub(super) lost: Drops,
}

/// The counters of all streams.
#[derive(Debug, Default)]
pub(super) struct ArrivalCounts(Lookup<StreamKey, ArrivalCount>);

impl ArrivalCounts {
    /// Returns the counters of a stream.
    pub(super) fn get_mut(&mut self, stream: StreamKey) -> &mut ArrivalCount {
        self.0.entry(stream).or_default()
    }

    /// Returns the counters of a stream, which are 0 before its first sample.
    pub(super) fn of(&self, stream: StreamKey) -> ArrivalCount {
        self.0.get(&stream).copied().unwrap_or_default()
    }
}
