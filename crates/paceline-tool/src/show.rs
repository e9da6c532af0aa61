//! Terminal output: lines, JSON, notes, and a block that updates in place.

use anyhow::Context as _;
use paceline::LossTolerance;
use paceline::contract::Form;
use paceline::text::{escape_except, is_unprintable};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The reader closed standard output. The command ends with success.
#[derive(Debug)]
pub struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// Escapes control characters and marks of writing direction; keeps line breaks and tabs.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escape_except(text, &['\n', '\t'])
}

/// Writes one line to standard output.
pub fn line(text: &str) -> anyhow::Result<()> {
    text_below_block(&format!("{}\n", harmless(text)))
}

/// Writes text that ends with a line break to standard output.
pub fn text(text: &str) -> anyhow::Result<()> {
    text_below_block(&harmless(text))
}

/// Writes a payload to standard output. Escapes it on a terminal, and leaves it unchanged for a program.
pub fn payload(text: &str) -> anyhow::Result<()> {
    match io::stdout().is_terminal() {
        true => line(text),
        false => text_below_block(&format!("{text}\n")),
    }
}

/// Writes lines to standard output that a block does not replace.
fn text_below_block(lines: &str) -> anyhow::Result<()> {
    let _shown = below_block(io::stdout().is_terminal());
    written(io::stdout().write_all(lines.as_bytes()))
}

/// Writes one line of JSON to standard output.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&json_escaped(&serde_json::to_string(value).context("cannot write JSON")?))
}

/// Writes JSON over several lines to standard output.
pub fn json_pretty(value: &impl Serialize) -> anyhow::Result<()> {
    line(&json_escaped(&serde_json::to_string_pretty(value).context("cannot write JSON")?))
}

/// Escapes all characters of a JSON text that are not [plain](paceline::text): `serde_json` does not escape
/// DEL, C1 control characters and marks of writing direction. They occur only in strings.
pub fn json_escaped(json: &str) -> Cow<'_, str> {
    let bad = |c: char| c != '\n' && is_unprintable(c);
    if !json.contains(bad) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if bad(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Maps a closed standard output to [`StdoutClosed`], which is no failure.
pub fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        other => other.context("cannot write to standard output"),
    }
}

/// The number of lines of the [`Block`] at the end of the terminal, which the next update replaces. 0 if there is none, or
/// if other lines follow it.
static SHOWN: Mutex<usize> = Mutex::new(0);

/// Locks the end of the terminal.
fn shown() -> MutexGuard<'static, usize> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the end of the terminal to write lines that the block does not replace.
fn below_block(is_terminal: bool) -> MutexGuard<'static, usize> {
    let mut shown = shown();
    if is_terminal {
        *shown = 0;
    }
    shown
}

/// Standard error, for lines that the [`Block`] does not replace. Each write is whole lines.
pub struct Stderr;

impl io::Write for Stderr {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let _shown = below_block(io::stderr().is_terminal());
        io::stderr().write_all(lines).map(|()| lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A block of text that each update replaces on a terminal, and appends elsewhere. Lines that are too long for the
/// terminal continue on the next one; lines below its height are left out.
pub struct Block {
    to_stderr: bool,
    terminal: bool,
}

impl Block {
    /// Creates a block on standard output.
    pub fn on_stdout() -> Self {
        Self { to_stderr: false, terminal: io::stdout().is_terminal() }
    }

    /// Creates a block on standard error, for commands that write payloads to standard output.
    pub fn on_stderr() -> Self {
        Self { to_stderr: true, terminal: io::stderr().is_terminal() }
    }

    /// Returns true if the output is a terminal, so that updates replace the block.
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Replaces the block by `text`.
    pub fn update(&self, text: &str) -> anyhow::Result<()> {
        let mut out = String::new();
        let (columns, rows) = match (self.terminal, self.to_stderr) {
            (false, _) => (usize::MAX, usize::MAX),
            (true, true) => terminal_size(io::stderr()).unwrap_or(UNKNOWN_SIZE),
            (true, false) => terminal_size(io::stdout()).unwrap_or(UNKNOWN_SIZE),
        };
        let text = harmless(text);
        let lines = fitting(&text, columns, rows);
        let mut shown = shown();
        if self.terminal && *shown > 0 {
            out.push_str(&format!("\x1b[{}F\x1b[J", *shown));
        }
        *shown = if self.terminal { lines.len() } else { 0 };
        for line in lines {
            out.push_str(line);
            out.push('\n');
        }
        if self.to_stderr {
            // A closed standard error must not stop the command.
            let _ = io::stderr().write_all(out.as_bytes());
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush()))
    }
}

/// Writes a line to standard error.
pub fn note(text: &str) {
    let _ = Stderr.write_all(format!("{}\n", harmless(text)).as_bytes());
}

/// The columns and rows of a terminal of unknown size.
const UNKNOWN_SIZE: (usize, usize) = (100, usize::MAX);

/// Returns the columns of the terminal at standard output.
pub fn stdout_columns() -> Option<usize> {
    terminal_size(io::stdout()).map(|(columns, _)| columns)
}

/// Returns the columns and rows of a terminal; `None` if they are unknown.
fn terminal_size(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    // A terminal of unknown size reports 0.
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0).then_some((columns, if rows > 0 { rows } else { usize::MAX }))
}

/// Splits `text` into lines of at most `columns` characters, for a terminal of `rows` lines: the last one stays empty,
/// because the cursor is there.
fn fitting(text: &str, columns: usize, rows: usize) -> Vec<&str> {
    let lines = text.lines().flat_map(|line| wrapped(line, columns));
    lines.take(rows.saturating_sub(1).max(1)).collect()
}

/// Splits a line into parts of at most `width` characters, at spaces if possible.
fn wrapped(line: &str, width: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), line);
    while let Some((limit, _)) = rest.char_indices().nth(width.max(1)) {
        let (head, tail) = rest.split_at(limit);
        let space = if tail.starts_with(' ') { Some(limit) } else { head.rfind(' ') };
        let end = space.filter(|end| !head.get(..*end).unwrap_or(head).trim().is_empty());
        let (part, next) = rest.split_at(end.unwrap_or(limit));
        parts.push(part.trim_end());
        rest = next.trim_start();
    }
    parts.push(rest);
    parts
}

/// Formats microseconds as milliseconds: two decimals below 10, one below 100, three below 0.01.
pub fn millis(micros: u64) -> String {
    let (whole, rest) = (micros / 1_000, micros % 1_000);
    match whole {
        0 if (1..10).contains(&rest) => format!("0.00{rest}"),
        0..=9 => format!("{whole}.{:02}", rest / 10),
        10..=99 => format!("{whole}.{}", rest / 100),
        _ => whole.to_string(),
    }
}

/// Formats a part of frames that were lost in percent: `-` if it is unknown.
pub fn loss(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

/// Formats a time in milliseconds with its unit, rounded like [`millis`].
pub fn time(time: Duration) -> String {
    format!("{} ms", millis(micros(time)))
}

/// Formats a rate in millihertz as samples per second with one decimal.
pub fn hertz(millihertz: u64) -> String {
    format!("{:.1}", f64::from(u32::try_from(millihertz).unwrap_or(u32::MAX)) / 1_000.0)
}

/// Returns a duration in whole microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Formats a count with its noun: `1 publisher`, `2 publishers`.
pub fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Formats a bit rate with its unit.
pub fn bits(bits_per_s: u64) -> String {
    paceline::Capacity::from_bits_per_s(bits_per_s)
        .map_or_else(|_| "0 bit/s".to_owned(), |rate| rate.to_string())
}

/// Formats a request in one line.
pub fn requested(form: Form, within: Option<Duration>, loss: Option<LossTolerance>) -> String {
    let mut text = form.to_string();
    if let Some(within) = within {
        let _ = write!(text, ", within {} ms", millis(micros(within)));
    }
    if let Some(loss) = loss {
        let _ = write!(text, ", loss {loss}");
    }
    if within.is_none() && loss.is_none() {
        text.push_str(", best effort");
    }
    text
}

/// Formats drops as `10 deadline_missed, 2 queue_full`, or `0`.
pub fn drops(drops: &paceline::status::Drops) -> String {
    let reasons: Vec<String> =
        drops.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    match reasons.len() {
        0 => "0".to_owned(),
        _ => reasons.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(millis(0), "0.00");
        assert_eq!((millis(7), millis(10)), ("0.007".to_owned(), "0.01".to_owned()));
        assert_eq!(millis(1_239), "1.23");
        assert_eq!(millis(45_678), "45.6");
        assert_eq!(millis(200_000), "200");
        assert_eq!(bits(2_000_000), "2 Mbit/s");
        assert_eq!(bits(0), "0 bit/s");
    }

    #[test]
    fn long_lines_continue_at_a_space() {
        assert_eq!(wrapped("late 0  dropped 0", 17), ["late 0  dropped 0"]);
        assert_eq!(wrapped("late 0  dropped 0", 12), ["late 0", "dropped 0"]);
        assert_eq!(wrapped("late 0  dropped 0", 6), ["late 0", "droppe", "d 0"]);
        assert_eq!(wrapped("  ≤200 ms", 4), ["  ≤2", "00", "ms"]);
        assert_eq!((wrapped("", 3), wrapped("abc", 0)), (vec![""], vec!["a", "b", "c"]));
    }

    #[test]
    fn a_block_leaves_the_last_row_to_the_cursor() {
        assert_eq!(fitting("a b\nc\nd", 1, 4), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb", 80, 3), ["a", "b"]);
        assert_eq!(fitting("a\nb", 80, usize::MAX), ["a", "b"]);
        assert_eq!(fitting("a\nb", 80, 1), ["a"]);
    }

    #[test]
    fn a_count_of_one_is_singular() {
        assert_eq!(count(1, "publisher"), "1 publisher");
        assert_eq!(
            (count(0, "channel"), count(2, "channel")),
            ("0 channels".into(), "2 channels".into())
        );
    }

    #[test]
    fn drops_name_their_reasons() {
        let mut dropped = paceline::status::Drops::default();
        assert_eq!(drops(&dropped), "0");
        dropped.add(paceline::status::DropReason::QueueFull, 2);
        dropped.add(paceline::status::DropReason::DeadlineMissed, 10);
        assert_eq!(drops(&dropped), "10 deadline_missed, 2 queue_full");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(harmless("\x1b[2J\r\u{9b}é"), "\\u{1b}[2J\\r\\u{9b}é");
        assert_eq!(harmless("cam\u{202e}gpj"), "cam\\u{202e}gpj");
    }

    #[test]
    fn json_escapes_control_characters() {
        let text = "a\u{7f}\u{9b}31m\u{202e}b\u{feff}\u{e0041}\x1b\n\"ü";
        let written = serde_json::to_string(&text).unwrap();
        let escaped = json_escaped(&written);
        assert!(paceline::text::is_plain(&escaped), "{escaped:?}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        assert_eq!(escaped, r#""a\u007f\u009b31m\u202eb\ufeff\udb40\udc41\u001b\n\"ü""#);
        assert!(matches!(json_escaped("{\n  \"a\": 1\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_closed_standard_output_is_no_failure() {
        let gone = written(Err(io::ErrorKind::BrokenPipe.into())).unwrap_err();
        assert!(gone.is::<StdoutClosed>());
        assert!(!written(Err(io::ErrorKind::Other.into())).unwrap_err().is::<StdoutClosed>());
    }
}
