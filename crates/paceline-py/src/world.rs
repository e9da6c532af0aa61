//! Worlds of shared objects. The keyword arguments are declared in `python/paceline/node.py`.

mod decider;
mod event;
mod field;
mod interest;
mod object;
mod report;

pub(crate) use decider::{Decider, PairView};
pub(crate) use event::{EndsTooSlow, ServiceRefused, WorldEvent};
pub(crate) use interest::{ExchangeTerms, Interest};
pub(crate) use object::{ObjectView, SharedObject};

use crate::convert::{self, TEXT, WHOLE, option};
use crate::errors;
use crate::life::Held;
use crate::wait::{self, Look};
use paceline::world::{
    DecisionWorkers, ParticipantSettings, PeerId, RunOrder, Schema, SharedWorld, WorldEvent as Told,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A participant of a world. Iterate over it for its events; all threads may share it.
#[pyclass(frozen, weakref, module = "paceline")]
pub(crate) struct World {
    open: Held<Mutex<Option<Arc<SharedWorld>>>>,
    world: String,
    id: PeerId,
}

/// Joins a world with the keyword arguments of `Node.world`.
pub(crate) fn join(
    py: Python<'_>,
    node: &paceline::Node,
    world: &str,
    asked: &Bound<'_, PyDict>,
) -> PyResult<World> {
    let mut builder = node.world(world);
    if let Some(name) = option::<String>(asked, "name", TEXT)? {
        builder = builder.name(&name);
    }
    let mut settings = ParticipantSettings::default();
    for (name, value) in [
        ("fragment_bytes", &mut settings.fragment_bytes),
        ("objects_max", &mut settings.objects_max),
        ("replicas_max", &mut settings.replicas_max),
        ("peers_max", &mut settings.peers_max),
        ("state_bytes_max", &mut settings.state_bytes_max),
    ] {
        if let Some(given) = option(asked, name, WHOLE)? {
            *value = given;
        }
    }
    if option::<usize>(asked, "state_bytes_max", WHOLE)?.is_none() {
        settings.state_bytes_max = ParticipantSettings::state_bytes_for(settings.replicas_max);
    }
    if let Some(yields) = option(asked, "yields", "True or False")? {
        settings.yields = yields;
    }
    let builder = builder.settings(settings);
    let joined = py.detach(|| builder.join()).map_err(errors::world)?;
    let id = joined.id();
    Ok(World { open: Held::new(Mutex::new(Some(Arc::new(joined)))), world: world.to_owned(), id })
}

/// Reads the number of a participant.
fn peer(text: &str) -> PyResult<PeerId> {
    let number = u128::from_str_radix(text, 16).map(PeerId);
    number.map_err(|_| {
        errors::value(format!(
            "to='{text}': it must be the id of a participant, as in report()['participants'] or an event's peer"
        ))
    })
}

impl World {
    fn shared(&self) -> PyResult<Arc<SharedWorld>> {
        let open = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
        open.ok_or_else(errors::closed)
    }

    /// Calls `see` without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        see: impl FnOnce(&SharedWorld) -> T + Send,
    ) -> PyResult<T> {
        let shared = self.shared()?;
        Ok(py.detach(move || see(&shared)))
    }

    /// Notified by the next event or answer.
    pub(crate) fn arrival(&self) -> PyResult<paceline::Arrival> {
        Ok(self.shared()?.arrival())
    }

    fn wait(&self, py: Python<'_>, until: Option<Instant>) -> PyResult<Option<WorldEvent>> {
        let found = wait::until(py, until, || {
            let shared = self.shared()?;
            let arrival = shared.arrival();
            Ok(shared.try_event().map_or(Look::Wait(arrival), |event| Look::Here((event, shared))))
        })?;
        found.map(|(found, shared)| event(py, &found, shared)).transpose()
    }
}

/// Converts an event. The world may end here, which blocks.
fn event(py: Python<'_>, event: &Told, shared: Arc<SharedWorld>) -> PyResult<WorldEvent> {
    let made = WorldEvent::new(py, event, &shared);
    py.detach(|| drop(shared));
    made
}

#[pymethods]
impl World {
    /// The name of the world.
    #[getter]
    fn world(&self) -> &str {
        &self.world
    }

    /// The id of this participant.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// Creates an object of this participant. The fields are keyword arguments, or a dict.
    ///
    /// Raises `WorldError` for a path in use, and for a schema or a value that is wrong.
    #[pyo3(signature = (path, schema, values=None, /, **fields))]
    fn create(
        &self,
        py: Python<'_>,
        path: &str,
        schema: &str,
        values: Option<Bound<'_, PyDict>>,
        fields: Option<Bound<'_, PyDict>>,
    ) -> PyResult<SharedObject> {
        let schema = Schema::parse(schema).map_err(errors::schema)?;
        let fields = field::read(&schema, values.as_ref(), fields.as_ref())?;
        let object =
            self.with(py, |world| world.create(path, &schema, &field::borrowed(&fields)))?;
        Ok(SharedObject::new(object.map_err(errors::object)?, Arc::new(schema)))
    }

    /// Changes what this participant receives; `None` ends it.
    ///
    /// Raises `WorldError` for a value out of range.
    fn observe(&self, py: Python<'_>, interest: Option<&Bound<'_, Interest>>) -> PyResult<()> {
        let interest = interest.map(|interest| interest.get().0.clone());
        self.with(py, |world| world.observe(interest))?.map_err(errors::world)
    }

    /// Sets the position, the velocity per second and the direction of view of this participant.
    /// Without a direction it sees in all directions.
    #[pyo3(signature = (position, velocity=None, direction=None))]
    fn look(
        &self,
        py: Python<'_>,
        position: &Bound<'_, PyAny>,
        velocity: Option<&Bound<'_, PyAny>>,
        direction: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let position = field::vector("position", position)?;
        let velocity = velocity.map(|vector| field::vector("velocity", vector)).transpose()?;
        let direction = direction.map(|vector| field::vector("direction", vector)).transpose()?;
        self.with(py, |world| world.look(position, velocity.unwrap_or_default(), direction))
    }

    /// Returns the present state of all objects, own ones first.
    fn objects(&self, py: Python<'_>) -> PyResult<Vec<ObjectView>> {
        let views = self.with(py, SharedWorld::objects)?;
        Ok(views.into_iter().map(ObjectView).collect())
    }

    /// Returns the present state of one object; `None` if it is not known.
    fn object(&self, py: Python<'_>, path: &str) -> PyResult<Option<ObjectView>> {
        Ok(self.with(py, |world| world.object(path))?.map(ObjectView))
    }

    /// Waits for the next event and returns it. Raises `Timeout` after `timeout_s` seconds; `None`,
    /// the default, waits without limit. Raises `ClosedError` once the world is closed.
    #[pyo3(signature = (timeout_s=None))]
    fn event(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<WorldEvent> {
        self.wait(py, wait::end_of(timeout_s)?)?.ok_or_else(errors::no_event)
    }

    /// Returns the next event, or `None` if there is none.
    fn try_event(&self, py: Python<'_>) -> PyResult<Option<WorldEvent>> {
        let shared = self.shared()?;
        let found = py.detach(|| shared.try_event());
        found.map(|found| event(py, &found, shared)).transpose()
    }

    /// Returns the answers to the requested contract since the last call, oldest first: `Grant`,
    /// `ServiceRefused`, `EndsTooSlow` or `Withdrawn`.
    fn services<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let answers: Vec<_> =
            self.with(py, |world| std::iter::from_fn(|| world.try_service()).collect())?;
        answers.into_iter().filter_map(|answer| event::service(py, answer)).collect()
    }

    /// Returns what this participant knows of the others, and counts.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report::of(py, &self.with(py, SharedWorld::report)?)
    }

    /// Decides by a `Decider` about the exchanges of own objects; `None` decides by the rules of
    /// observers again. Called by `paceline.world.decide`.
    #[pyo3(signature = (decider, workers=1, order="edf"))]
    fn decide_by(
        &self,
        py: Python<'_>,
        decider: Option<&Bound<'_, Decider>>,
        workers: usize,
        order: &str,
    ) -> PyResult<()> {
        let Some(decider) = decider else {
            return self.with(py, SharedWorld::decide_by_observers);
        };
        let Some(order) = RunOrder::named(order) else {
            return Err(errors::value(format!("order={order:?}: must be \"edf\" or \"rm\"")));
        };
        let workers = DecisionWorkers::new(workers, order);
        let workers = workers.map_err(|error| errors::value(error.to_string()))?;
        let function = decider.get().function()?;
        let started = self.with(py, |world| world.decide_on(workers, function))?;
        started.map_err(errors::world)
    }

    /// Decides by a function about the exchanges of own objects with all observers, instead of by
    /// their rules; `None` returns to these.
    ///
    /// `function` receives a `PairView` and returns an `ExchangeTerms`, or `None` without interest. It
    /// runs on a thread of Python. After an exception, terms out of range, or more than 50 ms for the
    /// objects of an observer, it is disabled for that observer, and an event gives the reason.
    ///
    /// Several `workers` call it at once, each for the objects of one observer; `order` is `"edf"`
    /// (earliest deadline first) or `"rm"` (rate-monotonic).
    #[pyo3(signature = (function, *, workers=1, order="edf"))]
    fn decide(
        slf: Bound<'_, Self>,
        function: &Bound<'_, PyAny>,
        workers: usize,
        order: &str,
    ) -> PyResult<()> {
        let module = slf.py().import("paceline.world")?;
        module.call_method1("decide", (slf, function, workers, order))?;
        Ok(())
    }

    /// True once the world was closed.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }

    /// Leaves the world: the objects of this participant end for all others.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| {
            if let Some(world) = &open {
                world.decide_by_observers();
            }
            drop(open);
        });
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Returns the next event, and ends the iteration once the world is closed.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<WorldEvent>> {
        match self.wait(py, None) {
            Ok(found) => Ok(found),
            Err(error) if errors::is_closed(py, &error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __aiter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("paceline.aio")?.call_method1("events", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("World('{}', id={})", self.world, self.id)
    }
}

/// Converts a time in seconds.
fn from_s(name: &str, seconds: f64) -> PyResult<std::time::Duration> {
    if !(0.0..=1e6).contains(&seconds) {
        return Err(errors::value(format!(
            "{name}={seconds}: it must be from 0 to 1000000 seconds"
        )));
    }
    convert::from_ms(name, seconds * 1e3)
}
