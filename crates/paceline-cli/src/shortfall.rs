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
#[derive(Debug, Default)]
pub(crate) struct Published(BTreeMap<PublisherId, [(u64, u64); 2]>);

impl Published {
    /// Counts one sample.
    pub(crate) fn add(&mut self, delivery: &Sample) {
        let now = (delivery.seq, delivery.captured.nanos);
        self.0.entry(delivery.publisher).or_insert([now, now])[1] = now;
    }

    /// Returns the total rate of all publishers in samples per second; `None` if unknown.
    fn hertz(&self) -> Option<f64> {
        let rate = |[first, last]: &[(u64, u64); 2]| {
            let (numbers, nanos) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1)?);
            #[expect(clippy::cast_precision_loss, reason = "displayed only")]
            let hertz = numbers as f64 * 1e9 / nanos as f64;
            (numbers > 0 && nanos > 0).then_some(hertz)
        };
        let rates: Vec<f64> = self.0.values().filter_map(rate).collect();
        (!rates.is_empty()).then(|| rates.iter().sum())
    }

    /// Returns true if clearly fewer samples arrived until `now` than the request and the publishing rate
    /// imply.
    pub(crate) fn is_short(&self, total: &Tally, asked: RequestedRate, now: Instant) -> bool {
        let Some(published) = self.hertz() else { return false };
        let some = asked.every.map_or(published, |n| published / f64::from(n));
        let expected = asked.max_hz.map_or(some, |max| some.min(max));
        let period = Duration::try_from_secs_f64(1.0 / expected).unwrap_or(Duration::MAX / 4);
        total.rate_until_hz(now, period) < expected * LEAST
    }
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
    let mut nodes: BTreeSet<NodeId> = sources.iter().map(|source| source.publisher.node).collect();
    nodes.extend(sources.iter().flat_map(|source| &source.hops).map(|hop| hop.from));
    nodes.insert(node.id());
    let nodes: Vec<NodeId> = nodes.into_iter().collect();
    let status = node.status_of(&nodes, WITHIN);
    let mut losses: Vec<Loss> = dropped(local, None, "here").collect();
    let mine = status.iter().filter(|status| status.id == node.id());
    losses.extend(mine.flat_map(|status| dropped(&status.dropped, None, "here")));
    losses.extend(on_links(&status, sources));
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
    fn to_text(&self) -> String {
        let Self { samples, of, reason, place } = self;
        let many = match of {
            Some(of) => format!("{samples} of {of} samples"),
            None => show::count(usize::try_from(*samples).unwrap_or(usize::MAX), "sample"),
        };
        match reason {
            None => {
                format!("{many} still wait {place}; try a lower --max-hz or a smaller --size")
            }
            Some(DropReason::Undecodable) => format!(
                "waiting for a keyframe: {many} dropped {place} ({reason}) need one that was not \
                 delivered; delivery resumes with the publisher's next I picture",
                reason = DropReason::Undecodable
            ),
            Some(reason) => format!("{many} dropped {place} ({reason}): {}", remedy(*reason)),
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
}
