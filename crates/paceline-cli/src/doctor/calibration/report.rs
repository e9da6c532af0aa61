//! Checks the calibration of this host, and measures a new one.

use super::{FIX, check_replaced, find, load, measure, place, save};
use crate::doctor::row::{Row, State};
use paceline::contract::{CpuCost, CpuPoint, CpuTable};
use paceline_tool::show;
use paceline_tool::table::{Align, Table, width};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Checks the calibration file.
pub(in crate::doctor) fn row() -> Row {
    found(find().as_deref())
}

fn found(file: Option<&Path>) -> Row {
    let row = |found: &str, state, fix: &str| {
        Row::new("calibration", found, "the cost of a sample on this host", state, fix)
    };
    let Some(file) = file else {
        let found = "none: contracts are charged no processor time";
        return row(found, State::Lack, FIX);
    };
    match load(file) {
        Ok(table) => row(&describe(table.fit()), State::Ok, ""),
        Err(error) => {
            let shown = file.display();
            row(&format!("{shown} is not used"), State::Lack, &format!("{error:#}; {FIX}"))
        }
    }
}

fn describe(cost: CpuCost) -> String {
    format!("a sample costs {} plus {} per KB", micros(cost.sample_nanos), micros(cost.byte_picos))
}

fn micros(nanos: u64) -> String {
    format!("{}.{} µs", nanos / 1_000, nanos % 1_000 / 100)
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    file: String,
    sample_nanos: u64,
    byte_picos: u64,
    samples: Vec<Measured>,
}

#[derive(Serialize)]
struct Measured {
    bytes: u64,
    load_permille: u32,
    nanos: u64,
    charged_nanos: u64,
}

impl Measured {
    fn new(point: &CpuPoint, cost: CpuCost) -> Self {
        let CpuPoint { bytes, load_permille, nanos } = *point;
        Self { bytes, load_permille, nanos, charged_nanos: cost.of_sample(bytes) }
    }
}

/// Runs `paceline doctor --calibrate`: measures, prints and saves the costs.
pub(in crate::doctor) fn run(out: Option<PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    out.as_deref().map_or(Ok(()), check_replaced)?;
    let file = out.unwrap_or_else(place);
    show::note(&format!(
        "sends samples through a separate node, and keeps all processors busy for half of the \
         time; takes at most {} s; writes {}",
        measure::SECONDS_MAX,
        file.display()
    ));
    let table = CpuTable::new(measure::measure()?)?;
    let cost = table.fit();
    save(&file, &table)?;
    if json {
        let samples = table.points().iter().map(|point| Measured::new(point, cost)).collect();
        let CpuCost { sample_nanos, byte_picos } = cost;
        let file = file.display().to_string();
        show::json(&Document { schema: 1, file, sample_nanos, byte_picos, samples })?;
    } else {
        let sentence =
            "(charged, never less than measured); nodes that start from now on charge it";
        show::text(&format!("{}\n{} {sentence}\n", render(&table, cost), describe(cost)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(table: &CpuTable, cost: CpuCost) -> String {
    let mut lines = Table::new(&[
        ("BYTES", Align::Right),
        ("OTHER LOAD", Align::Right),
        ("MEASURED", Align::Right),
        ("CHARGED", Align::Right),
    ]);
    for point in table.points() {
        lines.row(vec![
            point.bytes.to_string(),
            format!("{} %", point.load_permille / 10),
            micros(point.nanos),
            micros(cost.of_sample(point.bytes)),
        ]);
    }
    lines.render(width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_invalid_file_is_reported_with_the_fix() {
        let none = found(None);
        assert_eq!((none.state, none.needed), (State::Lack, false));
        assert_eq!(none.fix.as_deref(), Some(FIX));
        let gone = found(Some(Path::new("/nowhere/calibration.json")));
        assert_eq!(gone.found, "/nowhere/calibration.json is not used");
        let fix = gone.fix.unwrap();
        assert!(fix.contains("No such file") && fix.ends_with(FIX), "{fix}");
    }

    #[test]
    fn the_table_shows_the_measured_and_the_charged_cost() {
        let points = [(64, 20_000), (64_000, 90_000)];
        let points = points.map(|(bytes, nanos)| CpuPoint { bytes, load_permille: 0, nanos });
        let table = CpuTable::new(points.to_vec()).unwrap();
        let text = render(&table, table.fit());
        assert!(
            text.lines().any(|line| line.trim_end().ends_with("0 %   20.0 µs  20.0 µs")),
            "{text}"
        );
        assert_eq!(describe(table.fit()), "a sample costs 19.9 µs plus 1.0 µs per KB");
    }
}
