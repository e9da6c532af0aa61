//! One camera and three subscribers, each with its own rate and size.

use crate::bench::netns::Side;
use crate::bench::protocol::{Content, Engine, Source, Want};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stage::{Flow, Listener, Measured, Plan, Stage};
use crate::bench::stats::{count, float, millis};
use anyhow::Result;
use paceline::class::Policy;

const TAG: &str = "robot/camera";
const SIZE: (u32, u32) = (160, 120);
const WITHIN_MS: u64 = 200;
const LOSS: (u32, u32) = (1, 10);
/// The operator's 5 Hz are one in six of the camera's 30 Hz.
const STEP: u64 = 6;
const SECONDS_MAX: f64 = 60.0;

pub(super) fn measure(stage: &Stage<'_>, commands: u32) -> Result<Section> {
    let seconds = stage.seconds((f64::from(commands) / 50.0).clamp(20.0, SECONDS_MAX));
    eprintln!("one camera, three subscribers: {seconds} s with Paceline, then with plain Zenoh");
    let ours = stage.measure(&plan(Engine::Paceline, seconds))?;
    let plain = stage.measure(&plan(Engine::Plain, seconds))?;
    let mut section = Section::new(format!(
        "One camera, 640x480 JPEG at 30 Hz, to three subscribers ({seconds} s)"
    ));
    rates(&mut section, &ours, &plain);
    operator(&mut section, &ours, &plain);
    wire(&mut section, &ours, &plain);
    section.load(ours.load, plain.load);
    section.warn_if_busy();
    section.note(
        "Plain Zenoh has no rate or size per subscriber: every subscriber gets the full stream.",
    );
    ours.remarks.iter().for_each(|remark| section.note(remark));
    Ok(section)
}

fn plan(engine: Engine, seconds: f64) -> Plan {
    let content = Content::Card { width: 640, height: 480 };
    let want = Want { tag: TAG.to_owned(), ..Want::default() };
    let listener = |name, side, want| Listener { name, side, want: vec![want] };
    let operator = Want {
        max_hz: Some(5.0),
        size: Some(SIZE),
        within_ms: Some(WITHIN_MS),
        loss: Some(LOSS),
        ..want.clone()
    };
    let second = Want { max_hz: Some(10.0), ..want.clone() };
    Plan {
        engine,
        policy: Policy::default(),
        sources: vec![Source { tag: TAG.to_owned(), hz: 30.0, content, urgent: false }],
        listeners: vec![
            listener("console", Side::Robot, want),
            listener("recorder", Side::Robot, second),
            listener("operator", Side::Operator, operator),
        ],
        seconds,
    }
}

fn flow(measured: &Measured, listener: usize) -> Flow {
    measured.flow(0, (listener, 0), usize::MAX)
}

fn rates(section: &mut Section, ours: &Measured, plain: &Measured) {
    let rows = [
        ("local subscriber, every picture", 0, Bound::Near(30.0, 0.2)),
        ("second local subscriber, 10 Hz", 1, Bound::Near(10.0, 0.05)),
        ("operator behind the link, 5 Hz", 2, Bound::Near(5.0, 0.05)),
    ];
    for (name, listener, bound) in rows {
        let (value, other) = (flow(ours, listener).hertz(), flow(plain, listener).hertz());
        section.must(name, Unit::Hertz, value, other, bound);
    }
}

fn operator(section: &mut Section, ours: &Measured, plain: &Measured) {
    let (a, b) = (flow(ours, 2), flow(plain, 2));
    let wrong = |flow: &Flow| {
        let wrong = flow.arrived.iter().filter(|arrival| arrival.size != Some(SIZE)).count();
        // Without arrivals there is no valid figure.
        if flow.arrived.is_empty() { f64::NAN } else { count(wrong) }
    };
    let name = "operator: pictures that are not 160x120";
    section.must(name, Unit::Count, wrong(&a), wrong(&b), Bound::AtMost(0.0));
    let beyond = count(a.misses_beyond(STEP, WITHIN_MS * 1_000_000, (1, 10)));
    let name = "operator: misses of 200 ms beyond 1 in 10";
    section.must(name, Unit::Count, beyond, f64::NAN, Bound::AtMost(0.0));
    section.show(
        "windows violated, counted by the robot",
        Unit::Count,
        float(ours.violations),
        f64::NAN,
    );
    let (a, b) = (a.delays(), b.delays());
    for (name, per_mille) in [("operator: delay p50", 500), ("operator: delay p99", 990)] {
        let delay = |delays: &crate::bench::stats::Samples| millis(delays.percentile(per_mille));
        section.show(name, Unit::Millis, delay(&a), delay(&b));
    }
    section.show("operator: delay max", Unit::Millis, millis(a.max()), millis(b.max()));
}

fn wire(section: &mut Section, ours: &Measured, plain: &Measured) {
    let ratio = |measured: &Measured, wire: f64| wire / flow(measured, 2).bytes();
    let (a, b) = (ratio(ours, ours.wire_to_operator), ratio(plain, plain.wire_to_operator));
    section.must("wire bytes / payload bytes", Unit::Ratio, a, b, Bound::AtMost(1.2));
    let (a, b) = (ratio(ours, ours.wire_to_robot), ratio(plain, plain.wire_to_robot));
    section.show("wire bytes back / payload bytes", Unit::Ratio, a, b);
    section.show("link filled", Unit::Percent, ours.fill_percent(), plain.fill_percent());
}
