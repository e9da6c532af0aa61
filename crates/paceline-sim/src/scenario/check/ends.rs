//! Checks publishers and subscribers.

use super::{elastic, known, tables};
use crate::scenario::file::{Amount, Field, File, Publisher, Subscriber};
use crate::scenario::plan::{Content, Lifetime, Plan, PublisherPlan, SubscriberPlan};
use crate::scenario::problems::Checked;
use crate::scenario::values::{HZ, Place, Rule, TIME_MAX, millihertz, period, span_of};
use core::num::NonZeroU32;
use paceline_proto::form::{Proxy, Rate};
use paceline_proto::tag::{Pattern, Tag};
use paceline_proto::wire::SAMPLE_BYTES_MAX;
use paceline_sched::{Duration, Late, LossTolerance};

/// The most samples of one publisher in one run.
const SAMPLES_MAX: u64 = 10_000_000;
/// A video payload contains its number and kind.
const VIDEO_BYTES_MIN: u64 = 9;
const GROUP: &str = "IBBPBBPBBPBB";
const GROUP_MAX: usize = 1_000;

const NODE: &str = "set it to the name of its node";
const TAG: &str = "set its tag, such as tag = \"robot/camera\"";
const PATTERN: &str = "set a tag or a pattern, such as \"robot/**\"";

pub(super) fn publishers(written: &File, plan: &mut Plan, checked: &mut Checked<'_>) {
    for (place, publisher) in tables("publisher", &written.publisher) {
        if let Some(publisher) = one_publisher(&place, publisher, plan, checked) {
            plan.publishers.push(publisher);
        }
    }
}

fn one_publisher(
    place: &Place,
    written: &Publisher,
    plan: &Plan,
    checked: &mut Checked<'_>,
) -> Option<PublisherPlan> {
    let node = place.needs("node", &written.node, NODE, |name| known(plan, name), checked);
    let read = |text: &str| Tag::new(text).map_err(|error| error.to_string());
    let tag = place.needs("tag", &written.tag, TAG, read, checked);
    let content = content(place, written, checked);
    let period =
        place.number("hz", &written.hz, HZ, checked).map_or(Duration::from_millis(100), period);
    let samples = plan.duration.saturating_add(plan.warm_up).as_nanos() / period.as_nanos().max(1);
    if samples > SAMPLES_MAX {
        let rule = format!(
            "makes {samples} samples in this scenario, at most {SAMPLES_MAX}; publish less often or \
             shorten duration"
        );
        checked.refuse(&span_of(&written.hz, place), &place.name, "hz", &rule);
    }
    let most = u64::try_from(SAMPLE_BYTES_MAX).unwrap_or(u64::MAX);
    let least = if matches!(content, Content::Video(_)) { VIDEO_BYTES_MIN } else { 1 };
    let bytes = (least..=most, "the payload of each sample; defaults to 1kB");
    let bytes = place.size("bytes", &written.bytes, bytes, checked).unwrap_or(1_000);
    let fix = "each sample is late by up to this time";
    let jitter = place.link_time("jitter", &written.jitter, fix, checked).unwrap_or_default();
    let lifetime = lifetime(place, (&written.from, &written.to), plan.duration, checked);
    let late = match written.late.as_ref().is_some_and(|late| *late.get_ref()) {
        true => Late::Send,
        false => Late::Drop,
    };
    let (node, tag, trace) = (node?, tag?, Vec::new());
    Some(PublisherPlan { node, tag, content, period, bytes, jitter, lifetime, late, trace })
}

fn content(place: &Place, written: &Publisher, checked: &mut Checked<'_>) -> Content {
    let read = |text: &str| {
        let fits = (1..=GROUP_MAX).contains(&text.len())
            && text.starts_with('I')
            && text.bytes().all(|kind| b"IPB".contains(&kind));
        let rule = "must be 1 to 1000 of I, P and B, the first an I; defaults to IBBPBBPBBPBB";
        fits.then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
    };
    let group = place.text("group", &written.group, read, checked);
    let read = |text: &str| match text {
        "data" => Ok(Content::Data),
        "picture" => Ok(Content::Pictures),
        "video" => Ok(Content::Video(group.clone().unwrap_or_else(|| GROUP.to_owned()))),
        _ => Err("must be data, picture or video; defaults to data".to_owned()),
    };
    let content = place.text("kind", &written.kind, read, checked).unwrap_or(Content::Data);
    if group.is_some() && !matches!(content, Content::Video(_)) {
        let rule = "applies only to video; set kind = \"video\" or remove it";
        checked.refuse(&span_of(&written.group, place), &place.name, "group", rule);
    }
    content
}

/// Returns the interval in which a publisher or subscriber exists.
fn lifetime(
    place: &Place,
    (from_field, to_field): (&Field<Amount>, &Field<Amount>),
    duration: Duration,
    checked: &mut Checked<'_>,
) -> Lifetime {
    let fix = "counted from the end of the warm-up; defaults to that";
    let from = place.time("from", from_field, fix, checked);
    let fix = "counted from the end of the warm-up; defaults to the end of the scenario";
    let to = place.time("to", to_field, fix, checked);
    for (name, at, field) in [("from", from, from_field), ("to", to, to_field)] {
        if at.is_some_and(|at| at > duration) {
            let rule = format!("must be at most duration, which is {duration}");
            checked.refuse(&span_of(field, place), &place.name, name, &rule);
        }
    }
    if let (Some(from), Some(to)) = (from, to)
        && to <= from
    {
        let rule = format!("must be above from, which is {from}");
        checked.refuse(&span_of(to_field, place), &place.name, "to", &rule);
    }
    Lifetime { from, to }
}

pub(super) fn subscribers(written: &File, plan: &mut Plan, checked: &mut Checked<'_>) {
    for (place, subscriber) in tables("subscriber", &written.subscriber) {
        if let Some(subscriber) = one_subscriber(&place, subscriber, plan, checked) {
            plan.subscribers.push(subscriber);
        }
    }
}

fn one_subscriber(
    place: &Place,
    written: &Subscriber,
    plan: &Plan,
    checked: &mut Checked<'_>,
) -> Option<SubscriberPlan> {
    let node = place.needs("node", &written.node, NODE, |name| known(plan, name), checked);
    let read = |text: &str| Pattern::new(text).map_err(|error| error.to_string());
    let pattern = place.needs("tag", &written.tag, PATTERN, read, checked);
    let rate = rate(place, written, checked);
    let fix = "the longest time from publish to delivery; omit it for no bound";
    let range = (Duration::from_micros(1)..=TIME_MAX, fix);
    let within = place.duration("within", &written.within, range, checked);
    let read = |text: &str| text.parse::<LossTolerance>().map_err(|error| error.to_string());
    let loss = place.text("loss", &written.loss, read, checked);
    let read = |text: &str| {
        let wrong =
            "must be publisher, subscriber, auto or node:NAME; publisher saves link capacity";
        text.parse().map_err(|_| wrong.to_owned())
    };
    let proxy = place.text("proxy", &written.proxy, read, checked).unwrap_or(Proxy::Publisher);
    let lifetime = lifetime(place, (&written.from, &written.to), plan.duration, checked);
    let mut made = SubscriberPlan::new(node?, pattern?);
    made.spec.form.rate = rate;
    made.spec.within = within;
    made.spec.loss = loss;
    made.spec.proxy = proxy;
    elastic::reductions(place, written, &mut made.spec, checked);
    Some(SubscriberPlan { lifetime, ..made })
}

fn rate(place: &Place, written: &Subscriber, checked: &mut Checked<'_>) -> Rate {
    let rule = Rule { fix: "omit it for every sample", ..HZ };
    let max = place.number("max_hz", &written.max_hz, rule, checked).map(millihertz);
    let every = (1..=i64::from(u32::MAX), "3 takes one in three; omit it for every sample");
    let every = place.whole("every", &written.every, every, checked);
    let every = every.and_then(|n| NonZeroU32::new(u32::try_from(n).ok()?)).map(Rate::every);
    let counted = every.unwrap_or(Rate::ALL);
    max.and_then(NonZeroU32::new).map_or(counted, |limit| counted.at_most(limit))
}
