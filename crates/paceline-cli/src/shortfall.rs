//! The dominant reason for missing samples, in words.
//!
//! Each lost sample has one reason, counted at the location of the loss. This module sums the counts from the
//! publisher to the subscriber and names the largest. If nothing was lost, the publisher or the request is
//! the reason.

use crate::args::RequestedRate;
use crate::tally::Tally;
use paceline::status::{DropReason, Drops, NodeId, NodeStatus, PublisherId, SourceView};
use paceline::{Node, Sample};
use paceline_tool::show;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time limit for the nodes' answers.
const WITHIN: Duration = Duration::from_millis(500);
/// Fraction of the requested rate below which samples count as missing.
const LEAST: f64 = 0.9;

/// Samples that did not arrive, with one reason and one location.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Loss {
    samples: u64,
    /// Number of samples that reached the location, if known.
    of: Option<u64>,
    /// `None` if the samples still wait there.
    reason: Option<DropReason>,
    place: String,
}

/// The publishing rates, from the sequence numbers and times of received samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published(BTreeMap<PublisherId, Span>);

/// The first and the newest sample of a publisher: their numbers, and their times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: (u64, u64),
    last: (u64, u64),
    /// The rate of an earlier interval, for one without two samples.
    before: Option<f64>,
}

impl Span {
    /// Returns the rate in samples per second; `None` if it is unknown.
    fn hertz(&self) -> Option<f64> {
        let numbers = self.last.0.checked_sub(self.first.0).filter(|numbers| *numbers > 0);
        let nanos = self.last.1.checked_sub(self.first.1).filter(|nanos| *nanos > 0);
        #[expect(clippy::cast_precision_loss, reason = "displayed only")]
        let hertz = numbers.zip(nanos).map(|(numbers, nanos)| numbers as f64 * 1e9 / nanos as f64);
        hertz.or(self.before)
    }
}

impl Published {
    /// Counts one sample.
    pub(crate) fn add(&mut self, delivery: &Sample) {
        let now = (delivery.seq, delivery.captured.nanos);
        let new = Span { first: now, last: now, before: None };
        self.0.entry(delivery.publisher).or_insert(new).last = now;
    }

    /// Returns the rates of an interval that begins with the newest sample of each publisher.
    pub(crate) fn next(&self) -> Self {
        let next = |span: &Span| Span { first: span.last, last: span.last, before: span.hertz() };
        Self(self.0.iter().map(|(publisher, span)| (*publisher, next(span))).collect())
    }

    /// Removes publishers that have ended.
    pub(crate) fn retain(&mut self, present: &[PublisherId]) {
        self.0.retain(|publisher, _| present.contains(publisher));
    }

    /// Returns the samples per second that all publishers together send to this request; `None` if that is unknown.
    pub(crate) fn expected_hz(&self, asked: RequestedRate) -> Option<f64> {
        let rates: Vec<f64> = self.0.values().filter_map(Span::hertz).collect();
        let requested = |published: &f64| {
            let some = asked.every.map_or(*published, |n| published / f64::from(n));
            asked.max_hz.map_or(some, |max| some.min(max))
        };
        (!rates.is_empty()).then(|| rates.iter().map(requested).sum())
    }

    /// Returns true if clearly fewer samples arrived until `now` than the request and the publishing rate
    /// imply.
    pub(crate) fn is_short(&self, total: &Tally, asked: RequestedRate, now: Instant) -> bool {
        let Some(expected) = self.expected_hz(asked) else { return false };
        let period = Duration::try_from_secs_f64(1.0 / expected).unwrap_or(Duration::MAX / 4);
        total.lasts(now) > period.saturating_mul(2)
            && total.rate_until_hz(now, period) < expected * LEAST
    }
}

/// The losses on the paths of a subscription until an instant.
#[derive(Debug, Default)]
pub(crate) struct LossReading(Vec<Loss>);

impl LossReading {
    /// Reads the counters of the nodes between `sources` and this node. `local` are the subscription's own drops.
    pub(crate) fn read(node: &Node, sources: &[SourceView], local: &Drops) -> Self {
        Self(losses(&status_of(node, sources), node, sources, local))
    }

    /// Returns the largest loss since an earlier reading, without a remedy.
    pub(crate) fn since(&self, earlier: &Self) -> Option<String> {
        let before = |loss: &Loss| {
            let mut same = earlier.0.iter();
            same.find(|it| (it.reason, &it.place) == (loss.reason, &loss.place))
        };
        let grown = self.0.iter().filter(|loss| loss.reason.is_some()).map(|loss| {
            let (samples, of) = before(loss).map_or((0, Some(0)), |it| (it.samples, it.of));
            let of = loss.of.zip(of).map(|(now, then)| now.saturating_sub(then));
            Loss { samples: loss.samples.saturating_sub(samples), of, ..loss.clone() }
        });
        let most = grown.filter(|loss| loss.samples > 0).max_by_key(|loss| loss.samples);
        most.map(|loss| loss.count())
    }
}

/// Returns the status of the nodes between the publishers and this node.
fn status_of(node: &Node, sources: &[SourceView]) -> Vec<NodeStatus> {
    let mut nodes: BTreeSet<NodeId> = sources.iter().map(|source| source.publisher.node).collect();
    nodes.extend(sources.iter().flat_map(|source| &source.hops).map(|hop| hop.from));
    nodes.insert(node.id());
    let nodes: Vec<NodeId> = nodes.into_iter().collect();
    node.status_of(&nodes, WITHIN)
}

/// Returns the losses here and on the links from the publishers.
fn losses(status: &[NodeStatus], node: &Node, sources: &[SourceView], local: &Drops) -> Vec<Loss> {
    let mut losses: Vec<Loss> = dropped(local, None, "here").collect();
    let mine = status.iter().filter(|status| status.id == node.id());
    losses.extend(mine.flat_map(|status| dropped(&status.dropped, None, "at this node")));
    losses.extend(on_links(status, sources));
    losses
}

/// Returns the dominant reason for lost samples. `local` are the subscription's own drops.
pub(crate) fn loss(node: &Node, sources: &[SourceView], local: &Drops) -> Option<String> {
    let losses = losses(&status_of(node, sources), node, sources, local);
    let most = losses.into_iter().filter(|loss| loss.reason.is_some());
    most.max_by_key(|loss| loss.samples).map(|loss| loss.to_text())
}

/// Names a node on the paths whose processor is too busy; `None` without one.
pub(crate) fn busy(node: &Node, sources: &[SourceView]) -> Option<String> {
    let status = status_of(node, sources);
    let found = status.iter().filter_map(|node| Some((node.processor_wait?, &node.name)));
    found.filter(|(wait, _)| wait.is_much()).map(|(wait, name)| wait.in_words(name)).next()
}

/// Returns the dominant reason for missing samples. `local` are the subscription's own drops; `longer` is the
/// option that extends the command's run time.
pub(crate) fn reason(
    node: &Node,
    sources: &[SourceView],
    local: &Drops,
    asked: RequestedRate,
    longer: &str,
) -> String {
    let status = status_of(node, sources);
    let losses = losses(&status, node, sources, local);
    match losses.into_iter().max_by_key(|loss| loss.samples) {
        Some(loss) => loss.to_text(),
        None => too_few(&status, sources, asked, longer),
    }
}

fn dropped<'a>(
    drops: &'a Drops,
    of: Option<u64>,
    place: &'a str,
) -> impl Iterator<Item = Loss> + 'a {
    drops.iter().map(move |(reason, samples)| {
        let (reason, place) = (Some(reason), place.to_owned());
        Loss { samples, of, reason, place }
    })
}

/// Returns the losses on the links from the publishers to this node.
fn on_links(status: &[NodeStatus], sources: &[SourceView]) -> Vec<Loss> {
    let mut losses = Vec::new();
    for (status, link) in status.iter().flat_map(|it| it.links.iter().map(move |link| (it, link))) {
        for stream in &link.streams {
            let leads_here = sources.iter().any(|source| {
                source.publisher == stream.publisher
                    && source.hops.iter().any(|hop| {
                        (hop.from, hop.to, &hop.link) == (status.id, stream.hop, &link.name)
                    })
            });
            if !leads_here {
                continue;
            }
            let counters = &stream.counters;
            let place = format!("on link '{}' of '{}'", link.name, status.name);
            let gone = counters.sent.saturating_add(counters.dropped.total());
            let samples = counters.offered.saturating_sub(gone);
            losses.extend(dropped(&counters.dropped, Some(counters.offered), &place));
            if samples > 0 {
                losses.push(Loss { samples, of: Some(counters.offered), reason: None, place });
            }
        }
    }
    losses
}

/// Explains the shortfall if nothing was lost.
fn too_few(
    status: &[NodeStatus],
    sources: &[SourceView],
    asked: RequestedRate,
    longer: &str,
) -> String {
    let publishers = status.iter().flat_map(|node| &node.publishers);
    let theirs = |id| sources.iter().any(|source| source.publisher == id);
    let known: Vec<_> = publishers.filter(|publisher| theirs(publisher.id)).collect();
    let published: u64 = known.iter().map(|publisher| publisher.published).sum();
    let millihertz: u64 = known.iter().map(|publisher| publisher.rate_millihertz).sum();
    #[expect(clippy::cast_precision_loss, reason = "displayed only")]
    let hertz = millihertz as f64 / 1_000.0;
    match (asked.max_hz, asked.every) {
        _ if known.is_empty() => {
            format!("the publisher has gone; start it again or give a longer {longer}")
        }
        (Some(max), _) if max < hertz => {
            format!("at most {max} Hz were requested, and none was lost; give a longer {longer}")
        }
        (_, Some(n @ 2..)) => format!(
            "1 sample in {n} was requested, and the publisher sends too few: {hertz:.2} Hz, \
             {published} so far; give a longer {longer}"
        ),
        _ => format!(
            "the publisher sends too few: {hertz:.2} Hz, {published} so far, and none was lost; give a longer {longer}"
        ),
    }
}

impl Loss {
    /// Returns the number of lost samples, their place and reason.
    fn count(&self) -> String {
        let Self { samples, of, reason, place } = self;
        let many = match of {
            Some(of) => format!("{samples} of {of} samples"),
            None => show::count(usize::try_from(*samples).unwrap_or(usize::MAX), "sample"),
        };
        match reason {
            None => format!("{many} still wait {place}"),
            Some(reason) => format!("{many} dropped {place} ({reason})"),
        }
    }

    /// Returns the loss with a remedy.
    fn to_text(&self) -> String {
        let count = self.count();
        match self.reason {
            None => format!("{count}; try a lower --max-hz or a smaller --size"),
            Some(DropReason::Undecodable) => format!(
                "waiting for a keyframe: {count} need one that was not delivered; delivery resumes with the publisher's \
                 next I picture"
            ),
            Some(reason) => format!("{count}: {}", remedy(reason)),
        }
    }
}

/// Explains a drop reason and suggests a remedy.
const fn remedy(reason: DropReason) -> &'static str {
    match reason {
        DropReason::DeadlineMissed => {
            "they could not arrive in time; try a longer --within, a lower --max-hz or a smaller --size"
        }
        DropReason::QueueFull => {
            "they arrive faster than the link can send; try a lower --max-hz or a smaller --size"
        }
        DropReason::Superseded => {
            "newer ones replaced them before the link could send them; try a lower --max-hz or a smaller --size"
        }
        DropReason::LinkDown => {
            "the link or the node behind it went down; paceline ls lists the links"
        }
        DropReason::LinkLoss => {
            "the link lost a piece of them; paceline ls shows the losses of \
             the link"
        }
        DropReason::NoRoute => "no subscription behind that node matched at that time",
        DropReason::Expired => {
            "they waited too long for the link; try a lower --max-hz or a smaller --size, or publish with --late"
        }
        DropReason::SubscriberFull => "they were not read fast enough; try a larger --queue",
        DropReason::CannotScale => {
            "they cannot be scaled or coded as requested; try another --size, --audio or --bitrate"
        }
        DropReason::ScalerBusy => "the scaler is too slow; try a lower --max-hz",
        DropReason::OverBudget => {
            "they exceed the bit rate; try a higher --bitrate, a smaller --size or smaller samples"
        }
        DropReason::Stale => {
            "they were not provably younger than the age limit; try a longer --fresh, or a path with less delay"
        }
        DropReason::OutOfOrder => {
            "later ones had already left the time buffer; try a longer --hold, or late=flag"
        }
        DropReason::Duplicate => "they had been delivered before",
        DropReason::TooLarge => "they are larger than a node accepts",
        DropReason::Undecodable => "they need a picture that was not delivered",
        DropReason::OverRights => {
            "they exceed the rate or bandwidth of the publisher's rule; lower its rate, or grant more"
        }
        DropReason::ProcessorBusy => {
            "contracts leave that node no processor time for them; lower the rate, or raise processor_percent"
        }
        DropReason::Policed => "they arrive faster than their class or rule allows",
        DropReason::Loop => "a node had already sent them to plain programs",
        DropReason::NotImported | DropReason::NotExported => {
            "the rules between Paceline and plain programs do not accept them"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(samples: u64, reason: Option<DropReason>) -> Loss {
        Loss { samples, of: Some(60), reason, place: "on link 'thin' of 'robot'".into() }
    }

    #[test]
    fn each_reason_is_named_with_its_count_and_a_remedy() {
        let text = loss(57, Some(DropReason::DeadlineMissed)).to_text();
        assert!(
            text.starts_with(
                "57 of 60 samples dropped on link 'thin' of 'robot' (deadline_missed): "
            ) && text.contains("try a longer --within"),
            "{text}"
        );
        let text = loss(29, Some(DropReason::Undecodable)).to_text();
        assert!(text.starts_with("waiting for a keyframe: 29 of 60 samples "), "{text}");
        assert!(loss(5, None).to_text().starts_with("5 of 60 samples still wait on link"));
        for reason in DropReason::ALL {
            assert!(loss(1, Some(reason)).to_text().contains(reason.name()), "{reason}");
        }
    }

    #[test]
    fn a_reason_is_given_where_nothing_was_lost() {
        let any = RequestedRate { max_hz: None, every: None };
        let text = too_few(&[], &[], any, "--timeout");
        assert!(text.starts_with("the publisher has gone"), "{text}");
    }

    #[test]
    fn the_largest_loss_since_a_reading_is_named() {
        let (full, late) = (Some(DropReason::QueueFull), Some(DropReason::DeadlineMissed));
        let before = LossReading(vec![Loss { of: Some(90), ..loss(50, full) }, loss(3, late)]);
        let now = LossReading(vec![
            Loss { of: Some(100), ..loss(52, full) },
            Loss { of: Some(70), ..loss(12, late) },
            loss(30, None),
        ]);
        let text = now.since(&before).unwrap();
        assert_eq!(text, "9 of 10 samples dropped on link 'thin' of 'robot' (deadline_missed)");
        assert_eq!(now.since(&now), None);
        assert!(before.since(&LossReading::default()).unwrap().starts_with("50 of 90 samples"));
    }

    /// The rates after samples every `ms` of each of two publishers.
    fn published(ms: [u64; 2]) -> Published {
        let mut published = Published::default();
        for (index, ms) in (0..).zip(ms) {
            for seq in 0..11 {
                let mut sample =
                    crate::payload::test_delivery(paceline::Encoding::Text, Vec::new());
                (sample.seq, sample.publisher.index) = (seq, index);
                sample.captured.nanos = seq * ms * 1_000_000;
                published.add(&sample);
            }
        }
        published
    }

    #[test]
    fn the_expected_rate_counts_each_publisher() {
        let asked = |max_hz, every| RequestedRate { max_hz, every };
        let near = |published: &Published, asked, hertz: f64| {
            (published.expected_hz(asked).unwrap() - hertz).abs() < 1e-6
        };
        let both = published([20, 100]);
        assert!(near(&both, asked(None, None), 60.0));
        assert!(near(&both, asked(Some(20.0), None), 30.0));
        assert!(near(&both, asked(None, Some(2)), 30.0));
        // An interval without samples has the rate of the one before.
        let mut later = both.next().next();
        assert!(near(&later, asked(None, None), 60.0));
        later.retain(&[]);
        assert_eq!(later.expected_hz(asked(None, None)), None);
        // Rare samples are not missing before two of them are due.
        let (rare, mut tally, begun) = (published([2_000, 2_000]), Tally::new(), Instant::now());
        tally.add(&crate::payload::test_delivery(paceline::Encoding::Text, Vec::new()), begun);
        let short =
            |ms| rare.is_short(&tally, asked(None, None), begun + Duration::from_millis(ms));
        assert!(!short(1_000) && short(9_000));
    }
}
