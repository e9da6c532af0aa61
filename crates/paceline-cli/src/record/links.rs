//! What the links on the way did with the samples: asked of their nodes at the beginning and at the end.

use super::news::by_name;
use paceline::{DropReason, Drops, Node, NodeId, PublisherId, SourceView, StreamCounters};
use paceline_record::Event;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long nodes have to answer.
const WITHIN: Duration = Duration::from_millis(500);

/// A stream on a link: whose samples, on which node and link, to which hop.
type Place = (PublisherId, String, String, NodeId);

/// The counts when the recording began.
#[derive(Default)]
pub(super) struct Links {
    before: BTreeMap<Place, StreamCounters>,
}

impl Links {
    /// Keeps the counts of now.
    pub(super) fn begin(&mut self, node: &Node, sources: &BTreeMap<PublisherId, SourceView>) {
        for (place, counters) in counts(node, sources) {
            self.before.entry(place).or_insert(counters);
        }
    }

    /// What was counted since.
    pub(super) fn end(
        &self,
        node: &Node,
        sources: &BTreeMap<PublisherId, SourceView>,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        for (place, now) in counts(node, sources) {
            let before = self.before.get(&place).copied().unwrap_or_default();
            let (publisher, node, link, _) = place;
            let Some(source) = sources.get(&publisher) else { continue };
            let mut drops = Drops::default();
            for reason in DropReason::ALL {
                drops.add(reason, now.drops.of(reason).saturating_sub(before.drops.of(reason)));
            }
            events.push(Event::Link {
                tag: source.tag.to_string(),
                publisher: publisher.to_string(),
                node,
                link,
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
) -> BTreeMap<Place, StreamCounters> {
    let mut found: BTreeMap<Place, StreamCounters> = BTreeMap::new();
    let mut on_the_way: Vec<NodeId> =
        sources.values().flat_map(|source| &source.hops).map(|hop| hop.from).collect();
    on_the_way.sort_unstable();
    on_the_way.dedup();
    for status in node.status_of(&on_the_way, WITHIN) {
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
