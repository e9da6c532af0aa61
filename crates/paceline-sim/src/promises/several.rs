//! Subscriptions of one publisher at different rates, which come and go while others have contracts.

use super::Run;
use super::lay::limited;
use crate::handle::NodeIx;
use core::num::NonZeroU32;
use paceline_proto::form::Rate;

const NANOS: u64 = 1_000_000_000;

impl Run {
    /// Adds subscriptions of publisher `place` at several rates, if that is drawn.
    pub(super) fn add_several(&mut self, place: usize) {
        if !self.share_chance.chance(self.mix.shared) {
            return;
        }
        self.several.push(place);
        for _ in 0..2 + self.share_chance.below(3) {
            self.add_one_of_several(place);
        }
    }

    fn add_one_of_several(&mut self, place: usize) {
        let Some(it) = self.publishers.get(place) else { return };
        let (paths, period) = (it.paths.clone(), it.source.period);
        // Most are behind the same hops.
        let known = self.asked.iter().filter(|asked| asked.place == place);
        let nodes: Vec<NodeIx> = known.map(|asked| asked.node).collect();
        let near = self.share_chance.one_of(&nodes).filter(|_| self.share_chance.chance(600));
        let near = near.and_then(|node| paths.iter().copied().find(|(to, _)| *to == node));
        let Some((to, path)) = near.or_else(|| self.share_chance.one_of(&paths)) else { return };
        let mut spec = self.request(place, to, path);
        if !spec.form.converts() {
            let whole = 1_000 * NANOS / period.as_nanos().max(1);
            let number = |n: u64| u32::try_from(n).ok().and_then(NonZeroU32::new);
            spec.form.rate = match self.share_chance.below(10) {
                0..3 => Rate::ALL,
                3 => number(whole / 8 + self.share_chance.below(whole)).map_or(Rate::ALL, limited),
                _ => {
                    let n = self.share_chance.one_of(&[2, 3, 4, 6, 12]).unwrap_or(2);
                    number(n).map_or(Rate::ALL, Rate::every)
                }
            };
        }
        self.subscribe(place, to, spec);
    }

    /// Occasionally adds or ends a subscription of such a publisher.
    pub(super) fn change_several(&mut self) {
        if self.several.is_empty() || !self.share_chance.chance(250) {
            return;
        }
        let Some(place) = self.share_chance.one_of(&self.several) else { return };
        let lasting = |asked: &super::Asked| asked.place == place && asked.ended.is_none();
        let all: Vec<usize> =
            (0..).zip(&self.asked).filter(|(_, it)| lasting(it)).map(|(at, _)| at).collect();
        if all.len() < 2 || all.len() < 6 && self.share_chance.chance(500) {
            return self.add_one_of_several(place);
        }
        let now = self.world.now();
        let gone = self.share_chance.one_of(&all);
        if let Some(asked) = gone.and_then(|at| self.asked.get_mut(at)) {
            asked.ended = Some(now);
            self.world.unsubscribe(asked.subscription);
        }
    }
}
