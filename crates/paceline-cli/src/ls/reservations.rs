//! The table of `paceline ls --reservations`.

use paceline::status::{
    NodeId, PublisherId, QueueStatus, Reservation, ReservedHop, StreamStatus, SubscriptionId,
};
use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table, width};
use std::collections::BTreeMap;

/// Returns the samples that exceeded their contract at a hop, or "-" if its node did not answer.
fn excess(document: &StatusDocument, reservation: &Reservation, hop: &ReservedHop) -> String {
    let Some(node) = document.nodes.iter().find(|node| node.id == hop.node) else {
        return "-".to_owned();
    };
    let streams = node.links.iter().filter(|link| link.name == hop.link);
    let streams = streams.flat_map(|link| &link.streams).filter(|stream| stream.contracted);
    let mine = streams.filter(|stream| stream.publisher == reservation.publisher);
    let more =
        |stream: &StreamStatus| stream.counters.too_early.saturating_add(stream.counters.too_long);
    mine.fold(0, |sum: u64, stream| sum.saturating_add(more(stream))).to_string()
}

/// Formats `paceline ls --reservations`: one row per hop, with the reservation in the first of
/// them. Rows are not truncated: tags of queries differ in few characters, and users search for one
/// of them.
pub(super) fn tables(document: &StatusDocument) -> String {
    let mut table = Table::new(&[
        ("tag", Name),
        ("for", Left),
        ("within", Right),
        ("bound", Right),
        ("node", Left),
        ("link", Left),
        ("reserved", Right),
        ("of", Right),
        ("bytes at once", Right),
        ("delay", Right),
        ("excess", Right),
    ]);
    let mut seen: BTreeMap<(PublisherId, SubscriptionId), &Reservation> = BTreeMap::new();
    let names: BTreeMap<NodeId, &str> =
        document.nodes.iter().map(|node| (node.id, node.name.as_str())).collect();
    for reservation in document.nodes.iter().flat_map(|node| &node.reservations) {
        let key = (reservation.publisher, reservation.subscription);
        // Only the ends of the paths know both.
        let paths = |it: &Reservation| (!it.hops.is_empty(), !it.spare.is_empty());
        let best = seen.entry(key).or_insert(reservation);
        if paths(reservation) > paths(best) {
            *best = reservation;
        }
    }
    for reservation in seen.values() {
        let tag = reservation.tag.clone().unwrap_or_else(|| reservation.publisher.to_string());
        let node = reservation.subscription.node;
        let to = names.get(&node).map_or_else(|| node.to_string(), |name| (*name).to_owned());
        let within = reservation.within.map_or_else(|| "-".to_owned(), show::time);
        let mut first = vec![tag, to, within, show::time(reservation.bound)];
        let spare = reservation.spare.iter().map(|hop| (hop, "spare"));
        for (hop, of) in reservation.hops.iter().map(|hop| (hop, "")).chain(spare) {
            let mut row = core::mem::replace(&mut first, vec![String::new(); 4]);
            if let Some(bound) = row.last_mut().filter(|_| !of.is_empty()) {
                of.clone_into(bound);
            }
            row.extend([
                hop.name.clone(),
                hop.link.clone(),
                hop.capacity_bits_per_s
                    .map_or_else(|| "nothing".to_owned(), |_| show::bits(hop.bits_per_s)),
                hop.capacity_bits_per_s.map_or_else(|| "-".to_owned(), show::bits),
                hop.burst_bytes.to_string(),
                show::time(hop.bound),
                excess(document, reservation, hop),
            ]);
            table.row(row);
        }
    }
    if table.is_empty() {
        let nothing = "nothing is reserved: no subscription with --within or --loss crosses a link with a \
                       capacity\n";
        return format!("{nothing}{}", hosts(document));
    }
    let mut hops = seen.values().flat_map(|it| it.hops.iter().chain(&it.spare));
    let unknown = hops.any(|hop| hop.capacity_bits_per_s.is_none());
    let unknown = if unknown {
        "a link that reserves nothing has no capacity: it is best effort, and its delay is an estimate\n"
    } else {
        ""
    };
    let rows = table.render(usize::MAX);
    format!("RESERVATIONS\n{rows}{unknown}{}", hosts(document))
}

/// Formats the time in percent of one processor.
fn percent(us_per_s: u64) -> String {
    let hundredths = us_per_s.div_ceil(100);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Formats the reserved parts of classes, buffers and processors.
fn hosts(document: &StatusDocument) -> String {
    [classes(document), buffers(document), processors(document)].concat()
}

/// Formats a table below the others, unless it is empty.
fn titled(title: &str, table: &Table) -> String {
    if table.is_empty() {
        return String::new();
    }
    format!("\n{title}\n{}", table.render(width()))
}

/// Formats the rates that contracts reserve in each class.
fn classes(document: &StatusDocument) -> String {
    let columns =
        [("node", Left), ("link", Left), ("class", Left), ("reserved", Right), ("of", Right)];
    let mut table = Table::new(&columns);
    for node in &document.nodes {
        for link in &node.links {
            let guaranteed = link.classes.iter().filter(|class| class.guaranteed_bits_per_s > 0);
            for class in guaranteed {
                table.row(vec![
                    node.name.clone(),
                    link.name.clone(),
                    class.name.clone(),
                    show::bits(class.reserved_bits_per_s),
                    show::bits(class.guaranteed_bits_per_s),
                ]);
            }
        }
    }
    titled("CLASSES", &table)
}

/// Formats the buffers that contracts reserve, next to their greatest queues so far.
fn buffers(document: &StatusDocument) -> String {
    let columns = [
        ("node", Left),
        ("link", Left),
        ("reserved bytes", Right),
        ("of", Right),
        ("greatest queue", Right),
    ];
    let mut table = Table::new(&columns);
    let mut row = |node: &str, link: &str, buffer: Option<QueueStatus>| {
        let Some(buffer) = buffer else { return };
        let figures = [buffer.reserved_bytes, buffer.bytes, buffer.greatest_bytes];
        let names = [node, link].map(str::to_owned);
        table.row(names.into_iter().chain(figures.map(|bytes| bytes.to_string())).collect());
    };
    for node in &document.nodes {
        let mut limited = false;
        for link in &node.links {
            limited |= link.buffer.is_some();
            row(&node.name, &link.name, link.buffer);
        }
        // A node without such a link reserves only for its subscribers.
        let host = node.buffer.filter(|buffer| limited || buffer.reserved_bytes > 0);
        row(&node.name, "(whole node)", host);
    }
    titled("BUFFERS", &table)
}

/// Formats the processor time reserved on the hosts that charge it.
fn processors(document: &StatusDocument) -> String {
    let mut table = Table::new(&[("node", Left), ("reserved", Right), ("of", Right)]);
    for node in &document.nodes {
        if let Some(processor) = &node.processor {
            table.row(vec![
                node.name.clone(),
                percent(processor.held_us_per_s),
                percent(processor.most_us_per_s),
            ]);
        }
    }
    titled("PROCESSOR", &table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::example::status;

    #[test]
    fn the_hops_of_a_spare_follow_those_of_the_first_path() {
        let mut status = status();
        let grant = status[0].reservations[0].clone();
        let hop = grant.hops[0].clone();
        let over = |link: &str| ReservedHop { link: link.into(), ..hop.clone() };
        let both = Reservation { spare: vec![over("sat")], ..grant.clone() };
        // A node of the spare's path knows only that one, and may be listed first.
        let other = Reservation { hops: Vec::new(), spare: vec![over("sat")], ..grant };
        status[0].reservations = vec![other, both];
        let text = tables(&StatusDocument::new(status.clone()));
        let rows: Vec<&str> = text.lines().skip(2).take(2).collect();
        assert!(rows[0].contains(" thin ") && !rows[0].contains("spare"), "{text}");
        assert!(rows[1].contains(" spare ") && rows[1].contains(" sat "), "{text}");
    }

    #[test]
    fn long_tags_that_differ_in_one_character_are_not_truncated() {
        let mut status = status();
        let tags = ["a", "b"].map(|end| format!("{}/answers/{end}", "q".repeat(120)));
        let grant = status[0].reservations[0].clone();
        status[0].reservations.clear();
        for (index, tag) in (1..).zip(&tags) {
            let publisher = PublisherId { index, ..grant.publisher };
            let subscription = SubscriptionId { index, ..grant.subscription };
            let tag = Some(tag.clone());
            status[0].reservations.push(Reservation {
                publisher,
                subscription,
                tag: tag.clone(),
                ..grant.clone()
            });
            let stream = status[0].links[0].streams[0].clone();
            status[0].links[0].streams.push(StreamStatus { tag, ..stream });
        }
        let text = tables(&StatusDocument::new(status.clone()));
        for tag in &tags {
            assert_eq!(text.lines().filter(|line| line.starts_with(tag)).count(), 1, "{text}");
        }
        // Shortened lines also keep the characters in which the tags differ.
        let listed = crate::ls::view::tables(&StatusDocument::new(status.clone()));
        for end in ["rs/a ", "rs/b "] {
            assert!(listed.contains(end), "{listed}");
        }
    }
}
