//! Objects of a world.

use super::interest::permille;
use super::{field, from_s};
use crate::errors;
use crate::life::Held;
use paceline::world::{ObjectView as View, Schema, SharedObject as Inner, UpdateConstraints};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// An object of this participant. It stays in the world when this is dropped.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct SharedObject {
    object: Held<Inner>,
    path: String,
    schema: Arc<Schema>,
}

impl SharedObject {
    pub(super) fn new(object: Inner, schema: Arc<Schema>) -> Self {
        Self { path: object.path().to_owned(), object: Held::new(object), schema }
    }
}

#[pymethods]
impl SharedObject {
    /// The path in the world.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The schema, as text.
    #[getter]
    fn schema(&self) -> String {
        self.schema.to_string()
    }

    /// Sets fields, given as keyword arguments or as a dict. Observers receive them when their
    /// interest demands it. After an error nothing is changed.
    ///
    /// Raises `WorldError` if the object was deleted or handed over.
    #[pyo3(signature = (values=None, /, **fields))]
    fn set(
        &self,
        py: Python<'_>,
        values: Option<Bound<'_, PyDict>>,
        fields: Option<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let fields = field::read(&self.schema, values.as_ref(), fields.as_ref())?;
        let object = self.object.get()?;
        let set = py.detach(|| object.set(&field::borrowed(&fields)));
        set.map(|_| ()).map_err(errors::object)
    }

    /// Sets fields, given as a dict, with constraints of this change: the least share of the object that
    /// the update carries, and the seconds in which it must leave. A later one is dropped, and the next
    /// change or refresh carries the state.
    ///
    /// Raises `WorldError` if the object was deleted or handed over, or for a constraint out of range.
    #[pyo3(signature = (values, /, *, fidelity=None, within_s=None))]
    fn set_with(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyDict>,
        fidelity: Option<f64>,
        within_s: Option<f64>,
    ) -> PyResult<()> {
        let fields = field::read(&self.schema, Some(values), None)?;
        let fidelity = fidelity.map(|share| permille("fidelity", share)).transpose()?;
        let within = within_s.map(|within| from_s("within_s", within)).transpose()?;
        let constraints =
            UpdateConstraints { fidelity_permille: fidelity, within: within.map(Into::into) };
        let object = self.object.get()?;
        let set = py.detach(|| object.set_with(&field::borrowed(&fields), constraints));
        set.map(|_| ()).map_err(errors::object)
    }

    /// Deletes the object; its replicas end. Raises `WorldError` if it was deleted or handed over.
    fn delete(&self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.get()?;
        py.detach(|| object.delete()).map_err(errors::object)
    }

    /// Hands the object over to the participant with the id `to`. It cannot be set meanwhile; an
    /// event `yielded` or, after 5 s, `kept` reports the end.
    ///
    /// Raises `WorldError` if it is not owned, or if there is no such participant.
    fn hand_over(&self, py: Python<'_>, to: &str) -> PyResult<()> {
        let to = super::peer(to)?;
        let object = self.object.get()?;
        py.detach(|| object.hand_over(to)).map_err(errors::object)
    }

    fn __repr__(&self) -> String {
        format!("SharedObject('{}')", self.path)
    }
}

/// The state of an object at one time: of this participant, or a replica.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct ObjectView(pub(super) View);

#[pymethods]
impl ObjectView {
    /// The path in the world.
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    /// The name of its owner, or its id while the name is not known.
    #[getter]
    fn owner(&self) -> &str {
        &self.0.owner
    }

    /// The id of its owner.
    #[getter]
    fn owner_id(&self) -> String {
        self.0.owner_id.to_string()
    }

    /// True if this participant owns it.
    #[getter]
    const fn owned(&self) -> bool {
        self.0.owned
    }

    /// The schema as text; `None` until the description of the owner has arrived.
    #[getter]
    fn schema(&self) -> Option<String> {
        self.0.schema.as_ref().map(ToString::to_string)
    }

    /// The values of the fields that have arrived.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        field::dict(py, self.0.fields())
    }

    /// The position, extrapolated with the last velocity; `None` for an object without one.
    #[getter]
    fn position(&self) -> Option<(f64, f64, f64)> {
        self.0.position.map(|[x, y, z]| (x, y, z))
    }

    /// The maximum age of the state, in seconds. 0 for an own object.
    #[getter]
    const fn age_s(&self) -> f64 {
        self.0.age.as_secs_f64()
    }

    /// The number of updates that were received.
    #[getter]
    const fn updates(&self) -> u64 {
        self.0.updates
    }

    fn __repr__(&self) -> String {
        format!("ObjectView('{}' of '{}', age_s={:.3})", self.0.path, self.0.owner, self.age_s())
    }
}
