//! 1,000 streams with spacing at once.

use super::{micros, nanos, pacer_nanos};
use crate::bench::interrupt;
use crate::bench::machine::Watch;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{Samples, float};
use anyhow::{Context as _, Result};
use paceline::{Node, Publisher, PutOptions, Sample, Subscription, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const STREAMS: u32 = 1_000;
/// 33 Hz.
const PERIOD: Duration = Duration::from_micros(30_303);
/// The added delay.
const DEPTH: Duration = Duration::from_millis(20);

/// Measures the processor time of the pacer, and the spacing errors of all streams.
pub(super) fn measure(node: &Node, seconds: u32, priority: &str) -> Result<Section> {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let mut streams: Vec<(Publisher, Subscription)> = Vec::new();
    for number in 0..STREAMS {
        let tag = format!("many/{number}");
        let mut last: Option<(Instant, u64)> = None;
        let errors = Arc::clone(&errors);
        let record = move |sample: Sample| {
            let (now, captured) = (Instant::now(), sample.captured.nanos);
            if let Some((before, at)) = last.replace((now, captured)) {
                let wanted = captured.saturating_sub(at);
                let error = nanos(now.saturating_duration_since(before)).abs_diff(wanted);
                errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
            }
        };
        let spaced = node.subscriber(&tag).spacing(DEPTH..=2 * DEPTH).callback(record)?;
        streams.push((node.publisher(&tag).declare()?, spaced));
    }
    for (publisher, _) in &streams {
        anyhow::ensure!(publisher.wait_matching(Duration::from_secs(10)), "no subscription");
    }
    let watch = Watch::begin()?;
    let (began, before) = (Instant::now(), pacer_nanos());
    let rounds = u64::from(seconds) * 1_000_000_000 / nanos(PERIOD);
    let step = PERIOD / STREAMS;
    for round in 0..rounds {
        for (number, (publisher, _)) in (0..STREAMS).zip(&mut streams) {
            let at = PERIOD * u32::try_from(round)? + step * number;
            // Bursts of ten, as the publishers of a busy host.
            if number % 10 == 0 {
                std::thread::sleep((began + at).saturating_duration_since(Instant::now()));
            }
            let captured = Timestamp { nanos: nanos(at), error: Timestamp::UNKNOWN_ERROR };
            let options = PutOptions { captured: Some(captured), ..PutOptions::default() };
            publisher.put_with(vec![7; 64], options)?;
        }
        interrupt::check()?;
    }
    let took = began.elapsed();
    let after = pacer_nanos().context("the kernel does not report the pacer's time")?;
    std::thread::sleep(2 * DEPTH);
    let load = watch.load()?;
    drop(streams);
    let errors = std::mem::take(&mut *errors.lock().unwrap_or_else(PoisonError::into_inner));
    let (releases, errors) = (errors.len(), Samples::new(errors));
    let title = format!("{STREAMS} streams of 33 Hz for {seconds} s, {priority}");
    let mut section = Section::new(title).alone("spacing");
    let cpu = after.saturating_sub(before.unwrap_or_default());
    let share = 100.0 * float(cpu) / float(nanos(took));
    let none = f64::NAN;
    let name = "processor time of the pacer, of one core";
    section.must(name, Unit::Percent, share, none, Bound::AtMost(10.0));
    let released = float(u64::try_from(releases).unwrap_or(u64::MAX)) / took.as_secs_f64();
    section.show("releases per second", Unit::Count, released.round(), none);
    for (name, part) in [("p50", 500), ("p90", 900), ("p99", 990)] {
        let name = format!("spacing error, {name}");
        section.show(&name, Unit::Micros, micros(errors.percentile(part)), none);
    }
    section.load(Some(load), None);
    Ok(section)
}
