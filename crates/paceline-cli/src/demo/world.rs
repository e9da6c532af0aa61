//! `paceline demo world`: a town of 200 cars and three observers, one of them behind a thin link.
//!
//! The town and its observers are four nodes of this process, joined by loopback TCP. The link to the radio operator
//! has a configured capacity, which the page can change.

mod observers;
mod page;
mod town;

use super::DemoArgs;
use super::dashboard;
use observers::{AGE_MAX, Observers, Promised};
use paceline_http::{HttpServer, WorldReading};
use paceline_tool::exit::{INTERRUPTED, REFUSED};
use paceline_tool::show::{self, Block};
use paceline_tool::stop::Stop;
use page::WorldSource;
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use town::Town;

/// The time between two steps of the town.
const STEP: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);
/// The time in which the observers get to know the town, not counted.
const WARM_UP: Duration = Duration::from_secs(3);

/// The delay of a step that shows that the host is too busy for this program.
const BEHIND: Duration = Duration::from_millis(100);

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    t_s: u64,
    observers: Vec<&'a WorldReading>,
}

/// The last line of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    summary: Verdict<'a>,
}

/// The result of the run.
#[derive(Serialize)]
struct Verdict<'a> {
    /// True if the contract was granted and kept.
    ok: bool,
    /// Readings of promised cars that were older than the contract permits.
    promised_late: u64,
    promised_read: u64,
    /// The reason if it is not ok.
    why: Option<String>,
    observers: Vec<&'a WorldReading>,
}

/// Runs the demo and checks its result.
pub(super) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut observers = Observers::open()?;
    let mut town = Town::build(observers.town())?;
    let source = Arc::new(WorldSource::new(observers.town_node()));
    source.publish(&town, &observers);
    let http = serve(args, &source)?;
    let block = Block::on_stdout();
    let start = Instant::now();
    let (mut step, mut second) = (0_u32, 0_u64);
    let mut whole = true;
    let mut behind = Duration::ZERO;
    loop {
        if stop.requested() {
            whole = args.duration.is_none();
            break;
        }
        if args.duration.is_some_and(|duration| start.elapsed() >= WARM_UP + duration) {
            break;
        }
        let late = start.elapsed().saturating_sub(STEP * step);
        behind = behind.max(if start.elapsed() >= WARM_UP { late } else { Duration::ZERO });
        town.step(STEP)?;
        observers.look(&town, start.elapsed() >= WARM_UP);
        if step.is_multiple_of(2) {
            source.publish(&town, &observers);
        }
        step += 1;
        if start.elapsed() >= SECOND * u32::try_from(second + 1).unwrap_or(u32::MAX) {
            second += 1;
            observers.second();
            show(args, &block, second, &observers)?;
        }
        std::thread::sleep((STEP * step).saturating_sub(start.elapsed()));
    }
    drop(http);
    let ok = finish(args, &block, &observers, behind)?;
    Ok(match (whole, ok) {
        (false, _) => ExitCode::from(INTERRUPTED),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(REFUSED),
    })
}

fn serve(args: &DemoArgs, source: &Arc<WorldSource>) -> anyhow::Result<Option<HttpServer>> {
    if args.no_http {
        return Ok(None);
    }
    let http = dashboard::start(args.http.as_ref(), Arc::clone(source))?;
    show::note(&format!("the town: {}world.html", http.url()));
    Ok(Some(http))
}

fn show(args: &DemoArgs, block: &Block, second: u64, observers: &Observers) -> anyhow::Result<()> {
    if args.json {
        return show::json(&Line { t_s: second, observers: observers.readings() });
    }
    block.update(&table(Some(second), &observers.readings()))
}

fn finish(
    args: &DemoArgs,
    block: &Block,
    observers: &Observers,
    behind: Duration,
) -> anyhow::Result<bool> {
    let Promised { read, late, .. } = observers.promised();
    let ok = observers.granted() && read > 0 && late == 0;
    let outcome = outcome(observers.granted(), observers.why(), observers.promised(), behind);
    let readings = observers.readings();
    if args.json {
        let why = (!ok).then_some(outcome);
        let (promised_late, promised_read) = (late, read);
        let verdict = Verdict { ok, promised_late, promised_read, why, observers: readings };
        show::json(&Summary { summary: verdict })?;
        return Ok(ok);
    }
    block.update(&table(None, &readings))?;
    show::line(&format!("{}: {outcome}", if ok { "ok" } else { "not ok" }))?;
    Ok(ok)
}

/// Names the result, and the reason if the contract was not granted or not kept. `behind` is the longest delay of a step of
/// the town.
fn outcome(granted: bool, why: Option<&str>, promised: Promised, behind: Duration) -> String {
    let Promised { read, late, oldest } = promised;
    if !granted {
        let why = why.unwrap_or("its request has no answer yet; give a longer --duration");
        return format!("the radio operator's contract was not granted: {why}");
    }
    if read == 0 {
        return "no car was near the radio operator for a second, so that no reading was checked; give a longer --duration"
            .to_owned();
    }
    if late == 0 {
        return format!(
            "the radio operator's contract was kept in all {read} readings of near cars"
        );
    }
    let (limit, oldest) = (observers::millis(AGE_MAX), observers::millis(oldest));
    let cause = match behind >= BEHIND {
        true => format!(
            "this program was up to {} ms behind its steps, because the host is busy; end other programs",
            observers::millis(behind)
        ),
        false => "this program kept its steps, so the link or the nodes were late; paceline doctor checks this host"
            .to_owned(),
    };
    format!(
        "{late} of {read} readings of near cars were older than {limit} ms, at most {oldest} ms: {cause}"
    )
}

/// Returns a table of the observers.
fn table(second: Option<u64>, readings: &[&WorldReading]) -> String {
    let mut text = second.map_or_else(String::new, |second| format!("{second} s\n"));
    let _infallible = writeln!(
        text,
        "{:<10} {:>5} {:>6} {:>11} {:>11} {:>11} {:>10}  contract",
        "observer", "cars", "near", "near error", "far error", "near age", "received"
    );
    for reading in readings {
        let WorldReading {
            name,
            cars,
            near,
            near_error_m,
            far_error_m,
            near_age_ms,
            bits_per_s,
            contract,
        } = reading;
        let _infallible = writeln!(
            text,
            "{name:<10} {cars:>5} {near:>6} {near_error_m:>9.2} m {far_error_m:>9.1} m {near_age_ms:>8} ms {:>10}  {}",
            show::bits(*bits_per_s),
            contract.name()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_that_is_not_ok_has_its_reason() {
        let promised = |read, late| Promised { read, late, oldest: Duration::from_millis(900) };
        let (now, second) = (Duration::ZERO, Duration::from_secs(1));
        let of = |granted, why, promised, behind| outcome(granted, why, promised, behind);
        assert!(of(true, None, promised(300, 0), now).contains("kept in all 300 readings"));
        let busy = of(true, None, promised(300, 17), second);
        let parts = ["17 of 300", "older than 560 ms", "900 ms", "1000 ms behind", "host is busy"];
        assert!(parts.iter().all(|part| busy.contains(part)), "{busy}");
        let late = of(true, None, promised(300, 17), now);
        assert!(late.contains("paceline doctor"), "{late}");
        assert!(of(true, None, promised(0, 0), now).contains("no reading was checked"));
        let refused = of(false, Some("link 'radio' is full"), promised(0, 0), now);
        assert!(refused.ends_with("was not granted: link 'radio' is full"), "{refused}");
        assert!(of(false, None, promised(0, 0), now).contains("no answer yet"));
    }
}
