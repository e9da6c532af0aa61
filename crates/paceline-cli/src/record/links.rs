//! What the links on the way did with the samples: asked of their nodes at the beginning and at the end, and of
//! those that can be asked for nothing each second, since streams end with their publishers.

use super::news::by_name;
use paceline::{DropReason, Drops, Node, NodeId, PublisherId, SourceView, StreamCounters};
use paceline_record::Event;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long nodes have to answer.
const WITHIN: Duration = Duration::from_millis(500);

/// The most streams on links whose counts are kept; of more, those seen first.
const PLACES_MAX: usize = 16_384;

/// A stream on a link: whose samples, on which node and link, to which hop.
type Place = (PublisherId, String, String, NodeId);

/// The same of those that are asked each second.
const NEAR_WITHIN: Duration = Duration::from_millis(100);

/// The counts when the recording began, and the last that are known.
#[derive(Default)]
pub(super) struct Links {
    before: BTreeMap<Place, StreamCounters>,
    last: BTreeMap<Place, StreamCounters>,
    tags: BTreeMap<PublisherId, String>,
}

impl Links {
    /// Keeps the counts of now.
    pub(super) fn begin(&mut self, node: &Node, sources: &BTreeMap<PublisherId, SourceView>) {
        for (place, counters) in counts(node, sources, None) {
            self.before.entry(place).or_insert(counters);
        }
    }

    /// Looks at the counts of the nodes that no link with a capacity lies before.
    pub(super) fn look(&mut self, node: &Node, sources: &BTreeMap<PublisherId, SourceView>) {
        let near = node.near();
        self.keep(counts(node, sources, Some(&near)));
        for source in sources.values() {
            if self.tags.len() < PLACES_MAX {
                self.tags.insert(source.publisher, source.tag.to_string());
            }
        }
    }

    fn keep(&mut self, counts: BTreeMap<Place, StreamCounters>) {
        for (place, counters) in counts {
            if self.last.len() < PLACES_MAX || self.last.contains_key(&place) {
                self.last.insert(place, counters);
            }
        }
    }

    /// What was counted since.
    pub(super) fn end(
        &mut self,
        node: &Node,
        sources: &BTreeMap<PublisherId, SourceView>,
    ) -> Vec<Event> {
        self.look(node, sources);
        self.keep(counts(node, sources, None));
        let mut events = Vec::new();
        for (place, now) in &self.last {
            let before = self.before.get(place).copied().unwrap_or_default();
            let (publisher, node, link, _) = place;
            let Some(tag) = self.tags.get(publisher) else { continue };
            let mut drops = Drops::default();
            for reason in DropReason::ALL {
                drops.add(reason, now.drops.of(reason).saturating_sub(before.drops.of(reason)));
            }
            events.push(Event::Link {
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

/// The streams on the links that lead from these publishers to here. Streams of several forms to one hop are
/// counted together.
fn counts(
    node: &Node,
    sources: &BTreeMap<PublisherId, SourceView>,
    near: Option<&[NodeId]>,
) -> BTreeMap<Place, StreamCounters> {
    let mut found: BTreeMap<Place, StreamCounters> = BTreeMap::new();
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
                sum.offered += stream.counters.offered;
                sum.sent += stream.counters.sent;
                sum.late += stream.counters.late;
                sum.violations += stream.counters.violations;
                sum.drops.merge(&stream.counters.drops);
            }
        }
    }
    found
}
