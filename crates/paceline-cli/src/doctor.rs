//! `paceline doctor`: checks this host and suggests fixes.

pub(crate) mod calibration;
mod host;
mod limits;
mod node;
mod row;
mod running;
mod security;
mod timer;
mod tools;

use paceline_tool::exit;
use paceline_tool::show;
use paceline_tool::table::{Align, Table};
use row::{Row, State};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Wide enough for every row: results must not be truncated.
const WIDTH: usize = 140;

/// Options of `paceline doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Prints the rows as one line of JSON
    #[arg(long)]
    json: bool,
    /// Folder shared by the processes of this host; default: as for the other commands
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Measures the processor cost of forwarding a sample and saves it; takes at most 20 s
    ///
    /// This host's node then includes the cost in admission.
    #[arg(long, conflicts_with = "runtime_dir")]
    calibrate: bool,
    /// Checks the peers that the running node or its configuration lets in, and their rights
    #[arg(long, conflicts_with = "calibrate")]
    security: bool,
    /// Configuration file for --security; default: the settings of the running node, else the file that the node reads
    #[arg(long, value_name = "FILE", requires = "security")]
    config: Option<PathBuf>,
    /// File for the calibration; default: the file that the node reads
    #[arg(long, value_name = "FILE", requires = "calibrate")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    ok: bool,
    rows: &'a [Row],
}

/// Runs all checks; the exit code is 3 if a requirement is missing.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    if args.calibrate {
        return calibration::run(args.out.clone(), args.json);
    }
    let rows = match args.security {
        true => security::rows(args.config.clone(), args.runtime_dir.clone())?,
        false => rows(args.runtime_dir.clone()),
    };
    let ok = !rows.iter().any(|row| row.needed && row.state == State::Lack);
    if args.json {
        show::json(&Document { schema: 1, ok, rows: &rows })?;
    } else {
        show::text(&render(&rows))?;
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(exit::REFUSED) })
}

fn rows(runtime_dir: Option<PathBuf>) -> Vec<Row> {
    let (configuration, configured) = node::configuration();
    let mut rows = vec![
        host::kernel(),
        host::cores(),
        host::load(),
        host::clock_source(),
        host::governor(),
        timer::precision(),
        configuration,
        node::runtime_dir(runtime_dir, configured),
        node::delivery(),
        calibration::row(),
    ];
    rows.extend(limits::rows());
    rows.extend(tools::rows());
    rows
}

/// Formats a table, followed by the fixes.
fn render(rows: &[Row]) -> String {
    let columns = [
        ("WHAT", Align::Left),
        ("FOUND", Align::Left),
        ("WANTED", Align::Left),
        ("STATE", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        let state = match (row.state, row.needed) {
            (State::Lack, true) => "LACK, needed",
            (State::Lack, false) => "lack",
            (State::Ok, _) => "ok",
            (State::Unknown, _) => "unknown",
        };
        let wanted = row.wanted.to_owned();
        table.row(vec![row.what.to_owned(), row.found.clone(), wanted, state.to_owned()]);
    }
    let mut text = table.render(WIDTH);
    let lacks = rows.iter().filter(|row| row.state == State::Lack);
    for (number, row) in lacks.enumerate() {
        if number == 0 {
            text.push_str("\nTo fix:\n");
        }
        text.push_str(&format!("  {}: {}\n", row.what, row.fix.as_deref().unwrap_or_default()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_fixes() {
        let rows = [
            Row::new("cores", "4", "2 or more", State::Ok, ""),
            Row::new("runtime folder", "/x", "writable", State::Lack, "chmod u+w /x").needed(),
            Row::new("ffmpeg", "not found", "found", State::Lack, "apt install ffmpeg"),
        ];
        let text = render(&rows);
        assert!(text.contains("cores           4          2 or more  ok\n"), "{text}");
        assert!(text.contains("LACK, needed\n"), "{text}");
        let fixes = "To fix:\n  runtime folder: chmod u+w /x\n  ffmpeg: apt install ffmpeg\n";
        assert!(text.ends_with(fixes), "{text}");
    }

    #[test]
    fn every_row_is_complete_and_unique() {
        let dir = std::env::temp_dir().join(format!("pld-{}", std::process::id()));
        let rows = rows(Some(dir.clone()));
        std::fs::remove_dir_all(dir).unwrap();
        let mut names: Vec<&str> = rows.iter().map(|row| row.what).collect();
        for row in &rows {
            assert!(!row.found.is_empty() && !row.wanted.is_empty(), "{row:?}");
            assert_eq!(row.fix.is_some(), row.state == State::Lack, "{row:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len(), "the names are unique");
    }
}
