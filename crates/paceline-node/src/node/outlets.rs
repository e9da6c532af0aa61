//! The delivery of samples to the ports of outputs.

use super::account::NodeAccounts;
use super::link::NodeLink;
use super::port::{Destination, Joined, LocalPort, NodePort};
use super::scaler::{Job, SharedScaler, SharedScalers};
use super::subscription::Subscriptions;
use crate::arrive::Outputs;
use crate::deliver::{Acceptance, Origin};
use crate::install::{ScalerId, StreamPlace};
use paceline_proto::ingress::{Ingress, Output, OutputKey};
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::{PublisherId, RawSample};
use paceline_sched::Instant;

/// The final targets of all outputs, and the counters of samples without one.
pub(super) struct Ends<'a> {
    pub(super) now: Instant,
    pub(super) links: &'a mut [NodeLink],
    pub(super) subscriptions: &'a mut Subscriptions,
    pub(super) unrouted: &'a mut Drops,
    pub(super) accounts: Option<&'a mut NodeAccounts>,
}

/// All possible targets of an output.
pub(super) struct Outlets<'a> {
    pub(super) ends: Ends<'a>,
    pub(super) scalers: &'a mut SharedScalers,
}

impl Outputs<NodePort> for Outlets<'_> {
    fn offer(&mut self, now: Instant, ingress: &mut Ingress<NodePort>, sample: RawSample) {
        ingress.offer(now, sample, |output, offered| match offered {
            Ok(sample) => self.push(output.key, &mut output.port, sample),
            Err(reason) => {
                self.count_at(output.key, &output.port, reason, 1);
                false
            }
        });
    }

    fn count(&mut self, output: &mut Output<NodePort>, reason: DropReason, samples: u64) {
        self.count_at(output.key, &output.port, reason, samples);
    }

    fn count_unrouted(&mut self, publisher: PublisherId, reason: DropReason, samples: u64) {
        self.ends.count_unrouted(publisher, reason, samples);
    }
}

impl Outlets<'_> {
    /// Passes a sample to a port. Returns false if the sample was dropped.
    fn push(&mut self, key: OutputKey, port: &mut NodePort, sample: RawSample) -> bool {
        match port {
            NodePort::Destination(destination) => self.ends.leave(destination, sample),
            NodePort::Scale(id) => {
                self.submit(*id, key, sample);
                true
            }
            NodePort::Inline(scaler, destination) => match scaler.scale(&sample) {
                Ok(None) => true,
                Ok(Some(scaled)) => {
                    let kind = scaled.kind;
                    if !self.ends.leave(destination, scaled) {
                        scaler.handle_dropped(kind);
                    }
                    true
                }
                Err(reason) => {
                    self.ends.count(destination, reason, 1);
                    true
                }
            },
        }
    }

    /// Counts samples that were lost upstream of a port.
    fn count_at(&mut self, key: OutputKey, port: &NodePort, reason: DropReason, samples: u64) {
        match port {
            NodePort::Destination(destination) | NodePort::Inline(_, destination) => {
                self.ends.count(destination, reason, samples);
            }
            NodePort::Scale(id) => {
                let scaler = self.scalers.get_mut(*id);
                let destination = scaler.and_then(|scaler| scaler.destinations.get(&key));
                if let Some(destination) = destination {
                    self.ends.count(destination, reason, samples);
                }
            }
        }
    }

    /// Queues a sample for a scaler.
    fn submit(&mut self, id: ScalerId, key: OutputKey, sample: RawSample) {
        let Some(scaler) = self.scalers.get_mut(id) else { return };
        if let Some(older) = scaler.submit(key, sample) {
            self.ends.lose(scaler, &older, DropReason::ScalerBusy);
        }
        self.scalers.queue(id);
    }

    /// Delivers the result of a scaler's sample, and queues the scaler for its next one.
    pub(super) fn finish(&mut self, id: ScalerId, result: Result<RawSample, DropReason>) {
        let Some(scaler) = self.scalers.get_mut(id) else { return };
        let Some(job) = scaler.take_busy() else { return };
        match result {
            Ok(scaled) => {
                for key in &job.keys {
                    if let Some(destination) = scaler.destination(*key, job.seq()) {
                        let _ = self.ends.leave(destination, scaled.clone());
                    }
                }
            }
            Err(reason) => self.ends.lose(scaler, &job, reason),
        }
        scaler.forget_closed(job.seq());
        self.scalers.queue(id);
        self.scalers.remove_over(id);
    }
}

impl Ends<'_> {
    /// Counts samples that have no output.
    pub(super) fn count_unrouted(
        &mut self,
        publisher: PublisherId,
        reason: DropReason,
        samples: u64,
    ) {
        self.unrouted.add(reason, samples);
        if let Some(accounts) = &mut self.accounts {
            accounts.note_unrouted(publisher, samples);
        }
    }

    /// Counts samples that a destination does not get.
    fn count(&mut self, destination: &Destination, reason: DropReason, samples: u64) {
        match destination {
            Destination::Stream(StreamPlace { link, index }) => {
                if let Some(link) = self.links.get_mut(*link) {
                    link.count(*index, reason, samples);
                }
            }
            Destination::Local(local) => {
                for it in &local.subscriptions {
                    if let Some(end) = self.subscriptions.get_mut(it.subscription) {
                        end.count(local.publisher, reason, samples);
                    }
                }
            }
        }
    }

    /// Counts a scaler's sample as dropped at its outputs.
    fn lose(&mut self, scaler: &mut SharedScaler, job: &Job, reason: DropReason) {
        for key in &job.keys {
            if let Some(destination) = scaler.destination(*key, job.seq()) {
                self.count(destination, reason, 1);
            }
        }
    }

    /// Sends a sample to its final target. Returns false if the sample was dropped; each local subscription
    /// counts its own drops.
    fn leave(&mut self, destination: &mut Destination, sample: RawSample) -> bool {
        match destination {
            Destination::Stream(StreamPlace { link, index }) => {
                let link = self.links.get_mut(*link);
                link.is_some_and(|link| link.push(self.now, *index, sample))
            }
            Destination::Local(local) => {
                self.deliver(local, &sample);
                true
            }
        }
    }

    fn deliver(&mut self, local: &mut LocalPort, sample: &RawSample) {
        let from = Origin { tag: &local.tag, publisher: local.publisher, late: local.late };
        for Joined { subscription, gate, needed } in &mut local.subscriptions {
            let id = *subscription;
            let Some((end, readable)) = self.subscriptions.end_mut(id) else { continue };
            end.note_published(local.publisher, sample.seq);
            if !gate.admit(sample.kind) {
                end.count(local.publisher, DropReason::Undecodable, 1);
                continue;
            }
            match end.deliver(self.now, (&from, *needed), sample, (id, readable)) {
                Acceptance::Accepted => needed.add(sample.kind),
                Acceptance::Dropped => gate.broke(sample.kind),
                Acceptance::Repeated => {}
            }
        }
    }
}
