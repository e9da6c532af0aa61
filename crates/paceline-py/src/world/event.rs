//! Events of a world, and answers to its contracts.

use super::interest::Interest;
use super::object::SharedObject;
use crate::event::Withdrawn;
use crate::grant::Grant;
use crate::refusal::Refusal;
use paceline::contract::Refusal as Refused;
use paceline::world::{
    ObjectIndex, ReplicaEvent, ServiceEvent, ServiceOffer, SharedWorld, WorldEvent as Told,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// A change in a world.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct WorldEvent {
    /// What happened: `joined`, `left`, `created`, `changed`, `deleted`, `withdrawn`,
    /// `owner_changed`, `lost`, `adopted`, `yielded`, `kept` or `disabled`.
    kind: &'static str,
    /// The path of the object; `None` for an event of a participant.
    path: Option<String>,
    /// The id of the participant: who joined or left, the new owner, or the observer.
    peer: Option<String>,
    /// The name of a participant who joined or left, and the reason of `disabled`.
    text: Option<String>,
    /// The object that was handed over to this participant, for `adopted`.
    object: Option<Py<SharedObject>>,
}

impl WorldEvent {
    pub(super) fn new(py: Python<'_>, event: &Told, world: &SharedWorld) -> PyResult<Self> {
        let path_of =
            |index: ObjectIndex| py.detach(|| world.owned(index)).map(|it| it.path().to_owned());
        let of = |kind, path: Option<String>, peer: Option<String>, text: Option<String>| Self {
            kind,
            path,
            peer,
            text,
            object: None,
        };
        let object = |kind, path: &str| of(kind, Some(path.to_owned()), None, None);
        Ok(match event {
            Told::Joined(peer, name) => {
                of("joined", None, Some(peer.to_string()), Some(name.clone()))
            }
            Told::Left(peer, name) => of("left", None, Some(peer.to_string()), Some(name.clone())),
            Told::Replica(ReplicaEvent::Created(path)) => object("created", path),
            Told::Replica(ReplicaEvent::Changed(path, _)) => object("changed", path),
            Told::Replica(ReplicaEvent::Deleted(path)) => object("deleted", path),
            Told::Replica(ReplicaEvent::Withdrawn(path)) => object("withdrawn", path),
            Told::Replica(ReplicaEvent::Lost(path)) => object("lost", path),
            Told::Replica(ReplicaEvent::OwnerChanged(path, owner)) => {
                of("owner_changed", Some(path.to_string()), Some(owner.to_string()), None)
            }
            Told::Adopted(index, path) => {
                let adopted = py.detach(|| {
                    let schema = world.object(path).and_then(|view| view.schema);
                    world.owned(*index).zip(schema)
                });
                let adopted = adopted.map(|(object, schema)| SharedObject::new(object, schema));
                let adopted = adopted.map(|object| Py::new(py, object)).transpose()?;
                Self { object: adopted, ..object("adopted", path) }
            }
            Told::Yielded(_, claim) => {
                of("yielded", Some(claim.path.clone()), Some(claim.owner.to_string()), None)
            }
            Told::Kept(index, peer) => of("kept", path_of(*index), Some(peer.to_string()), None),
            Told::Disabled(peer, error) => {
                of("disabled", None, Some(peer.to_string()), Some(error.to_string()))
            }
        })
    }
}

#[pymethods]
impl WorldEvent {
    fn __repr__(&self) -> String {
        let parts = [&self.path, &self.peer, &self.text].into_iter().flatten();
        let parts: Vec<_> = parts.map(|part| format!(", '{part}'")).collect();
        format!("WorldEvent('{}'{})", self.kind, parts.concat())
    }
}

/// An answer to the contract of an interest: a link cannot keep it for one owner, whose updates are
/// best effort.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct ServiceRefused {
    refusal: Refused,
    offer: ServiceOffer,
}

#[pymethods]
impl ServiceRefused {
    /// The refusal, with the node and the link.
    #[getter]
    fn refusal(&self) -> Refusal {
        Refusal(self.refusal.clone())
    }

    /// The arguments of `Interest.with_contract` that every node of the path would grant instead: each
    /// by itself, unless `together` is true.
    #[getter]
    fn offer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let ServiceOffer { max_updates, fidelity_permille, delay, .. } = self.offer;
        if let Some(updates) = max_updates {
            dict.set_item("max_updates", updates)?;
        }
        if let Some(fidelity) = fidelity_permille {
            dict.set_item("fidelity", f64::from(fidelity) / 1e3)?;
        }
        if let Some(delay) = delay {
            dict.set_item("delay_s", delay.as_secs_f64())?;
        }
        Ok(dict)
    }

    /// True if the offered values suffice only together.
    #[getter]
    fn together(&self) -> bool {
        self.offer.together
    }

    /// Returns the interest with an offered contract: all values if they suffice only together, else
    /// one of the number of updates, the delay and the fidelity. `None` if nothing is offered, or if the
    /// interest has no contract.
    fn apply(&self, interest: &Interest) -> Option<Interest> {
        let contract = self.offer.apply(&interest.0.contract?)?;
        Some(Interest(paceline::world::Interest { contract: Some(contract), ..interest.0.clone() }))
    }

    fn __str__(&self) -> String {
        self.refusal.to_string()
    }

    fn __repr__(&self) -> String {
        format!("ServiceRefused('{}')", self.refusal)
    }
}

/// An answer to the contract of an interest: the ends need so much of the delay that the links to an owner
/// cannot keep the rest. A granted contract stays in force, but its updates may be later; without one they
/// are best effort.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct EndsTooSlow {
    /// The id of the owner.
    owner: String,
    /// The time that is debited for the modules at both ends.
    ends_s: f64,
    /// The least delay that leaves enough time for the links.
    delay_s: f64,
}

#[pymethods]
impl EndsTooSlow {
    fn __repr__(&self) -> String {
        format!("EndsTooSlow(owner='{}', delay_s={})", self.owner, self.delay_s)
    }
}

/// Converts an answer.
pub(super) fn service(py: Python<'_>, event: ServiceEvent) -> Option<PyResult<Bound<'_, PyAny>>> {
    match event {
        ServiceEvent::Granted(grant) => Some(Bound::new(py, Grant(grant)).map(Bound::into_any)),
        ServiceEvent::Refused(refusal, offer) => {
            Some(Bound::new(py, ServiceRefused { refusal, offer }).map(Bound::into_any))
        }
        ServiceEvent::EndsTooSlow(owner, parts, delay) => {
            let slow = EndsTooSlow {
                owner: owner.to_string(),
                ends_s: Duration::from(parts.ends()).as_secs_f64(),
                delay_s: delay.as_secs_f64(),
            };
            Some(Bound::new(py, slow).map(Bound::into_any))
        }
        ServiceEvent::Withdrawn(publisher) => {
            let withdrawn = Withdrawn::of(publisher.to_string());
            Some(Bound::new(py, withdrawn).map(Bound::into_any))
        }
        _ => None,
    }
}
