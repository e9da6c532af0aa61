//! What goes wrong: cuts, losses, stalls, crashes, clocks.

use crate::clock::ClockSpec;
use crate::impair::{Impairment, Loss};
use crate::net::NodeIx;
use crate::node::Node;
use crate::queue::Event;
use crate::wire::Wire;
use crate::world::World;

impl World {
    fn wires_between(&mut self, a: NodeIx, b: NodeIx) -> impl Iterator<Item = &mut Wire> {
        let ends = [(a.0, b.0), (b.0, a.0)];
        self.wires.iter_mut().filter(move |wire| ends.contains(&(wire.from.0, wire.to.0)))
    }

    /// Nothing passes between two nodes any more; what was on its way is lost.
    pub fn cut(&mut self, a: NodeIx, b: NodeIx) {
        self.faulty = true;
        for wire in self.wires_between(a, b) {
            wire.cut = true;
            wire.clear();
        }
    }

    /// Nothing passes over one of the wires between two nodes any more, by what [`Self::join`] returned;
    /// what was on its way is lost.
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

    /// One wire that was cut is whole again.
    pub fn restore_wire(&mut self, (there, back): (usize, usize)) {
        for place in [there, back] {
            self.wires.get_mut(place).into_iter().for_each(|wire| wire.cut = false);
        }
    }

    /// What was cut is whole again.
    pub fn restore(&mut self, a: NodeIx, b: NodeIx) {
        self.wires_between(a, b).for_each(|wire| wire.cut = false);
    }

    /// From now on so many frames in a thousand are lost between two nodes.
    pub fn set_loss(&mut self, a: NodeIx, b: NodeIx, per_mille: u32) {
        let loss = Loss::Random { ppm: per_mille.saturating_mul(1_000) };
        self.change(a, b, |impairment| impairment.loss = loss);
    }

    /// From now on this is what happens to frames between two nodes, each way, on whatever kind of
    /// wire there is. It takes the place of all that was so before, the rate included.
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
            self.faulty |= !wire.spec().keeps_all();
            self.queue.wake(Event::Wire(place), wire.arrives_at());
        }
    }

    /// A node neither reads nor sends until it is [resumed](Self::resume).
    pub fn stall(&mut self, node: NodeIx) {
        self.faulty = true;
        self.node_mut(node).stalled = true;
    }

    /// A stalled node goes on where it was.
    pub fn resume(&mut self, node: NodeIx) {
        self.node_mut(node).stalled = false;
        self.touch(node);
        for (place, wire) in self.wires.iter().enumerate().filter(|(_, w)| w.to.0 == node.0) {
            self.queue.wake(Event::Wire(place), wire.arrives_at());
        }
    }

    /// A node is gone at once with everything in it: what waited, what it knew, its counters. What is
    /// on wires to it arrives nowhere; what has left it still arrives. One that is down already stays so.
    ///
    /// Its publishers and subscriptions start again when it is [restarted](Self::restart), and so do those
    /// that are made until then. What its subscriptions got stays readable.
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

    /// A node that crashed starts again: under the same name with another id, over the same wires, with
    /// the same publishers and subscriptions, which are new ones to everybody else: sequence numbers
    /// begin at 0 and [`World::id`] is another.
    pub fn restart(&mut self, node: NodeIx) {
        self.node_mut(node).down = false;
        self.touch(node);
        // Its transport calls at once.
        self.queue.wake(Event::Beacons, self.now);
    }

    /// True from [`Self::crash`] to [`Self::restart`].
    #[must_use]
    pub fn is_down(&self, node: NodeIx) -> bool {
        self.node(node).down
    }

    /// The new incarnation of `node` gets the publishers and subscriptions of the old one.
    fn declare_again(&mut self, node: NodeIx, mut old: Node) {
        for place in 0..self.publishers.len() {
            let Some(&(of, id)) = self.publishers.get(place) else { continue };
            let spec = old.published(id).filter(|_| of == node.0);
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
            if !sink.ended {
                sink.publishers.clear();
                *id = here.control.subscribe(now, sink.spec.clone());
            }
            here.sinks.insert(*id, sink);
        }
    }

    /// From now on a node's monotonic clock runs so; it goes on from what it shows.
    pub fn set_clock(&mut self, node: NodeIx, spec: ClockSpec) {
        let now = self.now;
        let here = self.node_mut(node);
        here.clock.set(now, spec);
        // What it waits for comes at another instant of the world now.
        self.touch(node);
    }

    /// Steps a node's UTC clock, forward or back: what its samples are stamped with. Its monotonic clock
    /// goes on as before.
    pub fn step_clock(&mut self, node: NodeIx, by_ns: i64) {
        self.node_mut(node).clock.step(by_ns);
    }
}
