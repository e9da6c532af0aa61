//! Converts a parsed file to a plan. Checks that every value is in range, every name is known, and no fields
//! contradict each other.

mod elastic;
mod ends;
mod faults;

use super::file::{self, Amount, Field, File};
use super::plan::{NodePlan, Plan, Protocol, Wiring};
use super::problems::{Checked, Problems};
use super::values::{Place, TIME_MAX, span_of};
use crate::impair::Impairment;
use core::ops::Range;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{NAME_BYTES_MAX, NODES_MAX};
use paceline_sched::{Duration, Policy, units};
use toml::Spanned;

/// Bytes that pass a shaped link at once, the same value as for shaped live links.
const SHAPER_BURST: u64 = 1_600;
/// The most links, publishers, subscribers and faults of one scenario, each.
const MANY_MAX: usize = 65_536;
/// The most steps of one clock.
const STEPS_MAX: usize = 1_000;
const QUEUE_BYTES_MAX: u64 = 1 << 30;

const NAME: &str = "give each node a unique name, such as name = \"robot\"";
const BETWEEN: &str =
    "must be the names of two nodes, for example between = [\"robot\", \"operator\"]";

impl Plan {
    /// Parses `text`, the content of `file`.
    ///
    /// # Errors
    /// Returns all errors in the text, one per line.
    pub fn read(text: &str, file: &str) -> Result<Self, Problems> {
        let mut checked = Checked::new(file, text);
        let written: File = match toml::from_str(text) {
            Ok(written) => written,
            Err(error) => {
                let message = error.message().lines().collect::<Vec<_>>().join(" ");
                let fix = renamed(&message).map(|fix| format!("; {fix}")).unwrap_or_default();
                checked.add(&error.span().unwrap_or_default(), format!("{message}{fix}"));
                return Err(checked.problems());
            }
        };
        let plan = plan(&written, &mut checked);
        checked.done(plan)
    }
}

/// Returns the fix for an unknown field that an earlier version spelled with its unit.
fn renamed(message: &str) -> Option<String> {
    let (name, known) = message.strip_prefix("unknown field `")?.split_once('`')?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let (present, example) = units::renamed(name, &known)?;
    Some(format!("write {present} with a unit, such as {present} = \"{example}\""))
}

fn plan(written: &File, checked: &mut Checked<'_>) -> Plan {
    let place = Place::new(String::new(), 0..0);
    let read = |text: &str| name(text);
    let fix = "the measured time, after the warm-up";
    let range = (Duration::from_millis(100)..=TIME_MAX, fix);
    let duration = place.seconds("duration", &written.duration, range, checked);
    let fix = "the time before measuring starts; defaults to 2s";
    let range = (Duration::ZERO..=Duration::from_secs(3_600), fix);
    let warm_up = place.seconds("warm_up", &written.warm_up, range, checked);
    let fix = "the same seed gives the same run";
    let seed = place.whole("seed", &written.seed, (0..=i64::MAX, fix), checked).unwrap_or(1);
    let mut plan = Plan {
        name: place
            .text("name", &written.name, read, checked)
            .unwrap_or_else(|| "scenario".to_owned()),
        seed: u64::try_from(seed).unwrap_or_default(),
        duration: duration.unwrap_or(Duration::from_secs(10)),
        warm_up: warm_up.unwrap_or(Duration::from_secs(2)),
        nodes: Vec::new(),
        links: Vec::new(),
        publishers: Vec::new(),
        subscribers: Vec::new(),
        faults: Vec::new(),
        warnings: Vec::new(),
    };
    few("node", &written.node, NODES_MAX, checked);
    few("link", &written.link, MANY_MAX, checked);
    few("publisher", &written.publisher, MANY_MAX, checked);
    few("subscriber", &written.subscriber, MANY_MAX, checked);
    few("fault", &written.fault, MANY_MAX, checked);
    nodes(written, &mut plan, checked);
    links(written, &mut plan, checked);
    ends::publishers(written, &mut plan, checked);
    ends::subscribers(written, &mut plan, checked);
    faults::faults(written, &mut plan, checked);
    plan
}

fn few<T>(what: &str, list: &[Spanned<T>], most: usize, checked: &mut Checked<'_>) {
    if let Some(one) = list.get(most) {
        let given = list.len();
        checked.add(
            &one.span(),
            format!("{given} of [[{what}]], must be at most {most}; remove some"),
        );
    }
}

/// Returns the tables of a list, each with its name for messages.
fn tables<'f, T>(
    what: &'static str,
    list: &'f [Spanned<T>],
) -> impl Iterator<Item = (Place, &'f T)> {
    (1..).zip(list).map(move |(number, table): (usize, _)| {
        (Place::new(format!("{what} {number}: "), table.span()), table.get_ref())
    })
}

fn name(text: &str) -> Result<String, String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(|| {
        format!("must be 1 to {NAME_BYTES_MAX} bytes of text without control characters")
    })
}

fn nodes(written: &File, plan: &mut Plan, checked: &mut Checked<'_>) {
    if written.node.is_empty() {
        checked.add(&(0..0), "no [[node]]: a scenario needs at least one, with a name");
    }
    for (place, node) in tables("node", &written.node) {
        let mut made = NodePlan::default();
        if let Some(name) = place.needs("name", &node.name, NAME, name, checked) {
            if plan.nodes.iter().any(|other| other.name == name) {
                let span = span_of(&node.name, &place);
                checked.refuse(
                    &span,
                    &place.name,
                    "name",
                    "another node has it; give each node a unique name",
                );
            }
            made.name = name;
        }
        if let Some(clock) = &node.clock {
            self::clock(&place, clock.get_ref(), &mut made, plan.duration, checked);
        }
        plan.nodes.push(made);
    }
}

fn clock(
    place: &Place,
    clock: &file::Clock,
    node: &mut NodePlan,
    duration: Duration,
    checked: &mut Checked<'_>,
) {
    let fix = "100 is a clock that gains 0.1 ms a second";
    let drift =
        place.whole("clock.drift_ppm", &clock.drift_ppm, (-100_000..=100_000, fix), checked);
    node.drift_ppm = drift.and_then(|ppm| i32::try_from(ppm).ok()).unwrap_or_default();
    if let Some(one) = clock.steps.get(STEPS_MAX) {
        checked.add(&one.span(), format!("{}more than {STEPS_MAX} clock.steps", place.name));
    }
    for step in &clock.steps {
        let inner = Place::new(format!("{}clock.steps ", place.name), step.span());
        let step = step.get_ref();
        let at = needs_at(&inner, &step.at, duration, checked);
        if step.by.is_none() {
            checked
                .add(&inner.span, format!("{}by is missing: set the size of the step", inner.name));
        }
        let by = inner.shift("by", &step.by, "a negative one sets it back", checked);
        node.steps.extend(at.zip(by));
    }
    node.steps.sort_by_key(|(at, _)| *at);
}

/// Returns `at`, which is required and must be within the duration.
fn needs_at(
    place: &Place,
    at: &Field<Amount>,
    duration: Duration,
    checked: &mut Checked<'_>,
) -> Option<Duration> {
    let fix = "counted from the end of the warm-up";
    if at.is_none() {
        checked.add(&place.span, format!("{}at is missing: set the time, {fix}", place.name));
    }
    let read = place.time("at", at, fix, checked)?;
    if read < duration {
        return Some(read);
    }
    let rule = format!("must be below duration, which is {duration}; {fix}");
    checked.refuse(&span_of(at, place), &place.name, "at", &rule);
    None
}

/// Returns the index of the node with a name.
fn known(plan: &Plan, name: &str) -> Result<usize, String> {
    plan.nodes.iter().position(|node| node.name == name).ok_or_else(|| {
        let names: Vec<_> = plan.nodes.iter().take(10).map(|node| node.name.as_str()).collect();
        format!("must be a node's name; the nodes are {}", names.join(", "))
    })
}

/// Returns the two nodes that a list names.
fn pair(
    place: &Place,
    field: &str,
    list: &Spanned<Vec<Spanned<String>>>,
    plan: &Plan,
    checked: &mut Checked<'_>,
) -> Option<[usize; 2]> {
    let refuse = |span: &Range<usize>, rule: &str, checked: &mut Checked<'_>| {
        checked.refuse(span, &place.name, field, rule);
    };
    let [a, b] = list.get_ref().as_slice() else {
        refuse(&list.span(), BETWEEN, checked);
        return None;
    };
    let mut find = |name: &Spanned<String>| match known(plan, name.get_ref()) {
        Ok(found) => Some(found),
        Err(rule) => {
            refuse(&name.span(), &rule, checked);
            None
        }
    };
    let (a, b) = (find(a)?, find(b)?);
    if a == b {
        refuse(&list.span(), "names one node twice; name the two nodes that it joins", checked);
        return None;
    }
    Some([a, b])
}

fn links(written: &File, plan: &mut Plan, checked: &mut Checked<'_>) {
    for (place, link) in tables("link", &written.link) {
        let Some(list) = &link.between else {
            checked.add(&place.span, format!("{}between is missing: {BETWEEN}", place.name));
            continue;
        };
        let between = pair(&place, "between", list, plan, checked);
        let rate = place.capacity("rate", &link.rate, checked);
        let read = |text: &str| match text.parse::<LinkCapacity>() {
            Ok(capacity) => Ok(capacity),
            Err(error) => Err(error.to_string()),
        };
        let capacity = place.text("capacity", &link.capacity, read, checked);
        let capacity = capacity.or(rate.map(LinkCapacity::Fixed));
        let read = |text: &str| text.parse::<Policy>().map_err(|error| error.to_string());
        let policy = place.text("discipline", &link.discipline, read, checked).unwrap_or_default();
        let fields = Fields::of_link(link);
        let wire = wire(
            &place,
            &fields,
            Impairment { rate, burst_bytes: SHAPER_BURST, ..Impairment::NONE },
            checked,
        );
        let read = |text: &str| match text {
            "tcp" => Ok(Protocol::Tcp),
            "quic" => Ok(Protocol::Quic),
            _ => Err("must be tcp or quic; defaults to tcp".to_owned()),
        };
        let protocol = place.text("protocol", &link.protocol, read, checked).unwrap_or_default();
        let Some(between) = between else { continue };
        if joined(plan, between).is_some() {
            let rule = "another link joins these two; two nodes may have only one link";
            checked.refuse(&list.span(), &place.name, "between", rule);
        }
        if let (Some(LinkCapacity::Fixed(configured)), Some(rate)) = (capacity, rate)
            && configured > rate
        {
            let [a, b] = between.map(|node| plan.node(node).to_owned());
            plan.warnings.push(format!(
                "link {a} - {b}: the configured capacity is {configured} and the wire carries {rate}; the \
                 excess waits in a queue that the nodes cannot see"
            ));
        }
        plan.links.push(Wiring { between, capacity, policy, protocol, wire });
    }
}

/// Returns the link between two nodes.
fn joined(plan: &Plan, [a, b]: [usize; 2]) -> Option<&Wiring> {
    plan.links.iter().find(|link| link.between == [a, b] || link.between == [b, a])
}

/// The wire properties that a link or a fault specifies.
struct Fields<'f> {
    delay: &'f Field<Amount>,
    jitter: &'f Field<Amount>,
    loss: &'f Field<file::Loss>,
    reorder: &'f Field<f64>,
    duplicate: &'f Field<f64>,
    queue: &'f Field<Amount>,
}

impl<'f> Fields<'f> {
    fn of_link(link: &'f file::Link) -> Self {
        Self {
            delay: &link.delay,
            jitter: &link.jitter,
            loss: &link.loss,
            reorder: &link.reorder,
            duplicate: &link.duplicate,
            queue: &link.queue,
        }
    }

    fn of_fault(fault: &'f file::Fault) -> Self {
        Self {
            delay: &fault.delay,
            jitter: &fault.jitter,
            loss: &fault.loss,
            reorder: &fault.reorder,
            duplicate: &fault.duplicate,
            queue: &fault.queue,
        }
    }
}

/// Returns the specified wire properties; those not specified are taken from `before`.
fn wire(
    place: &Place,
    fields: &Fields<'_>,
    before: Impairment,
    checked: &mut Checked<'_>,
) -> Impairment {
    let range = (1_600..=QUEUE_BYTES_MAX, "64kB is usual");
    let queue = place.size("queue", fields.queue, range, checked);
    let fix = "omit it for none";
    let delay = place.link_time("delay", fields.delay, fix, checked);
    let jitter = place.link_time("jitter", fields.jitter, fix, checked);
    let reorder = place.share("reorder", fields.reorder, checked);
    let duplicate = place.share("duplicate", fields.duplicate, checked);
    Impairment {
        delay: delay.unwrap_or(before.delay),
        jitter: jitter.unwrap_or(before.jitter),
        loss: place.loss(fields.loss, checked).unwrap_or(before.loss),
        reorder_ppm: reorder.unwrap_or(before.reorder_ppm),
        duplicate_ppm: duplicate.unwrap_or(before.duplicate_ppm),
        queue_bytes: queue.unwrap_or(before.queue_bytes),
        ..before
    }
}

#[cfg(test)]
mod tests;
