//! The trials of a survey: other requests that a node would grant instead of the one in question.

use super::query::{Half, Query};
use super::room::Room;
use super::variant::{Trial, Variant};
use crate::control::Control;
use crate::control::contracts::pair::Pair;
use crate::control::data::route::Place;
use paceline_admit::Trunk;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Control {
    /// Returns the trials that this node would grant instead of a pair's request; one bit each.
    pub(super) fn grants_trials(&self, query: &Query) -> Option<u64> {
        match &query.opposite {
            Some(spare) if spare.pair == query.first.pair => Some(self.grants_spares(query, spare)),
            Some(_) | None => self.grants_beside(query),
        }
    }

    /// Returns the trials that this node would grant on both paths of a pair; one bit each.
    fn grants_spares(&self, query: &Query, spare: &Half) -> u64 {
        let fits = |trial: &Trial| {
            let Some(spec) = self.publisher(query.first.pair.1) else { return false };
            let vary = |half: &Half| {
                let (_, request) = trial.apply(spec, &half.request);
                Half { request, ..half.clone() }
            };
            let (first, second) = (vary(&query.first), vary(spare));
            let is_known = matches!(trial, Trial::Variant(Variant::Bytes(_)) | Trial::Traffic(_));
            !is_known
                && self.obstacle(&first, None).is_none()
                && self.obstacle(&second, Some(&first)).is_none()
        };
        let granted = query.trials.iter().enumerate().filter(|(_, trial)| fits(trial));
        granted.fold(0, |bits, (number, _)| bits | 1 << number)
    }

    /// Returns the trials that this node would grant instead of a pair's request, while it keeps the other pair; one bit
    /// each.
    fn grants_beside(&self, query: &Query) -> Option<u64> {
        let (half, other) = query.tried();
        if query.trials.is_empty() || other.is_some_and(|it| self.obstacle(it, None).is_some()) {
            return None;
        }
        let Half { pair, request, path, split, .. } = half;
        let (declared, place) = (self.publisher(pair.1)?, Place::on(path, *split, self.me)?);
        let mut rooms: BTreeMap<Trunk, Option<Room<'_>>> = BTreeMap::new();
        let mut fits = |trial: &Trial| {
            let (spec, request) = trial.apply(declared, request);
            let spec = Arc::new(spec.into_owned());
            let seen = Pair::at(*pair, &spec, &request, place);
            if self.membership.access.prospect(&self.membership.registry, &seen).is_some() {
                return false;
            }
            let Some(leg) = self.leg(half, (&spec, &request)) else { return true };
            let room = rooms.entry(leg.trunk).or_insert_with(|| self.room(half, &leg, other));
            room.as_ref().is_none_or(|room| room.of(&leg).is_granted())
        };
        let granted = query.trials.iter().enumerate().filter(|(_, trial)| fits(trial));
        Some(granted.fold(0, |bits, (number, _)| bits | 1 << number))
    }
}
