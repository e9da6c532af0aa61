//! One row of the doctor's report.

use serde::Serialize;

/// The result of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The host meets the recommendation.
    Ok,
    /// The host has less than recommended.
    Lack,
    /// The host does not report the value.
    Unknown,
}

/// One check with its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) found: String,
    pub(super) wanted: &'static str,
    pub(super) state: State,
    /// True if Paceline does not work without it.
    pub(super) needed: bool,
    /// The fix, a command or a sentence; only if the check failed.
    pub(super) fix: Option<String>,
}

impl Row {
    /// Creates a row for a recommendation.
    pub(super) fn new(
        what: &'static str,
        found: &str,
        wanted: &'static str,
        state: State,
        fix: &str,
    ) -> Self {
        let fix = (state == State::Lack).then(|| fix.to_owned());
        Self { what, found: found.to_owned(), wanted, state, needed: false, fix }
    }

    /// Marks the row as a requirement.
    pub(super) fn needed(self) -> Self {
        Self { needed: true, ..self }
    }
}

/// Returns [`State::Ok`] or [`State::Lack`].
pub(super) const fn ok_if(holds: bool) -> State {
    if holds { State::Ok } else { State::Lack }
}

/// Returns the first line of a kernel file.
pub(super) fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
