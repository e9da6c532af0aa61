//! Fault injection: cuts, losses, stalls, crashes and clock errors.

use crate::clock::ClockSpec;
use crate::handle::NodeIx;
use crate::impair::{Impairment, Loss};
use crate::node::SimNode;
use crate::queue::Event;
use crate::sink::QUEUE_SAMPLES;
use crate::wire::Wire;
use crate::world::World;

impl World {
    fn wires_between(&mut self, a: NodeIx, b: NodeIx) -> impl Iterator<Item = &mut Wire> {
        let ends = [(a.0, b.0), (b.0, a.0)];
        self.wires.iter_mut().filter(move |wire| ends.contains(&(wire.from.0, wire.to.0)))
    }

    /// Cuts all wires between two nodes. Frames in flight are lost.
    pub fn cut(&mut self, a: NodeIx, b: NodeIx) {
        self.faulty = true;
        for wire in self.wires_between(a, b) {
            wire.cut = true;
            wire.clear();
        }
    }

    /// Cuts one of the wires between two nodes, given by the result of [`Self::join`]. Frames in flight are
    /// lost.
    pub fn cut_wire(&mut self, (there, back): (usize, usize)) {
        self.faulty = true;
        for place in [there, back] {
            let wire = self.wires.get_mut(place);
            wire.into_iter().for_each(|wire| {
                wire.cut = true;
                wire.clear();
            });
        }
    }

    /// Restores one wire that was cut.
    pub fn restore_wire(&mut self, (there, back): (usize, usize)) {
        for place in [there, back] {
            self.wires.get_mut(place).into_iter().for_each(|wire| wire.cut = false);
        }
    }

    /// Restores all wires between two nodes.
    pub fn restore(&mut self, a: NodeIx, b: NodeIx) {
        self.wires_between(a, b).for_each(|wire| wire.cut = false);
    }

    /// Loses `per_mille` of a thousand frames between two nodes from now on.
    pub fn set_loss(&mut self, a: NodeIx, b: NodeIx, per_mille: u32) {
        let loss = Loss::Random { ppm: per_mille.saturating_mul(1_000) };
        self.change(a, b, |impairment| impairment.loss = loss);
    }

    /// Sets the impairment between two nodes, in both directions and for any kind of wire. It replaces the
    /// whole previous impairment, including the rate.
    pub fn impair(&mut self, a: NodeIx, b: NodeIx, impairment: Impairment) {
        self.change(a, b, |was| *was = impairment);
    }

    fn change(&mut self, a: NodeIx, b: NodeIx, change: impl Fn(&mut Impairment)) {
        let (now, ends) = (self.now, [(a.0, b.0), (b.0, a.0)]);
        for (place, wire) in self.wires.iter_mut().enumerate() {
            if !ends.contains(&(wire.from.0, wire.to.0)) {
                continue;
            }
            let mut impairment = wire.impairment();
            change(&mut impairment);
            wire.impair(now, impairment);
            // A hop that goes down meanwhile discards the frames that arrive afterwards.
            self.faulty |= impairment.blackout || !wire.spec().keeps_all();
            self.queue.wake(Event::Wire(place), wire.arrives_at());
        }
    }

    /// Stalls a node: it neither reads nor sends until it is [resumed](Self::resume).
    pub fn stall(&mut self, node: NodeIx) {
        self.faulty = true;
        self.node_mut(node).stalled = true;
    }

    /// Resumes a stalled node with its state intact.
    pub fn resume(&mut self, node: NodeIx) {
        self.node_mut(node).stalled = false;
        self.touch(node);
        for (place, wire) in self.wires.iter().enumerate().filter(|(_, w)| w.to.0 == node.0) {
            self.queue.wake(Event::Wire(place), wire.arrives_at());
        }
    }

    /// Crashes a node, which loses all its state: queued samples, its registry and its counters. Does nothing
    /// if the node is already down.
    ///
    /// Frames in flight to the node are lost, while frames that it has sent still arrive. Its publishers and
    /// subscriptions start again when it is [restarted](Self::restart), together with those added until then.
    /// The samples that its subscriptions received stay readable.
    pub fn crash(&mut self, node: NodeIx) {
        if self.node(node).down {
            return;
        }
        self.faulty = true;
        for wire in self.wires.iter_mut().filter(|wire| wire.to.0 == node.0) {
            wire.clear();
        }
        let id = self.new_id();
        let old = self.node_mut(node).begin_anew(id);
        self.declare_again(node, old);
    }

    /// Restarts a node that crashed, under the same name with a new id, over the same wires.
    ///
    /// It has the same publishers and subscriptions, which are new to all other nodes. Sequence numbers begin
    /// at 0, and [`World::id`] returns new ids.
    pub fn restart(&mut self, node: NodeIx) {
        self.node_mut(node).down = false;
        self.touch(node);
        // A new transport announces itself at once.
        self.queue.wake(Event::Beacons, self.now);
    }

    /// Returns true from [`Self::crash`] to [`Self::restart`].
    #[must_use]
    pub fn is_down(&self, node: NodeIx) -> bool {
        self.node(node).down
    }

    /// Declares the publishers and subscriptions of the old incarnation at the new one.
    fn declare_again(&mut self, node: NodeIx, mut old: SimNode) {
        for place in 0..self.publishers.len() {
            let Some(&(of, id)) = self.publishers.get(place) else { continue };
            let spec = old.node.publisher(id).cloned().filter(|_| of == node.0);
            let Some(spec) = spec else { continue };
            let id = self.declare(node, spec);
            if let Some(entry) = self.publishers.get_mut(place) {
                entry.1 = id;
            }
        }
        let now = self.local(node);
        let Some(here) = self.nodes.get_mut(node.0) else { return };
        for (of, id) in &mut self.subscriptions {
            if *of != node.0 {
                continue;
            }
            let Some(mut sink) = old.sinks.remove(id) else { continue };
            sink.begin_anew(old.present(*id));
            if !sink.ended {
                sink.publishers.clear();
                *id = here.node.subscribe(now, sink.spec.clone(), QUEUE_SAMPLES);
            }
            here.sinks.insert(*id, sink);
        }
    }

    /// Changes the rate of a node's monotonic clock from now on. The clock stays continuous.
    pub fn set_clock(&mut self, node: NodeIx, spec: ClockSpec) {
        let now = self.now;
        let here = self.node_mut(node);
        here.clock.set(now, spec);
        // The node's timers are due at other instants of the world now.
        self.touch(node);
    }

    /// Steps a node's UTC clock, which determines the timestamps of its samples. The monotonic clock does not
    /// change.
    pub fn step_clock(&mut self, node: NodeIx, by_ns: i64) {
        self.node_mut(node).clock.step(by_ns);
    }
}
