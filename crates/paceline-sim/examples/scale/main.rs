//! Measures the cost of simulating a large network: `cargo run -p paceline-sim --example scale --
//! [NAME=VALUE]…`
//!
//! Names: `nodes`, `site` (nodes per site), `streams`, `hertz`, `bytes`, `seconds`, `phases`, `mbit` (the
//! capacity of each link in Mbit/s; 0 for none). The default is 100,000 streams of 10 samples per second over
//! 1,000 nodes for 10 s. `--table FOLDER` writes scale.md and scale.svg to that folder instead. See
//! [`paceline_sim::scale`] for the topology.

mod table;

use paceline_sched::Capacity;
use paceline_sim::scale::{Network, ScalePlan};
use std::process::ExitCode;
use std::time::Instant;

const DEFAULT: ScalePlan = ScalePlan {
    nodes: 1_000,
    site: 10,
    streams: 100_000,
    hertz: 10,
    bytes: 100,
    capacity: None,
    backbone: None,
    seconds: 10,
    phases: 1,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, folder] = &args[..]
        && flag == "--table"
    {
        return match table::write(std::path::Path::new(folder)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{folder}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match plan(&args) {
        Ok(plan) => {
            report(plan);
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::from(2)
        }
    }
}

/// Parses the arguments. Returns a message if one is invalid.
fn plan(args: &[String]) -> Result<ScalePlan, String> {
    let mut plan = DEFAULT;
    for arg in args {
        let wrong = || format!("'{arg}': must be NAME=NUMBER, such as nodes=100");
        let (name, value) = arg.split_once('=').ok_or_else(wrong)?;
        let value: u32 = value.parse().map_err(|_| wrong())?;
        let size = usize::try_from(value).map_err(|_| wrong())?;
        match name {
            "nodes" => plan.nodes = size,
            "site" => plan.site = size,
            "streams" => plan.streams = size,
            "hertz" => plan.hertz = value.into(),
            "bytes" => plan.bytes = size,
            "seconds" => plan.seconds = value.into(),
            "phases" => plan.phases = value.into(),
            "mbit" => plan.capacity = Capacity::from_bits_per_s(u64::from(value) * 1_000_000).ok(),
            _ => {
                return Err(format!(
                    "'{name}' is unknown; must be one of nodes, site, streams, hertz, bytes, seconds, phases, mbit"
                ));
            }
        }
    }
    Ok(plan)
}

fn report(plan: ScalePlan) {
    let began = now();
    let mut network = Network::new(1, plan);
    let built = began.elapsed();
    let ran = now();
    let outcome = network.run();
    let took = ran.elapsed();
    let hops = outcome.hops;
    println!("nodes            {}, {} to a site", plan.nodes, plan.site);
    println!(
        "streams          {} of {} samples a second, {} bytes each",
        plan.streams, plan.hertz, plan.bytes
    );
    println!("samples          {} published, {} delivered", outcome.published, outcome.delivered);
    println!("hops             {hops}");
    println!("frames, turns    {}, {}", outcome.frames, outcome.turns);
    println!(
        "age              half {}, 99 % {}, at most {}",
        outcome.ages.quantile(500),
        outcome.ages.quantile(990),
        outcome.ages.max()
    );
    println!(
        "wall             {:.1} s to build, {:.1} s to run",
        built.as_secs_f64(),
        took.as_secs_f64()
    );
    println!("processor        {:.1} s in all", cpu_seconds());
    println!("each hop         {} ns", took.as_nanos() / u128::from(hops.max(1)));
    println!("peak memory      {} MiB", peak_mib());
}

#[allow(clippy::disallowed_methods, reason = "an example prints the wall time of a run")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the processor time of this process in seconds, or 0 if unavailable.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = stat.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok());
    std::time::Duration::from_nanos(nanos.unwrap_or_default()).as_secs_f64()
}

/// Returns the peak memory of this process in MiB, or 0 if unavailable.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1_024
}
