//! The tables of `paceline ls`.

use paceline::contract::Proxy;
use paceline::status::{
    Flood, LinkStatus, MemoryStatus, MutedStatus, NodeId, NodeStatus, Repairs, StreamStatus,
    SubscriptionStatus, UnreadStatus,
};
use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::show::micros;
use paceline_tool::table::{self, Align::Left, Align::Name, Align::Right, Table};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The silence after which a neighbour is down, on all links that are not slow.
const DOWN_AFTER: Duration = Duration::from_millis(1_800);

/// Formats all non-empty tables, each under its title.
pub(crate) fn tables(document: &StatusDocument) -> String {
    if document.nodes.is_empty() {
        return "no other node answers: none runs on this host, and no --link leads to one; start one with paceline pub, \
                paceline demo or paceline node\n"
            .to_owned();
    }
    let names = names(document);
    let parts = [
        ("NODES", nodes(document)),
        ("PUBLISHERS", publishers(document)),
        ("SUBSCRIPTIONS", subscriptions(document)),
        ("PLAYERS", super::players::table(document)),
        ("DELIVERY BY TIME", super::timed::table(document)),
        ("BUFFERS", buffers(document)),
        ("LINKS", links(document)),
        ("MEDIA", super::media::table(document, |id| named(&names, id))),
        ("CLASSES", classes(document)),
        ("STREAMS", streams(document)),
    ];
    let mut out = table::titled(&parts);
    document.nodes.iter().for_each(|node| add_notes(&mut out, node, &names));
    for (node, link) in all_links(document) {
        if let Some(least) = link.least_capacity_bits_per_s.filter(|bits| *bits > 0) {
            let (reserved, least) = (show::bits(link.reserved_bits_per_s), show::bits(least));
            let name = format!("{}.{}", node.name, link.name);
            let _ = write!(
                out,
                "\n{name}: contracts reserve {reserved}, and stay valid down to {least}"
            );
        }
        if link.repairs.repeated > 0 || link.repairs.given_up > 0 {
            let _ = write!(out, "\n{}", repaired(&node.name, &link.name, link.repairs));
        }
        for to in link.neighbours.iter().filter(|to| to.down_after > DOWN_AFTER) {
            let other = named(&names, to.id);
            let _ = write!(out, "\n{}", slow(&node.name, &link.name, &other, to.down_after));
        }
        for row in &link.muted {
            let _ =
                write!(out, "\n{}", muted(&node.name, &link.name, &named(&names, row.peer), row));
        }
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Adds the lines about one node that follow the tables.
fn add_notes(out: &mut String, node: &NodeStatus, names: &Names<'_>) {
    let name = &node.name;
    for subscription in &node.subscriptions {
        for refusal in &subscription.refusals {
            let _ = write!(out, "\n{name} {}: refused: {refusal}", subscription.pattern);
        }
        let health = &subscription.health;
        if subscription.refusals.is_empty() && (health.state.is_failure() || health.lost > 0) {
            let (pattern, figures) = (&subscription.pattern, health.figures());
            let _ = write!(out, "\n{name} {pattern}: {}, {figures}", health.label);
            let _ = health.reason.iter().try_for_each(|reason| write!(out, ": {reason}"));
        }
    }
    for stalled in &node.stalled {
        let (thread, seconds) = (&stalled.thread, stalled.still.as_secs());
        let _ = write!(out, "\n{name}: thread {thread} has made no progress for {seconds} s");
    }
    for UnreadStatus { node: of, entry, reason } in &node.unread {
        let of = named(names, *of);
        let _ = write!(out, "\n{name}: cannot read and ignores {entry} of {of}: {reason}");
    }
    if let Some(memory) = node.memory.filter(MemoryStatus::is_much) {
        let _ = write!(out, "\n{}", neighbour_memory(node, memory, names));
    }
    if node.left_out > 0 {
        let rows = show::count(usize::try_from(node.left_out).unwrap_or(usize::MAX), "row");
        let _ = write!(out, "\n{name}: {rows} left out, because an answer has at most 1 MiB");
    }
}

/// Names the memory that neighbours use, and the neighbour with the most samples and messages.
fn neighbour_memory(node: &NodeStatus, memory: MemoryStatus, names: &Names<'_>) -> String {
    let megabytes = |bytes: u64| format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10);
    let (used, limit) = (megabytes(memory.used_bytes), megabytes(memory.bytes));
    let neighbours = node.links.iter().flat_map(|link| &link.neighbours);
    let most = neighbours.max_by_key(|to| to.memory_bytes).filter(|to| to.memory_bytes > 0);
    let most = most.map(|to| {
        format!(
            "; samples and messages of {}: {} MB",
            named(names, to.id),
            megabytes(to.memory_bytes)
        )
    });
    let name = &node.name;
    format!("{name}: neighbours use {used} of {limit} MB of memory{}", most.unwrap_or_default())
}

/// Says that a slow link notices the loss of a neighbour late.
fn slow(node: &str, link: &str, other: &str, silence: Duration) -> String {
    let seconds = show::millis(micros(silence) / 1_000);
    format!("{node}.{link}: slow link, {other} counts as down after {seconds} s of silence")
}

fn repaired(node: &str, link: &str, row: Repairs) -> String {
    let pieces = show::count(usize::try_from(row.repeated).unwrap_or(usize::MAX), "piece");
    let samples = show::count(usize::try_from(row.given_up).unwrap_or(usize::MAX), "sample");
    let bytes = row.repeated_bytes;
    let share = row.share_per_mille.div_ceil(10);
    format!(
        "{node}.{link}: {pieces} retransmitted ({bytes} bytes), {samples} given up, {share} % of the link reserved for that"
    )
}

fn muted(node: &str, link: &str, peer: &str, row: &MutedStatus) -> String {
    let is = if row.muted { "is muted" } else { "was muted" };
    let (times, dropped) =
        (show::count(usize::try_from(row.times).unwrap_or(usize::MAX), "time"), row.dropped);
    let flood = row.flood.name();
    let what = match row.flood {
        Flood::Control => "messages",
        Flood::Unasked => "samples",
        Flood::Malformed => "frames",
    };
    format!("{node}.{link}: {peer} {is} ({flood} flood): {times}, {dropped} of its {what} dropped")
}

fn nodes(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("node", Left),
        ("id", Left),
        ("publishers", Right),
        ("subscriptions", Right),
        ("links", Right),
        ("dropped", Left),
    ]);
    for node in &document.nodes {
        table.row(vec![
            node.name.clone(),
            node.id.to_string(),
            node.publishers.len().to_string(),
            node.subscriptions.len().to_string(),
            node.links.len().to_string(),
            show::drops(&node.dropped),
        ]);
    }
    table
}

fn publishers(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("tag", Name),
        ("node", Left),
        ("kind", Left),
        ("encoding", Left),
        ("declared", Right),
        ("Hz", Right),
        ("published", Right),
        ("wanted", Left),
    ]);
    for (node, publisher) in
        document.nodes.iter().flat_map(|node| node.publishers.iter().map(move |p| (node, p)))
    {
        let period = publisher.period.map(show::time);
        table.row(vec![
            publisher.tag.to_string(),
            node.name.clone(),
            publisher.kind.to_string(),
            publisher.encoding.clone(),
            period.unwrap_or_else(|| "-".to_owned()),
            format!("{:.1}{}", publisher.rate_hz(), if publisher.off_rate { "!" } else { "" }),
            publisher.published.to_string(),
            if publisher.matching { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// Returns the requested place of the scaling, and with `auto` the nodes that scale.
fn place(subscription: &SubscriptionStatus) -> String {
    let mut places = subscription.scaled_at.clone();
    places.dedup();
    match subscription.proxy == Proxy::Auto && !places.is_empty() {
        true => format!("auto: {}", places.join(", ")),
        false => subscription.proxy.to_string(),
    }
}

fn subscriptions(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("pattern", Name),
        ("node", Left),
        ("asked", Left),
        ("within", Right),
        ("loss", Right),
        ("proxy", Left),
        ("Hz", Right),
        ("of", Right),
        ("late", Right),
        ("lost", Right),
        ("state", Left),
    ]);
    for (node, subscription) in
        document.nodes.iter().flat_map(|node| node.subscriptions.iter().map(move |s| (node, s)))
    {
        let health = &subscription.health;
        let hertz =
            |millihertz: Option<u64>| millihertz.map_or_else(|| "-".to_owned(), show::hertz);
        let within = subscription.within.map(show::time);
        table.row(vec![
            subscription.pattern.clone(),
            node.name.clone(),
            subscription.form_in_words(),
            within.unwrap_or_else(|| "-".to_owned()),
            subscription.loss.map_or_else(|| "-".to_owned(), |loss| loss.to_string()),
            place(subscription),
            hertz(health.delivered_millihertz),
            hertz(health.requested_millihertz),
            health.late.to_string(),
            health.lost.to_string(),
            health.label.clone(),
        ]);
    }
    table
}

fn buffers(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("pattern", Name),
        ("node", Left),
        ("samples", Right),
        ("of", Right),
        ("bytes", Right),
        ("of", Right),
        ("max age", Right),
        ("spans", Right),
    ]);
    for (node, buffer) in
        document.nodes.iter().flat_map(|node| node.buffers.iter().map(move |b| (node, b)))
    {
        let seconds = |us: u64| format!("{} s", show::millis(us / 1_000));
        let spans = buffer.oldest_ns.zip(buffer.newest_ns);
        let spans = spans.map(|(oldest, newest)| seconds(newest.saturating_sub(oldest) / 1_000));
        table.row(vec![
            buffer.pattern.clone(),
            node.name.clone(),
            buffer.samples.to_string(),
            buffer.samples_max.to_string(),
            buffer.bytes.to_string(),
            buffer.bytes_max.to_string(),
            seconds(micros(buffer.age_max)),
            spans.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// Returns every link with its node.
fn all_links(document: &StatusDocument) -> impl Iterator<Item = (&NodeStatus, &LinkStatus)> {
    document.nodes.iter().flat_map(|node| node.links.iter().map(move |link| (node, link)))
}

fn links(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("node", Left),
        ("link", Left),
        ("to", Left),
        ("capacity", Right),
        ("use", Right),
        ("round trip", Right),
        ("jitter", Right),
        ("loss", Right),
        ("wire bytes", Right),
        ("streams", Right),
    ]);
    let names = names(document);
    for (node, link) in all_links(document) {
        let hops: Vec<String> = link.hops.iter().map(|hop| named(&names, *hop)).collect();
        let or_dash = |bits: Option<u64>| bits.map_or_else(|| "-".to_owned(), show::bits);
        let measured = |time| match link.least_round_trip.is_zero() {
            true => "-".to_owned(),
            false => show::time(time),
        };
        table.row(vec![
            node.name.clone(),
            link.name.clone(),
            hops.join(", "),
            capacity(link),
            or_dash(link.use_bits_per_s),
            measured(link.least_round_trip),
            measured(link.jitter),
            show::loss(link.loss),
            link.wire_bytes.to_string(),
            link.streams.len().to_string(),
        ]);
    }
    table
}

/// Returns the capacity, with the state of its measurement.
fn capacity(link: &LinkStatus) -> String {
    if let Some(medium) = &link.medium {
        return format!("{} of '{}'", show::bits(medium.allotted_bits_per_s), medium.name);
    }
    let bits = link.capacity_bits_per_s.map_or_else(|| "-".to_owned(), show::bits);
    match &link.measured {
        Some(found) if found.estimate_bits_per_s == 0 => found.state.to_string(),
        Some(found) => format!("{bits} {}", found.state),
        None => bits,
    }
}

fn classes(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("link", Left),
        ("class", Left),
        ("peer", Left),
        ("share", Right),
        ("served bytes", Right),
        ("guaranteed", Right),
        ("streams", Right),
        ("sent", Right),
        ("dropped", Left),
    ]);
    let names = names(document);
    for (node, link) in all_links(document) {
        for class in &link.classes {
            let peer = class.peer.map(|peer| named(&names, peer));
            table.row(vec![
                format!("{}.{}", node.name, link.name),
                class.name.clone(),
                peer.unwrap_or_else(|| "-".to_owned()),
                format!("{:.1} %", class.share * 100.0),
                class.served_bytes.to_string(),
                class.guaranteed_bytes.to_string(),
                class.streams.to_string(),
                class.counters.sent.to_string(),
                show::drops(&class.counters.dropped),
            ]);
        }
    }
    table
}

fn streams(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("link", Left),
        ("to", Left),
        ("tag", Name),
        ("form", Left),
        ("offered", Right),
        ("sent", Right),
        ("late", Right),
        ("violated", Right),
        ("dropped", Left),
    ]);
    let names = names(document);
    for (node, link) in all_links(document) {
        for stream in &link.streams {
            table.row(vec![
                format!("{}.{}", node.name, link.name),
                to(&names, stream),
                stream.tag.clone().unwrap_or_else(|| stream.publisher.to_string()),
                stream.form.to_string(),
                stream.counters.offered.to_string(),
                stream.counters.sent.to_string(),
                of_contract(stream.contracted, stream.counters.late),
                violated(stream),
                show::drops(&stream.counters.dropped),
            ]);
        }
    }
    table
}

/// Formats the next hop, and the multicast group from which it receives the stream.
fn to(names: &Names<'_>, stream: &StreamStatus) -> String {
    let hop = named(names, stream.hop);
    match &stream.group {
        Some(group) => format!("{hop} via {group}"),
        None => hop,
    }
}

/// Formats the number of violated windows since the stream was opened, and the time of the last
/// one.
fn violated(stream: &StreamStatus) -> String {
    let count = of_contract(stream.contracted, stream.counters.violations);
    match stream.broken_ago {
        Some(ago) => format!("{count}, {} s ago", ago.as_secs()),
        None => count,
    }
}

/// Formats a counter that only a stream with a contract has.
fn of_contract(contracted: bool, count: u64) -> String {
    if contracted { count.to_string() } else { "-".to_owned() }
}

/// The names of nodes.
type Names<'a> = BTreeMap<NodeId, &'a str>;

fn names(document: &StatusDocument) -> Names<'_> {
    document.nodes.iter().map(|node| (node.id, node.name.as_str())).collect()
}

fn named(names: &Names<'_>, id: NodeId) -> String {
    names.get(&id).map_or_else(|| id.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::example::status;
    use paceline_tool::table::WIDTH;

    #[test]
    fn tables_show_requests_and_their_results() {
        let expected = "\
NODES
node      id                publishers  subscriptions  links  dropped
operator  000000000000000b           0              1      0  0
robot     0000000000000b0b           1              0      1  0

PUBLISHERS
tag           node   kind     encoding    declared    Hz  published  wanted
robot/camera  robot  picture  image/jpeg   33.3 ms  30.0        300  yes

SUBSCRIPTIONS
pattern   node      asked            within  loss  proxy       Hz   of  late  lost  state
robot/**  operator  5 Hz at 160x120  200 ms  1/10  publisher  4.7  5.0     1     3  as requested

PLAYERS
pattern   node      asked            players  left out           lost   loss   jitter  round trip
robot/**  operator  5 Hz at 160x120        2  12 slow, 30 needs   900  6.2 %  1.25 ms     4.10 ms

DELIVERY BY TIME
pattern   node      delivery    setting      released  late  dropped  jitter in  out   error  notes
robot/**  operator  sync-group  stage=150ms        47     1        0          -    -  114 us  -

BUFFERS
pattern       node   samples   of   bytes         of  max age   spans
robot/camera  robot      100  100  640000  268435456  86400 s  3.30 s

LINKS
node   link  to        capacity  use  round trip   jitter  loss  wire bytes  streams
robot  thin  operator  2 Mbit/s    -     0.15 ms  0.02 ms     -      400000        1

CLASSES
link        class  peer   share  served bytes  guaranteed  streams  sent  dropped
robot.thin  video  -     75.0 %        123456        1000        1    47  3 superseded

STREAMS
link        to        tag           form             offered  sent  late     violated  dropped
robot.thin  operator  robot/camera  5 Hz at 160x120       50    47     1  2, 42 s ago  3 superseded

operator robot/**: as requested, 47 of 50 in 10 s, 3 lost, 1 late: 3 of 50 lost on link 'thin' of 'robot' (superseded)
robot.thin: contracts reserve 400 kbit/s, and stay valid down to 1.10 Mbit/s
robot.thin: 41 pieces retransmitted (10332 bytes), 1 sample given up, 6 % of the link reserved for that
robot.thin: slow link, operator counts as down after 6.30 s of silence
robot.thin: operator is muted (control flood): 2 times, 900 of its messages dropped";
        let text = tables(&StatusDocument::new(status()));
        assert_eq!(text, format!("{expected}\n"));
        let mut tables = text.lines().filter(|line| !line.contains(": "));
        assert!(tables.all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn refusals_are_not_truncated_and_empty_tables_are_omitted() {
        let mut status = status();
        status[1].subscriptions[0].refusals.push("link 'thin' can't carry it".to_owned());
        status[0].links[0].muted.clear();
        status[0].links[0].neighbours.clear();
        status[0].links[0].repairs = Repairs::default();
        status[0].links[0].least_capacity_bits_per_s = None;
        let text = tables(&StatusDocument::new(status));
        assert!(
            text.ends_with("operator robot/**: refused: link 'thin' can't carry it\n"),
            "{text}"
        );
        assert!(tables(&StatusDocument::new(Vec::new())).starts_with("no other node answers"));
    }
}
