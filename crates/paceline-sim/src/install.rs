//! Applies the output plans of a node's control to its streams.

use crate::destination::{Destination, LocalPort};
use crate::node::Node;
use crate::outlet::{LinkEnd, Port, Retired};
use crate::pool::scale_key;
use core::mem;
use paceline_node::arrive::Arrangement;
use paceline_proto::control::PublisherSpec;
use paceline_proto::entry::EntryLimit;
use paceline_proto::ids::NodeId;
use paceline_proto::ingress::{Ingress, Output, OutputKey};
use paceline_proto::link::{RETIRE_MAX, StreamSpec};
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::reason::DropReason;
use paceline_sched::Instant;
use std::sync::Arc;

impl Node {
    /// Makes `plans` the outputs of a publisher of this node, or of a stream that arrives `from` these neighbours with these
    /// limits.
    pub(super) fn install(
        &mut self,
        (now, key): (Instant, SourceKey),
        (from, entry): (Vec<NodeId>, Vec<EntryLimit>),
        publisher: &PublisherSpec,
        plans: &[OutputPlan],
    ) {
        let mut removed = Vec::new();
        let place = (now, key, publisher);
        if let Some(mut source) = self.sources.remove(&key.publisher) {
            self.change_outputs(place, plans, &mut source.ingress, &mut removed);
            if source.stamper.is_some() || !plans.is_empty() {
                self.sources.insert(key.publisher, source);
            }
        } else {
            let mut arrivals = mem::take(&mut self.arrivals);
            let is_replaced = plans.iter().any(|plan| plan.until.is_some());
            let period = publisher.period;
            let change = Arrangement { key, at: now, period, from, entry, is_replaced };
            self.change_outputs(place, plans, arrivals.arrange(now, change), &mut removed);
            if plans.is_empty() {
                arrivals.remove(key);
            }
            self.arrivals = arrivals;
        }
        for (output, port) in removed {
            let followed = match output.target {
                Target::Hop(hop) => self.control.sends_to(key.publisher, hop),
                Target::Local => false,
            };
            self.close(now, key, (output, followed), port);
        }
        let (arrivals, mut outlets) = self.arrivals(now);
        arrivals.settle(now, &mut outlets);
    }

    /// Makes `plans` the outputs of a source. Adds those that are over to `removed`.
    fn change_outputs(
        &mut self,
        (now, key, publisher): (Instant, SourceKey, &PublisherSpec),
        plans: &[OutputPlan],
        ingress: &mut Ingress<Port>,
        removed: &mut Vec<(OutputKey, Port)>,
    ) {
        for plan in plans {
            self.renew(now, key, publisher, plan, ingress.outputs_mut());
        }
        ingress.install(
            plans,
            |plan| self.open(key, publisher, plan),
            |output, port| removed.push((output, port)),
        );
    }

    /// Updates an output that stays but may have another contract or other subscriptions.
    fn renew(
        &mut self,
        now: Instant,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
        outputs: &mut [Output<Port>],
    ) {
        let spec = self.stream_spec(source, publisher, plan);
        let key = OutputKey::of(plan);
        let Some(output) = outputs.iter_mut().find(|output| output.is_for(plan)) else { return };
        let destination = match &mut output.port {
            Port::Destination(destination) => Some(destination),
            Port::Video(scaler) => Some(scaler.destination_mut()),
            Port::Scale(place) => self.scalers.get_mut(place).and_then(|scaler| {
                scaler.set_promised(plan);
                scaler.destinations.get_mut(&key)
            }),
        };
        match destination {
            Some(Destination::Stream(link, index)) => {
                let Some(spec) = spec else { return };
                let Some(end) = self.links.get_mut(*link) else { return };
                if end.link.spec_of(*index).is_some_and(|old| *old != spec) {
                    end.link.update_stream(now, *index, spec);
                    end.touched = true;
                }
            }
            Some(Destination::Local(local)) => {
                local.set_subscriptions(&plan.subscriptions);
                local.late = plan.late;
            }
            None => {}
        }
    }

    /// Returns the stream for `plan`, or `None` if it serves subscriptions of this node.
    fn stream_spec(
        &self,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
    ) -> Option<StreamSpec> {
        let Target::Hop(hop) = plan.target else { return None };
        let names = self.control.stream_names(source.publisher.node, hop, &publisher.tag);
        let spec = StreamSpec::of(source.publisher, hop, plan);
        Some(spec.with_names(Some(Arc::new(names))))
    }

    fn open(
        &mut self,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
    ) -> Option<Port> {
        let destination = match plan.target {
            Target::Local => {
                Destination::Local(LocalPort::new(source.publisher, publisher.tag.clone(), plan))
            }
            Target::Hop(hop) => {
                let spec = self.stream_spec(source, publisher, plan)?;
                let link = self.ways.link(hop)?;
                let end = self.links.get_mut(link)?;
                let index = end.rings.free_index();
                if !end.link.open_stream(index, spec) {
                    return None;
                }
                end.rings.open();
                end.touched = true;
                Destination::Stream(link, index)
            }
        };
        Some(Port::new((plan.kind, plan.at_port(), publisher.period), destination, |destination| {
            let place = scale_key(source, plan);
            let scaler = self.scalers.entry(place).or_default();
            scaler.coding = self.pool.coding(source, publisher, plan);
            scaler.destinations.insert(OutputKey::of(plan), destination);
            scaler.set_promised(plan);
            place
        }))
    }

    /// Closes an output. If another one to the same target follows, the output first sends its backlog.
    fn close(
        &mut self,
        now: Instant,
        source: SourceKey,
        (key, followed): (OutputKey, bool),
        port: Port,
    ) {
        let stream = match port {
            Port::Destination(destination) => destination.stream(),
            Port::Video(scaler) => scaler.into_destination().stream(),
            Port::Scale(place) => {
                let Some(scaler) = self.scalers.get_mut(&place) else { return };
                let stream = scaler.close(key);
                if scaler.is_over() {
                    self.scalers.remove(&place);
                }
                stream
            }
        };
        let (Some((link, index)), Target::Hop(hop)) = (stream, key.target) else { return };
        let Some(end) = self.links.get_mut(link) else { return };
        end.drain(now, index);
        end.touched = true;
        let keeps = self.control.hands_over(source, hop, key.form);
        let until = now + if keeps { end.link.hand_over_max(index) } else { RETIRE_MAX };
        let retired = Retired { key: (hop, source.publisher, key.form), index, until };
        if keeps {
            end.link.hand_over(index);
            end.retired.push(retired);
        } else if followed {
            end.link.retire_stream(now, index);
            end.retired.push(retired);
        } else {
            self.close_stream(link, &retired);
        }
    }

    /// Closes the replaced streams of a link that have sent their backlog.
    pub(super) fn close_retired(&mut self, now: Instant, link: usize) {
        let scalers = &self.scalers;
        let over = |end: &mut LinkEnd| -> Vec<Retired> {
            let LinkEnd { link: its, rings, retired, .. } = end;
            let is_over = |it: &mut Retired| {
                let spent = rings.get(it.index).is_none_or(|ring| ring.waiting.is_empty());
                let fed = || scalers.values().any(|scaler| scaler.feeds(link, it.index));
                now >= it.until || spent && its.is_settled(it.index) && !fed()
            };
            retired.extract_if(.., is_over).collect()
        };
        let over = self.links.get_mut(link).map(over).unwrap_or_default();
        over.iter().for_each(|retired| self.close_stream(link, retired));
    }

    fn close_stream(&mut self, link: usize, stream: &Retired) {
        let index = stream.index;
        self.scalers.values_mut().for_each(|scaler| scaler.forget_stream(link, index));
        let Some(LinkEnd { link, rings, .. }) = self.links.get_mut(link) else { return };
        let Some(ring) = rings.close(index) else { return };
        link.handle_dropped(index, DropReason::NoRoute, ring.waiting.len() as u64);
        let Some(counters) = link.close_stream(index) else {
            panic!("node {}: {index:?} was closed by its link alone", self.name);
        };
        assert_eq!(counters.offered, ring.pushed + ring.lost, "{}: {index:?}", self.name);
        assert_eq!(counters.offered, counters.sent + counters.drops.total(), "{}", self.name);
        self.closed.entry(stream.key).or_default().merge(&counters);
    }
}
