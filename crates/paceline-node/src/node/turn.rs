//! One iteration of a node: the work that is due at an instant.

use super::Node;
use super::output::{NodeOutput, WakeReason, Wakeup};
use crate::install::WantedOutputs;
use paceline_proto::NodeId;
use paceline_proto::control::{ControlOutput, HopInfo, WayChange};
use paceline_proto::link::LinkEvent;
use paceline_sched::Instant;
use std::mem;

/// The most rounds of an iteration. Further work waits for the next one, so that a driver gets its turn.
const ROUNDS_MAX: u32 = 10_000;

impl Node {
    /// Begins an iteration: handles the timers that are due.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        self.touched = false;
        self.rounds = Some(0);
        if self.control.poll_timeout() <= now {
            self.control.handle_timeout(now);
        }
        if self.arrivals.poll_timeout() <= now {
            let (arrivals, mut outlets) = self.arrivals(now);
            arrivals.handle_timeout(now, &mut outlets);
        }
        if let Some(used) = self.used.take(now) {
            self.control.handle_published(now, &used);
            let proves = self.control.wants_proofs();
            self.links.iter_mut().for_each(|end| end.link.set_proving(proves));
        }
        self.release(now);
    }

    /// Releases samples by time.
    fn release(&mut self, now: Instant) {
        for id in self.subscriptions.due(now) {
            let Some(end) = self.subscriptions.get_mut(id) else { continue };
            while end.delivery.poll(now, || None).is_some() {}
            let silences = end.delivery.poll_silences(now).into_iter();
            self.outputs.extend(silences.map(|silence| NodeOutput::Silence(id, silence)));
            self.subscriptions.announce(id);
        }
    }

    /// Serves the links and control once. Ends the iteration if nothing has moved.
    pub(super) fn run_round(&mut self, now: Instant) {
        let mut moved = false;
        for link in 0..self.links.len() {
            let due = self.links.get(link).is_some_and(|end| end.touched || end.wake <= now);
            moved |= due && self.serve_link(now, link);
        }
        moved |= self.take_outputs(now);
        self.rounds =
            self.rounds.map(|rounds| rounds + 1).filter(|rounds| *rounds < ROUNDS_MAX && moved);
        if self.rounds.is_none() {
            self.has_ended = true;
            self.touched |= moved;
            self.wake = self.next_wakeup();
        }
    }

    fn next_wakeup(&self) -> Wakeup {
        let links = self.links.iter().enumerate();
        let wake = Wakeup::IDLE
            .or(self.control.poll_timeout(), WakeReason::Control)
            .or(self.arrivals.poll_timeout(), WakeReason::Arrivals)
            .or(self.used.next_at, WakeReason::Use);
        let timed = self.subscriptions.timeouts();
        let wake = timed.fold(wake, |wake, (at, id)| wake.or(at, WakeReason::Delivery(id)));
        links.fold(wake, |wake, (index, link)| wake.or(link.wake, WakeReason::Link(index)))
    }

    /// Delivers samples of a link that waited too long for missing predecessors.
    fn expire(&mut self, now: Instant, link: usize) {
        let due = self.neighbours.get(link).map(|all| all.overdue(now)).unwrap_or_default();
        for node in due {
            let mut batch = mem::take(&mut self.batch);
            if let Some(neighbour) = self.neighbour_mut(link, node) {
                neighbour.reader.receiver_mut().handle_timeout(now, |item| batch.push(item));
            }
            self.hand_over_all(now, (link, node), batch);
        }
    }

    fn serve_link(&mut self, now: Instant, link: usize) -> bool {
        self.expire(now, link);
        let Some(end) = self.links.get_mut(link) else { return false };
        let mut moved = end.drain_all(now);
        end.link.handle_timeout(now);
        moved |= self.handle_link_events(now, link);
        moved |= self.follow_capacity(now, link);
        self.close_retired(now, link);
        let Some(end) = self.links.get_mut(link) else { return moved };
        let Some(neighbours) = self.neighbours.get_mut(link) else { return moved };
        neighbours.part(|node| end.link.epoch(node) == 0);
        while let Some(to) = end.link.poll_frame(now, &mut self.frame) {
            moved = true;
            let frame = self.frame.to_bytes();
            self.outputs.push_back(NodeOutput::Frame { link, to, frame });
        }
        end.touched = moved;
        end.wake = end.next_service().min(neighbours.next_overdue());
        moved
    }

    /// Handles the events of a link. Returns true if there was any.
    pub(super) fn handle_link_events(&mut self, now: Instant, link: usize) -> bool {
        let Some(end) = self.links.get_mut(link) else { return false };
        let events: Vec<_> = std::iter::from_fn(|| end.link.poll_event()).collect();
        let moved = !events.is_empty();
        events.into_iter().for_each(|event| self.handle_link_event(now, link, event));
        moved
    }

    fn handle_link_event(&mut self, now: Instant, link: usize, event: LinkEvent) {
        let Some(end) = self.links.get(link) else { return };
        match event {
            LinkEvent::HopUp(node) => {
                let probes = end.probes_to(node);
                let change = self.ways.up(node, link, end.spec.capacity);
                self.change_path(now, node, change);
                if self.ways.link(node) == Some(link) {
                    self.control.set_probe_interval(node, probes);
                }
            }
            LinkEvent::HopDown(node) => {
                let change = self.ways.down(node, link);
                self.change_path(now, node, change);
            }
        }
    }

    /// Notifies control of a changed path to a neighbour. Streams on a link no longer in use are closed
    /// before streams on the new link are opened.
    pub(super) fn change_path(&mut self, now: Instant, node: NodeId, change: WayChange) {
        if matches!(change, WayChange::Moved(_) | WayChange::Down) {
            self.control.handle_hop_down(now, node);
            self.take_outputs(now);
        }
        if let WayChange::Up(link) | WayChange::Moved(link) = change
            && let Some(end) = self.links.get(link)
        {
            let hop = HopInfo::new(end.name.clone(), end.spec.capacity);
            self.control.handle_hop_up(now, node, hop);
        }
    }

    fn take_outputs(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.control.poll_output() {
            moved = true;
            self.install_before(now, &output);
            self.handle_control(now, output);
        }
        self.install(now);
        moved
    }

    /// Executes an output of control, or passes it to the driver.
    fn handle_control(&mut self, now: Instant, output: ControlOutput) {
        match output {
            ControlOutput::Send { hop, message } => {
                let end = self.ways.link(hop).and_then(|link| self.links.get_mut(link));
                if let Some(end) = end {
                    end.link.handle_control(hop, message);
                    end.touched = true;
                }
                return;
            }
            ControlOutput::Install { source, publisher, from, entry, outputs: plans } => {
                let wanted = WantedOutputs { source, publisher, from, entry, plans };
                self.installer.handle_outputs(wanted);
                return;
            }
            ControlOutput::Changed { subscription, ref spec, .. } => {
                if let Some(end) = self.subscriptions.get_mut(subscription) {
                    end.delivery.relax(spec);
                }
            }
            ControlOutput::Subscribed { subscription, ref publishers } => {
                if let Some(end) = self.subscriptions.get_mut(subscription) {
                    end.publishers.clone_from(publishers);
                }
            }
            ControlOutput::InForce { subscription, ref spec }
            | ControlOutput::ChangeRefused { subscription, ref spec, .. } => {
                if let Some(end) = self.subscriptions.get_mut(subscription) {
                    end.delivery.change(spec);
                }
            }
            ControlOutput::Allotted { ref link, capacity } => {
                let mut links = self.links.iter_mut();
                if let Some(end) = links.find(|end| end.name == *link) {
                    end.touched |= end.link.set_capacity(now, capacity);
                }
            }
            ControlOutput::Matching { .. }
            | ControlOutput::Refused { .. }
            | ControlOutput::Granted { .. }
            | ControlOutput::Withdrawn { .. }
            | ControlOutput::BestEffort { .. }
            | ControlOutput::NoSpare { .. }
            | ControlOutput::Excess { .. }
            | ControlOutput::Warned { .. }
            | ControlOutput::Surveyed { .. }
            | ControlOutput::Denied { .. }
            | ControlOutput::Used { .. }
            | ControlOutput::ChangedFor { .. }
            | ControlOutput::Unread { .. }
            | ControlOutput::Asked { .. }
            | ControlOutput::Answered { .. } => {}
        }
        self.outputs.push_back(NodeOutput::Control(output));
    }
}
