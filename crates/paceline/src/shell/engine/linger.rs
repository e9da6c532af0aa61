//! A publisher that goes: what it has published is sent before anybody is told.
//!
//! The news would overtake the samples, since control goes first, and nodes on the way would have
//! closed the streams that the last samples arrive on.

use super::super::handle::LinkCommand;
use super::{Command, Engine};
use paceline_proto::control::SourceKey;
use paceline_proto::{Form, PublisherId};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// No longer than this, whatever still waits, if nobody said how long.
pub(super) const LINGER_MAX: Duration = Duration::from_millis(500);

/// Other nodes hear of a publisher for at least so long: a node that decides on many at once would else have its samples
/// before it has outputs for them.
const KNOWN_MIN: Duration = Duration::from_millis(250);

/// A publisher that has gone, the scalers that still have its samples, and the streams that still
/// carry them.
pub(crate) struct Lingering {
    pub(super) until: Instant,
    /// When others have known of it for long enough.
    known: Instant,
    scalers: usize,
    streams: BTreeSet<(usize, StreamIndex)>,
    /// Whom to tell whether all was sent.
    told: Option<Sender<bool>>,
}

impl Lingering {
    fn is_over(&self) -> bool {
        self.scalers == 0 && self.streams.is_empty()
    }

    /// Everybody may be notified of its end.
    fn ends(&self, now: Instant) -> bool {
        self.is_over() && now >= self.known || now >= self.until
    }
}

impl Engine {
    /// The publisher has gone; what it published may take until `until` to be sent.
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
        let outgoing = self.outgoing.get(&SourceKey { publisher: id, form: Form::FULL });
        let mut scalers = 0;
        for scaler in outgoing.into_iter().flat_map(|outgoing| outgoing.scalers()) {
            let commands = self.commands.clone();
            scaler.finish(move || {
                commands.offer(Command::Scaled(id));
            });
            scalers += 1;
        }
        let streams: BTreeSet<_> = outgoing.into_iter().flat_map(|o| o.open_streams()).collect();
        let declared = self.publishers.get(&id).map_or(now, |shared| shared.declared);
        let known = if streams.is_empty() { now } else { declared + KNOWN_MIN };
        self.lingering.insert(id, Lingering { until, known, scalers, streams, told });
        if scalers == 0 {
            self.watch(id);
        }
        self.stop_lingering(now);
    }

    /// The node closes: no publisher lingers for long any more, and all that are there go.
    pub(super) fn linger_all(&mut self, now: Instant) {
        for lingering in self.lingering.values_mut() {
            lingering.until = lingering.until.min(now + LINGER_MAX);
        }
        for id in self.publishers.keys().copied().collect::<Vec<_>>() {
            self.linger(now, id, now + LINGER_MAX, None);
        }
    }

    /// A scaler has handed on all that it had of a publisher.
    pub(super) fn handle_scaled(&mut self, now: Instant, id: PublisherId) {
        let Some(lingering) = self.lingering.get_mut(&id) else { return };
        lingering.scalers = lingering.scalers.saturating_sub(1);
        if lingering.scalers == 0 {
            self.watch(id);
        }
        self.stop_lingering(now);
    }

    /// Has the links tell when the streams of a publisher carry nothing any more.
    fn watch(&self, id: PublisherId) {
        let streams = self.lingering.get(&id).into_iter().flat_map(|lingering| &lingering.streams);
        for (link, stream) in streams {
            if let Some(link) = self.links.get(*link) {
                link.handle.send(LinkCommand::Watch(*stream));
            }
        }
    }

    /// A link says that a stream carries nothing any more.
    pub(super) fn handle_settled(&mut self, now: Instant, link: usize, stream: StreamIndex) {
        for lingering in self.lingering.values_mut() {
            lingering.streams.remove(&(link, stream));
        }
        self.stop_lingering(now);
    }

    /// Tells everybody of the publishers that have nothing under way any more.
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
            if let Some(shared) = self.publishers.remove(&id) {
                shared.closed.store(true, Ordering::Release);
                shared.change.notify(usize::MAX);
            }
            if let Some(Lingering { told: Some(told), .. }) = &lingering {
                let _ = told.send(lingering.as_ref().is_some_and(Lingering::is_over));
            }
        }
    }

    /// When [`Self::stop_lingering`] has something to do at the latest.
    pub(super) fn linger_until(&self) -> Instant {
        let next = |it: &Lingering| if it.is_over() { it.known.min(it.until) } else { it.until };
        self.lingering.values().map(next).min().unwrap_or(Instant::FAR)
    }
}
