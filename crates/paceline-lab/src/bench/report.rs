//! Benchmark results: rows with a value, its bound, and the result of the comparison.

mod render;
mod table;

pub(crate) use table::Table;

use super::OutputArgs;
use super::machine::{Load, Machine};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::process::ExitCode;

/// The unit of a value.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Hertz,
    Millis,
    Micros,
    Nanos,
    Count,
    PerSecond,
    Percent,
    Ratio,
}

impl Unit {
    /// Returns the symbol behind a number, with the space between them.
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Hertz => " Hz",
            Self::Millis => " ms",
            Self::Micros => " µs",
            Self::Nanos => " ns",
            Self::PerSecond => " /s",
            Self::Percent => " %",
            Self::Count | Self::Ratio => "",
        }
    }
}

/// The bound that a value must meet.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// Within the second number of the first.
    Near(f64, f64),
}

impl Bound {
    /// Returns true if `value` meets the bound; NaN never does.
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Near(middle, off) => (value - middle).abs() <= off + 1e-9,
        }
    }
}

/// One row of a result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    name: String,
    unit: Unit,
    value: Option<f64>,
    /// The value of the second column.
    second: Option<f64>,
    must_be: Option<Bound>,
    holds: Option<bool>,
}

/// A group of rows and the machine's load during their measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Table>,
    /// The headings of the two value columns.
    headings: [&'static str; 2],
    /// The text of the second column in rows that have no value there.
    #[serde(skip)]
    missing: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
    load: Option<Load>,
    load_plain_zenoh: Option<Load>,
    /// True if the figures do not depend on the machine, as in virtual time. Then a short run checks the bounds too.
    is_repeatable: bool,
}

/// The whole result of a benchmark.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    title: String,
    command: String,
    machine: Machine,
    sections: Vec<Section>,
    holds: bool,
    /// True if only bounds on figures that do not depend on the machine were checked.
    short: bool,
    /// The required figures without a value; only in a short run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

/// The default heading of the second value column.
const ZENOH: &str = "plain Zenoh";

/// From this load on the machine, not the link, decides the tail of a delay.
const BUSY_PERCENT_MAX: f64 = 70.0;

impl Section {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            table: None,
            headings: ["Paceline", ZENOH],
            missing: "",
            rows: Vec::new(),
            notes: Vec::new(),
            load: None,
            load_plain_zenoh: None,
            is_repeatable: false,
        }
    }

    /// Declares that the figures do not depend on the machine, so that a short run checks their bounds too.
    pub(crate) fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Uses only one value column, with this heading.
    pub(super) fn alone(mut self, heading: &'static str) -> Self {
        self.headings = [heading, ""];
        self
    }

    /// Compares with the figures in the text of a paper, which does not state all of them.
    pub(crate) fn against_paper(mut self) -> Self {
        self.headings = ["ours", "paper"];
        self.missing = "not stated";
        self
    }

    /// Replaces the headings of the two value columns if the second is not plain Zenoh.
    pub(crate) fn headings(mut self, headings: [&'static str; 2]) -> Self {
        self.headings = headings;
        self
    }

    /// Adds a row with a value that must meet `bound`.
    pub(crate) fn must(&mut self, name: &str, unit: Unit, value: f64, plain: f64, bound: Bound) {
        let holds = Some(bound.is_met(value));
        self.push(name, unit, value, plain, Some(bound), holds);
    }

    /// Adds a row with a value that has no bound.
    pub(crate) fn show(&mut self, name: &str, unit: Unit, value: f64, plain: f64) {
        self.push(name, unit, value, plain, None, None);
    }

    fn push(
        &mut self,
        name: &str,
        unit: Unit,
        value: f64,
        plain: f64,
        must_be: Option<Bound>,
        holds: Option<bool>,
    ) {
        let exists = |value: f64| value.is_finite().then_some(value);
        let (value, second) = (exists(value), exists(plain));
        self.rows.push(Row { name: name.to_owned(), unit, value, second, must_be, holds });
    }

    /// Adds a table of figures with more than one column; it is printed above the rows.
    pub(crate) fn table(&mut self, table: Table) {
        self.table = Some(table);
    }

    /// Removes the results of all comparisons. Returns the names of the rows that have a bound and
    /// no value.
    fn unchecked(&mut self) -> Vec<String> {
        let bounded = self.rows.iter_mut().filter(|row| row.must_be.is_some());
        let missing = bounded.filter_map(|row| {
            row.holds = None;
            row.value.is_none().then(|| format!("{}: {}", self.title, row.name))
        });
        missing.collect()
    }

    /// Returns true if every checked row meets its bound.
    pub(crate) fn is_met(&self) -> bool {
        self.rows.iter().all(|row| row.holds != Some(false))
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Sets the machine's load for Paceline and for plain Zenoh: the busiest run of several.
    pub(super) fn load(&mut self, load: Option<Load>, plain: Option<Load>) {
        self.load = load;
        self.load_plain_zenoh = plain;
    }

    /// Adds a warning if the machine was so busy that its delays are in the figures.
    pub(super) fn warn_if_busy(&mut self) {
        let busiest =
            [self.load, self.load_plain_zenoh].into_iter().flatten().map(|load| load.busy_percent);
        if busiest.fold(0.0, f64::max) >= BUSY_PERCENT_MAX {
            self.note(
                "WARNING: the machine was at least 70 % busy; the figures include its delays",
            );
        }
    }
}

impl Report {
    pub(crate) fn new(title: &str, command: &str) -> Self {
        Self {
            title: title.to_owned(),
            command: command.to_owned(),
            machine: Machine::read(),
            sections: Vec::new(),
            holds: true,
            short: false,
            missing: Vec::new(),
        }
    }

    /// Returns true if a section compares with plain Zenoh.
    fn has_zenoh(&self) -> bool {
        self.sections.iter().any(|section| section.headings.contains(&ZENOH))
    }

    /// Adds a section and prints it immediately.
    pub(crate) fn add(&mut self, mut section: Section, output: &OutputArgs) {
        if output.short && !section.is_repeatable {
            self.missing.extend(section.unchecked());
        }
        self.holds &= section.is_met();
        if !output.json {
            print!("{}", render::text(&section));
        }
        self.sections.push(section);
    }

    /// Writes the requested output. Returns success if every bound is met; in a short run, if every bound on a figure that
    /// does not depend on the machine is met, and every other required figure has a value.
    pub(crate) fn finish(mut self, output: &OutputArgs) -> Result<ExitCode> {
        if output.short {
            self.short = true;
            self.command.push_str(" --short");
            self.holds &= self.missing.is_empty();
        }
        if output.json {
            println!("{}", serde_json::to_string_pretty(&self)?);
        } else {
            println!("\n{}", render::machine(&self));
            println!("{}", render::result(&self));
        }
        if let Some(path) = &output.markdown {
            std::fs::write(path, render::markdown(&self))
                .with_context(|| format!("--markdown {}", path.display()))?;
        }
        Ok(if self.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_checks_bounds_in_virtual_time_and_fails_if_a_value_is_missing() {
        let output = |short| OutputArgs { short, json: false, markdown: None };
        let section = |value| {
            let mut section = Section::new("a link");
            section.must("delay", Unit::Millis, value, f64::NAN, Bound::AtMost(1.0));
            section.show("samples", Unit::Count, f64::NAN, f64::NAN);
            section
        };
        let finish = |short, section: Section| {
            let mut report = Report::new("a benchmark", "paceline-lab bench a");
            report.add(section, &output(short));
            report.finish(&output(short)).unwrap()
        };
        let ends = |short, value| finish(short, section(value));
        assert_eq!(ends(false, 1.0), ExitCode::SUCCESS);
        assert_eq!(ends(false, 2.0), ExitCode::FAILURE);
        assert_eq!(ends(true, 2.0), ExitCode::SUCCESS);
        assert_eq!(ends(true, f64::NAN), ExitCode::FAILURE);
        // Figures in virtual time are the same in a short run.
        let repeatable = |value| finish(true, section(value).repeatable());
        assert_eq!(repeatable(1.0), ExitCode::SUCCESS);
        assert_eq!(repeatable(2.0), ExitCode::FAILURE);
        assert_eq!(repeatable(f64::NAN), ExitCode::FAILURE);
    }

    #[test]
    fn bounds_include_their_ends_and_exclude_missing_values() {
        assert!(Bound::AtMost(11.5).is_met(11.5) && !Bound::AtMost(11.5).is_met(11.51));
        assert!(Bound::AtLeast(7.0).is_met(7.0) && !Bound::AtLeast(7.0).is_met(6.99));
        assert!(Bound::Near(30.0, 0.2).is_met(29.8) && !Bound::Near(30.0, 0.2).is_met(30.3));
        let all = [Bound::AtMost(1.0), Bound::AtLeast(1.0), Bound::Near(1.0, 1.0)];
        assert!(all.iter().all(|bound| !bound.is_met(f64::NAN)));
    }
}
