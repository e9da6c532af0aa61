//! Applies the output plans of a node's control to its streams.

use crate::node::{Node, Source};
use crate::outlet::{LinkEnd, LocalPort, Port, Retired, Way};
use paceline_proto::control::PublisherSpec;
use paceline_proto::form::Form;
use paceline_proto::ingress::{Output, OutputKey};
use paceline_proto::link::{RETIRE_MAX, StreamSpec};
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::reason::DropReason;
use paceline_sched::Instant;
use std::sync::Arc;

impl Node {
    /// Makes `plans` the outputs of a source.
    pub(super) fn install(
        &mut self,
        now: Instant,
        key: SourceKey,
        publisher: Arc<PublisherSpec>,
        plans: &[OutputPlan],
    ) {
        let fresh = || Source::new(Arc::clone(&publisher));
        let mut source = self.sources.remove(&key).unwrap_or_else(fresh);
        source.publisher = Arc::clone(&publisher);
        for plan in plans {
            self.renew(now, key, &publisher, plan, source.ingress.outputs_mut());
        }
        let mut gone = Vec::new();
        source.ingress.install(
            plans,
            |plan| self.open(key, &publisher, plan),
            |output, port| gone.push((output, port)),
        );
        for (output, port) in gone {
            let followed = plans.iter().any(|plan| plan.target == output.target);
            self.close(now, key, (output, followed), port);
        }
        let mine = key.publisher.node == self.id && key.form == Form::FULL;
        let publishes = mine && self.publishers.contains_key(&key.publisher.index);
        if publishes || !plans.is_empty() {
            self.sources.insert(key, source);
        }
        // The neighbour may have reported these losses before control installed the source again.
        if !plans.is_empty()
            && let Some(lost) = self.lost_early.remove(&key)
        {
            for (reason, samples) in lost.iter() {
                self.count(now, key, reason, samples);
            }
        }
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
        let way = match &mut output.port {
            Port::Way(way) => Some(way),
            Port::Video(scaler) => Some(scaler.way_mut()),
            Port::Scale(place) => {
                self.scalers.get_mut(place).and_then(|scaler| scaler.ways.get_mut(&key))
            }
        };
        match way {
            Some(Way::Stream(link, index)) => {
                let Some(spec) = spec else { return };
                let Some(end) = self.links.get_mut(*link) else { return };
                if end.link.spec_of(*index).is_some_and(|old| *old != spec) {
                    end.link.update_stream(now, *index, spec);
                    end.touched = true;
                }
            }
            Some(Way::Local(local)) => {
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
        let way = match plan.target {
            Target::Local => Way::Local(LocalPort::new(source.publisher, plan)),
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
                Way::Stream(link, index)
            }
        };
        Some(Port::new((plan.kind, plan.at_port(), publisher.period), way, |size, way| {
            let place = (source, size);
            self.scalers.entry(place).or_default().ways.insert(OutputKey::of(plan), way);
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
        let way = match port {
            Port::Way(way) => Some(way),
            Port::Video(scaler) => Some(scaler.into_way()),
            Port::Scale(place) => {
                let Some(scaler) = self.scalers.get_mut(&place) else { return };
                let way = scaler.ways.remove(&key);
                if scaler.ways.is_empty() {
                    self.scalers.remove(&place);
                }
                way
            }
        };
        let (Some(Way::Stream(link, index)), Target::Hop(hop)) = (way, key.target) else { return };
        let Some(end) = self.links.get_mut(link) else { return };
        end.drain(now, index);
        end.touched = true;
        let retired =
            Retired { key: (hop, source.publisher, key.form), index, until: now + RETIRE_MAX };
        if followed {
            end.link.retire_stream(now, index);
            end.retired.push(retired);
        } else {
            self.close_stream(link, &retired);
        }
    }

    /// Closes the replaced streams of a link that have sent their backlog.
    pub(super) fn close_retired(&mut self, now: Instant, link: usize) {
        let over = |end: &mut LinkEnd| -> Vec<Retired> {
            let LinkEnd { link, rings, retired, .. } = end;
            let is_over = |it: &mut Retired| {
                let spent = rings.get(it.index).is_none_or(|ring| ring.waiting.is_empty());
                now >= it.until || spent && link.is_settled(it.index)
            };
            retired.extract_if(.., is_over).collect()
        };
        let over = self.links.get_mut(link).map(over).unwrap_or_default();
        over.iter().for_each(|retired| self.close_stream(link, retired));
    }

    fn close_stream(&mut self, link: usize, stream: &Retired) {
        let index = stream.index;
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
