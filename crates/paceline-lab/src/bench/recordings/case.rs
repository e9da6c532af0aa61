//! Runs one publisher on the robot and one subscriber behind the link, and collects their output.

use crate::bench::interrupt;
use crate::bench::netns::{ROBOT_ADDRESS, Rig, Side};
use crate::bench::stats::float;
use crate::bench::terminal::Terminal;
use anyhow::{Context as _, Result};
use paceline_tool::scratch::Scratch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest wait for samples in flight.
const COOL_DOWN: Duration = Duration::from_millis(1_500);

/// The results of one run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The JSON lines of `paceline sub --json`, one per sample.
    pub(super) samples: Vec<Value>,
    /// The subscriber's last line.
    pub(super) summary: Value,
    pub(super) published: u64,
    /// The link statistics in the publisher's last line.
    links: Vec<Value>,
    /// Bytes that the robot sent over the link.
    pub(super) wire_bytes: f64,
    /// Seconds from the publisher's start to its end.
    pub(super) seconds: f64,
}

/// Runs `paceline pub PUBLISH` on the robot until it ends, and `paceline sub SUBSCRIBE` behind the
/// link.
pub(super) fn run(
    rig: &Rig,
    scratch: &Scratch,
    publish: &[&str],
    subscribe: &[&str],
    patience: Duration,
) -> Result<Outcome> {
    let endpoint = format!("tcp/{ROBOT_ADDRESS}:7600");
    let capacity = format!("{}bit", rig.bits_per_s());
    let listen = format!("name=thin,listen={endpoint},capacity={capacity},insecure");
    let connect = format!("name=thin,connect={endpoint},capacity={capacity}");
    let subscribe = [&["sub"], subscribe, &["--json", "--link", &connect]].concat();
    let publish = [&["pub"], publish, &["--json", "--wait", "20s", "--link", &listen]].concat();
    let (robot, operator) = (rig.namespace(Side::Robot), rig.namespace(Side::Operator));
    let mut subscriber = Terminal::start(&subscribe, &scratch.host(), Some(operator))?;
    let before = rig.wire_bytes()?.to_operator;
    let mut publisher = Terminal::start(&publish, &scratch.host(), Some(robot))?;
    let mut lines = Vec::new();
    while let Some(line) = publisher.next_line(patience)? {
        lines.push(line);
    }
    interrupt::sleep(COOL_DOWN)?;
    let wire_bytes = float(rig.wire_bytes()?.to_operator - before);
    let seconds = match lines.as_slice() {
        [first, .., last] => last.at.duration_since(first.at).as_secs_f64() + 1.0,
        _ => 1.0,
    };
    let (mut published, mut links) = (0, Vec::new());
    for line in &lines {
        let line: Value = serde_json::from_str(&line.text).context("paceline pub --json")?;
        if let Some(count) = line.get("published").and_then(Value::as_u64) {
            published = count;
        }
        if let Some(last) = line.get("links").and_then(Value::as_array) {
            links.clone_from(last);
        }
    }
    let mut samples = Vec::new();
    for line in subscriber.end()? {
        samples.push(serde_json::from_str::<Value>(&line.text).context("paceline sub --json")?);
    }
    let summary = samples.pop().context("paceline sub printed nothing")?;
    Ok(Outcome { samples, summary, published, links, wire_bytes, seconds })
}

impl Outcome {
    /// Returns the sum of a counter over the robot's links.
    fn link(&self, field: &str) -> u64 {
        let field = |link: &Value| link.get(field).and_then(Value::as_u64);
        self.links.iter().filter_map(field).sum()
    }

    /// Returns the samples dropped on the link and by the subscriber, by reason.
    pub(super) fn drops(&self) -> BTreeMap<String, u64> {
        let mut drops = BTreeMap::new();
        let tables = self.links.iter().filter_map(|link| link.get("dropped"));
        for table in tables.chain(self.summary.pointer("/summary/dropped")) {
            for (reason, count) in table.as_object().into_iter().flatten() {
                *drops.entry(reason.clone()).or_default() += count.as_u64().unwrap_or(0);
            }
        }
        drops
    }

    /// Returns the number of samples that no counter explains: between the link's queue and the
    /// wire, and between the wire and the subscriber.
    pub(super) fn unaccounted(&self) -> u64 {
        let (offered, sent) = (self.link("offered"), self.link("sent"));
        let dropped: u64 = self.links.iter().map(|link| total(link.get("dropped"))).sum();
        let arrived = self.delivered() + total(self.summary.pointer("/summary/dropped"));
        offered.abs_diff(sent + dropped) + sent.abs_diff(arrived)
    }

    /// Returns the number of samples that the subscriber received.
    pub(super) fn delivered(&self) -> u64 {
        self.summary.pointer("/summary/delivered").and_then(Value::as_u64).unwrap_or(0)
    }
}

fn total(drops: Option<&Value>) -> u64 {
    let table = drops.and_then(Value::as_object);
    table.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
}
