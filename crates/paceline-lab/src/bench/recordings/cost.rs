//! The cost of scaling a film, for one subscriber and for many with the same size.

use crate::bench::interrupt;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::terminal::Terminal;
use anyhow::Result;
use paceline_tool::scratch::Scratch;
use std::time::{Duration, Instant};

const PUBLISH: [&str; 5] = ["pub", "robot/camera", "--hz", "30", "--loop"];
const SUBSCRIBE: [&str; 7] =
    ["sub", "robot/camera", "--max-hz", "5", "--size", "320x180", "--json"];
/// The limit, in percent of one core.
const PERCENT_MAX: f64 = 40.0;
const INTERVAL: Duration = Duration::from_secs(10);

pub(super) fn measure(scratch: &Scratch, film: &str, short: bool) -> Result<Section> {
    let interval = if short { Duration::from_secs(1) } else { INTERVAL };
    let mut section = Section::new(format!(
        "1280x720 H.264 at 30 Hz to 320x180 at 5 Hz: the publisher's process over {} s",
        interval.as_secs()
    ));
    for subscribers in [0, 1, 8] {
        eprintln!("{subscribers} subscribers");
        let percent = percent(scratch, film, subscribers, interval)?;
        let name = format!("{subscribers} subscribers: processor time, of one core");
        match subscribers {
            0 => section.show(&name, Unit::Percent, percent, f64::NAN),
            _ => {
                let most = Bound::AtMost(PERCENT_MAX);
                section.must(&name, Unit::Percent, percent, f64::NAN, most);
            }
        }
    }
    Ok(section)
}

fn percent(scratch: &Scratch, film: &str, subscribers: usize, interval: Duration) -> Result<f64> {
    let host = scratch.host();
    let words = [&PUBLISH[..], &["--file", film, "--json"]].concat();
    let mut publisher = Terminal::start(&words, &host, None)?;
    publisher.first_line()?;
    let mut listeners = Vec::new();
    for _ in 0..subscribers {
        listeners.push(Terminal::start(&SUBSCRIBE, &host, None)?);
    }
    for listener in &mut listeners {
        listener.first_line()?;
    }
    let (before, since) = (publisher.cpu_seconds()?, Instant::now());
    interrupt::sleep(interval)?;
    let used = publisher.cpu_seconds()? - before;
    Ok(100.0 * used / since.elapsed().as_secs_f64())
}
