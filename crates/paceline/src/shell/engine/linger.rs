//! Ending of publishers: their samples are sent before their end is announced.
//!
//! Control messages are sent first, so the announcement would overtake the samples. Nodes on the
//! path would then close the streams while the last samples are still arriving.

use super::super::command::Command;
use super::super::handle::LinkCommand;
use super::Engine;
use paceline_node::install::StreamPlace;
use paceline_proto::plan::SourceKey;
use paceline_proto::{Form, PublisherId};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// The default limit for sending the samples of an ended publisher.
pub(super) const LINGER_MAX: Duration = Duration::from_millis(500);

/// The shortest time between a publisher's declaration and the announcement of its end.
///
/// A node that decides on many changes at once would otherwise receive samples before it has
/// outputs for them.
const KNOWN_MIN: Duration = Duration::from_millis(250);

/// An ended publisher, with the scalers and streams that still have its samples.
pub(crate) struct Lingering {
    pub(super) until: Instant,
    /// The earliest time of the announcement.
    known: Instant,
    scalers: usize,
    streams: BTreeSet<StreamPlace>,
    /// The caller to notify, with true if all samples were sent.
    told: Option<Sender<bool>>,
}

impl Lingering {
    fn is_over(&self) -> bool {
        self.scalers == 0 && self.streams.is_empty()
    }

    /// Returns true if the end can be announced.
    fn ends(&self, now: Instant) -> bool {
        self.is_over() && now >= self.known || now >= self.until
    }
}

impl Engine {
    /// Ends a publisher; its samples have until `until` to be sent.
    pub(super) fn linger(
        &mut self,
        now: Instant,
        id: PublisherId,
        until: Instant,
        mut told: Option<Sender<bool>>,
    ) {
        if self.lingering.contains_key(&id) || !self.publishers.contains_key(&id) {
            return;
        }
        self.drain(now);
        if self.leave_opening(id, until, &mut told) {
            return;
        }
        let source = SourceKey { publisher: id, form: Form::FULL };
        let mut scalers = 0;
        for scaler in self.installer.scalers(source) {
            let Some(scaler) = self.ports.scaler(scaler) else { continue };
            let commands = self.commands.clone();
            scaler.finish(move || {
                commands.offer(Command::Scaled(id));
            });
            scalers += 1;
        }
        let streams: BTreeSet<_> = self.installer.streams(source).collect();
        let declared = self.publishers.get(&id).map_or(now, |shared| shared.declared);
        let known = if streams.is_empty() { now } else { declared + KNOWN_MIN };
        self.lingering.insert(id, Lingering { until, known, scalers, streams, told });
        if scalers == 0 {
            self.watch(id);
        }
        self.stop_lingering(now);
    }

    /// Ends all publishers when the node closes, and limits the time of those that have ended
    /// before.
    pub(super) fn linger_all(&mut self, now: Instant) {
        for lingering in self.lingering.values_mut() {
            lingering.until = lingering.until.min(now + LINGER_MAX);
        }
        for id in self.publishers.keys().copied().collect::<Vec<_>>() {
            self.linger(now, id, now + LINGER_MAX, None);
        }
    }

    /// Handles a scaler's report that it has delivered all samples of a publisher.
    pub(super) fn handle_scaled(&mut self, now: Instant, id: PublisherId) {
        let Some(lingering) = self.lingering.get_mut(&id) else { return };
        lingering.scalers = lingering.scalers.saturating_sub(1);
        if lingering.scalers == 0 {
            self.watch(id);
        }
        self.stop_lingering(now);
    }

    /// Requests a report from the links when the streams of a publisher are empty.
    fn watch(&self, id: PublisherId) {
        let streams = self.lingering.get(&id).into_iter().flat_map(|lingering| &lingering.streams);
        for place in streams {
            if let Some(link) = self.links.get(place.link) {
                link.handle.send(LinkCommand::Watch(place.index));
            }
        }
    }

    /// Handles a link's report that a stream is empty.
    pub(super) fn handle_settled(&mut self, now: Instant, place: StreamPlace) {
        for lingering in self.lingering.values_mut() {
            lingering.streams.remove(&place);
        }
        self.stop_lingering(now);
    }

    /// Announces the end of publishers whose samples have all been sent.
    pub(super) fn stop_lingering(&mut self, now: Instant) {
        let gone: Vec<_> = self
            .lingering
            .iter()
            .filter(|(_, lingering)| lingering.ends(now))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            let lingering = self.lingering.remove(&id);
            self.control.unpublish(now, id);
            self.drain(now);
            self.pool.costs().forget(id);
            if let Some(shared) = self.publishers.remove(&id) {
                shared.closed.store(true, Ordering::Release);
                shared.change.notify(usize::MAX);
            }
            if let Some(Lingering { told: Some(told), .. }) = &lingering {
                let _ = told.send(lingering.as_ref().is_some_and(Lingering::is_over));
            }
        }
    }

    /// Returns the latest time of the next call of [`Self::stop_lingering`].
    pub(super) fn linger_until(&self) -> Instant {
        let next = |it: &Lingering| if it.is_over() { it.known.min(it.until) } else { it.until };
        self.lingering.values().map(next).min().unwrap_or(Instant::FAR)
    }
}
