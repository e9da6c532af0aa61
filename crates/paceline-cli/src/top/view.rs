//! Text output: for a screen of any size, and as plain tables.

use super::keys::Key;
use super::model::{LinkRow, Order, Row, View};
use paceline_tool::show;
use paceline_tool::table::{Align, Align::Left, Align::Right, Table, WIDTH};
use std::fmt::Write as _;

/// The effect of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Effect {
    /// Continue.
    Continue,
    /// End.
    End,
}

/// The table that fills the rest of the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shown {
    Streams,
    Subscriptions,
    Refusals,
}

/// The state of the user interface.
#[derive(Clone, Debug)]
pub(super) struct Look {
    order: Order,
    turned: bool,
    shown: Shown,
    /// The first visible row, and the number of visible rows.
    first: usize,
    page: usize,
    held: Option<View>,
    holds: bool,
    helps: bool,
}

const HELP: [&str; 10] = [
    "s  >  right   sort by the next column     <  left   by the previous one",
    "r             reverse the order",
    "Tab           streams, subscriptions, refusals",
    "j  k  arrows  one row down, up            Page keys, Home, End",
    "space         pause, and continue",
    "h  ?          this help",
    "q  Ctrl-C     end",
    "",
    "Rates, counts and times on links cover the time between two readings, ages",
    "the last second. Rates, late and lost of subscriptions cover 10 s.",
];

impl Look {
    pub(super) const fn new(order: Order) -> Self {
        Self {
            order,
            turned: false,
            shown: Shown::Streams,
            first: 0,
            page: 1,
            held: None,
            holds: false,
            helps: false,
        }
    }

    pub(super) const fn order(&self) -> Order {
        self.order
    }

    pub(super) const fn is_turned(&self) -> bool {
        self.turned
    }

    /// Returns true if the display is paused.
    pub(super) const fn is_held(&self) -> bool {
        self.holds
    }

    /// Processes a key.
    pub(super) fn press(&mut self, key: Key) -> Effect {
        match key {
            Key::Quit => return Effect::End,
            Key::Next => self.order = self.order.moved(1),
            Key::Before => self.order = self.order.moved(Order::ALL.len() - 1),
            Key::Turn => self.turned = !self.turned,
            Key::Tab => {
                self.first = 0;
                self.shown = match self.shown {
                    Shown::Streams => Shown::Subscriptions,
                    Shown::Subscriptions => Shown::Refusals,
                    Shown::Refusals => Shown::Streams,
                };
            }
            Key::Up => self.first = self.first.saturating_sub(1),
            Key::Down => self.first = self.first.saturating_add(1),
            Key::PageUp => self.first = self.first.saturating_sub(self.page),
            Key::PageDown => self.first = self.first.saturating_add(self.page),
            Key::Home => self.first = 0,
            Key::End => self.first = usize::MAX,
            Key::Hold => {
                self.holds = !self.holds;
                self.held = None;
            }
            Key::Help => self.helps = !self.helps,
            Key::Other => self.helps = false,
        }
        Effect::Continue
    }
}

/// Returns the lines of a screen of this width and height.
pub(super) fn screen(now: &View, look: &mut Look, (width, height): (usize, usize)) -> Vec<String> {
    let view = match (look.holds, look.held.take()) {
        (true, Some(held)) => held,
        _ => now.clone(),
    };
    let mut lines = vec![title(&view, look.holds)];
    if look.helps {
        lines.extend(HELP.iter().map(|&line| line.to_owned()));
    } else {
        let links = table_of_links(&view.links, width);
        let room = (height / 3).max(2);
        if links.len() > 1 {
            lines.push(String::new());
            let left = links.len().saturating_sub(room);
            lines.extend(links.into_iter().take(room));
            if left > 0 {
                lines.push(format!("… and {left} more"));
            }
        }
        lines.push(String::new());
        body(&view, look, width, height, &mut lines);
    }
    let keys = "q end  s sort  r reverse  Tab next table  space pause  h help";
    lines.truncate(height.saturating_sub(1).max(1));
    while lines.len() + 1 < height {
        lines.push(String::new());
    }
    if height > 1 {
        lines.push(keys.to_owned());
    }
    look.held = look.holds.then_some(view);
    lines.iter().map(|line| clipped(line, width)).collect()
}

/// Adds the table that fills the rest of the screen.
fn body(view: &View, look: &mut Look, width: usize, height: usize, lines: &mut Vec<String>) {
    let (name, rows) = match look.shown {
        Shown::Streams => ("STREAMS", table_of(&view.streams, &STREAMS, width)),
        Shown::Subscriptions => {
            ("SUBSCRIPTIONS", table_of(&view.subscriptions, &SUBSCRIPTIONS, width))
        }
        Shown::Refusals => ("REFUSALS", refusals(&view.refusals, width)),
    };
    // Lines for the title, the table header and the key help.
    let room = height.saturating_sub(lines.len() + 3).max(1);
    let count = rows.len().saturating_sub(1);
    look.page = room;
    look.first = look.first.min(count.saturating_sub(room));
    let mut title = match look.shown {
        Shown::Refusals => format!("{name} ({count})"),
        Shown::Streams | Shown::Subscriptions => {
            let turned = if look.turned { ", reversed" } else { "" };
            format!("{name} ({count}) by {}{turned}", look.order.name())
        }
    };
    if count > room {
        let _ = write!(title, ", from {}", look.first + 1);
    }
    lines.push(title);
    if count == 0 {
        lines.push("none".to_owned());
        return;
    }
    lines.extend(rows.iter().take(1).cloned());
    lines.extend(rows.into_iter().skip(1 + look.first).take(room));
}

/// Formats all tables completely.
pub(super) fn plain(view: &View) -> String {
    if view.nodes == 0 && view.gone.is_empty() {
        return "no other node answers: none runs on this host, and no --link leads to one; start one with paceline pub, \
                paceline demo or paceline node\n"
            .to_owned();
    }
    let mut out = format!("{}\n", title(view, false));
    let tables = [
        ("LINKS", table_of_links(&view.links, WIDTH)),
        ("STREAMS", table_of(&view.streams, &STREAMS, WIDTH)),
        ("SUBSCRIPTIONS", table_of(&view.subscriptions, &SUBSCRIPTIONS, WIDTH)),
    ];
    for (name, lines) in tables.iter().filter(|(_, lines)| lines.len() > 1) {
        let _ = write!(out, "\n{name}\n{}\n", lines.join("\n"));
    }
    if !view.refusals.is_empty() {
        let _ = write!(out, "\nREFUSALS\n{}\n", view.refusals.join("\n"));
    }
    out
}

fn title(view: &View, held: bool) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "paceline top: {}, {}, {}, {}, {} refused",
        count(view.nodes, "node"),
        count(view.links.len(), "link"),
        count(view.streams.len(), "stream"),
        count(view.subscriptions.len(), "subscription"),
        view.refusals.len(),
    );
    if view.silent > view.gone.len() {
        let _ = write!(text, ", {} not queried", view.silent - view.gone.len());
    }
    if !view.gone.is_empty() {
        let _ = write!(text, ", gone: {}", view.gone.join(", "));
    }
    if held {
        text.push_str(", paused");
    }
    text
}

/// A column: name, alignment, minimum screen width, and cell function.
type Column = (&'static str, Align, usize, fn(&Row) -> String);

const STREAMS: [Column; 10] = [
    ("tag", Left, 0, |row| row.tag.clone()),
    ("link", Left, 0, |row| row.place.clone()),
    ("to", Left, 90, |row| row.to.clone()),
    ("form", Left, 60, |row| row.form.clone()),
    ("Hz", Right, 0, |row| format!("{:.1}", row.rate_hz)),
    ("bit/s", Right, 0, |row| short(row.bits_per_s)),
    ("ms on link", Right, 50, Row::delay),
    ("late", Right, 70, |row| row.late.to_string()),
    ("broken", Right, 100, |row| row.violations.map_or_else(|| "-".to_owned(), |n| n.to_string())),
    ("dropped", Left, 0, state),
];

const SUBSCRIPTIONS: [Column; 10] = [
    ("pattern", Left, 0, |row| row.tag.clone()),
    ("node", Left, 0, |row| row.place.clone()),
    ("asked", Left, 60, |row| row.form.clone()),
    ("Hz", Right, 0, |row| format!("{:.1}", row.rate_hz)),
    ("of", Right, 0, requested),
    ("bit/s", Right, 60, |row| short(row.bits_per_s)),
    ("age ms", Right, 70, Row::delay),
    ("late", Right, 50, |row| row.late.to_string()),
    ("lost", Right, 0, |row| row.health.as_ref().map_or(0, |health| health.lost).to_string()),
    ("state", Left, 0, state),
];

/// Formats the rate of the requested samples.
fn requested(row: &Row) -> String {
    let requested = row.health.as_ref().and_then(|health| health.requested_millihertz);
    requested.map_or_else(|| "-".to_owned(), show::hertz)
}

/// Formats the health of a subscription with its reason, or the drops of a stream.
fn state(row: &Row) -> String {
    match &row.health {
        _ if row.gone => "gone".to_owned(),
        None => show::drops(&row.dropped),
        Some(health) => match &health.reason {
            Some(reason) => format!("{}: {reason}", health.label),
            None => health.label.clone(),
        },
    }
}

fn table_of(rows: &[Row], columns: &[Column], width: usize) -> Vec<String> {
    let shown: Vec<&Column> = columns.iter().filter(|(_, _, least, _)| width >= *least).collect();
    let heads: Vec<_> = shown.iter().map(|(name, side, _, _)| (*name, *side)).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        table.row(shown.iter().map(|(_, _, _, cell)| cell(row)).collect());
    }
    table.render(width).lines().map(ToOwned::to_owned).collect()
}

fn table_of_links(rows: &[LinkRow], width: usize) -> Vec<String> {
    let mut table = Table::new(&[
        ("link", Left),
        ("to", Left),
        ("capacity", Right),
        ("used", Right),
        ("held", Right),
        ("full", Right),
        ("trip ms", Right),
        ("jitter", Right),
        ("loss", Right),
        ("streams", Right),
    ]);
    for row in rows {
        let or_dash = |bits: Option<u64>| bits.map_or_else(|| "-".to_owned(), short);
        let measured = |us| if row.delay_us == 0 { "-".to_owned() } else { show::millis(us) };
        let full = row.used.zip(row.capacity).and_then(|(used, capacity)| {
            Some(format!("{} %", used.saturating_mul(100).checked_div(capacity)?))
        });
        table.row(vec![
            row.place.clone(),
            if row.gone { "gone".to_owned() } else { row.to.clone() },
            or_dash(row.capacity),
            or_dash(row.used),
            short(row.reserved),
            full.unwrap_or_else(|| "-".to_owned()),
            measured(row.delay_us),
            measured(row.jitter_us),
            show::loss(row.loss),
            row.streams.to_string(),
        ]);
    }
    table.render(width).lines().map(ToOwned::to_owned).collect()
}

/// Formats all refusals under a header, wrapped to the width.
fn refusals(all: &[String], width: usize) -> Vec<String> {
    let mut lines = vec!["node, pattern and reason".to_owned()];
    for refusal in all {
        let letters: Vec<char> = refusal.chars().collect();
        lines.extend(letters.chunks(width.max(1)).map(|part| part.iter().collect::<String>()));
    }
    lines
}

/// Formats a number with three significant digits: 950, 12.3k, 2.00M.
fn short(number: u64) -> String {
    let scaled = |unit: u64, letter: char| {
        let hundredths = number.saturating_mul(100) / unit;
        match hundredths {
            0..=999 => format!("{}.{:02}{letter}", hundredths / 100, hundredths % 100),
            1_000..=9_999 => format!("{}.{}{letter}", hundredths / 100, hundredths % 100 / 10),
            _ => format!("{}{letter}", hundredths / 100),
        }
    };
    match number {
        0..=999 => number.to_string(),
        1_000..=999_999 => scaled(1_000, 'k'),
        1_000_000..=999_999_999 => scaled(1_000_000, 'M'),
        _ => scaled(1_000_000_000, 'G'),
    }
}

/// Truncates a line to the width and replaces control characters.
fn clipped(line: &str, width: usize) -> String {
    line.chars().take(width).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
#[path = "view/tests.rs"]
mod tests;
