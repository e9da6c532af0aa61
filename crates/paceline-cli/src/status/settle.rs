//! Waits for nodes.

use paceline::Node;
use paceline_tool::show;
use paceline_tool::stop::Stop;
use std::time::{Duration, Instant};

/// A new node discovers its neighbours one by one. Unless its registry is complete earlier, all are known after this time
/// without a new one.
const QUIET: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(10);
/// Users wonder after this time without any output.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Waits until all reachable nodes are known: until the registry is complete, no new node is found for a while, or `timeout`
/// has passed. Notes on standard error that it waits if that takes long.
pub(crate) fn settle(node: &Node, timeout: Duration, stop: &Stop) {
    let begun = Instant::now();
    settle_and(node, timeout, stop, || {
        note_wait("no other node answers yet", begun + timeout);
    });
}

/// Notes on standard error why a command waits, and for how long at most.
fn note_wait(why: &str, until: Instant) {
    let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
    show::note(&format!("{why}; waiting up to {left:.1} s more (Ctrl-C ends)"));
}

/// Calls `look` until it returns a value, `until` has passed or the user stops. Returns `None` without a value. Notes on
/// standard error `why` it waits if that takes long.
pub(crate) fn wait_for<T>(
    until: Instant,
    stop: &Stop,
    why: &str,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let note_at = Instant::now() + SILENCE_MAX;
    let mut is_noted = note_at >= until;
    loop {
        let found = look()?;
        let now = Instant::now();
        if found.is_some() || now >= until || stop.requested() {
            return Ok(found);
        }
        if now >= note_at && !std::mem::replace(&mut is_noted, true) {
            note_wait(why, until);
        }
        std::thread::sleep(STEP);
    }
}

/// Waits like [`settle`], and calls `note` once if no node is known after a second.
pub(crate) fn settle_and(node: &Node, timeout: Duration, stop: &Stop, note: impl FnOnce()) {
    wait_until(node, timeout, stop, note, || node.is_complete());
}

/// Waits until no new node is found for a while, or `timeout` has passed: nodes that have just met announce their hops one
/// after the other, which a plan of the whole network needs.
pub(crate) fn settle_hops(node: &Node, timeout: Duration, stop: &Stop) {
    let until = Instant::now() + timeout;
    wait_until(node, timeout, stop, || note_wait("no other node answers yet", until), || false);
}

/// Waits until `is_enough`, no new node is found for a while, or `timeout` has passed.
fn wait_until(
    node: &Node,
    timeout: Duration,
    stop: &Stop,
    note: impl FnOnce(),
    is_enough: impl Fn() -> bool,
) {
    let begun = Instant::now();
    let until = begun + timeout;
    let mut note = (timeout > SILENCE_MAX).then_some(note);
    let (mut known, mut since) = (0, begun);
    while Instant::now() < until && !stop.requested() {
        if known == 0
            && begun.elapsed() >= SILENCE_MAX
            && let Some(note) = note.take()
        {
            note();
        }
        if is_enough() {
            return;
        }
        let now_known = node.nodes().iter().filter(|(id, _)| *id != node.id()).count();
        if now_known != known {
            (known, since) = (now_known, Instant::now());
        }
        if known > 0 && since.elapsed() >= QUIET {
            return;
        }
        std::thread::sleep(STEP);
    }
}
