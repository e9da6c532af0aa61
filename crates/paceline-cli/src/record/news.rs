//! Events of a recording other than samples: publishers that join and leave, grants, refusals and drops.

use super::args::Wish;
use super::decisions::DecisionLog;
use super::writer::{Job, Shared};
use crate::notices;
use paceline::contract::{BestEffort, Grant, Refusal};
use paceline::delivery::{Resumption, Silence};
use paceline::status::{Drops, HopView, NodeId, PublisherId, SourceView};
use paceline::{Node, Pattern, SubscriberEvent};
use paceline_record::{RecordedEvent, RecordedHop, RecordedOffer};
use paceline_tool::show::micros;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::PoisonError;
use std::time::Duration;

/// Limit of the remembered tags; above it, tags of publishers that have left are forgotten.
const TAGS_MAX: usize = 16_384;

/// Tracks publishers, answers and drops.
#[derive(Default)]
pub(super) struct News {
    sources: BTreeMap<PublisherId, SourceView>,
    /// The paths as last recorded.
    paths: BTreeMap<PublisherId, Vec<HopView>>,
    /// Includes publishers that have left: an answer may arrive later.
    tags: BTreeMap<PublisherId, String>,
    refused: BTreeMap<PublisherId, String>,
    /// Publishers that are carried as best effort because no promise is possible, and the reason.
    best_effort: BTreeMap<PublisherId, String>,
    /// Messages for the user.
    pub(super) notes: Vec<String>,
    dropped: Drops,
    pub(super) decisions: DecisionLog,
    /// The age limit of commands, which no change affects.
    fresh: Option<Duration>,
}

impl News {
    /// Returns the state before the first event, with the age limit of commands.
    pub(super) fn new(fresh: Option<Duration>) -> Self {
        Self { fresh, ..Self::default() }
    }

    /// Returns the publishers that joined or left since the last call, and the paths that changed.
    pub(super) fn look(&mut self, node: &Node, patterns: &[Pattern]) -> Vec<RecordedEvent> {
        let found = patterns.iter().flat_map(|pattern| node.sources(pattern));
        let found: BTreeMap<PublisherId, SourceView> =
            found.map(|source| (source.publisher, source)).collect();
        let names: BTreeMap<NodeId, String> = node.nodes().into_iter().collect();
        let mut events = Vec::new();
        let gone: BTreeSet<PublisherId> =
            self.sources.keys().filter(|id| !found.contains_key(id)).copied().collect();
        for publisher in gone {
            if let Some(source) = self.sources.remove(&publisher) {
                self.refused.remove(&publisher);
                self.paths.remove(&publisher);
                let tag = source.tag.to_string();
                events.push(RecordedEvent::Left { tag, publisher: publisher.to_string() });
            }
        }
        if self.tags.len() > TAGS_MAX {
            self.tags.retain(|publisher, _| found.contains_key(publisher));
        }
        for (publisher, source) in found {
            let tag = source.tag.to_string();
            let name = source.node.clone();
            let period_us = source.period.map(micros);
            if self.sources.insert(publisher, source).is_none() {
                self.tags.insert(publisher, tag.clone());
                let (tag, publisher) = (tag.clone(), publisher.to_string());
                events.push(RecordedEvent::Joined { tag, publisher, node: name, period_us });
            }
            events.extend(self.path(publisher, tag, &names));
        }
        events
    }

    /// Returns the path of a publisher if it is known and is not the one that was recorded last.
    fn path(
        &mut self,
        publisher: PublisherId,
        tag: String,
        names: &BTreeMap<NodeId, String>,
    ) -> Option<RecordedEvent> {
        let hops = &self.sources.get(&publisher)?.hops;
        let recorded = self.paths.get(&publisher).map_or(&[][..], Vec::as_slice);
        if hops.is_empty() || !is_other_path(recorded, hops) {
            return None;
        }
        let event = RecordedEvent::Path {
            tag,
            publisher: publisher.to_string(),
            hops: hops.iter().map(|hop| recorded_hop(hop, names)).collect(),
        };
        self.paths.insert(publisher, hops.clone());
        Some(event)
    }

    /// Returns the current publishers.
    pub(super) const fn sources(&self) -> &BTreeMap<PublisherId, SourceView> {
        &self.sources
    }

    /// Processes the events of the subscription with this index. Call [`News::look`] before, so that the
    /// publishers are known.
    pub(super) fn hear(
        &mut self,
        (place, events): (usize, Vec<SubscriberEvent>),
        shared: &Shared,
    ) -> Vec<Job> {
        let mut jobs = Vec::new();
        for event in events {
            match event {
                SubscriberEvent::Publishers(heard) => {
                    self.refused.retain(|publisher, _| !heard.contains(publisher));
                    self.best_effort.retain(|publisher, _| heard.contains(publisher));
                }
                SubscriberEvent::Granted(grant) => {
                    let mut granted = shared.granted.lock().unwrap_or_else(PoisonError::into_inner);
                    granted.insert(grant.publisher, grant.to_string());
                    self.refused.remove(&grant.publisher);
                    self.best_effort.remove(&grant.publisher);
                    jobs.push(Job::Event(self.granted(&grant)));
                }
                SubscriberEvent::Withdrawn(publisher) => {
                    let mut granted = shared.granted.lock().unwrap_or_else(PoisonError::into_inner);
                    granted.remove(&publisher);
                    self.refused.remove(&publisher);
                }
                SubscriberEvent::NoSpare(it) => self.note_for(it.publisher, &it.to_string()),
                SubscriberEvent::Warned(of, warning) => self.note_for(of, &warning.to_string()),
                // The first sample will resolve it.
                SubscriberEvent::BestEffort(_, BestEffort::SizeUnknown) => {}
                SubscriberEvent::BestEffort(publisher, why) => {
                    self.note_best_effort(publisher, why)
                }
                // Its effects, late or missing samples, are recorded.
                SubscriberEvent::Excess { .. } => {}
                SubscriberEvent::Silent(Silence { tag, publisher, seq }) => {
                    let (tag, publisher) = (tag.to_string(), publisher.to_string());
                    jobs.extend(self.decisions.list(RecordedEvent::Silent { tag, publisher, seq }));
                }
                SubscriberEvent::Resumed(Resumption { tag, publisher, seq, silent }) => {
                    let (tag, publisher) = (tag.to_string(), publisher.to_string());
                    let silent_us = micros(silent);
                    let event = RecordedEvent::Resumed { tag, publisher, seq, silent_us };
                    jobs.extend(self.decisions.list(event));
                }
                SubscriberEvent::Changed { form, within, loss, .. }
                | SubscriberEvent::Adapted { form, within, loss, .. } => {
                    self.refused.clear();
                    self.best_effort.clear();
                    jobs.push(Job::Changed(place, Wish::changed(form, within, loss, self.fresh)));
                }
                SubscriberEvent::ChangeRefused { refusals, form, within, loss } => {
                    let why = refusals.iter().map(ToString::to_string).next().unwrap_or_default();
                    self.notes.push(format!(
                        "the change was refused: {why}; the request is \
                         unchanged"
                    ));
                    jobs.push(Job::Changed(place, Wish::changed(form, within, loss, self.fresh)));
                }
                SubscriberEvent::Refused(publisher, refusal) => {
                    let reason = refusal.to_string();
                    let before = self.refused.insert(publisher, reason.clone());
                    if before.as_ref() != Some(&reason) {
                        jobs.push(Job::Event(self.refused(publisher, &refusal)));
                    }
                }
                // An event of a later version.
                _ => {}
            }
        }
        jobs
    }

    fn note_for(&mut self, publisher: PublisherId, text: &str) {
        let tag = self.tag(publisher);
        self.notes.push(format!("{tag}: {text}"));
    }

    /// Notes that a publisher is carried without the requested promise.
    fn note_best_effort(&mut self, publisher: PublisherId, why: BestEffort) {
        let tag = self.tag(publisher);
        let hops = self.sources.get(&publisher).map(|source| &source.hops);
        let local = hops.is_some_and(|hops| notices::is_local(hops));
        self.notes.push(format!("best effort: {tag}: {}", notices::reason(why, local)));
        if why.is_no() {
            self.best_effort.insert(publisher, format!("no contract for {tag}: {why}"));
        }
    }

    /// Returns the reason why a required promise was refused.
    pub(super) fn no(&self) -> Option<String> {
        let refused = self.refused.values().next().map(|reason| format!("refused: {reason}"));
        refused.or_else(|| self.best_effort.values().next().cloned())
    }

    fn tag(&self, publisher: PublisherId) -> String {
        self.tags.get(&publisher).cloned().unwrap_or_default()
    }

    fn granted(&self, grant: &Grant) -> RecordedEvent {
        let path = self.sources.get(&grant.publisher).map(|source| &source.hops);
        let capacity = |link: &str| {
            let hop = path.into_iter().flatten().find(|hop| hop.link == link)?;
            hop.capacity.map(|capacity| capacity.bits_per_s())
        };
        let hops = grant.hops.iter().map(|hop| RecordedHop {
            name: hop.node_name.clone(),
            link: hop.link.clone(),
            bits_per_s: hop.bytes_per_s.saturating_mul(8),
            bound_us: micros(hop.bound.into()),
            capacity_bits_per_s: capacity(&hop.link),
        });
        RecordedEvent::Granted {
            tag: self.tag(grant.publisher),
            publisher: grant.publisher.to_string(),
            within_us: grant.within.map(|within| micros(within.into())),
            bound_us: micros(grant.bound.into()),
            hops: hops.collect(),
        }
    }

    fn refused(&self, publisher: PublisherId, refusal: &Refusal) -> RecordedEvent {
        let offer = &refusal.offer;
        #[expect(clippy::cast_precision_loss, reason = "displayed only")]
        let max_hz = offer.max_millihertz.map(|millihertz| millihertz as f64 / 1_000.0);
        RecordedEvent::Refused {
            tag: self.tag(publisher),
            publisher: publisher.to_string(),
            reason: refusal.to_string(),
            offer: RecordedOffer {
                max_hz,
                size: offer.size.map(|size| size.to_string()),
                together: offer.together,
                bitrate: offer.bitrate.map(NonZeroU32::get),
                bytes: offer.bytes,
                within_us: offer.within.map(|within| micros(within.into())),
                loss: offer.loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
            },
        }
    }

    /// Returns the drops at the last call of [`News::dropped`].
    pub(super) const fn all_dropped(&self) -> Drops {
        self.dropped
    }

    /// Returns an event if the drops at this node changed.
    pub(super) fn dropped(&mut self, drops: Drops) -> Option<RecordedEvent> {
        if self.dropped == drops {
            return None;
        }
        self.dropped = drops;
        Some(RecordedEvent::Dropped { dropped: by_name(&drops) })
    }
}

/// Returns whether a path is another one than `before`, or a capacity on it has changed by more than one part in 16: a measured one
/// changes all the time.
fn is_other_path(before: &[HopView], now: &[HopView]) -> bool {
    let bits = |hop: &HopView| hop.capacity.map(|capacity| capacity.bits_per_s());
    let is_other = |(one, two): (&HopView, &HopView)| {
        let moved = (one.from, one.to, &one.link) != (two.from, two.to, &two.link);
        moved
            || match (bits(one), bits(two)) {
                (Some(one), Some(two)) => one.abs_diff(two) > one / 16,
                (one, two) => one != two,
            }
    };
    before.len() != now.len() || before.iter().zip(now).any(is_other)
}

/// Returns a hop of a path on which nothing is reserved.
fn recorded_hop(hop: &HopView, names: &BTreeMap<NodeId, String>) -> RecordedHop {
    RecordedHop {
        name: names.get(&hop.from).cloned().unwrap_or_default(),
        link: hop.link.clone(),
        capacity_bits_per_s: hop.capacity.map(|capacity| capacity.bits_per_s()),
        ..RecordedHop::default()
    }
}

/// Returns the drops keyed by the names of their reasons.
pub(super) fn by_name(drops: &Drops) -> BTreeMap<String, u64> {
    drops.iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect()
}
