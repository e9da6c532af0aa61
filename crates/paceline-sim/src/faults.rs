//! Wires that turn bad while a world runs.

use crate::impair::{Impairment, Loss};
use crate::net::NodeIx;
use crate::world::World;

impl World {
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
        let (now, mut faulty) = (self.now, false);
        for wire in self.wires_between(a, b) {
            let mut impairment = wire.impairment();
            change(&mut impairment);
            wire.impair(now, impairment);
            faulty |= !wire.spec().keeps_all();
        }
        self.faulty |= faulty;
    }
}
