//! Merges streams with the same labels. While one stream replaces another both exist, and a family
//! may contain each label set only once.

use crate::status::StreamJson;
use std::collections::BTreeMap;

/// Returns the streams of a link, with those of the same labels added up.
pub(super) fn together(streams: &[StreamJson]) -> Vec<StreamJson> {
    let mut all: BTreeMap<(&str, &str, &str), StreamJson> = BTreeMap::new();
    for stream in streams {
        let name = (stream.publisher.as_str(), stream.asked.form.as_str(), stream.hop.as_str());
        all.entry(name).and_modify(|sum| add(sum, stream)).or_insert_with(|| stream.clone());
    }
    all.into_values().collect()
}

fn add(sum: &mut StreamJson, other: &StreamJson) {
    let ages = &other.ages;
    for (mine, theirs) in [
        (&mut sum.ages.entered, ages.entered),
        (&mut sum.ages.entered_us, ages.entered_us),
        (&mut sum.ages.left_us, ages.left_us),
        (&mut sum.offered, other.offered),
        (&mut sum.sent, other.sent),
        (&mut sum.bytes, other.bytes),
        (&mut sum.late, other.late),
        (&mut sum.violations, other.violations),
        (&mut sum.too_early, other.too_early),
        (&mut sum.too_long, other.too_long),
    ] {
        *mine = mine.saturating_add(theirs);
    }
    sum.dropped.merge(&other.dropped);
    sum.contract = sum.contract.take().or_else(|| other.contract.clone());
}
