//! Subscribers.

use crate::event::{self, BestEffort};
use crate::life::Held;
use crate::refusal::Refusal;
use crate::sample::Sample;
use crate::status::SubscriptionStatus;
use crate::wait::{self, Look};
use crate::wish::Wish;
use crate::{convert, errors};
use paceline::{Subscriber as Inner, SubscriberEvent};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of unread events kept. Older ones are dropped.
const EVENTS_MAX: usize = 64;
/// The longest wait for the node's own counters.
const STATUS_WITHIN: Duration = Duration::from_secs(1);

/// The keywords that a running subscription accepts.
const CHANGEABLE: &[&str] = &[
    "every",
    "max_hz",
    "min_hz",
    "size",
    "or_sizes",
    "audio",
    "bitrate",
    "min_bitrate",
    "importance",
    "quality",
    "within_ms",
    "loss",
    "proxy",
    "retransmit",
    "reset",
    "or_stop",
];

/// Changes the request of a subscription. Keywords that are not given keep their value; `reset`
/// first clears all of them.
pub(crate) fn change(
    py: Python<'_>,
    node: &paceline::Node,
    id: paceline::status::SubscriptionId,
    asked: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let wish = Wish::read(asked)?;
    let reset = convert::option(asked, "reset", "True or False")? == Some(true);
    let or_stop = convert::option(asked, "or_stop", "True or False")? == Some(true);
    let change = || {
        node.change(id, |now| {
            let now = if reset { now.as_published() } else { now };
            wish.put(if or_stop { now.or_stop() } else { now })
        })
    };
    py.detach(change).map_err(errors::change)
}

/// Receives samples through a bounded queue. Iterate over it, or call `recv` or `take`; all threads
/// may share it.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Subscriber {
    open: Held<Mutex<Option<Open>>>,
    node: Held<paceline::Node>,
    id: paceline::status::SubscriptionId,
    require: bool,
}

struct Open {
    inner: Inner,
    events: VecDeque<SubscriberEvent>,
    /// The first negative answer received and not yet raised.
    no: Option<No>,
}

/// The result of one look at a subscriber.
enum Seen<T> {
    Found(Option<T>),
    Closed,
    Told(Box<No>),
}

/// A negative answer for a subscriber that requires a contract.
enum No {
    Refused(Box<paceline::contract::Refusal>),
    BestEffort(paceline::status::PublisherId, paceline::contract::BestEffort),
}

impl No {
    fn of(event: &SubscriberEvent) -> Option<Self> {
        match event {
            SubscriberEvent::Refused(_, refusal) => Some(Self::Refused(Box::new(refusal.clone()))),
            SubscriberEvent::BestEffort(publisher, why) if why.is_no() => {
                Some(Self::BestEffort(*publisher, *why))
            }
            SubscriberEvent::Publishers(_)
            | SubscriberEvent::Granted(_)
            | SubscriberEvent::NoSpare(_)
            | SubscriberEvent::Withdrawn(_)
            | SubscriberEvent::BestEffort(..)
            | SubscriberEvent::Excess { .. }
            | SubscriberEvent::Silent(_)
            | SubscriberEvent::Resumed(_)
            | SubscriberEvent::Adapted { .. }
            | SubscriberEvent::Warned(..)
            | SubscriberEvent::ChangeRefused { .. }
            | SubscriberEvent::Changed { .. } => None,
            // An event of a later version.
            _ => None,
        }
    }
}

impl Open {
    /// Moves the pending events into the buffer.
    fn hear(&mut self) {
        while let Some(event) = self.inner.try_event() {
            self.no = self.no.take().or_else(|| No::of(&event));
            if self.events.len() >= EVENTS_MAX {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }
}

impl Subscriber {
    pub(crate) fn new(inner: Inner, node: paceline::Node, require: bool) -> Self {
        let id = inner.id();
        let open = Open { inner, events: VecDeque::new(), no: None };
        Self { open: Held::new(Mutex::new(Some(open))), node: Held::new(node), id, require }
    }

    /// Runs `see` on the subscriber under its lock. Every caller keeps the lock only briefly, so
    /// waiting for it does not count as blocking. `see` must not take the interpreter's lock, as
    /// creating an error does: a thread that waits for this lock may own it.
    fn with<T>(&self, see: impl FnOnce(&mut Open) -> T) -> PyResult<T> {
        let seen = {
            let mut open = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner);
            open.as_mut().map(see)
        };
        seen.ok_or_else(errors::closed)
    }

    /// Returns the result of `take`. Errors if the subscription has ended, or if a required
    /// contract was refused.
    fn look<T>(&self, take: impl FnOnce(&mut Inner) -> Option<T>) -> PyResult<Option<T>> {
        let seen = self.with(|open| {
            if self.require {
                open.hear();
                if let Some(no) = open.no.take() {
                    return Seen::Told(Box::new(no));
                }
            }
            // Checked before taking: samples that arrived before the end can still be read.
            let closed = open.inner.is_closed();
            match take(&mut open.inner) {
                None if closed => Seen::Closed,
                found => Seen::Found(found),
            }
        })?;
        match seen {
            Seen::Found(found) => Ok(found),
            Seen::Closed => Err(errors::closed()),
            Seen::Told(no) => Err(match *no {
                No::Refused(refusal) => errors::refused(Refusal(*refusal)),
                No::BestEffort(publisher, why) => {
                    errors::best_effort(BestEffort::new(publisher, why))
                }
            }),
        }
    }

    /// As [`Self::look`], but waits until `until`.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        until: Option<Instant>,
        take: impl Fn(&mut Inner) -> Option<T> + Send + Sync,
    ) -> PyResult<Option<T>> {
        if let Some(found) = self.look(&take)? {
            return Ok(Some(found));
        }
        wait::until(py, until, || {
            let arrival = self.arrival()?;
            Ok(self.look(&take)?.map_or(Look::Wait(arrival), Look::Here))
        })
    }

    /// Notified by the next sample or event, and by the end of the subscription.
    pub(crate) fn arrival(&self) -> PyResult<paceline::Arrival> {
        self.with(|open| open.inner.arrival())
    }
}

/// Returns up to `max` queued samples, or `None` if the queue is empty.
fn take(inner: &mut Inner, max: usize) -> Option<Vec<paceline::Sample>> {
    let found: Vec<paceline::Sample> = std::iter::from_fn(|| inner.try_recv()).take(max).collect();
    Some(found).filter(|found| !found.is_empty())
}

#[pymethods]
impl Subscriber {
    /// The id of the subscription.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// Blocks until the next sample arrives and returns it.
    ///
    /// Raises `Timeout` after `timeout_s` seconds; `None`, the default, waits without limit. Raises
    /// `ClosedError` once the subscription is closed and its queue is empty. Raises `Refused` on a
    /// refusal if the subscription was declared with `require=True`.
    #[pyo3(signature = (timeout_s=None))]
    fn recv(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Sample> {
        let found = self.wait(py, wait::end_of(timeout_s)?, Inner::try_recv)?;
        found.map(Sample).ok_or_else(errors::timeout)
    }

    /// Returns the next queued sample, or `None` if the queue is empty. Raises as `recv`, except
    /// `Timeout`.
    fn try_recv(&self) -> PyResult<Option<Sample>> {
        Ok(self.look(Inner::try_recv)?.map(Sample))
    }

    /// Blocks until a sample arrives and returns all queued samples, at most `max_samples`.
    ///
    /// `max_samples` defaults to 1024. Raises as `recv`.
    #[pyo3(signature = (max_samples=1024, *, timeout_s=None))]
    fn take(
        &self,
        py: Python<'_>,
        max_samples: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Vec<Sample>> {
        if max_samples == 0 {
            return Err(errors::value("max_samples=0: take at least 1".to_owned()));
        }
        let found = self.wait(py, wait::end_of(timeout_s)?, |inner| take(inner, max_samples))?;
        Ok(found.ok_or_else(errors::timeout)?.into_iter().map(Sample).collect())
    }

    /// Returns all queued samples without blocking, at most `max_samples`; an empty list if none is
    /// queued.
    #[pyo3(signature = (max_samples=1024))]
    fn try_take(&self, max_samples: usize) -> PyResult<Vec<Sample>> {
        let found = self.look(|inner| take(inner, max_samples))?;
        Ok(found.unwrap_or_default().into_iter().map(Sample).collect())
    }

    /// Returns the events since the last call, oldest first.
    ///
    /// Only the 64 newest unread events are kept.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let told: Vec<SubscriberEvent> = self.with(|open| {
            open.hear();
            open.events.drain(..).collect()
        })?;
        told.into_iter().map(|told| event::of(py, told)).collect()
    }

    /// Changes the request of the running subscription; samples continue to arrive.
    ///
    /// Arguments that are not given keep their value; `reset=True` first clears all of them. If the
    /// path refuses, the old request stays in force, or the stream ends with `or_stop=True`.
    ///
    /// Raises `ChangeError` if the subscription has ended, and `SubscribeError` for values out of
    /// range.
    #[pyo3(signature = (**asked), text_signature = "($self, *, every=None, max_hz=None, min_hz=None, size=None, or_sizes=None, audio=None, \
        bitrate=None, min_bitrate=None, importance=None, quality=None, within_ms=None, loss=None, proxy=None, retransmit=None, reset=False, or_stop=False)")]
    fn change(&self, py: Python<'_>, asked: Option<Bound<'_, PyDict>>) -> PyResult<()> {
        let asked = asked.unwrap_or_else(|| PyDict::new(py));
        convert::only(&asked, CHANGEABLE)?;
        change(py, self.node.get()?, self.id, &asked)
    }

    /// Returns the node's counters of this subscriber.
    fn status(&self, py: Python<'_>) -> PyResult<SubscriptionStatus> {
        let node = self.node.get()?;
        let told = py.detach(|| node.status_of(&[node.id()], STATUS_WITHIN));
        let mut rows = told.into_iter().flat_map(|node| node.subscriptions);
        let row = rows.find(|row| row.id == self.id);
        row.map(SubscriptionStatus).ok_or_else(errors::closed)
    }

    /// The number of samples dropped in this process, by reason.
    #[getter]
    fn dropped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        convert::drops(py, &self.with(|open| open.inner.drops())?)
    }

    /// The number of late samples that waited in this process.
    #[getter]
    fn overdue(&self) -> PyResult<u64> {
        self.with(|open| open.inner.overdue())
    }

    /// The number of samples published between the first and the newest delivered one of each publisher,
    /// and not delivered.
    #[getter]
    fn missing(&self) -> PyResult<u64> {
        self.with(|open| open.inner.missing())
    }

    /// True once the subscriber, or its node, was closed.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        let open = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(open.as_ref().is_none_or(|open| open.inner.is_closed()))
    }

    /// Ends the subscription. Blocked calls of other threads raise `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(open));
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

    /// Returns the next sample, and ends the iteration once the subscriber is closed.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        match self.wait(py, None, Inner::try_recv) {
            Ok(found) => Ok(found.map(Sample)),
            Err(error) if errors::is_closed(py, &error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __aiter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("paceline.aio")?.call_method1("samples", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("Subscriber(id={})", self.id)
    }
}
