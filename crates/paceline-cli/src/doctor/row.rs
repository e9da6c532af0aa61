//! One row of what the doctor says.

use serde::Serialize;

/// How it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As wanted.
    Ok,
    /// Less than wanted.
    Lack,
    /// This host does not say.
    Unknown,
}

/// What was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) what: &'static str,
    pub(super) found: String,
    pub(super) wanted: &'static str,
    pub(super) state: State,
    /// True if Paceline does not work without it.
    pub(super) needed: bool,
    /// A command or a sentence; only for a lack.
    pub(super) mend: Option<String>,
}

impl Row {
    /// A row of something that is good to have.
    pub(super) fn new(
        what: &'static str,
        found: &str,
        wanted: &'static str,
        state: State,
        mend: &str,
    ) -> Self {
        let mend = (state == State::Lack).then(|| mend.to_owned());
        Self { what, found: found.to_owned(), wanted, state, needed: false, mend }
    }

    /// Paceline does not work without it.
    pub(super) fn needed(self) -> Self {
        Self { needed: true, ..self }
    }
}

/// Ok or lack.
pub(super) const fn ok_if(holds: bool) -> State {
    if holds { State::Ok } else { State::Lack }
}

/// The first line of a file of the kernel's.
pub(super) fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
