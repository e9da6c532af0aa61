//! Formats results as text for a terminal and as a Markdown page.

use super::{Bound, Load, Report, Row, Section, Unit};
use std::fmt::Write as _;

fn headings(section: &Section) -> [&'static str; 5] {
    let [ours, second] = section.headings;
    ["", ours, second, "bound", "met"]
}

/// Returns true for a section that has figures only in its table.
fn is_only_table(section: &Section, rows: &[[String; 5]]) -> bool {
    section.table.is_some() && rows.is_empty()
}

/// Formats a section for a terminal, with aligned columns.
pub(super) fn text(section: &Section) -> String {
    let mut out = format!("\n{}\n", section.title);
    if let Some(table) = &section.table {
        out += &table.text();
        out.push('\n');
    }
    let headings = headings(section).map(str::to_owned);
    let rows = rows(section);
    let headings = (!is_only_table(section, &rows)).then_some(headings);
    let table: Vec<_> = headings.into_iter().chain(rows).collect();
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3, 4].map(width);
    for row in &table {
        let [name, value, plain, bound, holds] = row;
        let [w0, w1, w2, w3, _] = widths;
        let line = format!("  {name:<w0$}  {value:>w1$}  {plain:>w2$}  {bound:>w3$}  {holds}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for note in &section.notes {
        let _ = writeln!(out, "  {note}");
    }
    out
}

/// Formats the whole report as a Markdown page.
pub(super) fn markdown(report: &Report) -> String {
    let mut out = format!("# {}\n\nMeasured by `{}`.\n", report.title, report.command);
    let _ = writeln!(out, "{}\n\n{}", machine(report), result(report));
    for section in &report.sections {
        let _ = writeln!(out, "\n## {}\n", section.title);
        if let Some(table) = &section.table {
            let _ = writeln!(out, "{}", table.markdown());
        }
        let rows = rows(section);
        if !is_only_table(section, &rows) {
            let _ = writeln!(out, "| {} |", headings(section).join(" | "));
            let _ = writeln!(out, "| --- | ---: | ---: | ---: | --- |");
        }
        for row in rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        for (index, note) in section.notes.iter().enumerate() {
            let _ = writeln!(out, "{}{note}", if index == 0 { "\n- " } else { "- " });
        }
    }
    out
}

pub(super) fn machine(report: &Report) -> String {
    let (cores, kernel) = (report.machine.cores, &report.machine.kernel);
    let commit = report.machine.commit.as_ref();
    let commit = commit.map(|commit| format!(" Commit {commit}.")).unwrap_or_default();
    let zenoh = if report.has_zenoh() { " Zenoh 1.10.2 for comparison." } else { "" };
    format!("Machine: {cores} cores, Linux {kernel}.{zenoh}{commit}")
}

pub(super) fn result(report: &Report) -> String {
    let all = report.sections.iter().flat_map(|section| &section.rows);
    let checked: Vec<_> = all.filter_map(|row| row.holds).collect();
    let met = checked.iter().filter(|&&holds| holds).count();
    let mut text = match (report.short, checked.len()) {
        (true, 0) => "A short run: no bound was checked.".to_owned(),
        (true, all) => format!(
            "A short run: {met} of {all} bounds on figures that do not depend on the machine are met, and no other was checked."
        ),
        (false, all) => format!("{met} of {all} bounds are met."),
    };
    report.missing.iter().for_each(|row| text += &format!("\nno value: {row}"));
    text
}

fn rows(section: &Section) -> Vec<[String; 5]> {
    let mut rows: Vec<_> = section.rows.iter().map(|row| cells(row, section.missing)).collect();
    for (name, unit, share) in [
        ("machine busy", Unit::Percent, Load::busy as fn(Load) -> f64),
        ("stolen by the host", Unit::Percent, Load::steal),
        ("longest delay of a sleeping thread", Unit::Millis, Load::stall),
    ] {
        let cell =
            |load: Option<Load>| load.map(|load| value(unit, share(load))).unwrap_or_default();
        if section.load.is_some() || section.load_plain_zenoh.is_some() {
            let (ours, plain) = (cell(section.load), cell(section.load_plain_zenoh));
            rows.push([name.to_owned(), ours, plain, String::new(), String::new()]);
        }
    }
    rows
}

fn cells(row: &Row, without_second: &str) -> [String; 5] {
    let show = |number: Option<f64>, missing: &str| {
        number.map_or_else(|| missing.to_owned(), |number| value(row.unit, number))
    };
    let bound = row.must_be.map(|bound| match bound {
        Bound::AtMost(most) => format!("≤ {}", value(row.unit, most)),
        Bound::AtLeast(least) => format!("≥ {}", value(row.unit, least)),
        Bound::Near(middle, off) => {
            // As many digits as both need, but no error of a calculation.
            let [middle, off] = [middle, off].map(|number| (number * 1e4).round() / 1e4);
            format!("{middle} ± {off}{}", row.unit.symbol())
        }
    });
    let holds = row.holds.map(|holds| if holds { "yes" } else { "NO" });
    [
        row.name.clone(),
        show(row.value, "–"),
        show(row.second, without_second),
        bound.unwrap_or_default(),
        holds.unwrap_or_default().to_owned(),
    ]
}

fn value(unit: Unit, value: f64) -> String {
    let number = match unit {
        Unit::Millis if value >= 1_000.0 => format!("{value:.0}"),
        Unit::Hertz | Unit::Millis | Unit::Ratio => format!("{value:.2}"),
        Unit::Micros | Unit::Nanos | Unit::Percent => format!("{value:.1}"),
        Unit::Count | Unit::PerSecond => format!("{value:.0}"),
    };
    format!("{number}{}", unit.symbol())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_has_the_unit_of_its_row() {
        let cell = |unit, bound| {
            let row = Row {
                name: String::new(),
                unit,
                value: None,
                second: None,
                must_be: Some(bound),
                holds: None,
            };
            let [.., bound, _] = cells(&row, "");
            bound
        };
        assert_eq!(cell(Unit::Hertz, Bound::Near(30.0, 0.1 + 0.2)), "30 ± 0.3 Hz");
        assert_eq!(cell(Unit::Ratio, Bound::Near(0.0625, 0.005)), "0.0625 ± 0.005");
        assert_eq!(cell(Unit::Percent, Bound::AtMost(1.0)), "≤ 1.0 %");
        assert_eq!(cell(Unit::Millis, Bound::AtLeast(1_000.0)), "≥ 1000 ms");
    }
}
