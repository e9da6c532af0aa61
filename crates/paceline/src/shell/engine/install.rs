//! Installing what `Control` decided: rings for streams, subscribers for deliveries, scalers between.

use super::super::clock;
use super::super::handle::LinkCommand;
use super::super::port::{LocalPort, Port, ring};
use super::super::rx::RxChange;
use super::super::scaling::{SLOTS_MAX, ScalePort, ScaleTask};
use super::super::source::Installation;
use super::Engine;
use paceline_proto::control::{OutputPlan, PublisherSpec, SourceKey, Target};
use paceline_proto::ingress::OutputKey;
use paceline_proto::link::{STREAMS_MAX, StreamSpec};
use paceline_proto::{NodeId, Size};
use paceline_sched::discipline::StreamIndex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The stream indexes of a link.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    free: Vec<StreamIndex>,
    next: u32,
}

impl Slots {
    fn take(&mut self) -> Option<StreamIndex> {
        self.free.pop().or_else(|| {
            let index = StreamIndex(self.next);
            self.next += 1;
            (index.0 < STREAMS_MAX).then_some(index)
        })
    }

    fn give_back(&mut self, index: StreamIndex) {
        self.free.push(index);
    }
}

struct OpenStream {
    link: usize,
    index: StreamIndex,
    hop: NodeId,
    plan: OutputPlan,
}

struct SizeTask {
    task: Arc<ScaleTask>,
    slots: u32,
}

/// What leaves this node of one source.
#[derive(Default)]
pub(crate) struct Outgoing {
    streams: BTreeMap<(OutputKey, Option<Size>), OpenStream>,
    local: BTreeMap<(OutputKey, Option<Size>), OutputPlan>,
    scalers: BTreeMap<Size, SizeTask>,
}

impl Outgoing {
    /// The streams that carry this source, by link.
    pub(super) fn open_streams(&self) -> impl Iterator<Item = (usize, StreamIndex)> + '_ {
        self.streams.values().map(|stream| (stream.link, stream.index))
    }
}

impl Engine {
    /// Makes `plans` the outputs of a source, touching nothing that stays as it is.
    pub(super) fn install(
        &mut self,
        source: SourceKey,
        publisher: &PublisherSpec,
        plans: Vec<OutputPlan>,
    ) {
        let mut outgoing = self.outgoing.remove(&source).unwrap_or_default();
        self.close_unwanted(&mut outgoing, &plans);
        let wanted = !plans.is_empty();
        let outputs = plans
            .into_iter()
            .map(|plan| {
                let port = self.port(&mut outgoing, source, publisher, &plan);
                (plan, port)
            })
            .collect();
        let installation = Installation { period: publisher.period, outputs };
        // A publisher of ours in its own form is fed by its handle, all else by what arrives.
        if let Some(shared) = self.publishers.get(&source.publisher) {
            shared.installs.post(installation);
            shared.change.notify(usize::MAX);
        } else {
            let installation = wanted.then_some(installation);
            self.sources.changes.post(RxChange { source, installation });
            self.unsettled = !self.sources.try_settle(clock::now());
        }
        if wanted {
            self.outgoing.insert(source, outgoing);
        }
    }

    fn close_unwanted(&mut self, outgoing: &mut Outgoing, plans: &[OutputPlan]) {
        let wanted = |key: &(OutputKey, Option<Size>)| {
            plans
                .iter()
                .any(|p| p.target == key.0.target && p.form == key.0.form && p.scale.size == key.1)
        };
        outgoing.local.retain(|key, _| wanted(key));
        let (stay, gone): (BTreeMap<_, _>, _) =
            std::mem::take(&mut outgoing.streams).into_iter().partition(|(key, _)| wanted(key));
        outgoing.streams = stay;
        for stream in gone.into_values() {
            if let Some(link) = self.links.get_mut(stream.link) {
                link.handle.send(LinkCommand::Close(stream.index));
                link.slots.give_back(stream.index);
            }
        }
    }

    /// The port of an output that is new or whose subscribers changed; `None` if it stays.
    fn port(
        &mut self,
        outgoing: &mut Outgoing,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
    ) -> Option<Port> {
        let key = (OutputKey { target: plan.target, form: plan.form }, plan.scale.size);
        let port = match plan.target {
            Target::Local => {
                if outgoing.local.get(&key) == Some(plan) {
                    return None;
                }
                outgoing.local.insert(key, plan.clone());
                let sinks = plan.subscriptions.iter();
                Port::Local(LocalPort {
                    tag: publisher.tag.clone(),
                    publisher: source.publisher,
                    late: plan.late,
                    sinks: sinks.filter_map(|id| self.sinks.get(id).cloned()).collect(),
                    next_seq: 0,
                })
            }
            Target::Hop(hop) => {
                if let Some(stream) = outgoing.streams.get_mut(&key) {
                    self.update_stream(stream, source, plan);
                    return None;
                }
                let (port, stream) = self.open_stream(source, hop, plan)?;
                outgoing.streams.insert(key, stream);
                port
            }
        };
        let Some(size) = plan.scale.size else { return Some(port) };
        Some(Port::Scale(self.scale_port(outgoing, size, port)))
    }

    fn open_stream(
        &mut self,
        source: SourceKey,
        hop: NodeId,
        plan: &OutputPlan,
    ) -> Option<(Port, OpenStream)> {
        let at = *self.hops.get(&hop)?;
        let link = self.links.get_mut(at)?;
        let Some(index) = link.slots.take() else {
            tracing::error!("link '{}': all {STREAMS_MAX} streams are in use", link.config.name);
            return None;
        };
        let (port, end) = ring(index, link.handle.announcements.clone());
        link.handle.send(LinkCommand::Open(
            index,
            StreamSpec::of(source.publisher, hop, plan),
            end,
        ));
        Some((Port::Ring(port), OpenStream { link: at, index, hop, plan: plan.clone() }))
    }

    fn update_stream(&self, stream: &mut OpenStream, source: SourceKey, plan: &OutputPlan) {
        let spec = StreamSpec::of(source.publisher, stream.hop, plan);
        if spec != StreamSpec::of(source.publisher, stream.hop, &stream.plan)
            && let Some(link) = self.links.get(stream.link)
        {
            link.handle.send(LinkCommand::Update(stream.index, spec));
        }
        stream.plan = plan.clone();
    }

    fn scale_port(&self, outgoing: &mut Outgoing, size: Size, port: Port) -> ScalePort {
        let new = || SizeTask { task: ScaleTask::new(size, self.pool.clone()), slots: 0 };
        let entry = outgoing.scalers.entry(size).or_insert_with(new);
        if entry.slots >= SLOTS_MAX {
            *entry = new();
        }
        entry.slots += 1;
        ScalePort::new(entry.task.clone(), entry.slots - 1, port)
    }
}
