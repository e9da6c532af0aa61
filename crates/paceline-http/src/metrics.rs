//! `/metrics`: every counter in the Prometheus text format, version 0.0.4.
//!
//! Values are in base units: bytes, seconds, and bits where networks count bits. The names of
//! counters end in `_total`.

use super::api::State;
use paceline::delivery::TimedStatus;
use paceline::status::{
    BufferStatus, ClassStatus, Drops, LinkStatus, NodeStatus, PublisherStatus, StreamStatus,
    SubscriptionHealth, SubscriptionStatus,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

mod capacity;
#[cfg(test)]
mod grafana;
mod players;
mod streams;
#[cfg(test)]
mod tests;

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// Metric families by name; the samples of a family must be contiguous.
#[derive(Default)]
struct Families(BTreeMap<&'static str, (Kind, &'static str, String)>);

/// Labels in order.
type Labels = Vec<(&'static str, String)>;

impl Families {
    fn add(
        &mut self,
        kind: Kind,
        name: &'static str,
        help: &'static str,
        at: &Labels,
        value: &str,
    ) {
        let (_, _, samples) = self.0.entry(name).or_insert_with(|| (kind, help, String::new()));
        let labels: Vec<String> =
            at.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(samples, "{name}{{{}}} {value}", labels.join(","));
    }

    fn count(&mut self, name: &'static str, help: &'static str, at: &Labels, value: u64) {
        self.add(Kind::Counter, name, help, at, &value.to_string());
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, at: &Labels, value: u64) {
        self.add(Kind::Gauge, name, help, at, &value.to_string());
    }

    fn drops(&mut self, name: &'static str, help: &'static str, at: &Labels, drops: &Drops) {
        for (reason, count) in drops.iter() {
            let mut at = at.clone();
            at.push(("reason", reason.name().to_owned()));
            self.count(name, help, &at, count);
        }
    }

    fn written(self) -> String {
        let mut text = String::new();
        for (name, (kind, help, samples)) in self.0 {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Formats a time in seconds with six decimals, rounded down.
fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// Formats the metrics of all nodes.
pub(super) fn write(state: &State) -> String {
    let mut to = Families::default();
    for node in state.nodes.iter().filter(|node| !state.far.contains(&node.id)) {
        let at = vec![("node", node.name.clone()), ("node_id", node.id.to_string())];
        write_node(&mut to, &at, node);
    }
    to.written()
}

fn write_node(to: &mut Families, at: &Labels, node: &NodeStatus) {
    to.gauge("paceline_node_info", "1 for each node that answers.", at, 1);
    let help = "Threads of the node that are more than two seconds late with their next iteration.";
    to.gauge("paceline_node_stalled_threads", help, at, node.stalled.len() as u64);
    let help = "Entries of other nodes that the node cannot read and ignores, at most 64.";
    to.gauge("paceline_node_unread_entries", help, at, node.unread.len() as u64);
    let clock = node.clock.as_ref();
    if let Some((clock, error)) = clock.and_then(|clock| Some((clock, clock.error_nanos?))) {
        let name = "paceline_node_clock_error_seconds";
        let help = "Bound of the error of the node's clock; missing if it is unknown.";
        to.add(Kind::Gauge, name, help, at, &seconds(Duration::from_micros(error.div_ceil(1_000))));
        let name = "paceline_node_system_clock_offset_seconds";
        let help = "The system clock minus the node's clock; missing if the error is unknown.";
        let offset = clock.system_offset_nanos;
        let sign = if offset < 0 { "-" } else { "" };
        let offset = seconds(Duration::from_nanos(offset.unsigned_abs()));
        to.add(Kind::Gauge, name, help, at, &format!("{sign}{offset}"));
    }
    to.drops(
        "paceline_node_dropped_samples_total",
        "Samples dropped at the node because no subscription matched.",
        at,
        &node.dropped,
    );
    for publisher in &node.publishers {
        write_publisher(to, at.clone(), publisher);
    }
    for subscription in &node.subscriptions {
        write_subscription(to, at.clone(), subscription);
    }
    if let Some(space) = &node.buffer {
        let help = "Queue space of the node for contracts.";
        to.gauge("paceline_host_buffer_bytes", help, at, space.bytes);
        let help = "Queue space of the node that contracts reserve.";
        to.gauge("paceline_host_buffer_reserved_bytes", help, at, space.reserved_bytes);
        let help = "Greatest number of bytes of contracted samples that waited on the node since the start.";
        to.gauge("paceline_host_buffer_greatest_bytes", help, at, space.greatest_bytes);
    }
    for buffer in &node.buffers {
        write_buffer(to, at.clone(), buffer);
    }
    for link in &node.links {
        write_link(to, at.clone(), link);
    }
}

fn write_publisher(to: &mut Families, mut at: Labels, publisher: &PublisherStatus) {
    at.extend([("publisher", publisher.id.to_string()), ("tag", publisher.tag.to_string())]);
    to.count("paceline_publisher_samples_total", "Samples published.", &at, publisher.published);
    to.gauge(
        "paceline_publisher_matching",
        "1 if a subscription matches, else 0.",
        &at,
        u64::from(publisher.matching),
    );
}

/// Returns the requested form of a subscription: of an elastic contract the most, so that its steps begin no new series.
fn form_of(row: &SubscriptionStatus) -> String {
    let most = row.elastic.as_ref().and_then(|elastic| elastic.ladder.first().cloned());
    most.unwrap_or_else(|| row.form.to_string())
}

fn write_subscription(to: &mut Families, mut at: Labels, row: &SubscriptionStatus) {
    at.extend([
        ("subscription", row.id.to_string()),
        ("pattern", row.pattern.clone()),
        ("form", form_of(row)),
    ]);
    let at = &at;
    if let Some(elastic) = &row.elastic {
        let help =
            "Steps by which the elastic contract is reduced; 0 for the most that it requests.";
        to.gauge("paceline_subscription_reduced_steps", help, at, elastic.step as u64);
    }
    to.count("paceline_subscription_samples_total", "Samples delivered.", at, row.delivered);
    to.count("paceline_subscription_bytes_total", "Payload bytes delivered.", at, row.bytes);
    to.count(
        "paceline_subscription_late_samples_total",
        "Samples that were older than the delay bound at their arrival, or when the application took them.",
        at,
        row.late,
    );
    let name = "paceline_subscription_overdue_samples_total";
    let help = "Late samples that arrived in time, and waited in the process of the subscription.";
    to.count(name, help, at, row.overdue);
    let name = "paceline_subscription_jitter_seconds";
    let help = "Largest jitter of a publisher's samples at arrival (RFC 3550).";
    to.add(Kind::Gauge, name, help, at, &seconds(row.jitter));
    let help = "Samples that were published between two that arrived, but did not arrive.";
    to.count("paceline_subscription_lost_samples_total", help, at, row.lost);
    write_health(to, at, &row.health);
    row.players.iter().for_each(|players| players::write(to, at, players));
    row.timed.iter().for_each(|timed| write_timed(to, at.clone(), timed));
    to.drops(
        "paceline_subscription_dropped_samples_total",
        "Samples dropped at the subscriber's node.",
        at,
        &row.dropped,
    );
    to.add(
        Kind::Counter,
        "paceline_subscription_age_seconds_total",
        "Sum of the ages of the samples that the application took.",
        at,
        &seconds(row.age_sum),
    );
    to.add(
        Kind::Gauge,
        "paceline_subscription_age_max_seconds",
        "Largest age of the samples that the application took or that were dropped unread, over the last second or more.",
        at,
        &seconds(row.age_max),
    );
    if let Some(mean) = row.age_mean {
        let help = "Mean age of the same samples; missing without any.";
        let name = "paceline_subscription_age_mean_seconds";
        to.add(Kind::Gauge, name, help, at, &seconds(mean));
    }
    to.gauge(
        "paceline_subscription_publishers",
        "Publishers that are received.",
        at,
        row.publishers.len() as u64,
    );
    to.gauge(
        "paceline_subscription_refusals",
        "Publishers that refuse the subscription.",
        at,
        row.refusals.len() as u64,
    );
}

fn write_health(to: &mut Families, at: &Labels, health: &SubscriptionHealth) {
    let mut with_state = at.clone();
    with_state.push(("state", health.state.name().to_owned()));
    let help = "1 with the state of the subscription: no_publisher, silent, served, short, broken or refused.";
    to.gauge("paceline_subscription_health", help, &with_state, 1);
    let help = "Seconds in which the subscription had a delay bound and missed more samples than it tolerates.";
    to.count("paceline_subscription_broken_seconds_total", help, at, health.broken_seconds);
    let help = "Time that the window figures of the subscription cover, at most 10 s.";
    to.add(Kind::Gauge, "paceline_subscription_window_seconds", help, at, &seconds(health.window));
    for (name, help, value) in [
        (
            "paceline_subscription_window_requested_samples",
            "Samples in the window that were sent and requested; missing if their number is unknown.",
            health.requested,
        ),
        (
            "paceline_subscription_window_delivered_samples",
            "Samples delivered in the window.",
            Some(health.delivered),
        ),
        (
            "paceline_subscription_window_lost_samples",
            "Requested samples in the window that were not delivered.",
            Some(health.lost),
        ),
        (
            "paceline_subscription_window_late_samples",
            "Samples delivered in the window later than the delay bound.",
            Some(health.late),
        ),
    ] {
        if let Some(value) = value {
            to.gauge(name, help, at, value);
        }
    }
}

fn write_timed(to: &mut Families, mut at: Labels, timed: &TimedStatus) {
    at.push(("delivery", timed.method.name().to_owned()));
    let help = "Samples released by a subscription with delivery by time.";
    to.count("paceline_subscription_released_samples_total", help, &at, timed.released);
    let help = "Starts of the safe action: the last command reached its age limit.";
    to.count("paceline_subscription_safe_actions_total", help, &at, timed.silences);
    for (name, help, value) in [
        (
            "paceline_subscription_jitter_out_seconds",
            "Largest jitter of a publisher's samples at release (RFC 3550).",
            timed.jitter_out,
        ),
        (
            "paceline_subscription_release_error_seconds",
            "Bound of the difference of a release from its time.",
            timed.bound,
        ),
    ] {
        if let Some(time) = value {
            to.add(Kind::Gauge, name, help, &at, &seconds(time));
        }
    }
}

fn write_buffer(to: &mut Families, mut at: Labels, buffer: &BufferStatus) {
    at.extend([("subscription", buffer.id.to_string()), ("pattern", buffer.pattern.clone())]);
    to.gauge("paceline_buffer_samples", "Samples in the pull buffer.", &at, buffer.samples);
    to.gauge("paceline_buffer_bytes", "Payload bytes in the pull buffer.", &at, buffer.bytes);
    let limit = "Limit of the samples in the pull buffer.";
    to.gauge("paceline_buffer_samples_max", limit, &at, buffer.samples_max);
    to.gauge(
        "paceline_buffer_bytes_max",
        "Limit of the payload bytes in the pull buffer.",
        &at,
        buffer.bytes_max,
    );
}

fn write_link(to: &mut Families, mut at: Labels, link: &LinkStatus) {
    at.push(("link", link.name.clone()));
    to.count("paceline_link_wire_bytes_total", "Bytes sent on the wire.", &at, link.wire_bytes);
    to.count("paceline_link_frames_total", "Frames sent.", &at, link.frames);
    let help = "Frames lost by a transport that should keep order.";
    to.count("paceline_link_lost_frames_total", help, &at, link.frames_lost);
    to.gauge("paceline_link_hops", "Neighbours of the link.", &at, link.hops.len() as u64);
    capacity::write(to, &at, link);
    let help = "Capacity of the link that contracts reserve.";
    to.gauge("paceline_link_reserved_bits_per_second", help, &at, link.reserved_bits_per_s);
    if let Some(buffer) = &link.buffer {
        let help = "Queue space of the link for contracts.";
        to.gauge("paceline_link_buffer_bytes", help, &at, buffer.bytes);
        let help = "Queue space that contracts reserve.";
        to.gauge("paceline_link_buffer_reserved_bytes", help, &at, buffer.reserved_bytes);
        let help = "Greatest number of bytes of contracted samples in the queues since the start.";
        to.gauge("paceline_link_buffer_greatest_bytes", help, &at, buffer.greatest_bytes);
    }
    let (name, help) = ("paceline_link_round_trip_seconds", "Minimum round-trip time.");
    to.add(Kind::Gauge, name, help, &at, &seconds(link.least_round_trip));
    let (name, help) = ("paceline_link_delay_seconds", "Last round-trip time.");
    to.add(Kind::Gauge, name, help, &at, &seconds(link.round_trip));
    let (name, help) = ("paceline_link_jitter_seconds", "Jitter of the round trips (RFC 3550).");
    to.add(Kind::Gauge, name, help, &at, &seconds(link.jitter));
    let (name, help) =
        ("paceline_link_dropped_frames_total", "Frames that the network lost (QUIC).");
    to.count(name, help, &at, link.frames_dropped);
    let repaired = link.repairs;
    for (name, help, value) in [
        (
            "paceline_link_repeated_pieces_total",
            "Lost pieces that were retransmitted.",
            repaired.repeated,
        ),
        (
            "paceline_link_repeated_bytes_total",
            "Payload bytes of the retransmitted pieces.",
            repaired.repeated_bytes,
        ),
        (
            "paceline_link_given_up_samples_total",
            "Samples with a lost piece that could no longer arrive in time.",
            repaired.given_up,
        ),
    ] {
        to.count(name, help, &at, value);
    }
    for neighbour in &link.neighbours {
        let mut at = at.clone();
        at.push(("hop", neighbour.id.to_string()));
        let (name, help) =
            ("paceline_hop_wire_bytes_total", "Bytes sent on the wire to one neighbour.");
        to.count(name, help, &at, neighbour.wire_bytes);
    }
    write_muted(to, &at, link);
    write_closed(to, &at, link);
    for stream in streams::together(&link.streams) {
        write_stream(to, at.clone(), &stream);
    }
    for class in &link.classes {
        write_class(to, at.clone(), class);
    }
}

fn write_muted(to: &mut Families, at: &Labels, link: &LinkStatus) {
    for row in &link.muted {
        let mut at = at.clone();
        at.push(("peer", row.peer.to_string()));
        at.push(("flood", row.flood.name().to_owned()));
        let (name, help) =
            ("paceline_link_muted", "1 while the node ignores a neighbour that floods it, else 0.");
        to.gauge(name, help, &at, u64::from(row.muted));
        let help =
            "Control messages, samples or frames of the flooding neighbour that were dropped.";
        to.count("paceline_link_muted_dropped_total", help, &at, row.dropped);
    }
}

fn write_closed(to: &mut Families, at: &Labels, link: &LinkStatus) {
    let closed = &link.closed;
    for (name, help, value) in [
        (
            "paceline_link_closed_offered_samples_total",
            "Samples offered to closed streams.",
            closed.offered,
        ),
        ("paceline_link_closed_sent_samples_total", "Samples sent by closed streams.", closed.sent),
        (
            "paceline_link_closed_late_samples_total",
            "Samples that closed streams sent after the deadline.",
            closed.late,
        ),
    ] {
        to.count(name, help, at, value);
    }
    let (name, help) =
        ("paceline_link_closed_dropped_samples_total", "Samples dropped by closed streams.");
    to.drops(name, help, at, &closed.dropped);
}

fn write_stream(to: &mut Families, mut at: Labels, stream: &StreamStatus) {
    at.extend([
        ("publisher", stream.publisher.to_string()),
        ("tag", stream.tag.clone().unwrap_or_default()),
        ("form", stream.form.to_string()),
        ("hop", stream.hop.to_string()),
    ]);
    let at = &at;
    for (name, help, value) in [
        (
            "paceline_stream_offered_samples_total",
            "Samples offered to the link.",
            stream.counters.offered,
        ),
        ("paceline_stream_sent_samples_total", "Samples sent completely.", stream.counters.sent),
        ("paceline_stream_bytes_total", "Payload bytes sent.", stream.counters.bytes),
        (
            "paceline_stream_late_samples_total",
            "Samples sent after the deadline.",
            stream.counters.late,
        ),
        (
            "paceline_stream_violations_total",
            "Windows with more misses than the loss tolerance allows.",
            stream.counters.violations,
        ),
        (
            "paceline_stream_early_samples_total",
            "Samples that arrived earlier than the contract allows.",
            stream.counters.too_early,
        ),
        (
            "paceline_stream_long_samples_total",
            "Samples that were larger than declared.",
            stream.counters.too_long,
        ),
        (
            "paceline_stream_entered_samples_total",
            "Samples that entered the link.",
            stream.ages.entered,
        ),
    ] {
        to.count(name, help, at, value);
    }
    for (name, help, sum) in [
        (
            "paceline_stream_entered_age_seconds_total",
            "Sum of the sample ages on entering the link.",
            stream.ages.entered_age,
        ),
        (
            "paceline_stream_left_age_seconds_total",
            "Sum of the ages of sent samples when their last byte left.",
            stream.ages.left_age,
        ),
    ] {
        to.add(Kind::Counter, name, help, at, &seconds(sum));
    }
    let (name, help) = ("paceline_stream_dropped_samples_total", "Samples dropped, by reason.");
    to.drops(name, help, at, &stream.counters.dropped);
    let reserved = stream.contract.as_ref().map_or(0, |contract| contract.bits_per_s);
    let help = "Capacity of the link that the contract reserves; 0 for best effort.";
    to.gauge("paceline_stream_reserved_bits_per_second", help, at, reserved);
}

fn write_class(to: &mut Families, mut at: Labels, class: &ClassStatus) {
    at.push(("class", class.name.clone()));
    at.push(("peer", class.peer.map(|peer| peer.to_string()).unwrap_or_default()));
    let at = &at;
    for (name, help, value) in [
        ("paceline_class_served_bytes_total", "Bytes that the class sent.", class.served_bytes),
        (
            "paceline_class_guaranteed_bytes_total",
            "Bytes that the class sent because of its guarantee.",
            class.guaranteed_bytes,
        ),
        (
            "paceline_class_offered_samples_total",
            "Samples offered to the class.",
            class.counters.offered,
        ),
        ("paceline_class_sent_samples_total", "Samples sent completely.", class.counters.sent),
        (
            "paceline_class_late_samples_total",
            "Samples sent after the deadline.",
            class.counters.late,
        ),
        (
            "paceline_class_violations_total",
            "Windows with more misses than the loss tolerance \
             allows.",
            class.counters.violations,
        ),
    ] {
        to.count(name, help, at, value);
    }
    let (name, help) = ("paceline_class_dropped_samples_total", "Samples dropped, by reason.");
    to.drops(name, help, at, &class.counters.dropped);
    let help = "Rate that the class guarantees to contracts.";
    to.gauge("paceline_class_guaranteed_bits_per_second", help, at, class.guaranteed_bits_per_s);
    let help = "Part of the guaranteed rate that contracts reserve.";
    to.gauge("paceline_class_reserved_bits_per_second", help, at, class.reserved_bits_per_s);
    to.gauge("paceline_class_streams", "Streams in the class.", at, u64::from(class.streams));
}
