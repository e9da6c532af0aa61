//! Packet statistics for users and for programs.

use super::pump::Traffic;
use super::{FAR, NEAR};
use crate::netns::Namespace;
use anyhow::Result;
use paceline_tool::show::StdoutClosed;
use paceline_tool::table::{Align, Table, WIDTH};
use serde::Serialize;
use std::io::Write as _;
use std::time::Duration;

/// Totals since the start.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    elapsed_s: f64,
    near_to_far: Direction,
    far_to_near: Direction,
}

#[derive(Debug, Serialize)]
struct Direction {
    /// The packets that entered the emulator, and their bytes.
    packets: u64,
    bytes: u64,
    /// The packets that arrived, including duplicates.
    delivered: u64,
    delivered_bytes: u64,
    dropped: Drops,
    reordered: u64,
    duplicated: u64,
    waited_max_ms: f64,
}

/// The packets that did not arrive, by reason.
#[derive(Debug, Serialize)]
struct Drops {
    queue: u64,
    loss: u64,
    blackout: u64,
    /// Dropped because too many packets were in flight.
    overflow: u64,
    /// Dropped by the kernel before or after the emulator, which is not part of the impairment;
    /// only at the end.
    kernel: Option<u64>,
}

impl Report {
    /// Creates a report of `traffic`; includes the kernel's counters if it is the `last` one.
    pub(super) fn new(
        elapsed: Duration,
        traffic: [Traffic; 2],
        ends: [&Namespace; 2],
        last: bool,
    ) -> Self {
        let [there, back] = traffic;
        let [near, far] = ends;
        let direction = |traffic: Traffic, end: &Namespace| {
            let before =
                if last { end.sent(end.name()).ok().map(|sent| sent.dropped) } else { None };
            Direction::new(&traffic, before.map(|before| before + traffic.refused))
        };
        let elapsed_s = (elapsed.as_secs_f64() * 1e3).round() / 1e3;
        Self { elapsed_s, near_to_far: direction(there, near), far_to_near: direction(back, far) }
    }

    /// Prints one line of JSON to standard output.
    pub(super) fn print_json(&self) -> Result<()> {
        let line = serde_json::to_string(self)?;
        writeln!(std::io::stdout(), "{line}").map_err(|_| StdoutClosed.into())
    }

    /// Prints a table to standard error; standard output belongs to the programs.
    pub(super) fn print(&self) {
        let columns = ["sent", "bytes", "arrived", "queue", "lost", "blackout", "overflow"];
        let columns = columns.iter().chain(&["kernel", "reordered", "doubled"]);
        let mut all = vec![("packets", Align::Left)];
        all.extend(columns.map(|&name| (name, Align::Right)));
        let mut table = Table::new(&all);
        table.row(self.near_to_far.cells("near to far"));
        table.row(self.far_to_near.cells("far to near"));
        eprintln!("after {} s, dropped by reason:", self.elapsed_s);
        eprint!("{}", table.render(WIDTH));
    }
}

impl Direction {
    fn new(traffic: &Traffic, kernel: Option<u64>) -> Self {
        let counters = &traffic.counters;
        let dropped = &counters.dropped;
        let waited = Duration::from(counters.waited_max).as_secs_f64();
        Self {
            packets: counters.packets,
            bytes: counters.bytes,
            delivered: counters.delivered - traffic.refused,
            delivered_bytes: counters.delivered_bytes,
            dropped: Drops {
                queue: dropped.queue,
                loss: dropped.loss,
                blackout: dropped.blackout,
                overflow: dropped.overflow,
                kernel,
            },
            reordered: counters.reordered,
            duplicated: counters.duplicated,
            waited_max_ms: (waited * 1e6).round() / 1e3,
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let Drops { queue, loss, blackout, overflow, kernel } = self.dropped;
        let kernel = kernel.map_or("?".to_owned(), |kernel| kernel.to_string());
        let mut cells = vec![name.to_owned()];
        cells.extend([self.packets, self.bytes, self.delivered].map(|n| n.to_string()));
        cells.extend([queue, loss, blackout, overflow].map(|n| n.to_string()));
        cells.push(kernel);
        cells.extend([self.reordered, self.duplicated].map(|n| n.to_string()));
        cells
    }
}

/// Prints the commands that run programs at the two ends.
pub(super) fn print_usage(ends: [&Namespace; 2]) {
    let [near, far] = ends.map(Namespace::name);
    eprintln!("near, {NEAR}: ip netns exec {near} COMMAND");
    eprintln!("far,  {FAR}: ip netns exec {far} COMMAND");
    eprintln!("Set a separate PACELINE_RUNTIME_DIR for Paceline's commands at each end.");
    eprintln!("Ctrl-C ends impair and removes both namespaces.");
}
