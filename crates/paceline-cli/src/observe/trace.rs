//! `paceline trace`: where on the way of a tag's samples the time goes.

mod way;

use super::args::TraceArgs;
use super::meter::Meter;
use super::session::Target;
use super::watch::{Seen, Watch};
use crate::show;
use crate::stats::Histogram;
use paceline::{HopView, Node, NodeId, NodeStatus, Pattern, PublisherId, SourceView};
use serde::Serialize;
use std::time::{Duration, Instant};
use way::{Age, Leg, Spreads, Way};

/// How long nodes may take to say what passed.
const PATIENCE: Duration = Duration::from_secs(2);
/// What a node says of itself is at most so old.
const STALE: Duration = Duration::from_millis(1_100);
/// Samples that are traced if it is not said.
const SAMPLES: u64 = 10;

/// Prints samples, and at the end where their time went.
pub(super) struct Tracing<'a> {
    args: &'a TraceArgs,
    followed: Option<Followed>,
}

/// The publisher whose samples are traced: of the first sample that came.
struct Followed {
    publisher: PublisherId,
    hops: Vec<HopView>,
    node: Node,
    before: Vec<NodeStatus>,
    samples: u64,
    age_us: u64,
    ages: Histogram,
    /// As of the last reading: what the nodes said, and samples and their ages until then.
    read: (Vec<NodeStatus>, u64, u64),
    spreads: Spreads,
}

#[derive(Serialize)]
struct SampleLine<'a> {
    tag: &'a str,
    publisher: String,
    seq: u64,
    age_us: u64,
    /// How much that may be off.
    uncertain_us: Option<u64>,
    bytes: usize,
    captured_ns: u64,
    /// How far the publisher's clock may be off; null if nobody has compared it.
    captured_error_us: Option<u64>,
}

#[derive(Serialize)]
struct WayLine {
    trace: Way,
}

impl<'a> Tracing<'a> {
    pub(super) const fn new(args: &'a TraceArgs) -> Self {
        Self { args, followed: None }
    }

    /// Asks the nodes of the way what passed so far: once at the beginning, once at the end.
    fn status(node: &Node, hops: &[HopView]) -> Vec<NodeStatus> {
        let nodes: Vec<NodeId> = hops.iter().map(|hop| hop.from).collect();
        if nodes.is_empty() { Vec::new() } else { node.status_of(&nodes, PATIENCE) }
    }

    fn follow(seen: &Seen, node: &Node) -> Followed {
        let publisher = seen.delivery.publisher;
        let pattern = Pattern::new(seen.delivery.tag.as_str());
        let sources = pattern.map(|pattern| node.sources(&pattern)).unwrap_or_default();
        let source = sources.into_iter().find(|source| source.publisher == publisher);
        let hops = source.map_or_else(Vec::new, |SourceView { hops, .. }| hops);
        let before = Self::status(node, &hops);
        Followed {
            publisher,
            hops,
            node: node.clone(),
            read: (before.clone(), 0, 0),
            before,
            samples: 0,
            age_us: 0,
            ages: Histogram::new(),
            spreads: Spreads::default(),
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

    fn take(&mut self, seen: &Seen, node: &Node) -> anyhow::Result<()> {
        let followed = self.followed.get_or_insert_with(|| Self::follow(seen, node));
        let delivery = &seen.delivery;
        if delivery.publisher != followed.publisher {
            return Ok(());
        }
        let age_us = show::micros(delivery.age);
        followed.samples += 1;
        followed.age_us = followed.age_us.saturating_add(age_us);
        followed.ages.add(age_us);
        let uncertain_us = followed.uncertain_us();
        if !self.args.look.json {
            let off = way::off(uncertain_us);
            return show::line(&format!(
                "seq {}  age {} ms {off}  {} bytes",
                delivery.seq,
                show::millis(age_us),
                seen.bytes
            ));
        }
        show::json(&SampleLine {
            tag: delivery.tag.as_str(),
            publisher: delivery.publisher.to_string(),
            seq: delivery.seq,
            age_us,
            uncertain_us,
            bytes: seen.bytes,
            captured_ns: delivery.captured.nanos,
            captured_error_us: 1u64.checked_shl(delivery.captured.error.into()),
        })
    }

    /// The means of each second tell how they spread.
    fn report(&mut self, watch: &mut Watch, _now: Instant, _named: bool) -> anyhow::Result<()> {
        if let Some(followed) = &mut self.followed {
            let now = Self::status(&followed.node, &followed.hops);
            followed.read(now, watch.form_in_words().as_deref());
        }
        Ok(())
    }

    fn end(&mut self, watch: &mut Watch, node: &Node) -> anyhow::Result<()> {
        let Some(followed) = self.followed.take() else { return Ok(()) };
        // The last samples are to be among those that the nodes tell of.
        std::thread::sleep(STALE);
        let after = Self::status(node, &followed.hops);
        let form = watch.form_in_words();
        let mut way = followed.way(&after, form.as_deref());
        let mut followed = followed;
        followed.read(after, form.as_deref());
        way.spread(&followed.spreads);
        match self.args.look.json {
            true => show::json(&WayLine { trace: way }),
            false => show::text(&way.told()),
        }
    }
}

impl Followed {
    /// What half of the least round trips comes to, which each hop takes for its time on the wire.
    fn uncertain_us(&self) -> Option<u64> {
        let trips = self.hops.iter().map(|hop| trip_us(&self.before, hop));
        trips.sum::<Option<u64>>().map(|trips| trips / 2)
    }

    /// Takes in what passed since the last reading.
    fn read(&mut self, now: Vec<NodeStatus>, form: Option<&str>) {
        let (before, samples, age_us) = &self.read;
        let came = self.samples - samples;
        let us = (self.age_us - age_us).checked_div(came);
        let age = Age { us: us.unwrap_or_default(), p99_us: 0, max_us: 0 };
        let mut second = Way::new(&self.legs(before, &now, form), came, &age);
        // What nothing was delivered in says nothing of the delivery.
        second.parts.last_mut().into_iter().for_each(|last| last.us = last.us.and(us));
        self.spreads.add(&second);
        self.read = (now, self.samples, self.age_us);
    }

    fn way(&self, after: &[NodeStatus], form: Option<&str>) -> Way {
        let legs = self.legs(&self.before, after, form);
        let age = Age {
            us: self.age_us.checked_div(self.samples).unwrap_or_default(),
            p99_us: self.ages.permille(990),
            max_us: self.ages.max(),
        };
        Way::new(&legs, self.samples, &age)
    }

    /// What passed each hop between two readings.
    fn legs(&self, before: &[NodeStatus], after: &[NodeStatus], form: Option<&str>) -> Vec<Leg> {
        let leg = |hop: &HopView| {
            let name = |id: NodeId| {
                let known = after.iter().find(|status| status.id == id);
                known.map_or_else(|| id.to_string(), |status| status.name.clone())
            };
            let now = passed(after, hop, self.publisher, form);
            let then = passed(before, hop, self.publisher, form).unwrap_or_default();
            let mean = |sum: u64, count: u64| sum.checked_div(count).map(|nanos| nanos / 1_000);
            let since = now.map(|now| now.since(&then));
            Leg {
                node: name(hop.from),
                link: hop.link.clone(),
                came_us: since.and_then(|since| mean(since.entered_ns, since.entered)),
                left_us: since.and_then(|since| mean(since.left_ns, since.sent)),
                round_trip_us: trip_us(after, hop),
            }
        };
        self.hops.iter().map(leg).collect()
    }
}

/// The least round trip of a hop's link; none if nobody has measured it.
fn trip_us(status: &[NodeStatus], hop: &HopView) -> Option<u64> {
    let node = status.iter().find(|status| status.id == hop.from)?;
    let link = node.links.iter().find(|link| link.name == hop.link)?;
    Some(show::micros(link.least_round_trip)).filter(|us| *us > 0)
}

/// What passed of a stream.
#[derive(Clone, Copy, Default)]
struct Passed {
    entered: u64,
    entered_ns: u64,
    sent: u64,
    left_ns: u64,
}

impl Passed {
    const fn since(&self, then: &Self) -> Self {
        // A stream that was closed and opened meanwhile has begun anew.
        let anew = self.entered < then.entered || self.sent < then.sent;
        if anew {
            return *self;
        }
        Self {
            entered: self.entered - then.entered,
            entered_ns: self.entered_ns.saturating_sub(then.entered_ns),
            sent: self.sent - then.sent,
            left_ns: self.left_ns.saturating_sub(then.left_ns),
        }
    }
}

/// The stream of a publisher over a hop: in this form, if there is one.
fn passed(
    status: &[NodeStatus],
    hop: &HopView,
    publisher: PublisherId,
    form: Option<&str>,
) -> Option<Passed> {
    let node = status.iter().find(|status| status.id == hop.from)?;
    let link = node.links.iter().find(|link| link.name == hop.link)?;
    let streams = link.streams.iter();
    let found: Vec<_> =
        streams.filter(|stream| stream.publisher == publisher && stream.hop == hop.to).collect();
    let same = found.iter().find(|stream| Some(stream.form.to_string().as_str()) == form);
    let stream = same.or(found.first())?;
    Some(Passed {
        entered: stream.ages.entered,
        entered_ns: stream.ages.entered_ns,
        sent: stream.counters.sent,
        left_ns: stream.ages.left_ns,
    })
}
