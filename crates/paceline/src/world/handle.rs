//! The handle of a participant.

use super::error::WorldError;
use super::object::{ObjectView, SharedObject};
use super::report::{ObserverReport, ParticipantReport, WorldReport};
use super::service::ServiceEvent;
use super::state::{Shared, State};
use super::worker;
use crate::Arrival;
use crate::shell::clock;
use paceline_objects::owned::ObjectError;
use paceline_objects::participant::WorldEvent;
use paceline_objects::run_queue::DecisionWorkers;
use paceline_objects::semantic::SemanticFunction;
use paceline_objects::{FieldValue, Interest, ObjectIndex, PeerId, Schema};
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A participant of a world. Created by [`WorldBuilder::join`](super::WorldBuilder::join).
///
/// Dropping it leaves the world: its objects end for all others.
pub struct SharedWorld {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SharedWorld {
    pub(super) const fn new(shared: Arc<Shared>, thread: JoinHandle<()>) -> Self {
        Self { shared, thread: Some(thread) }
    }

    /// Returns the number of this participant.
    #[must_use]
    pub fn id(&self) -> PeerId {
        self.shared.lock().participant.id()
    }

    /// Creates an object of this participant.
    ///
    /// # Errors
    /// A path that is not well-formed or in use, a value that does not match the schema, or too many objects.
    pub fn create(
        &self,
        path: &str,
        schema: &Schema,
        fields: &[(&str, FieldValue)],
    ) -> Result<SharedObject, ObjectError> {
        let index = self
            .shared
            .change(|state| state.participant.create(path, schema, fields, clock::now()))?;
        Ok(SharedObject::new(Arc::clone(&self.shared), index, path.into()))
    }

    /// Returns an own object by the index that an event names; `None` if it has ended.
    #[must_use]
    pub fn owned(&self, index: ObjectIndex) -> Option<SharedObject> {
        let path =
            self.shared.lock().participant.owned().get(index).map(|object| object.path().into())?;
        Some(SharedObject::new(Arc::clone(&self.shared), index, path))
    }

    /// Changes what this participant wants to receive; `None` ends it. A contract is requested at once;
    /// [`Self::try_service`] returns the answers.
    ///
    /// # Errors
    /// A value of the interest that is out of range.
    pub fn observe(&self, interest: Option<Interest>) -> Result<(), WorldError> {
        Ok(self.shared.change(|state| state.participant.observe(interest))?)
    }

    /// Sets the position and velocity of this participant, and the direction of its view; `None` sees in all
    /// directions. Values that are not finite are ignored.
    pub fn look(&self, position: [f64; 3], velocity: [f64; 3], direction: Option<[f64; 3]>) {
        self.shared.change(|state| state.participant.look(position, velocity, direction));
    }

    /// Decides by a function of the application about the exchanges of own objects with all observers, instead of by
    /// the rules that they state. It runs on a thread of its own. If it panics, returns terms out of range, or takes
    /// longer than 50 ms for a batch of objects, it is disabled for that observer, which receives its objects once
    /// per second from then on, and [`WorldEvent::Disabled`] reports it.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn decide(&self, function: impl SemanticFunction + 'static) -> Result<(), WorldError> {
        self.decide_by(vec![Box::new(function)], DecisionWorkers::default())
    }

    /// As [`Self::decide`], on several workers. Each has a clone of the function and runs it for one observer's batch of
    /// objects at a time, to completion; the batches of several observers run at once. They run in the order of
    /// the workers' setting: the deadline of a batch is the delay of its observer's contract, at most 50 ms, and its
    /// period is the contract's least time between two updates, at most 100 ms.
    ///
    /// ```no_run
    /// use paceline::world::{DecisionWorkers, ExchangeTerms, PairView, RunOrder};
    /// use std::time::Duration;
    ///
    /// let node = paceline::Node::open()?;
    /// let town = node.world("town").join()?;
    /// let workers = DecisionWorkers { count: 4, order: RunOrder::RateMonotonic };
    /// let every = |_: &PairView<'_>| Some(ExchangeTerms::every(Duration::from_millis(50).into()));
    /// town.decide_on(workers, every)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A number of workers that is out of range, or a thread could not be started.
    pub fn decide_on(
        &self,
        workers: DecisionWorkers,
        function: impl SemanticFunction + Clone + 'static,
    ) -> Result<(), WorldError> {
        workers.check()?;
        let boxed = |_| Box::new(function.clone()) as Box<dyn SemanticFunction>;
        self.decide_by((0..workers.count).map(boxed).collect(), workers)
    }

    fn decide_by(
        &self,
        functions: Vec<Box<dyn SemanticFunction>>,
        workers: DecisionWorkers,
    ) -> Result<(), WorldError> {
        let started = worker::start(functions, workers.order, &self.shared)?;
        self.shared.change(|state| {
            state.workers = Some(started);
            state.participant.decide_by_application(Some(workers));
        });
        Ok(())
    }

    /// Decides by the rules of observers again.
    pub fn decide_by_observers(&self) {
        self.shared.change(|state| {
            state.workers = None;
            state.participant.decide_by_application(None);
        });
    }

    /// Returns the present state of an object.
    #[must_use]
    pub fn object(&self, path: &str) -> Option<ObjectView> {
        let state = self.shared.lock();
        let participant = &state.participant;
        let now = clock::now();
        if let Some(index) = participant.owned().find(path) {
            let object = participant.owned().get(index)?;
            return Some(ObjectView::owned(
                object,
                participant.name().to_owned(),
                participant.id(),
                now,
            ));
        }
        let replica = participant.replicas().get(path)?;
        Some(ObjectView::replica(replica, name(&state, replica.owner()), now))
    }

    /// Returns the present state of all objects that this participant owns or has replicas of, own ones first.
    #[must_use]
    pub fn objects(&self) -> Vec<ObjectView> {
        let state = self.shared.lock();
        let participant = &state.participant;
        let now = clock::now();
        let own = participant.owned().iter().map(|(_, object)| {
            ObjectView::owned(object, participant.name().to_owned(), participant.id(), now)
        });
        let replicas = participant.replicas().iter();
        own.chain(
            replicas
                .map(|replica| ObjectView::replica(replica, name(&state, replica.owner()), now)),
        )
        .collect()
    }

    /// Returns what this participant knows of the others, and counts.
    #[must_use]
    pub fn report(&self) -> WorldReport {
        let state = self.shared.lock();
        let participant = &state.participant;
        WorldReport {
            world: self.shared.world().to_owned(),
            id: participant.id(),
            name: participant.name().to_owned(),
            owned: participant.owned().len(),
            replicas: participant.replicas().len(),
            participants: participant.peers().map(|(id, name)| other(&state, id, name)).collect(),
            exchanges: participant.exchanges().counters(),
            applied: participant.replicas().counts(),
            packets: participant.counts(),
            events_dropped: state.events_dropped,
            packets_dropped: state.packets_dropped,
            packets_forged: participant.counts().forged,
        }
    }

    /// Returns the next change in the world, if there is one.
    #[must_use]
    pub fn try_event(&self) -> Option<WorldEvent> {
        self.shared.lock().events.pop_front()
    }

    /// Waits for the next change in the world; `None` if `timeout` passes first.
    #[must_use]
    pub fn event_timeout(&self, timeout: Duration) -> Option<WorldEvent> {
        let until = Instant::now().checked_add(timeout)?;
        loop {
            let arrival = self.arrival();
            if let Some(event) = self.try_event() {
                return Some(event);
            }
            if !arrival.wait_until(until) {
                return self.try_event();
            }
        }
    }

    /// Returns the next answer to the request of a contract, if there is one.
    #[must_use]
    pub fn try_service(&self) -> Option<ServiceEvent> {
        self.shared.lock().services.pop_front()
    }

    /// Returns a notification for the next event or answer.
    pub fn arrival(&self) -> Arrival {
        Arrival::new(self.shared.arrived.listen())
    }
}

fn name(state: &State, id: PeerId) -> String {
    let known = state.participant.name_of(id);
    known.filter(|name| !name.is_empty()).map_or_else(|| id.to_string(), str::to_owned)
}

fn other(state: &State, id: PeerId, name: &str) -> ParticipantReport {
    let participant = &state.participant;
    let exchanges = participant.exchanges();
    let as_observer = participant.service(id).map(|(parts, interest)| ObserverReport {
        interest: interest.clone(),
        parts,
        exchanges: exchanges.counters_of(id).cloned().unwrap_or_default(),
        disabled: exchanges.disabled(id).cloned(),
    });
    ParticipantReport {
        id,
        name: name.to_owned(),
        as_owner: participant.delay_parts(id),
        as_observer,
        workers: participant.workers_of(id),
    }
}

impl fmt::Debug for SharedWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWorld").field("world", &self.shared.world()).finish_non_exhaustive()
    }
}

impl Drop for SharedWorld {
    fn drop(&mut self) {
        self.shared.change(|state| state.ended = true);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ended = thread.join();
        }
    }
}
