//! Executes the commands of the installer, in the same call.

use super::Node;
use super::link::{NodeLink, Retired};
use super::output::{ClosedStream, NodeOutput};
use super::port::{Destination, LocalPort, NodePort};
use crate::arrive::Arrangement;
use crate::install::{Installation, LocalPlace, NewPort, PortCommand, PortEnd, StreamPlace};
use paceline_proto::control::{ControlOutput, PublisherSpec};
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::link::{RETIRE_MAX, StreamSpec};
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::reason::DropReason;
use paceline_proto::{PublisherId, SubscriptionId};
use paceline_sched::Instant;

impl Node {
    /// Installs all outputs of a decision before others are notified of it by `output`.
    pub(super) fn install_before(&mut self, now: Instant, output: &ControlOutput) {
        if !matches!(output, ControlOutput::Install { .. }) {
            self.install(now);
        }
    }

    /// Installs the outputs that control has requested since the last call.
    pub(super) fn install(&mut self, now: Instant) {
        loop {
            let routes = (&self.control, &self.ways);
            self.installer.set_processor(self.control.best_effort_time());
            let commands = self.installer.take_commands(now, &routes);
            if commands.is_empty() {
                return;
            }
            commands.into_iter().for_each(|command| self.execute(now, command));
        }
    }

    fn execute(&mut self, now: Instant, command: PortCommand) {
        match command {
            PortCommand::OpenScaler { scaler, publisher, .. } => {
                self.scalers.open(scaler, publisher);
            }
            PortCommand::SetTerms(scaler, terms) => {
                if let Some(scaler) = self.scalers.get_mut(scaler) {
                    scaler.promised = terms.promised;
                }
            }
            PortCommand::CloseScaler(scaler) => self.scalers.close(scaler),
            PortCommand::UpdateStream(place, spec) => self.update_stream(now, place, spec),
            PortCommand::UpdateLocal { place, leave, join, late } => {
                self.close_ports(place.source.publisher, &leave);
                self.open_ports(place.source.publisher, &join);
                let Some(port) = self.local(place) else { return };
                port.leave(&leave);
                port.join(&join);
                port.late = late.unwrap_or(port.late);
            }
            PortCommand::Install { publisher, arrangement, installation } => {
                self.apply(now, &publisher, arrangement, installation);
            }
            PortCommand::Settle => {
                let (arrivals, mut outlets) = self.arrivals(now);
                arrivals.settle(now, &mut outlets);
            }
            PortCommand::CloseStream(place) => {
                if let Some(stream) = self.retire(now, place, |_| now) {
                    self.close_stream(place.link, &stream);
                }
            }
            PortCommand::DrainStream(place) => {
                let Some(stream) = self.retire(now, place, |_| now + RETIRE_MAX) else { return };
                let Some(link) = self.links.get_mut(place.link) else { return };
                link.link.retire_stream(now, place.index);
                link.retired.push(stream);
            }
            PortCommand::HandOverStream(place) => {
                let until = |link: &NodeLink| now + link.link.hand_over_max(place.index);
                let Some(stream) = self.retire(now, place, until) else { return };
                let Some(link) = self.links.get_mut(place.link) else { return };
                link.link.hand_over(place.index);
                link.retired.push(stream);
            }
            // The port itself was removed with its output.
            PortCommand::CloseLocal(place, last) => {
                self.close_ports(place.source.publisher, &last);
            }
            PortCommand::NoStream { link } => {
                self.outputs.push_back(NodeOutput::NoStream { link });
            }
        }
    }

    fn open_ports(&mut self, publisher: PublisherId, subscriptions: &[SubscriptionId]) {
        for id in subscriptions {
            if let Some(end) = self.subscriptions.get_mut(*id) {
                end.delivery.open_port(publisher);
            }
        }
    }

    fn close_ports(&mut self, publisher: PublisherId, subscriptions: &[SubscriptionId]) {
        for id in subscriptions {
            if let Some(end) = self.subscriptions.get_mut(*id) {
                end.delivery.close_port(publisher);
            }
        }
    }

    fn update_stream(
        &mut self,
        now: Instant,
        StreamPlace { link, index }: StreamPlace,
        spec: StreamSpec,
    ) {
        let Some(link) = self.links.get_mut(link) else { return };
        link.link.update_stream(now, index, spec);
        link.touched = true;
    }

    /// Applies an installation to its source.
    fn apply(
        &mut self,
        now: Instant,
        publisher: &PublisherSpec,
        arrangement: Arrangement,
        installation: Installation<NewPort>,
    ) {
        let key = arrangement.key;
        let is_wanted = !installation.outputs.is_empty();
        let installation = installation.map(|plan, new| self.port(key, publisher, plan, new));
        let mut closed = Vec::new();
        let close = |output, port| closed.push((output, port));
        if let Some(mut source) = self.sources.remove(&key.publisher) {
            installation.apply(&mut source.ingress, close);
            if source.stamper.is_some() || is_wanted {
                self.sources.insert(key.publisher, source);
            }
        } else {
            installation.apply(self.arrivals.arrange(now, arrangement), close);
            if !is_wanted {
                self.arrivals.remove(key);
            }
        }
        for (output, port) in closed {
            if let NodePort::Scale(scaler) = port
                && let Some(scaler) = self.scalers.get_mut(scaler)
            {
                scaler.close(output);
            }
        }
    }

    fn port(
        &mut self,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
        new: NewPort,
    ) -> Option<NodePort> {
        let destination = match new.end {
            PortEnd::Local(_, first) => {
                let (id, tag) = (source.publisher, publisher.tag.clone());
                self.open_ports(id, &first);
                Destination::Local(LocalPort::new(id, tag, plan.late, &first))
            }
            PortEnd::Stream(place, spec) => {
                let StreamPlace { link, index } = place;
                let link = self.links.get_mut(link)?;
                let is_free = link.link.open_stream(index, spec);
                debug_assert!(is_free, "{}: {index:?} is in use", link.name);
                link.queues.open(index);
                link.touched = true;
                Destination::Stream(place)
            }
        };
        let Some((id, _)) = new.scaler else { return Some(NodePort::Destination(destination)) };
        if let Some(scaler) = self.inline.and_then(|make| make(plan, publisher)) {
            return Some(NodePort::Inline(scaler, destination));
        }
        let scaler = self.scalers.get_mut(id);
        debug_assert!(scaler.is_some(), "{id:?} was opened before");
        scaler?.join(plan, destination);
        Some(NodePort::Scale(id))
    }

    /// Returns the port to the subscriptions of an output.
    fn local(&mut self, place: LocalPlace) -> Option<&mut LocalPort> {
        let LocalPlace { source, form, scale } = place;
        let key = OutputKey { target: Target::Local, form };
        let ingress: &mut Ingress<NodePort> = match self.sources.get_mut(&source.publisher) {
            Some(source) => &mut source.ingress,
            None => self.arrivals.ingress_mut(source)?,
        };
        let mut outputs = ingress.outputs_mut().iter_mut();
        let output = outputs.find(|output| output.key == key && output.scale == scale)?;
        let destination = match &mut output.port {
            NodePort::Destination(destination) | NodePort::Inline(_, destination) => destination,
            NodePort::Scale(id) => self.scalers.get_mut(*id)?.destinations.get_mut(&key)?,
        };
        match destination {
            Destination::Local(local) => Some(local),
            Destination::Stream(_) => None,
        }
    }

    /// Passes the last samples of a removed stream to its link, and returns its end, at most at `until`.
    fn retire(
        &mut self,
        now: Instant,
        StreamPlace { link, index }: StreamPlace,
        until: impl FnOnce(&NodeLink) -> Instant,
    ) -> Option<Retired> {
        let link = self.links.get_mut(link)?;
        let spec = link.link.spec_of(index);
        debug_assert!(spec.is_some(), "{}: its link has closed {index:?} itself", link.name);
        let spec = spec?;
        let (hop, publisher, form) = (spec.hop, spec.publisher, spec.form);
        let source = SourceKey { publisher, form };
        link.drain(now, index);
        link.touched = true;
        Some(Retired { hop, source, index, until: until(link) })
    }

    /// Closes the replaced streams of a link that have sent their backlog.
    pub(super) fn close_retired(&mut self, now: Instant, link: usize) {
        let scalers = &self.scalers;
        let over = |end: &mut NodeLink| -> Vec<Retired> {
            let NodeLink { link: its, queues, retired, .. } = end;
            let is_over = |it: &mut Retired| {
                let index = it.index;
                let spent = queues.get(index).is_none_or(|queue| queue.waiting.is_empty());
                let fed = || scalers.feeds(StreamPlace { link, index });
                now >= it.until || spent && its.is_settled(index) && !fed()
            };
            retired.extract_if(.., is_over).collect()
        };
        let over = self.links.get_mut(link).map(over).unwrap_or_default();
        for stream in over {
            self.close_stream(link, &stream);
            self.installer.handle_closed(StreamPlace { link, index: stream.index });
        }
    }

    fn close_stream(&mut self, link: usize, stream: &Retired) {
        let &Retired { hop, source, index, .. } = stream;
        self.scalers.forget_stream(StreamPlace { link, index });
        let Some(end) = self.links.get_mut(link) else { return };
        let Some(queue) = end.queues.close(index) else { return };
        end.link.handle_dropped(index, DropReason::NoRoute, queue.waiting() as u64);
        let Some(counters) = end.link.close_stream(index) else { return };
        let closed = ClosedStream { link, hop, source, counters, offered: queue.offered() };
        self.outputs.push_back(NodeOutput::StreamClosed(closed));
    }
}
