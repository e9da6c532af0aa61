//! Maps errors to exceptions. The classes are written in Python (`python/paceline/errors.py`) so
//! that users can read them.

use crate::event::BestEffort;
use crate::refusal::Refusal;
use paceline::class::CapacityError;
use paceline::pull::PullError;
use paceline::world::{ObjectError, SchemaError, WorldError};
use paceline::{ChangeError, OpenError, PublishError, SubscribeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

const MODULE: &str = "paceline.errors";

/// Creates an exception of the named class, or returns Python's error if the class cannot be
/// imported or called.
macro_rules! raised {
    ($class:literal, $value:expr) => {
        Python::attach(|py| {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            match CLASS.import(py, MODULE, $class).and_then(|class| class.call1(($value,))) {
                Ok(value) => PyErr::from_value(value),
                Err(error) => error,
            }
        })
    };
}

pub(crate) fn closed() -> PyErr {
    raised!("ClosedError", "it was closed: open the node again, or declare it again")
}

/// Returns true for an error made by [`closed`].
pub(crate) fn is_closed(py: Python<'_>, error: &PyErr) -> bool {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, MODULE, "ClosedError").is_ok_and(|class| error.is_instance(py, class))
}

pub(crate) fn forked() -> PyErr {
    raised!(
        "ForkError",
        "the node was opened before this process was forked, and its threads are in the parent only: start processes \
         with multiprocessing's 'spawn' or 'forkserver', or open the first node after the fork"
    )
}

pub(crate) fn timeout() -> PyErr {
    raised!("Timeout", "no sample within the time given")
}

pub(crate) fn no_event() -> PyErr {
    raised!("Timeout", "no event within the time given")
}

pub(crate) fn world(error: WorldError) -> PyErr {
    raised!("WorldError", error.to_string())
}

pub(crate) fn schema(error: SchemaError) -> PyErr {
    raised!("WorldError", error.to_string())
}

pub(crate) fn object(error: ObjectError) -> PyErr {
    raised!("WorldError", error.to_string())
}

pub(crate) fn refused(refusal: Refusal) -> PyErr {
    raised!("Refused", refusal)
}

pub(crate) fn best_effort(best_effort: BestEffort) -> PyErr {
    raised!("Refused", best_effort)
}

pub(crate) fn value(text: String) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(text)
}

pub(crate) fn wrong_type(text: String) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(text)
}

pub(crate) fn open(error: OpenError) -> PyErr {
    raised!("OpenError", error.to_string())
}

/// The error of a server that cannot start.
pub(crate) fn serve(text: String) -> PyErr {
    raised!("OpenError", text)
}

pub(crate) fn publish(error: PublishError) -> PyErr {
    if matches!(error, PublishError::Closed) {
        return closed();
    }
    raised!("PublishError", error.to_string())
}

pub(crate) fn subscribe(error: SubscribeError) -> PyErr {
    if matches!(error, SubscribeError::Closed) {
        return closed();
    }
    raised!("SubscribeError", error.to_string())
}

pub(crate) fn change(error: ChangeError) -> PyErr {
    if let ChangeError::Wish(error) = error {
        return subscribe(error);
    }
    if matches!(error, ChangeError::Closed) {
        return closed();
    }
    raised!("ChangeError", error.to_string())
}

pub(crate) fn pull(error: PullError) -> PyErr {
    if matches!(error, PullError::Closed) {
        return closed();
    }
    if error.is_usage() {
        return value(error.to_string());
    }
    raised!("PullError", error.to_string())
}

pub(crate) fn capacity(error: CapacityError) -> PyErr {
    match error == CapacityError::Closed {
        true => closed(),
        false => value(error.to_string()),
    }
}
