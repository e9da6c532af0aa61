//! `paceline demo world`: a town of 200 cars and three observers, one of them behind a thin link.
//!
//! The town and its observers are four nodes of this process, joined by loopback TCP. The link to the radio operator
//! has a configured capacity, which the page can change.

mod observers;
mod page;
mod town;

use super::DemoArgs;
use super::dashboard;
use observers::Observers;
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
    loop {
        if stop.requested() {
            whole = args.duration.is_none();
            break;
        }
        if args.duration.is_some_and(|duration| start.elapsed() >= WARM_UP + duration) {
            break;
        }
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
    let ok = finish(args, &block, &observers)?;
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

fn finish(args: &DemoArgs, block: &Block, observers: &Observers) -> anyhow::Result<bool> {
    let (promised_read, promised_late) = observers.promised();
    let ok = observers.granted() && promised_read > 0 && promised_late == 0;
    let verdict = Verdict { ok, promised_late, promised_read, observers: observers.readings() };
    if args.json {
        show::json(&Summary { summary: verdict })?;
        return Ok(ok);
    }
    block.update(&table(None, &observers.readings()))?;
    let text = if ok {
        format!(
            "ok: the radio operator's contract was kept in all {promised_read} readings of near cars"
        )
    } else if observers.granted() {
        format!(
            "not ok: {promised_late} of {promised_read} readings of near cars were older than the contract permits"
        )
    } else {
        "not ok: the radio operator's contract was not granted".to_owned()
    };
    show::line(&text)?;
    Ok(ok)
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
