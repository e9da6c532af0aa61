//! A table of figures: each row has a name and one value per further heading.

use serde::Serialize;

/// A table for figures with more than one column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<(String, Vec<f64>)>,
}

impl Table {
    /// Creates a table without rows. The first heading belongs to the column of names.
    pub(crate) fn new(headings: Vec<String>) -> Self {
        Self { headings, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, name: String, values: Vec<f64>) {
        self.rows.push((name, values));
    }

    /// Returns the headings and the rows as text.
    fn cells(&self) -> Vec<Vec<String>> {
        let rows = self.rows.iter().map(|(name, values)| {
            let values = values.iter().map(|value| match value.abs() {
                none if none.is_nan() => "–".to_owned(),
                large if large >= 100.0 => format!("{value:.0}"),
                _ => format!("{value:.2}"),
            });
            std::iter::once(name.clone()).chain(values).collect()
        });
        std::iter::once(self.headings.clone()).chain(rows).collect()
    }

    /// Formats the table for a terminal, with aligned columns.
    pub(super) fn text(&self) -> String {
        let cells = self.cells();
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| {
                let column = cells.iter().filter_map(|row| row.get(column));
                column.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for row in &cells {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                out += &match column {
                    0 => format!("  {cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            out.push('\n');
        }
        out
    }

    /// Formats the table as Markdown.
    pub(super) fn markdown(&self) -> String {
        let mut out = String::new();
        for (line, row) in self.cells().iter().enumerate() {
            out += &format!("| {} |\n", row.join(" | "));
            if line == 0 {
                out += &format!("| --- |{}\n", " ---: |".repeat(row.len().saturating_sub(1)));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_left_aligned_and_values_right_aligned() {
        let mut table = Table::new(vec!["pace".to_owned(), "1".to_owned()]);
        table.row("every 1 ms".to_owned(), vec![0.5]);
        table.row("all".to_owned(), vec![1_234.5]);
        assert_eq!(table.text(), "  pace           1\n  every 1 ms  0.50\n  all         1234\n");
        assert_eq!(
            table.markdown(),
            "| pace | 1 |\n| --- | ---: |\n| every 1 ms | 0.50 |\n| all | 1234 |\n"
        );
    }
}
