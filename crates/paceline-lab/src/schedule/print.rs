//! Output of decisions and states: JSON lines for programs, columns for users.

use super::stream::Id;
use super::summary::{Row, Sums};
use anyhow::Context as _;
use paceline_sched::discipline::{StreamIndex, WindowState};
use paceline_sched::timeline::{ChosenSegment, SampleDecision, Timeline};
use paceline_tool::show;
use serde::{Serialize, Serializer};
use std::io::{self, BufWriter, Stdout, Write};

/// Writes to standard output through a buffer.
pub(super) struct Printer<'a> {
    ids: &'a [Id],
    text: bool,
    out: BufWriter<Stdout>,
}

/// A window constraint x'/y' as text.
struct Shown(WindowState);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.0.x, self.0.y)
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[derive(Serialize)]
struct DecisionLine<'a> {
    t_ns: u64,
    stream: &'a Id,
    seq: u64,
    outcome: &'static str,
    window: Option<Shown>,
    finish_ns: Option<u64>,
    delay_ns: Option<u64>,
    violated: bool,
}

#[derive(Serialize)]
struct TraceLine<'a> {
    t_ns: u64,
    chosen: &'a Id,
    seq: u64,
    bytes: u32,
    state: Vec<State<'a>>,
}

/// The state of a stream before a choice.
#[derive(Serialize)]
struct State<'a> {
    stream: &'a Id,
    window: Option<Shown>,
    tagged: bool,
    deadline_ns: Option<u64>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(ids: &'a [Id], text: bool) -> Self {
        Self { ids, text, out: BufWriter::with_capacity(1 << 16, io::stdout()) }
    }

    fn id(&self, stream: StreamIndex) -> anyhow::Result<&'a Id> {
        self.ids.get(stream.0 as usize).context("a decision for an unknown stream")
    }

    pub(super) fn decision(
        &mut self,
        decision: &SampleDecision,
        violated: bool,
    ) -> anyhow::Result<()> {
        let stream = self.id(decision.stream)?;
        let (seq, outcome) = (decision.seq, decision.outcome.name());
        let window = decision.window.map(Shown);
        if self.text {
            let window = window.map(|window| window.to_string()).unwrap_or_default();
            let (at, violated) = (decision.at, if violated { "  window violated" } else { "" });
            let at = at.to_string();
            let line = writeln!(
                self.out,
                "{at:>12}  {stream:<12}  {seq:>8}  {outcome:<7}  {window}{violated}"
            );
            return show::written(line);
        }
        self.json(&DecisionLine {
            t_ns: decision.at.as_nanos(),
            stream,
            seq,
            outcome,
            window,
            finish_ns: decision.finish.map(|at| at.as_nanos()),
            delay_ns: decision.delay.map(|delay| delay.as_nanos()),
            violated,
        })
    }

    /// Prints the state from which `pick` was chosen.
    pub(super) fn trace(&mut self, pick: ChosenSegment, timeline: &Timeline) -> anyhow::Result<()> {
        let state = |(place, stream)| {
            let place = StreamIndex(place);
            let window = timeline.window(place);
            State {
                stream,
                window: window.map(Shown),
                tagged: window.is_some_and(|window| window.tagged),
                deadline_ns: timeline.deadline(place).map(|at| at.as_nanos()),
            }
        };
        let states = (0..).zip(self.ids).map(state);
        let chosen = self.id(pick.stream)?;
        if self.text {
            let states: Vec<String> = states.map(|state| render(&state)).collect();
            let at = pick.at.to_string();
            return show::written(writeln!(self.out, "{at:>12}  [{}]", states.join(", ")));
        }
        let (seq, bytes) = (pick.seq, pick.bytes);
        let line =
            TraceLine { t_ns: pick.at.as_nanos(), chosen, seq, bytes, state: states.collect() };
        self.json(&line)
    }

    /// Prints the summary and flushes the output.
    pub(super) fn summary(&mut self, sums: &Sums<'_>, timeline: &Timeline) -> anyhow::Result<()> {
        let rows = sums.rows(timeline);
        if self.text {
            show::written(self.out.write_all(sums.to_text(timeline, rows).as_bytes()))?;
        } else {
            self.json(&sums.line(timeline, Rows::new(rows)))?;
        }
        show::written(self.out.flush())
    }

    fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        match serde_json::to_writer(&mut self.out, value) {
            Ok(()) => show::written(self.out.write_all(b"\n")),
            Err(error) => match error.io_error_kind() {
                Some(kind) => show::written(Err(kind.into())),
                None => Err(error).context("cannot write JSON"),
            },
        }
    }
}

/// A list that is serialized while it is generated: there may be millions of rows.
pub(super) struct Rows<I>(std::cell::Cell<Option<I>>);

impl<I> Rows<I> {
    fn new(rows: I) -> Self {
        Self(std::cell::Cell::new(Some(rows)))
    }
}

impl<'a, I: Iterator<Item = Row<'a>>> Serialize for Rows<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.take().into_iter().flatten())
    }
}

/// Formats a state as text: `A 1/2*(3 ms)`.
fn render(state: &State<'_>) -> String {
    let mut text = state.stream.to_string();
    if let Some(window) = &state.window {
        text.push_str(&format!(" {window}{}", if state.tagged { "*" } else { "" }));
    }
    if let Some(deadline) = state.deadline_ns {
        text.push_str(&format!("({})", paceline_sched::Instant::from_nanos(deadline)));
    }
    text
}
