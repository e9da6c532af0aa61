//! The part of a document that concerns one pattern.

use crate::status::describe_tags;
use paceline::Pattern;
use paceline::status::{NodeStatus, PublisherId, SubscriptionId};
use paceline_http::status::StatusDocument;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table, width};
use std::collections::{BTreeMap, BTreeSet};

/// Removes everything that has no tag in common with `pattern`.
pub(super) fn select(document: &mut StatusDocument, pattern: &Pattern) {
    let meets = |other: &str| Pattern::new(other).is_ok_and(|other| pattern.covers_part_of(&other));
    for node in &mut document.nodes {
        node.publishers.retain(|publisher| pattern.covers(&publisher.tag));
        node.subscriptions.retain(|subscription| meets(&subscription.pattern));
        node.buffers.retain(|buffer| meets(&buffer.pattern));
    }
    let publishers = document.nodes.iter().flat_map(|node| &node.publishers);
    let ids: BTreeSet<PublisherId> = publishers.map(|publisher| publisher.id).collect();
    for node in &mut document.nodes {
        for link in &mut node.links {
            link.streams.retain(|stream| ids.contains(&stream.publisher));
        }
        node.links.retain(|link| !link.streams.is_empty());
        node.reservations.retain(|it| ids.contains(&it.publisher));
    }
    document.nodes.retain(|node| !is_empty(node));
}

const fn is_empty(node: &NodeStatus) -> bool {
    let here = node.publishers.is_empty() && node.subscriptions.is_empty();
    here && node.buffers.is_empty() && node.links.is_empty() && node.reservations.is_empty()
}

/// The publishers and subscribers of one tag.
#[derive(Default)]
struct TagRow<'a> {
    types: BTreeSet<&'a str>,
    hz: f64,
    publishers: usize,
    subscribers: usize,
}

/// Formats one row per published tag.
pub(super) fn tags(document: &StatusDocument) -> String {
    let mut rows: BTreeMap<&str, TagRow<'_>> = BTreeMap::new();
    let mut publishes: BTreeMap<PublisherId, &str> = BTreeMap::new();
    for publisher in document.nodes.iter().flat_map(|node| &node.publishers) {
        let row = rows.entry(publisher.tag.as_str()).or_default();
        row.types.insert(&publisher.encoding);
        row.hz += publisher.rate_hz();
        row.publishers += 1;
        publishes.insert(publisher.id, publisher.tag.as_str());
    }
    // A publisher's history is a subscription, but no subscriber.
    let buffers: BTreeSet<SubscriptionId> =
        document.nodes.iter().flat_map(|node| &node.buffers).map(|it| it.id).collect();
    let subscriptions = document.nodes.iter().flat_map(|node| &node.subscriptions);
    for subscription in subscriptions.filter(|it| !buffers.contains(&it.id)) {
        let tags: BTreeSet<&str> =
            subscription.publishers.iter().filter_map(|id| publishes.get(id).copied()).collect();
        for tag in tags {
            rows.entry(tag).or_default().subscribers += 1;
        }
    }
    let mut table = Table::new(&[
        ("tag", Name),
        ("type", Left),
        ("Hz", Right),
        ("publishers", Right),
        ("subscribers", Right),
    ]);
    for (tag, row) in rows {
        table.row(vec![
            tag.to_owned(),
            row.types.into_iter().collect::<Vec<_>>().join(", "),
            format!("{:.1}", row.hz),
            row.publishers.to_string(),
            row.subscribers.to_string(),
        ]);
    }
    if table.is_empty() { "no tag is published\n".to_owned() } else { table.render(width()) }
}

/// Returns the published tags.
pub(super) fn published(document: &StatusDocument) -> BTreeSet<String> {
    let publishers = document.nodes.iter().flat_map(|node| &node.publishers);
    publishers.map(|publisher| publisher.tag.to_string()).collect()
}

/// Returns the message for a pattern without a match, with the published tags.
pub(super) fn nothing(pattern: &Pattern, published: &BTreeSet<String>) -> String {
    format!("nothing matches {pattern}; {}\n", describe_tags(published))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::example::status;

    fn selected(pattern: &str) -> StatusDocument {
        let mut document = StatusDocument::new(status());
        select(&mut document, &Pattern::new(pattern).unwrap());
        document
    }

    #[test]
    fn only_what_has_a_tag_in_common_stays() {
        let all = StatusDocument::new(status());
        let publishers = all.nodes.iter().flat_map(|node| &node.publishers);
        let publisher = publishers.clone().next().unwrap();
        let one = selected(publisher.tag.as_str());
        assert!(
            one.nodes.iter().flat_map(|node| &node.publishers).all(|it| it.tag == publisher.tag)
        );
        let streams = |it: &StatusDocument| {
            let links = it.nodes.iter().flat_map(|node| &node.links);
            links.flat_map(|link| &link.streams).filter(|it| it.publisher == publisher.id).count()
        };
        assert_eq!(streams(&one), streams(&all));
        assert_eq!(selected("**").nodes.len(), all.nodes.iter().filter(|it| !is_empty(it)).count());
        assert!(selected("no/such/tag").nodes.is_empty());
    }

    #[test]
    fn tags_have_one_row_each() {
        let document = StatusDocument::new(status());
        let text = tags(&document);
        assert_eq!(text.lines().count(), 1 + published(&document).len(), "{text}");
        assert_eq!(tags(&selected("no/such/tag")), "no tag is published\n");
    }
}
