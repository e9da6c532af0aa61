//! Executes the commands of the installer, in the same call.

use crate::destination::{Destination, LocalPort};
use crate::node::Node;
use crate::outlet::{LinkEnd, Port, Retired};
use crate::pool::Scaler;
use crate::video::VideoScaler;
use paceline_node::arrive::Arrangement;
use paceline_node::install::{
    Installation, LocalPlace, NewPort, PortCommand, PortEnd, StreamPlace,
};
use paceline_proto::control::PublisherSpec;
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::link::{RETIRE_MAX, StreamSpec};
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::reason::DropReason;
use paceline_sched::Instant;

impl Node {
    /// Installs the outputs that control has requested since the last call.
    pub(super) fn install(&mut self, now: Instant) {
        loop {
            let routes = (&self.control, &self.ways);
            let commands = self.installer.take_commands(now, &routes);
            if commands.is_empty() {
                return;
            }
            commands.into_iter().for_each(|command| self.execute(now, command));
        }
    }

    fn execute(&mut self, now: Instant, command: PortCommand) {
        match command {
            PortCommand::OpenScaler { scaler, .. } => {
                self.scalers.insert(scaler, Scaler::default());
            }
            PortCommand::SetTerms(scaler, terms) => {
                if let Some(scaler) = self.scalers.get_mut(&scaler) {
                    scaler.promised = terms.promised;
                }
            }
            PortCommand::CloseScaler(scaler) => {
                // It ends with the last sample that it has begun.
                let Some(closed) = self.scalers.get_mut(&scaler) else { return };
                closed.is_closed = true;
                if closed.is_over() {
                    self.scalers.remove(&scaler);
                }
            }
            PortCommand::UpdateStream(place, spec) => self.update_stream(now, place, spec),
            PortCommand::UpdateLocal { place, leave, join, late } => {
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
                let stream = self.retire(now, place, |_| now);
                self.close_stream(place.link, &stream);
            }
            PortCommand::DrainStream(place) => {
                let stream = self.retire(now, place, |_| now + RETIRE_MAX);
                let Some(end) = self.links.get_mut(place.link) else { return };
                end.link.retire_stream(now, place.index);
                end.retired.push(stream);
            }
            PortCommand::HandOverStream(place) => {
                let until = |end: &LinkEnd| now + end.link.hand_over_max(place.index);
                let stream = self.retire(now, place, until);
                let Some(end) = self.links.get_mut(place.link) else { return };
                end.link.hand_over(place.index);
                end.retired.push(stream);
            }
            // The port is gone with its output.
            PortCommand::CloseLocal(..) => {}
            // The samples of its output find no stream until another one closes.
            PortCommand::NoStream { .. } => {}
        }
    }

    fn update_stream(
        &mut self,
        now: Instant,
        StreamPlace { link, index }: StreamPlace,
        spec: StreamSpec,
    ) {
        let Some(end) = self.links.get_mut(link) else { return };
        end.link.update_stream(now, index, spec);
        end.touched = true;
    }

    /// Makes an installation that of a source.
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
            if let Port::Scale(scaler) = port
                && let Some(scaler) = self.scalers.get_mut(&scaler)
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
    ) -> Option<Port> {
        let destination = match new.end {
            PortEnd::Local(_, first) => {
                let (id, tag) = (source.publisher, publisher.tag.clone());
                Destination::Local(LocalPort::new(id, tag, plan.late, &first))
            }
            PortEnd::Stream(place, spec) => {
                let StreamPlace { link, index } = place;
                let end = self.links.get_mut(link)?;
                assert!(end.link.open_stream(index, spec), "{}: {index:?} is in use", self.name);
                end.rings.open(index);
                end.touched = true;
                Destination::Stream(place)
            }
        };
        let Some((id, _)) = new.scaler else { return Some(Port::Destination(destination)) };
        if plan.kind.is_video() {
            let scaler = VideoScaler::new(plan.at_port(), publisher.period, destination);
            return Some(Port::Video(Box::new(scaler)));
        }
        let scaler = self.scalers.get_mut(&id);
        let scaler = scaler.unwrap_or_else(|| panic!("{}: {id:?} is closed", self.name));
        scaler.coding = self.pool.coding(source, publisher, plan);
        scaler.destinations.insert(OutputKey::of(plan), destination);
        Some(Port::Scale(id))
    }

    /// Returns the port to the subscriptions of an output.
    fn local(&mut self, place: LocalPlace) -> Option<&mut LocalPort> {
        let LocalPlace { source, form, scale } = place;
        let key = OutputKey { target: Target::Local, form };
        let ingress: &mut Ingress<Port> = match self.sources.get_mut(&source.publisher) {
            Some(source) => &mut source.ingress,
            None => self.arrivals.ingress_mut(source)?,
        };
        let mut outputs = ingress.outputs_mut().iter_mut();
        let output = outputs.find(|output| output.key == key && output.scale == scale)?;
        let destination = match &mut output.port {
            Port::Destination(destination) => destination,
            Port::Video(scaler) => scaler.destination_mut(),
            Port::Scale(id) => self.scalers.get_mut(id)?.destinations.get_mut(&key)?,
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
        until: impl FnOnce(&LinkEnd) -> Instant,
    ) -> Retired {
        let open = self.links.get_mut(link).and_then(|end| {
            let spec = end.link.spec_of(index)?;
            let key = (spec.hop, spec.publisher, spec.form);
            Some((end, key))
        });
        let Some((end, key)) = open else {
            panic!("node {}: {index:?} was closed by its link alone", self.name);
        };
        end.drain(now, index);
        end.touched = true;
        Retired { key, index, until: until(end) }
    }

    /// Closes the replaced streams of a link that have sent their backlog.
    pub(super) fn close_retired(&mut self, now: Instant, link: usize) {
        let scalers = &self.scalers;
        let over = |end: &mut LinkEnd| -> Vec<Retired> {
            let LinkEnd { link: its, rings, retired, .. } = end;
            let is_over = |it: &mut Retired| {
                let index = it.index;
                let spent = rings.get(index).is_none_or(|ring| ring.waiting.is_empty());
                let fed = || scalers.values().any(|it| it.feeds(StreamPlace { link, index }));
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
        let index = stream.index;
        let place = StreamPlace { link, index };
        self.scalers.values_mut().for_each(|scaler| scaler.forget_stream(place));
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
