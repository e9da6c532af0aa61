//! The counts of the links on the path. Streams end with their publishers, so counts are collected while they
//! run. All nodes are queried at the start and at the end. Nodes that can be queried without load on a link
//! with a capacity are queried every second.

use super::news::by_name;
use paceline::Node;
use paceline::status::{DropReason, Drops, LinkCounters, NodeId, PublisherId, SourceView};
use paceline_record::RecordedEvent;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time limit for the nodes' answers.
const WITHIN: Duration = Duration::from_millis(500);

/// Limit of the streams whose counts are kept; the first ones are kept.
const PLACES_MAX: usize = 16_384;

/// A stream on a link: publisher, node, link and next hop.
type Place = (PublisherId, String, String, NodeId);

/// Time limit for the nodes that are queried every second.
const NEAR_WITHIN: Duration = Duration::from_millis(100);

/// The counts at the start of the recording, and the latest counts.
#[derive(Default)]
pub(super) struct Links {
    before: BTreeMap<Place, LinkCounters>,
    last: BTreeMap<Place, LinkCounters>,
    tags: BTreeMap<PublisherId, String>,
}

impl Links {
    /// Stores the current counts as the start values.
    pub(super) fn begin(&mut self, node: &Node, sources: &BTreeMap<PublisherId, SourceView>) {
        for (place, counters) in counts(node, sources, None) {
            self.before.entry(place).or_insert(counters);
        }
    }

    /// Updates the counts of the nodes that no link with a capacity separates from this one.
    pub(super) fn look(&mut self, node: &Node, sources: &BTreeMap<PublisherId, SourceView>) {
        let near = node.near();
        self.keep(counts(node, sources, Some(&near)));
        for source in sources.values() {
            if self.tags.len() < PLACES_MAX {
                self.tags.insert(source.publisher, source.tag.to_string());
            }
        }
    }

    fn keep(&mut self, counts: BTreeMap<Place, LinkCounters>) {
        for (place, counters) in counts {
            if self.last.len() < PLACES_MAX || self.last.contains_key(&place) {
                self.last.insert(place, counters);
            }
        }
    }

    /// Returns the counts since the start.
    pub(super) fn end(
        &mut self,
        node: &Node,
        sources: &BTreeMap<PublisherId, SourceView>,
    ) -> Vec<RecordedEvent> {
        self.look(node, sources);
        self.keep(counts(node, sources, None));
        let mut events = Vec::new();
        for (place, now) in &self.last {
            let before = self.before.get(place).copied().unwrap_or_default();
            let (publisher, node, link, _) = place;
            let Some(tag) = self.tags.get(publisher) else { continue };
            let mut drops = Drops::default();
            for reason in DropReason::ALL {
                drops.add(reason, now.dropped.of(reason).saturating_sub(before.dropped.of(reason)));
            }
            events.push(RecordedEvent::Link {
                tag: tag.clone(),
                publisher: publisher.to_string(),
                node: node.clone(),
                link: link.clone(),
                offered: now.offered.saturating_sub(before.offered),
                sent: now.sent.saturating_sub(before.sent),
                late: now.late.saturating_sub(before.late),
                violations: now.violations.saturating_sub(before.violations),
                dropped: by_name(&drops),
            });
        }
        events
    }
}

/// Returns the counts of the streams from these publishers to this node. Adds up the streams of all forms to
/// the same hop.
fn counts(
    node: &Node,
    sources: &BTreeMap<PublisherId, SourceView>,
    near: Option<&[NodeId]>,
) -> BTreeMap<Place, LinkCounters> {
    let mut found: BTreeMap<Place, LinkCounters> = BTreeMap::new();
    let mut on_the_way: Vec<NodeId> =
        sources.values().flat_map(|source| &source.hops).map(|hop| hop.from).collect();
    on_the_way.sort_unstable();
    on_the_way.dedup();
    on_the_way.retain(|node| near.is_none_or(|near| near.contains(node)));
    if on_the_way.is_empty() {
        return found;
    }
    let within = if near.is_some() { NEAR_WITHIN } else { WITHIN };
    for status in node.status_of(&on_the_way, within) {
        for link in &status.links {
            for stream in &link.streams {
                let leads_here = sources.get(&stream.publisher).is_some_and(|source| {
                    source.hops.iter().any(|hop| {
                        (hop.from, hop.to, hop.link.as_str())
                            == (status.id, stream.hop, link.name.as_str())
                    })
                });
                if !leads_here {
                    continue;
                }
                let place = (stream.publisher, status.name.clone(), link.name.clone(), stream.hop);
                let sum = found.entry(place).or_default();
                sum.merge(&stream.counters);
            }
        }
    }
    found
}
