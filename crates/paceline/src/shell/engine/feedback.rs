//! Feedback requests to the nodes of a publisher's subscriptions.

use super::super::measured;
use super::Engine;
use super::questions::Question;
use crate::event::PublisherEvent;
use crate::event::SubscriberEvent;
use crate::status::{Feedback, Measured};
use bytes::Bytes;
use paceline_proto::control::{ControlOutput, StreamExcess, Topic};
use paceline_proto::wire::Writer;
use paceline_proto::{Excess, Form, NodeId, PublisherId, SubscriptionId};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;

/// Completes `rows` with the counters of the answer and sends them to the caller.
pub(super) fn feedback_answered(
    mut rows: Vec<Feedback>,
    reply: &Sender<Vec<Feedback>>,
    body: Bytes,
) {
    match measured::decode(body) {
        Ok(found) => {
            for (row, measured) in rows.iter_mut().zip(found) {
                row.measured = measured;
            }
            // The caller may have stopped waiting.
            let _ = reply.send(rows);
        }
        Err(error) => tracing::debug!("invalid feedback: {error}"),
    }
}

impl Engine {
    /// Replies with the feedback of a publisher's streams; asks the nodes of its subscriptions if
    /// `measured`.
    pub(super) fn handle_feedback(
        &mut self,
        now: Instant,
        publisher: PublisherId,
        measured: bool,
        reply: &Sender<Vec<Feedback>>,
    ) {
        if measured {
            self.ask_feedback(now, publisher, reply);
        } else {
            let _ = reply.send(self.feedback_rows(publisher));
        }
    }

    /// Sends an event to a subscription, if it is on this node.
    pub(super) fn notify(&self, subscription: SubscriptionId, event: SubscriberEvent) {
        if let Some(sink) = self.sinks.get(&subscription) {
            sink.notify(event);
        }
    }

    /// Notifies a subscription of this node of the samples beyond its grant.
    pub(super) fn hear_excess(&self, output: ControlOutput) {
        let ControlOutput::Excess { subscription, publisher, node, node_name, excess } = output
        else {
            return;
        };
        self.notify(subscription, SubscriberEvent::Excess { publisher, node, node_name, excess });
    }

    /// Sends events to the subscription and the publisher of a contract, if they are on this node.
    pub(super) fn notify_ends(
        &self,
        (subscription, publisher): (SubscriptionId, PublisherId),
        to_subscriber: SubscriberEvent,
        to_publisher: PublisherEvent,
    ) {
        self.notify(subscription, to_subscriber);
        if let Some(shared) = self.publishers.get(&publisher) {
            shared.notify(to_publisher);
        }
    }

    /// Replies with all rows, then with each node's rows when it has answered.
    pub(super) fn ask_feedback(
        &mut self,
        now: Instant,
        publisher: PublisherId,
        reply: &Sender<Vec<Feedback>>,
    ) {
        let rows = self.feedback_rows(publisher);
        // The caller may have stopped waiting, here and below.
        let _ = reply.send(rows.clone());
        let mut others: BTreeMap<NodeId, Vec<Feedback>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.measured.is_none()) {
            let asked = others.entry(row.subscription.node).or_default();
            if asked.len() < measured::ROWS_MAX {
                asked.push(row);
            }
        }
        for (node, rows) in others {
            let mut body = vec![Topic::Feedback.code()];
            for row in &rows {
                body.put_varint(row.subscription.index.into());
            }
            let question = self.control.ask(now, node, body.into());
            self.questions.add(question, Question::Feedback(rows, reply.clone()));
        }
    }

    /// Returns a row for each subscription of a publisher's samples, with counters for those on
    /// this node.
    pub(super) fn feedback_rows(&self, publisher: PublisherId) -> Vec<Feedback> {
        let owner = self.control.nodes().find(|node| node.id == publisher.node);
        let spec = owner.and_then(|owner| owner.publishers.get(&publisher).cloned());
        let Some(spec) = spec else { return Vec::new() };
        let refused: BTreeMap<_, _> = self
            .control
            .nodes()
            .flat_map(|node| node.refusals)
            .filter(|((_, whose), _)| *whose == publisher)
            .filter(|((subscription, _), refusal)| {
                let of = self.control.subscription(*subscription).map(|spec| spec.revision);
                of == Some(refusal.revision)
            })
            .map(|((subscription, _), refusal)| (*subscription, refusal))
            .collect();
        let granted: BTreeMap<_, _> = self
            .control
            .grants()
            .filter(|grant| grant.publisher == publisher)
            .map(|grant| (grant.subscription, grant))
            .collect();
        let mut excess: BTreeMap<Form, Excess> = BTreeMap::new();
        for of in self.excess().into_iter().filter(|of| of.publisher == publisher) {
            excess.entry(of.form).or_default().add(of.excess);
        }
        let mut rows = Vec::new();
        for node in self.control.nodes() {
            for (&subscription, request) in node.subscriptions {
                let theirs = request.pattern.matches(&spec.tag);
                if !theirs || request.local && subscription.node != publisher.node {
                    continue;
                }
                let form = spec.form_of(request.form);
                let path = self.control.stream_path(publisher, subscription);
                rows.push(Feedback {
                    subscription,
                    node: node.name.to_owned(),
                    form,
                    period: form.rate.period(spec.period).map(Into::into),
                    within: request.within.map(Into::into),
                    loss: request.loss,
                    grant: granted.get(&subscription).cloned(),
                    refusal: refused
                        .get(&subscription)
                        .filter(|_| !granted.contains_key(&subscription))
                        .map(|refusal| (*refusal).clone()),
                    excess: path.and_then(|it| excess.get(&it.first).copied()).unwrap_or_default(),
                    measured: self.measured(subscription),
                });
            }
        }
        rows
    }

    /// Returns the excess of each stream with a contract, as counted by the links of this node.
    fn excess(&self) -> Vec<StreamExcess> {
        let mut all = Vec::new();
        for link in &self.links {
            let snapshot = link.handle.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
            let contracted = snapshot.streams.iter().filter(|row| row.spec.contract.is_some());
            all.extend(contracted.map(|row| StreamExcess {
                publisher: row.spec.publisher,
                form: row.spec.form,
                hop: row.spec.hop,
                excess: row.counters.excess,
            }));
        }
        all
    }

    /// Reports grown excess to the publishers of this node and to the subscriptions behind its
    /// links.
    pub(super) fn report_excess(&mut self, now: Instant) {
        let mut all = self.excess();
        all.retain(|it| it.excess.total() > 0);
        let mut grown = Vec::new();
        let mut sums: BTreeMap<PublisherId, (Excess, bool)> = BTreeMap::new();
        for &it in &all {
            let before = self.excess.get(&(it.publisher, it.form, it.hop));
            let before = before.copied().unwrap_or_default();
            let more = it.excess.early > before.early || it.excess.long > before.long;
            grown.extend(more.then_some(it));
            let (sum, any) = sums.entry(it.publisher).or_default();
            sum.add(it.excess);
            *any |= more;
        }
        for (id, (sum, more)) in sums {
            if let Some(shared) = self.publishers.get(&id).filter(|_| more) {
                shared.notify(PublisherEvent::Excess(sum));
            }
        }
        self.excess = all.iter().map(|it| ((it.publisher, it.form, it.hop), it.excess)).collect();
        self.control.report_excess(now, &grown);
        self.drain(now);
    }

    /// Returns the counters of a subscription of this node.
    fn measured(&self, id: SubscriptionId) -> Option<Measured> {
        let sink = self.sinks.get(&id)?;
        let counts = sink.counts();
        let (rate_millihertz, age_max) = self.rates.delivered(id);
        Some(Measured {
            delivered: counts.delivered,
            bytes: counts.bytes,
            late: counts.late_in_all(),
            overdue: counts.overdue,
            dropped: counts.drops().total(),
            rate_millihertz,
            age_max: age_max.into(),
            age_sum: Duration::from_nanos(counts.age_sum).into(),
            players: sink.players(),
        })
    }

    /// Answers another node's request for the counters of subscriptions of this node.
    pub(super) fn send_feedback(&mut self, now: Instant, request: u64, from: NodeId, body: Bytes) {
        match measured::read_question(body) {
            Ok(indices) => {
                let node = self.control.me();
                let of = |index| self.measured(SubscriptionId { node, index });
                let rows: Vec<Option<Measured>> = indices.into_iter().map(of).collect();
                self.control.answer(now, request, from, measured::encode(&rows).into());
            }
            Err(error) => tracing::debug!("invalid query from {from}: {error}"),
        }
    }
}
