//! Publishers.

use crate::feedback::Feedback;
use crate::life::Held;
use crate::loan::Loan;
use crate::status::PublisherStatus;
use crate::wait::{self, Look};
use crate::{convert, errors, event, payload};
use bytes::Bytes;
use paceline::{Encoding, Publisher as Inner, PublisherEvent, PutOptions, Timestamp};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait for the node's own counters.
const STATUS_WITHIN: Duration = Duration::from_secs(1);

/// After this many samples `put_many` lets other threads run.
const TURN: usize = 1_024;

/// Publishes samples on one tag. All threads may share it.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Publisher {
    inner: Held<Mutex<Option<Inner>>>,
    node: Held<paceline::Node>,
    id: paceline::status::PublisherId,
    tag: String,
}

/// The result of publishing one sample, as counted by this node.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct PutReport {
    /// The sequence number of the sample.
    seq: u64,
    /// The number of outputs that accepted the sample: streams, and groups of local subscribers
    /// that share a form.
    taken: u32,
    /// The number of outputs that dropped the sample. Each counts the drop by its reason.
    dropped: u32,
    /// The reason of the first of these drops, such as `"queue_full"`. None without a drop, and if the
    /// subscribers on this node dropped the sample, each for its own reason.
    reason: Option<&'static str>,
    /// True if the publisher was just declared. Its first samples are buffered until existing
    /// subscriptions are served.
    waits: bool,
}

impl From<paceline::PutReport> for PutReport {
    fn from(put: paceline::PutReport) -> Self {
        let paceline::PutReport { seq, taken, dropped, reason, waits } = put;
        Self { seq, taken, dropped, reason: reason.map(|reason| reason.name()), waits }
    }
}

#[pymethods]
impl PutReport {
    fn __repr__(&self) -> String {
        let Self { seq, taken, dropped, reason, waits } = self;
        let waits = if *waits { "True" } else { "False" };
        let reason = reason.map_or("None".to_owned(), |reason| format!("'{reason}'"));
        format!(
            "PutReport(seq={seq}, taken={taken}, dropped={dropped}, reason={reason}, waits={waits})"
        )
    }
}

impl Publisher {
    pub(crate) fn new(publisher: Inner, node: paceline::Node) -> Self {
        let (id, tag) = (publisher.id(), publisher.tag().to_string());
        Self { inner: Held::new(Mutex::new(Some(publisher))), node: Held::new(node), id, tag }
    }

    /// Locks the publisher. A thread that has this lock never waits for the interpreter's lock.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Inner>>> {
        Ok(self.inner.get()?.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Self::lock`], for callers without the interpreter's lock.
    fn lock_detached(&self) -> PyResult<MutexGuard<'_, Option<Inner>>> {
        Ok(self.inner.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put_one(&self, py: Python<'_>, payload: Bytes, options: PutOptions) -> PyResult<PutReport> {
        let mut publisher = self.lock(py)?;
        let publisher = publisher.as_mut().ok_or_else(errors::closed)?;
        publisher.put_with(payload, options).map(Into::into).map_err(errors::publish)
    }

    /// Notified when a full stream has room again; `None` if no stream is full.
    pub(crate) fn room(&self, py: Python<'_>) -> PyResult<Option<paceline::Arrival>> {
        Ok(self.lock(py)?.as_mut().ok_or_else(errors::closed)?.room())
    }

    /// Waits until every stream has room. Returns false if `until` passed first.
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
    /// The id of the publisher.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// The tag on which it publishes.
    #[getter]
    fn tag(&self) -> &str {
        &self.tag
    }

    /// Publishes one sample and returns a `PutReport`.
    ///
    /// `payload` is `bytes`, a `Loan`, or any object with a buffer; `captured_ns` is in nanoseconds
    /// since 1970 UTC. The call never blocks by default. With `wait=True` it blocks until every
    /// stream has room, and from then on none of the publisher's samples expires.
    ///
    /// Raises `PublishError` if the payload is too large, and `ClosedError` after `close`.
    #[pyo3(signature = (payload, *, encoding=None, captured_ns=None, attachment=None, wait=false))]
    fn put(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        encoding: Option<&str>,
        captured_ns: Option<u64>,
        attachment: Option<&Bound<'_, PyBytes>>,
        wait: bool,
    ) -> PyResult<PutReport> {
        let payload = payload::bytes_of(payload)?;
        let options = PutOptions {
            encoding: encoding.map(Encoding::new),
            captured: captured_ns.map(|nanos| Timestamp { nanos, error: Timestamp::UNKNOWN_ERROR }),
            attachment: attachment.map(|bytes| bytes.as_bytes().into()),
        };
        if wait {
            self.wait_for_room(py, None)?;
        }
        self.put_one(py, payload, options)
    }

    /// Publishes one sample from asynchronous code, as `put` with `wait=True`. Other tasks run
    /// until every stream has room; no thread blocks.
    #[pyo3(signature = (payload, *, encoding=None, captured_ns=None, attachment=None))]
    fn put_async<'py>(
        slf: Bound<'py, Self>,
        payload: Bound<'py, PyAny>,
        encoding: Option<&str>,
        captured_ns: Option<u64>,
        attachment: Option<Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let options = PyDict::new(py);
        options.set_item("encoding", encoding)?;
        options.set_item("captured_ns", captured_ns)?;
        options.set_item("attachment", attachment)?;
        py.import("paceline.aio")?.getattr("put")?.call((slf, payload), Some(&options))
    }

    /// Publishes each payload of an iterable as one sample, in order.
    ///
    /// Returns one `PutReport` with the last sequence number and the sums of `taken` and `dropped`. With
    /// `wait=True` it blocks before each sample until every stream has room.
    #[pyo3(signature = (payloads, *, wait=false))]
    fn put_many(
        &self,
        py: Python<'_>,
        payloads: &Bound<'_, PyAny>,
        wait: bool,
    ) -> PyResult<PutReport> {
        let mut sum = PutReport { seq: 0, taken: 0, dropped: 0, reason: None, waits: false };
        for (number, payload) in payloads.try_iter()?.enumerate() {
            if number % TURN == TURN - 1 {
                // Other threads run here, and Ctrl-C is handled.
                py.detach(std::thread::yield_now);
                py.check_signals()?;
            }
            let payload = payload::bytes_of(&payload?)?;
            if wait && self.lock(py)?.as_mut().ok_or_else(errors::closed)?.room().is_some() {
                self.wait_for_room(py, None)?;
            }
            let put = self.put_one(py, payload, PutOptions::default())?;
            sum.seq = put.seq;
            sum.taken = sum.taken.saturating_add(put.taken);
            sum.dropped = sum.dropped.saturating_add(put.dropped);
            sum.reason = sum.reason.or(put.reason);
            sum.waits |= put.waits;
        }
        Ok(sum)
    }

    /// Returns zeroed memory for one sample: fill it in place, then pass it to `put`.
    ///
    /// `shape` is a length or a tuple of lengths. `dtype` is any numpy element type except objects,
    /// and defaults to bytes.
    #[pyo3(signature = (shape, dtype=None), text_signature = "($self, shape, dtype='uint8')")]
    fn loan(
        &self,
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Loan> {
        Loan::new(py, shape, dtype)
    }

    /// Blocks until every stream has room for a sample. Returns false if `timeout_s` passed first;
    /// `None` waits without limit.
    #[pyo3(signature = (timeout_s=None))]
    fn wait_room(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        self.wait_for_room(py, wait::end_of(timeout_s)?)
    }

    /// True if any subscription, on any node, matches the tag.
    #[getter]
    fn matching(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.as_ref().ok_or_else(errors::closed)?.matching())
    }

    /// Blocks until any subscription matches the tag. Returns false if `timeout_s` passed first;
    /// `None` waits without limit.
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

    /// Returns the node's counters of this publisher.
    fn status(&self, py: Python<'_>) -> PyResult<PublisherStatus> {
        let node = self.node.get()?;
        let told = py.detach(|| node.status_of(&[node.id()], STATUS_WITHIN));
        let rows = told.into_iter().flat_map(|node| node.publishers);
        let row = rows.into_iter().find(|row| row.id == self.id);
        row.map(PublisherStatus).ok_or_else(errors::closed)
    }

    /// Returns the events since the last call, oldest first.
    ///
    /// `Grant`, `Refusal` and `Withdrawn` report the contracts of subscriptions. `Excess` counts the
    /// samples beyond the declared rate or size.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let told: Vec<PublisherEvent> = {
            let publisher = self.lock(py)?;
            let publisher = publisher.as_ref().ok_or_else(errors::closed)?;
            std::iter::from_fn(|| publisher.try_event()).collect()
        };
        told.into_iter().map(|told| event::of_publisher(py, told)).collect()
    }

    /// Returns the request, the contract and the measurements of every subscription.
    ///
    /// Asks the nodes of the subscriptions and waits at most `timeout_s` seconds, 0.5 by default. A
    /// node that does not answer in time leaves `measured` empty.
    #[pyo3(signature = (timeout_s=0.5))]
    fn feedback(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Vec<Feedback>> {
        let timeout = convert::from_ms("timeout_s", timeout_s * 1e3)?;
        let node = self.node.get()?;
        let told = py.detach(|| node.feedback(self.id, timeout));
        Ok(told.into_iter().map(Feedback).collect())
    }

    /// The number of samples and bytes in the history, as a dict; `None` without a history.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let publisher = self.lock(py)?;
        let Some(buffer) = publisher.as_ref().and_then(Inner::buffer) else { return Ok(None) };
        let held = PyDict::new(py);
        held.set_item("samples", buffer.len())?;
        held.set_item("bytes", buffer.bytes())?;
        Ok(Some(held))
    }

    /// Ends the publisher after sending its queued samples.
    ///
    /// Waits at most `timeout_s` seconds, 5 by default. Returns false if a sample was left unsent.
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
