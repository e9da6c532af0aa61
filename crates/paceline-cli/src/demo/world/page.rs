//! The page of the town.

use super::observers::{Observers, RADIO, RADIO_CAPACITY, millis};
use super::town::Town;
use bytes::Bytes;
use paceline::{Capacity, Node};
use paceline_http::StatusCode;
use paceline_http::{
    Change, Neighbours, NoPicture, ObserverState, OwnSource, Shown, Source, State, WorldState,
};
use std::sync::{Mutex, PoisonError};

/// The node of the town, and what its observers see.
pub(super) struct WorldSource {
    own: OwnSource,
    node: Node,
    world: Mutex<Bytes>,
    capacity: Mutex<String>,
}

impl WorldSource {
    pub(super) fn new(node: &Node) -> Self {
        Self {
            own: OwnSource::new(node, Neighbours::No),
            node: node.clone(),
            world: Mutex::default(),
            capacity: Mutex::new(RADIO_CAPACITY.to_owned()),
        }
    }

    /// Publishes the present state for the page.
    pub(super) fn publish(&self, town: &Town, observers: &Observers) {
        let capacity = self.capacity.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tenth = |[x, y]: [f64; 2]| [(x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0];
        let state = WorldState {
            side_m: Town::SIDE,
            capacity,
            cars: town.cars.iter().map(|car| tenth(car.position)).collect(),
            observers: observers
                .watchers
                .iter()
                .map(|watcher| ObserverState {
                    name: watcher.reading.name,
                    position: tenth(watcher.position),
                    reading: watcher.reading.clone(),
                    seen: watcher
                        .seen
                        .iter()
                        .map(|seen| {
                            let error = (seen.error * 10.0).round() / 10.0;
                            (seen.car, tenth(seen.position), error, millis(seen.age))
                        })
                        .collect(),
                })
                .collect(),
        };
        if let Ok(json) = serde_json::to_vec(&state) {
            *self.world.lock().unwrap_or_else(PoisonError::into_inner) = json.into();
        }
    }
}

impl Source for WorldSource {
    fn state(&self, viewed: bool) -> State {
        self.own.state(viewed)
    }

    fn picture(&self, subscription: &str, after: Option<u64>) -> Result<Option<Shown>, NoPicture> {
        self.own.picture(subscription, after)
    }

    fn note_refused(&self, from: &str, path: &str, why: &str) {
        self.own.note_refused(from, path, why);
    }

    fn change(&self, subscription: &str, change: &Change) -> Result<Bytes, (StatusCode, String)> {
        self.own.change(subscription, change)
    }

    fn values(&self, subscription: &str) -> Result<Bytes, (StatusCode, String)> {
        self.own.values(subscription)
    }

    fn comparison(&self) -> Option<Bytes> {
        self.own.comparison()
    }

    fn turn(&self, switch: &str, on: bool) -> bool {
        self.own.turn(switch, on)
    }

    fn world(&self) -> Option<Bytes> {
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(world).filter(|world| !world.is_empty())
    }

    fn set_world(&self, capacity: &str) -> Result<(), String> {
        let bits: Capacity = crate::args::capacity(capacity)
            .map_err(|error| format!("capacity '{capacity}' {error}"))?;
        self.node.set_capacity(RADIO, bits).map_err(|error| error.to_string())?;
        capacity.clone_into(&mut self.capacity.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}
