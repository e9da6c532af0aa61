//! What a subscriber is told beside samples.

use crate::convert::to_ms;
use crate::grant::Grant;
use crate::refusal::Refusal;
use paceline::{PublisherEvent, PublisherId, SubscriberEvent, Unpromised as Why};
use pyo3::prelude::*;

/// The publishers that a subscriber hears now.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Heard {
    publishers: Vec<String>,
}

#[pymethods]
impl Heard {
    fn __repr__(&self) -> String {
        format!("Heard({:?})", self.publishers)
    }
}

/// A subscriber asks for something else from now on, because its program or somebody at another node wanted that.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Changed {
    /// The rate and size, in words.
    form: String,
    within_ms: Option<f64>,
    loss: Option<(u32, u32)>,
    /// The number of the request: its answers have the same.
    revision: u64,
}

#[pymethods]
impl Changed {
    fn __repr__(&self) -> String {
        format!("Changed('{}')", self.form)
    }
}

/// A change was refused: the subscriber asks for what it asked before, which stayed in force all the time.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct ChangeRefused {
    refusals: Vec<paceline::Refusal>,
    /// The rate and size that it asks for again, in words.
    #[pyo3(get)]
    form: String,
    #[pyo3(get)]
    within_ms: Option<f64>,
    #[pyo3(get)]
    loss: Option<(u32, u32)>,
}

#[pymethods]
impl ChangeRefused {
    /// Why, for each publisher.
    #[getter]
    fn refusals(&self) -> Vec<Refusal> {
        self.refusals.iter().cloned().map(Refusal).collect()
    }

    fn __repr__(&self) -> String {
        format!("ChangeRefused('{}')", self.form)
    }

    fn __str__(&self) -> String {
        let why = self.refusals.first().map(ToString::to_string).unwrap_or_default();
        format!("the change was refused: {why}; it stays as it was: {}", self.form)
    }
}

/// How many samples of a publisher were more than was granted, so far.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Excess {
    /// Whose they are, of what a subscriber is told.
    publisher: Option<String>,
    /// The node of the path whose link counted them, of what a subscriber is told.
    node: Option<String>,
    /// They came too soon.
    early: u64,
    /// They were too long.
    long: u64,
}

#[pymethods]
impl Excess {
    fn __repr__(&self) -> String {
        match (&self.publisher, &self.node) {
            (Some(publisher), Some(node)) => {
                let Self { early, long, .. } = self;
                format!("Excess('{publisher}', node='{node}', early={early}, long={long})")
            }
            _ => format!("Excess(early={}, long={})", self.early, self.long),
        }
    }
}

/// What was granted or refused is so no longer, and nothing is promised now.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Over {
    /// The publisher, of what a subscriber is told; the subscription, of what a publisher is told.
    other: String,
}

#[pymethods]
impl Over {
    fn __repr__(&self) -> String {
        format!("Over('{}')", self.other)
    }
}

/// A publisher is heard without the promise that was asked for, as best effort.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Unpromised {
    publisher: String,
    /// Why, in a word.
    reason: &'static str,
    /// And in a sentence.
    text: String,
}

#[pymethods]
impl Unpromised {
    fn __repr__(&self) -> String {
        format!("Unpromised('{}', '{}')", self.publisher, self.reason)
    }

    fn __str__(&self) -> String {
        format!("nothing is promised of {}: {}", self.publisher, self.text)
    }
}

impl Unpromised {
    pub(crate) fn new(publisher: PublisherId, why: Why) -> Self {
        let reason = match why {
            Why::NoCapacity => "no_capacity",
            Why::RateUnknown => "rate_unknown",
            Why::SizeUnknown => "size_unknown",
            _ => "unknown",
        };
        Self { publisher: publisher.to_string(), reason, text: why.to_string() }
    }
}

fn over<'py>(py: Python<'py>, other: &impl ToString) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, Over { other: other.to_string() })?.into_any())
}

/// An event of a publisher, as Python sees it.
pub(crate) fn of_publisher(py: Python<'_>, event: PublisherEvent) -> PyResult<Bound<'_, PyAny>> {
    Ok(match event {
        PublisherEvent::Granted(grant) => Bound::new(py, Grant(grant))?.into_any(),
        PublisherEvent::Refused(refusal) => Bound::new(py, Refusal(refusal))?.into_any(),
        PublisherEvent::Over(subscription) => over(py, &subscription)?,
        PublisherEvent::Excess(told) => {
            let paceline::Excess { early, long } = told;
            Bound::new(py, Excess { publisher: None, node: None, early, long })?.into_any()
        }
    })
}

/// An event of a subscriber, as Python sees it.
pub(crate) fn of(py: Python<'_>, event: SubscriberEvent) -> PyResult<Bound<'_, PyAny>> {
    Ok(match event {
        SubscriberEvent::Publishers(ids) => {
            let publishers = ids.iter().map(ToString::to_string).collect();
            Bound::new(py, Heard { publishers })?.into_any()
        }
        SubscriberEvent::Refused(_, refusal) => Bound::new(py, Refusal(refusal))?.into_any(),
        SubscriberEvent::Granted(grant) => Bound::new(py, Grant(grant))?.into_any(),
        SubscriberEvent::Over(publisher) => over(py, &publisher)?,
        SubscriberEvent::Unpromised(publisher, why) => {
            Bound::new(py, Unpromised::new(publisher, why))?.into_any()
        }
        SubscriberEvent::Excess { publisher, node_name, excess, .. } => {
            let paceline::Excess { early, long } = excess;
            let (publisher, node) = (Some(publisher.to_string()), Some(node_name));
            Bound::new(py, Excess { publisher, node, early, long })?.into_any()
        }
        SubscriberEvent::ChangeRefused { refusals, form, within, loss } => {
            let refused = ChangeRefused {
                refusals,
                form: form.to_string(),
                within_ms: within.map(to_ms),
                loss: loss.map(|loss| (loss.x(), loss.y())),
            };
            Bound::new(py, refused)?.into_any()
        }
        SubscriberEvent::Changed { revision, form, within, loss } => {
            let changed = Changed {
                revision,
                form: form.to_string(),
                within_ms: within.map(to_ms),
                loss: loss.map(|loss| (loss.x(), loss.y())),
            };
            Bound::new(py, changed)?.into_any()
        }
    })
}
