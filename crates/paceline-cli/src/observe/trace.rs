//! `paceline trace`: splits the delay of each sample of a tag into the parts of its path.

mod way;

use super::args::TraceArgs;
use super::meter::Meter;
use super::session::Target;
use super::watch::{Seen, Watch};
use paceline::status::{HopView, NodeId, NodeStatus, Passage, PublisherId, SourceView};
use paceline::{Node, Pattern};
use paceline_tool::show;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use way::{Hop, Leg, Summary, Took, Way};

/// Time limit for the nodes' answers.
const PATIENCE: Duration = Duration::from_secs(2);
/// Limit of the age of a node's passage records, and of the time until a node starts to record.
const STALE: Duration = Duration::from_millis(300);
/// A sample is printed after this time at the latest, even if its parts are unknown.
const PRINTED_WITHIN: Duration = Duration::from_secs(3);
/// Default number of traced samples.
const SAMPLES: u64 = 10;

/// Prints each sample with the time that each part of the path took, and a summary at the end.
pub(super) struct Tracing<'a> {
    args: &'a TraceArgs,
    followed: Option<Followed>,
}

/// The traced publisher: the publisher of the first sample.
struct Followed {
    publisher: PublisherId,
    hops: Vec<HopView>,
    node: Node,
    /// The nodes of the path that record the passage of single samples.
    nodes: Vec<NodeId>,
    way: Way,
    /// Only samples published after this count: by then the nodes of the path record passages.
    since: Instant,
    /// Samples not yet printed, oldest first; `from` is the lowest sequence number to query.
    waiting: VecDeque<Sample>,
    from: u64,
    /// The known passages of each hop, by sequence number.
    passed: Vec<BTreeMap<u64, Passage>>,
}

/// A received sample.
struct Sample {
    at: Instant,
    line: SampleLine,
}

#[derive(Serialize)]
struct SampleLine {
    tag: String,
    publisher: String,
    seq: u64,
    age_us: u64,
    /// Uncertainty of the age.
    uncertain_us: Option<u64>,
    bytes: usize,
    captured_ns: u64,
    /// Error bound of the publisher's clock; null if it was never compared.
    captured_error_us: Option<u64>,
}

#[derive(Serialize)]
struct TracedLine<'a> {
    #[serde(flatten)]
    sample: &'a SampleLine,
    parts: &'a [Took<'a>],
}

#[derive(Serialize)]
struct WayLine<'a> {
    trace: Summary<'a>,
}

impl<'a> Tracing<'a> {
    pub(super) const fn new(args: &'a TraceArgs) -> Self {
        Self { args, followed: None }
    }

    /// Finds the path of a sample, and requests its nodes to record passages from now on.
    fn follow(seen: &Seen, node: &Node) -> Followed {
        let publisher = seen.delivery.publisher;
        let pattern = Pattern::new(seen.delivery.tag.as_str());
        let sources = pattern.map(|pattern| node.sources(&pattern)).unwrap_or_default();
        let source = sources.into_iter().find(|source| source.publisher == publisher);
        let hops = source.map_or_else(Vec::new, |SourceView { hops, .. }| hops);
        let mut since = seen.at.checked_sub(seen.delivery.age).unwrap_or(seen.at);
        let from = seen.delivery.seq.saturating_add(1);
        let (mut way, mut nodes) = (Way::new(&[]), Vec::new());
        if !hops.is_empty() {
            let all: Vec<NodeId> = hops.iter().map(|hop| hop.from).collect();
            way = Way::new(&named(&hops, &node.status_of(&all, PATIENCE)));
            // A node that does not answer is not queried again: it may be of an older version.
            let answers = node.passages(publisher, &all, from, PATIENCE);
            nodes = answers.iter().map(|answer| answer.node).collect();
            since = Instant::now() + STALE;
        }
        Followed {
            publisher,
            passed: vec![BTreeMap::new(); hops.len()],
            hops,
            node: node.clone(),
            nodes,
            way,
            since,
            waiting: VecDeque::new(),
            from,
        }
    }
}

impl Target for Tracing<'_> {
    fn meter(&self) -> Option<Meter> {
        None
    }

    fn count(&self) -> Option<u64> {
        self.args.look.count.or((self.args.look.duration.is_none()).then_some(SAMPLES))
    }

    fn take(&mut self, seen: &Seen, node: &Node) -> anyhow::Result<bool> {
        let followed = self.followed.get_or_insert_with(|| Self::follow(seen, node));
        let delivery = &seen.delivery;
        let published = seen.at.checked_sub(delivery.age).unwrap_or(seen.at);
        if delivery.publisher != followed.publisher || published < followed.since {
            return Ok(false);
        }
        let line = SampleLine {
            tag: delivery.tag.to_string(),
            publisher: delivery.publisher.to_string(),
            seq: delivery.seq,
            age_us: show::micros(delivery.age),
            uncertain_us: followed.way.uncertain_us(),
            bytes: seen.bytes,
            captured_ns: delivery.captured.nanos,
            captured_error_us: 1u64.checked_shl(delivery.captured.error.into()),
        };
        followed.waiting.push_back(Sample { at: seen.at, line });
        if followed.hops.is_empty() {
            followed.print(Instant::now(), self.args.look.json)?;
        }
        Ok(true)
    }

    fn report(&mut self, watch: &mut Watch, now: Instant, _named: bool) -> anyhow::Result<()> {
        let Some(followed) = &mut self.followed else { return Ok(()) };
        followed.read(watch.form_in_words().as_deref());
        followed.print(now, self.args.look.json)
    }

    fn end(&mut self, watch: &mut Watch, _node: &Node) -> anyhow::Result<()> {
        let Some(mut followed) = self.followed.take() else { return Ok(()) };
        let json = self.args.look.json;
        if !followed.waiting.is_empty() {
            // Passage records have to include the last samples.
            std::thread::sleep(STALE);
            followed.read(watch.form_in_words().as_deref());
            followed.print(Instant::now() + PRINTED_WITHIN, json)?;
        }
        let summary = followed.way.summary();
        match json {
            true => show::json(&WayLine { trace: summary }),
            false => show::text(&summary.to_text()),
        }
    }
}

impl Followed {
    /// Queries the passages of the samples not yet printed; the nodes keep recording.
    fn read(&mut self, form: Option<&str>) {
        if self.nodes.is_empty() {
            return;
        }
        let from = self.waiting.front().map_or(self.from, |sample| sample.line.seq);
        let answers = self.node.passages(self.publisher, &self.nodes, from, PATIENCE);
        for (hop, passed) in self.hops.iter().zip(&mut self.passed) {
            let node = answers.iter().find(|answer| answer.node == hop.from);
            let streams = node.into_iter().flat_map(|node| &node.streams);
            let found: Vec<_> =
                streams.filter(|it| it.link == hop.link && it.hop == hop.to).collect();
            let same = found.iter().find(|it| Some(it.form.to_string().as_str()) == form);
            *passed = passed.split_off(&from);
            let passages = same.or(found.first()).into_iter().flat_map(|it| &it.passages);
            passed.extend(passages.map(|passage| (passage.seq, *passage)));
        }
    }

    /// Prints the samples whose parts are known, and those that waited longer than `PRINTED_WITHIN`.
    fn print(&mut self, now: Instant, json: bool) -> anyhow::Result<()> {
        while let Some(sample) = self.waiting.front() {
            let legs: Vec<Leg> =
                self.passed.iter().map(|passed| leg(passed.get(&sample.line.seq))).collect();
            let known = legs.iter().all(|leg| leg.left_us.is_some());
            if !known && now.saturating_duration_since(sample.at) < PRINTED_WITHIN {
                break;
            }
            let line = &sample.line;
            let parts = self.way.add(&legs, line.age_us);
            match json {
                true => show::json(&TracedLine { sample: line, parts: &parts })?,
                false => show::line(&format!(
                    "seq {}  age {} ms {}  {} bytes  {}",
                    line.seq,
                    show::millis(line.age_us),
                    way::off(line.uncertain_us),
                    line.bytes,
                    way::describe(&parts)
                ))?,
            }
            self.from = line.seq.saturating_add(1);
            self.waiting.pop_front();
        }
        Ok(())
    }
}

fn leg(passage: Option<&Passage>) -> Leg {
    Leg {
        came_us: passage.map(|passage| passage.came_ns / 1_000),
        left_us: passage.and_then(|passage| passage.left_ns).map(|nanos| nanos / 1_000),
    }
}

/// Returns the hops with the names and round-trip times that their nodes report.
fn named(hops: &[HopView], status: &[NodeStatus]) -> Vec<Hop> {
    let hop = |hop: &HopView| {
        let node = status.iter().find(|status| status.id == hop.from);
        let link = node.and_then(|node| node.links.iter().find(|link| link.name == hop.link));
        let trip = link.map(|link| show::micros(link.least_round_trip));
        Hop {
            node: node.map_or_else(|| hop.from.to_string(), |node| node.name.clone()),
            link: hop.link.clone(),
            round_trip_us: trip.filter(|us| *us > 0),
        }
    };
    hops.iter().map(hop).collect()
}
