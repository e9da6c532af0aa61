//! Text tables: aligned columns within a maximum width.

use crate::show;
use paceline::text::escape;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The alignment of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Align {
    /// Left-aligned text; truncated at its end.
    Left,
    /// Left-aligned tags and patterns; truncated in the middle, because similar names differ at their end.
    Name,
    /// Right-aligned numbers; never truncated.
    Right,
}

/// Maximum width of a table in characters, unless [`fit_terminal`] was called.
pub const WIDTH: usize = 100;

/// The width of the tables that this process prints; 0 if it is not set.
static OUTPUT: AtomicUsize = AtomicUsize::new(0);

/// Makes tables as wide as the terminal, or as their cells if standard output is none: a program needs whole names. On a
/// terminal of less than 80 columns their lines continue on the next one, because shorter names say nothing.
pub fn fit_terminal() {
    let columns = show::stdout_columns().map_or(usize::MAX, |columns| columns.max(80));
    OUTPUT.store(columns, Ordering::Relaxed);
}

/// Makes tables as wide as their cells, also on a terminal.
pub fn keep_whole() {
    OUTPUT.store(usize::MAX, Ordering::Relaxed);
}

/// Returns the width of tables: the width of the terminal, no limit for another output, or [`WIDTH`].
pub fn width() -> usize {
    match OUTPUT.load(Ordering::Relaxed) {
        0 => WIDTH,
        width => width,
    }
}

/// Rows under a header. Columns are as wide as their cells.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

/// Formats all non-empty tables, each under its title, with empty lines between them.
pub fn titled(parts: &[(&str, Table)]) -> String {
    let parts = parts.iter().filter(|(_, table)| !table.is_empty());
    let parts = parts.map(|(title, table)| format!("{title}\n{}", table.render(width())));
    parts.collect::<Vec<_>>().join("\n")
}

impl Table {
    /// Creates an empty table with these columns.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        // Escapes line breaks, which would look like additional rows.
        self.rows.push(cells.iter().map(|cell| escape(cell).into_owned()).collect());
    }

    /// Returns true if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Formats the table as lines of at most `width` characters: narrows the widest text column until it
    /// fits, but no column below 4 characters.
    pub fn render(&self, width: usize) -> String {
        let widths = self.widths(width);
        let mut out = String::new();
        let head = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, (_, align)), width) in row.iter().zip(&self.columns).zip(&widths) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                line.push_str(&fitted(cell, *width, *align));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| name.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let gaps = 2 * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > width {
            let texts = widths.iter_mut().zip(&self.columns);
            let texts = texts.filter(|(_, (_, align))| *align != Align::Right).map(|(w, _)| w);
            match texts.max() {
                Some(widest) if *widest > 4 => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

/// Pads or truncates a cell to exactly `width` characters; a truncated cell contains a `~`.
fn fitted(cell: &str, width: usize, align: Align) -> String {
    let length = cell.chars().count();
    if length > width {
        let kept = width.saturating_sub(1);
        let tail = if align == Align::Name { kept / 2 } else { 0 };
        let head = cell.chars().take(kept - tail);
        return head.chain(['~']).chain(cell.chars().skip(length - tail)).collect();
    }
    // A width in a format has at most 16 bits.
    let padding = " ".repeat(width - length);
    match align {
        Align::Left | Align::Name => format!("{cell}{padding}"),
        Align::Right => format!("{padding}{cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("TAG", Align::Left), ("HZ", Align::Right)]);
        table.row(vec!["robot/camera".to_owned(), "30.0".to_owned()]);
        table.row(vec!["a".to_owned(), "5.0".to_owned()]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            table().render(WIDTH),
            "TAG             HZ\nrobot/camera  30.0\na              5.0\n"
        );
    }

    #[test]
    fn a_wide_text_is_truncated_with_a_mark() {
        assert_eq!(table().render(14), "TAG         HZ\nrobot/c~  30.0\na          5.0\n");
        let mut narrow = Table::new(&[("TAG", Align::Name)]);
        ["robot/left", "robot/right"].iter().for_each(|tag| narrow.row(vec![(*tag).to_owned()]));
        assert_eq!(narrow.render(8), "TAG\nrobo~eft\nrobo~ght\n");
        assert_eq!(narrow.render(0), "TAG\nro~t\nro~t\n");
        let mut wide = table();
        wide.row(vec!["é".repeat(300), "1.0".to_owned()]);
        assert!(wide.render(WIDTH).lines().all(|line| line.chars().count() <= WIDTH));
    }
}
