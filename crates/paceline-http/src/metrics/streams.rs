//! Merges streams with the same labels. While one stream replaces another both exist, and a family
//! may contain each label set only once.

use paceline::status::{NodeId, PublisherId, StreamStatus};
use std::collections::BTreeMap;

/// Returns the streams of a link. Streams with the same labels are added up.
pub(super) fn together(streams: &[StreamStatus]) -> Vec<StreamStatus> {
    let mut all: BTreeMap<(PublisherId, String, NodeId), StreamStatus> = BTreeMap::new();
    for stream in streams {
        let name = (stream.publisher, stream.form.to_string(), stream.hop);
        all.entry(name).and_modify(|sum| add(sum, stream)).or_insert_with(|| stream.clone());
    }
    all.into_values().collect()
}

fn add(sum: &mut StreamStatus, other: &StreamStatus) {
    sum.counters.merge(&other.counters);
    sum.ages.merge(&other.ages);
    sum.contract = sum.contract.or(other.contract);
}
