//! A publisher.

use crate::feedback::Feedback;
use crate::life::Held;
use crate::loan::Loan;
use crate::status::PublisherStatus;
use crate::wait::{self, Look};
use crate::{convert, errors, event, payload};
use bytes::Bytes;
use paceline::{Beside, Encoding, Publisher as Inner, PublisherEvent, Timestamp};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a node may take to say what it counted itself.
const STATUS_WITHIN: Duration = Duration::from_secs(1);

/// Samples that are published before other threads have a turn.
const TURN: usize = 1_024;

/// Publishes samples on one tag.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Publisher {
    inner: Held<Mutex<Option<Inner>>>,
    node: Held<paceline::Node>,
    id: paceline::PublisherId,
    tag: String,
}

/// What became of one published sample on this node.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Put {
    seq: u64,
    taken: u32,
    dropped: u32,
    waits: bool,
}

impl From<paceline::Put> for Put {
    fn from(put: paceline::Put) -> Self {
        Self { seq: put.seq, taken: put.taken, dropped: put.dropped, waits: put.waits }
    }
}

#[pymethods]
impl Put {
    fn __repr__(&self) -> String {
        let Self { seq, taken, dropped, waits } = self;
        let waits = if *waits { "True" } else { "False" };
        format!("Put(seq={seq}, taken={taken}, dropped={dropped}, waits={waits})")
    }
}

impl Publisher {
    pub(crate) fn new(publisher: Inner, node: paceline::Node) -> Self {
        let (id, tag) = (publisher.id(), publisher.tag().to_string());
        Self { inner: Held::new(Mutex::new(Some(publisher))), node: Held::new(node), id, tag }
    }

    /// The publisher, for this thread alone. Who has it does not wait for the interpreter's lock.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Inner>>> {
        Ok(self.inner.get()?.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Self::lock`], without the interpreter's lock.
    fn lock_detached(&self) -> PyResult<MutexGuard<'_, Option<Inner>>> {
        Ok(self.inner.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put_one(&self, py: Python<'_>, payload: Bytes, beside: Beside) -> PyResult<Put> {
        let mut publisher = self.lock(py)?;
        let publisher = publisher.as_mut().ok_or_else(errors::closed)?;
        publisher.put_with(payload, beside).map(Into::into).map_err(errors::publish)
    }

    /// What tells of room in a stream that has none now.
    pub(crate) fn room(&self, py: Python<'_>) -> PyResult<Option<paceline::Arrival>> {
        Ok(self.lock(py)?.as_mut().ok_or_else(errors::closed)?.room())
    }

    /// Waits until every stream has room; false if `until` was first.
    fn wait_for_room(&self, py: Python<'_>, until: Option<std::time::Instant>) -> PyResult<bool> {
        let look = || {
            let mut publisher = self.lock_detached()?;
            let publisher = publisher.as_mut().ok_or_else(errors::closed)?;
            Ok(publisher.room().map_or(Look::Here(()), Look::Wait))
        };
        Ok(wait::until(py, until, look)?.is_some())
    }
}

#[pymethods]
impl Publisher {
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    #[getter]
    fn tag(&self) -> &str {
        &self.tag
    }

    /// Publishes one sample. With `wait` it waits first until every stream has room.
    #[pyo3(signature = (payload, *, encoding=None, captured_ns=None, attachment=None, wait=false))]
    fn put(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        encoding: Option<&str>,
        captured_ns: Option<u64>,
        attachment: Option<&Bound<'_, PyBytes>>,
        wait: bool,
    ) -> PyResult<Put> {
        let payload = payload::bytes_of(payload)?;
        let beside = Beside {
            encoding: encoding.map(Encoding::new),
            captured: captured_ns.map(|nanos| Timestamp { nanos, error: Timestamp::UNKNOWN_ERROR }),
            attachment: attachment.map(|bytes| bytes.as_bytes().into()),
        };
        if wait {
            self.wait_for_room(py, None)?;
        }
        self.put_one(py, payload, beside)
    }

    /// As `put` with `wait`, in asynchronous code: no thread waits.
    #[pyo3(signature = (payload, *, encoding=None, captured_ns=None, attachment=None))]
    fn put_async<'py>(
        slf: Bound<'py, Self>,
        payload: Bound<'py, PyAny>,
        encoding: Option<&str>,
        captured_ns: Option<u64>,
        attachment: Option<Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let beside = PyDict::new(py);
        beside.set_item("encoding", encoding)?;
        beside.set_item("captured_ns", captured_ns)?;
        beside.set_item("attachment", attachment)?;
        py.import("paceline.aio")?.getattr("put")?.call((slf, payload), Some(&beside))
    }

    /// Publishes one sample for each payload, in order; says how many outputs took and dropped in all. With `wait` it
    /// waits before each until every stream has room.
    #[pyo3(signature = (payloads, *, wait=false))]
    fn put_many(&self, py: Python<'_>, payloads: &Bound<'_, PyAny>, wait: bool) -> PyResult<Put> {
        let mut sum = Put { seq: 0, taken: 0, dropped: 0, waits: false };
        for (number, payload) in payloads.try_iter()?.enumerate() {
            if number % TURN == TURN - 1 {
                // Between turns other threads go on, and Ctrl-C is heard.
                py.detach(std::thread::yield_now);
                py.check_signals()?;
            }
            let payload = payload::bytes_of(&payload?)?;
            if wait && self.lock(py)?.as_mut().ok_or_else(errors::closed)?.room().is_some() {
                self.wait_for_room(py, None)?;
            }
            let put = self.put_one(py, payload, Beside::default())?;
            sum.seq = put.seq;
            sum.taken = sum.taken.saturating_add(put.taken);
            sum.dropped = sum.dropped.saturating_add(put.dropped);
            sum.waits |= put.waits;
        }
        Ok(sum)
    }

    /// Memory for one sample, to be filled and given to `put`.
    #[pyo3(signature = (shape, dtype=None), text_signature = "($self, shape, dtype='uint8')")]
    fn loan(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Loan> {
        Loan::new(py, shape, dtype)
    }

    /// Waits until every stream has room for a sample.
    #[pyo3(signature = (timeout_s=None))]
    fn wait_room(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        self.wait_for_room(py, wait::end_of(timeout_s)?)
    }

    /// True if anybody, anywhere, wants this tag now.
    #[getter]
    fn matching(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.as_ref().ok_or_else(errors::closed)?.matching())
    }

    /// Waits until anybody wants the tag; false if the time was over first.
    #[pyo3(signature = (timeout_s=None))]
    fn wait_matching(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        let look = || {
            let publisher = self.lock_detached()?;
            let publisher = publisher.as_ref().ok_or_else(errors::closed)?;
            let change = publisher.match_change();
            Ok(if publisher.matching() { Look::Here(()) } else { Look::Wait(change) })
        };
        Ok(wait::until(py, wait::end_of(timeout_s)?, look)?.is_some())
    }

    /// What its node has counted of it.
    fn status(&self, py: Python<'_>) -> PyResult<PublisherStatus> {
        let node = self.node.get()?;
        let told = py.detach(|| node.status_of(&[node.id()], STATUS_WITHIN));
        let rows = told.into_iter().flat_map(|node| node.publishers);
        let row = rows.into_iter().find(|row| row.id == self.id);
        row.map(PublisherStatus).ok_or_else(errors::closed)
    }

    /// What was told since this was last called: who was granted something, who refused, what is over.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let told: Vec<PublisherEvent> = {
            let publisher = self.lock(py)?;
            let publisher = publisher.as_ref().ok_or_else(errors::closed)?;
            std::iter::from_fn(|| publisher.try_event()).collect()
        };
        told.into_iter().map(|told| event::of_publisher(py, told)).collect()
    }

    /// Asks the nodes of its subscribers what they get; those that do not answer in time are listed without figures.
    #[pyo3(signature = (timeout_s=0.5))]
    fn feedback(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Vec<Feedback>> {
        let timeout = convert::from_ms("timeout_s", timeout_s * 1e3)?;
        let node = self.node.get()?;
        let told = py.detach(|| node.feedback(self.id, timeout));
        Ok(told.into_iter().map(Feedback).collect())
    }

    /// How many samples of the history are held, and their bytes; none without one.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let publisher = self.lock(py)?;
        let Some(buffer) = publisher.as_ref().and_then(Inner::buffer) else { return Ok(None) };
        let held = PyDict::new(py);
        held.set_item("samples", buffer.len())?;
        held.set_item("bytes", buffer.bytes())?;
        Ok(Some(held))
    }

    /// Ends it; waits until what it published was sent, at most `timeout_s`; false if something was not.
    #[pyo3(signature = (timeout_s=5.0))]
    fn close(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = convert::from_ms("timeout_s", timeout_s * 1e3)?;
        let Some(publisher) = self.lock(py)?.take() else { return Ok(true) };
        Ok(py.detach(|| publisher.close(timeout)))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py, 5.0).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("Publisher('{}', id={})", self.tag, self.id)
    }
}
