//! Events of publishers and subscribers.

use crate::grant::Grant;
use crate::refusal::Refusal;
use crate::time::to_ms;
use paceline::contract::{BestEffort as Why, Cause, Warning};
use paceline::status::PublisherId;
use paceline::{PublisherEvent, SubscriberEvent};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::time::Duration;

/// Event: the set of publishers that the subscriber receives has changed.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Heard {
    /// The ids of the publishers that the subscriber receives now.
    publishers: Vec<String>,
}

#[pymethods]
impl Heard {
    fn __repr__(&self) -> String {
        format!("Heard({:?})", self.publishers)
    }
}

/// Event: the last command of a tag has reached the age limit, and its safe action has started.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Silent {
    /// The tag of the commands.
    tag: String,
    /// The id of the publisher of the last command.
    publisher: String,
    /// The sequence number of the last command.
    seq: u64,
}

#[pymethods]
impl Silent {
    fn __repr__(&self) -> String {
        format!("Silent('{}', seq={})", self.tag, self.seq)
    }
}

/// Event: a command was released after a silence: the safe action has ended.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Resumed {
    /// The tag of the commands.
    tag: String,
    /// The id of the publisher of the command.
    publisher: String,
    /// The sequence number of the command.
    seq: u64,
    /// The time since the safe action started, in milliseconds.
    silent_ms: f64,
}

#[pymethods]
impl Resumed {
    fn __repr__(&self) -> String {
        format!("Resumed('{}', seq={}, silent_ms={:.3})", self.tag, self.seq, self.silent_ms)
    }
}

/// Event: a granted stream has no spare although one was requested. The grant stays in force.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct NoSpare {
    refusal: paceline::contract::Refusal,
}

#[pymethods]
impl NoSpare {
    /// The id of the publisher.
    #[getter]
    fn publisher(&self) -> String {
        self.refusal.publisher.to_string()
    }

    /// The refusal of the second path.
    #[getter]
    fn refusal(&self) -> Refusal {
        Refusal(self.refusal.clone())
    }

    fn __repr__(&self) -> String {
        format!("NoSpare('{}')", self.refusal)
    }

    fn __str__(&self) -> String {
        self.refusal.to_string()
    }
}

/// Event: the request of the subscription has changed, by its own program or from another node.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Changed {
    /// The requested rate and size, as text.
    form: String,
    /// The requested delay bound in milliseconds; `None` without one.
    within_ms: Option<f64>,
    /// The requested loss tolerance (x, y): at most x of y samples may miss the deadline.
    loss: Option<(u32, u32)>,
    /// The number of the request. The `Grant` or `Refusal` that answers it carries the same number.
    revision: u64,
}

#[pymethods]
impl Changed {
    fn __repr__(&self) -> String {
        format!("Changed('{}')", self.form)
    }
}

/// Event: the nodes of the paths have reduced an elastic contract, or restored a part of it.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Adapted {
    /// The requested rate and size from now on, as text.
    form: String,
    /// The largest rate in hertz; `None` without one.
    max_hz: Option<f64>,
    /// The new step, from 0 for the most that the subscription requests.
    step: usize,
    /// The number of steps.
    steps: usize,
    /// The reason as a word: `refused` (a path refuses more), `important` (a more important contract needs the room) or
    /// `room` (the path carries more again).
    reason: &'static str,
    /// The step and the reason, as a sentence.
    text: String,
    /// The number of the request. The `Grant` or `Refusal` that answers it carries the same number.
    revision: u64,
}

#[pymethods]
impl Adapted {
    fn __repr__(&self) -> String {
        format!(
            "Adapted('{}', step={}, steps={}, reason='{}')",
            self.form, self.step, self.steps, self.reason
        )
    }

    fn __str__(&self) -> String {
        format!("{}: {}", self.form, self.text)
    }
}

/// Event: the measured capacity of a link falls, and will soon be too little for a granted contract.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Warned {
    /// The id of the publisher in a subscriber's event, of the subscription in a publisher's event.
    other: String,
    /// The time until then, in seconds.
    after_s: f64,
    /// The form that an elastic contract is expected to take, as text; `None` if the contract is expected to end.
    form: Option<String>,
    /// The forecast, as a sentence.
    text: String,
}

impl Warned {
    fn of<'py>(
        py: Python<'py>,
        other: &impl ToString,
        warning: &Warning,
    ) -> PyResult<Bound<'py, PyAny>> {
        let warned = Self {
            other: other.to_string(),
            after_s: Duration::from(warning.after).as_secs_f64(),
            form: warning.form.map(|form| form.to_string()),
            text: warning.to_string(),
        };
        Ok(Bound::new(py, warned)?.into_any())
    }
}

#[pymethods]
impl Warned {
    fn __repr__(&self) -> String {
        format!("Warned('{}', after_s={:.1}, form={:?})", self.other, self.after_s, self.form)
    }

    fn __str__(&self) -> String {
        self.text.clone()
    }
}

/// Event: a change was refused. The previous request stayed in force throughout.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct ChangeRefused {
    refusals: Vec<paceline::contract::Refusal>,
    /// The rate and size in force, as text.
    #[pyo3(get)]
    form: String,
    /// The delay bound in force, in milliseconds; `None` without one.
    #[pyo3(get)]
    within_ms: Option<f64>,
    /// The loss tolerance (x, y) in force; `None` without one.
    #[pyo3(get)]
    loss: Option<(u32, u32)>,
}

#[pymethods]
impl ChangeRefused {
    /// The refusals, one for each publisher.
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

/// Event: samples exceeded the declared or granted traffic. The counts are totals since the start.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Excess {
    /// The publisher, in a subscriber's event; `None` in a publisher's own event.
    publisher: Option<String>,
    /// The node whose link counted them, in a subscriber's event; `None` in a publisher's own
    /// event.
    node: Option<String>,
    /// The number of samples that arrived sooner than the contract allows.
    early: u64,
    /// The number of samples that were longer than the contract allows.
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

/// Event: a grant or refusal no longer applies and no contract is in force. The path was lost, or
/// the contract is no longer requested.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct Withdrawn {
    /// The id of the publisher in a subscriber's event, of the subscription in a publisher's event.
    other: String,
}

impl Withdrawn {
    pub(crate) const fn of(other: String) -> Self {
        Self { other }
    }
}

#[pymethods]
impl Withdrawn {
    fn __repr__(&self) -> String {
        format!("Withdrawn('{}')", self.other)
    }
}

/// Event: a publisher is received as best effort although the subscription requests a contract.
#[pyclass(frozen, get_all, module = "paceline")]
pub(crate) struct BestEffort {
    /// The id of the publisher.
    publisher: String,
    /// The reason as a word: `no_capacity` (no link of the path has a capacity), `rate_unknown`,
    /// `size_unknown` (the publisher's first sample decides) or `idle` (nothing was published for the idle time).
    reason: &'static str,
    /// The reason as a sentence.
    text: String,
}

#[pymethods]
impl BestEffort {
    fn __repr__(&self) -> String {
        format!("BestEffort('{}', '{}')", self.publisher, self.reason)
    }

    fn __str__(&self) -> String {
        format!("nothing is promised of {}: {}", self.publisher, self.text)
    }
}

impl BestEffort {
    pub(crate) fn new(publisher: PublisherId, why: Why) -> Self {
        let reason = match why {
            Why::NoCapacity => "no_capacity",
            Why::RateUnknown => "rate_unknown",
            Why::SizeUnknown => "size_unknown",
            Why::Idle => "idle",
            Why::Refused => "refused",
            _ => "unknown",
        };
        Self { publisher: publisher.to_string(), reason, text: why.to_string() }
    }
}

fn over<'py>(py: Python<'py>, other: &impl ToString) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, Withdrawn { other: other.to_string() })?.into_any())
}

/// Converts an event of a publisher to its Python class.
pub(crate) fn of_publisher(py: Python<'_>, event: PublisherEvent) -> PyResult<Bound<'_, PyAny>> {
    Ok(match event {
        PublisherEvent::Granted(grant) => Bound::new(py, Grant(grant))?.into_any(),
        PublisherEvent::Refused(refusal) => Bound::new(py, Refusal(refusal))?.into_any(),
        PublisherEvent::Withdrawn(subscription) => over(py, &subscription)?,
        PublisherEvent::Warned(subscription, warning) => Warned::of(py, &subscription, &warning)?,
        PublisherEvent::Excess(told) => {
            let paceline::status::Excess { early, long } = told;
            Bound::new(py, Excess { publisher: None, node: None, early, long })?.into_any()
        }
        // An event of a later version.
        other => PyString::new(py, &format!("{other:?}")).into_any(),
    })
}

/// Converts an event of a subscriber to its Python class.
pub(crate) fn of(py: Python<'_>, event: SubscriberEvent) -> PyResult<Bound<'_, PyAny>> {
    Ok(match event {
        SubscriberEvent::Publishers(ids) => {
            let publishers = ids.iter().map(ToString::to_string).collect();
            Bound::new(py, Heard { publishers })?.into_any()
        }
        SubscriberEvent::Refused(_, refusal) => Bound::new(py, Refusal(refusal))?.into_any(),
        SubscriberEvent::Granted(grant) => Bound::new(py, Grant(grant))?.into_any(),
        SubscriberEvent::NoSpare(refusal) => Bound::new(py, NoSpare { refusal })?.into_any(),
        SubscriberEvent::Withdrawn(publisher) => over(py, &publisher)?,
        SubscriberEvent::Warned(publisher, warning) => Warned::of(py, &publisher, &warning)?,
        SubscriberEvent::BestEffort(publisher, why) => {
            Bound::new(py, BestEffort::new(publisher, why))?.into_any()
        }
        SubscriberEvent::Excess { publisher, node_name, excess, .. } => {
            let paceline::status::Excess { early, long } = excess;
            let (publisher, node) = (Some(publisher.to_string()), Some(node_name));
            Bound::new(py, Excess { publisher, node, early, long })?.into_any()
        }
        SubscriberEvent::Silent(silence) => {
            let (tag, publisher) = (silence.tag.to_string(), silence.publisher.to_string());
            Bound::new(py, Silent { tag, publisher, seq: silence.seq })?.into_any()
        }
        SubscriberEvent::Resumed(resumption) => {
            let resumed = Resumed {
                tag: resumption.tag.to_string(),
                publisher: resumption.publisher.to_string(),
                seq: resumption.seq,
                silent_ms: to_ms(resumption.silent),
            };
            Bound::new(py, resumed)?.into_any()
        }
        SubscriberEvent::Adapted { revision, form, adaptation, .. } => {
            let adapted = Adapted {
                form: form.to_string(),
                max_hz: form.rate.max_hz(),
                step: adaptation.step,
                steps: adaptation.steps,
                reason: match adaptation.cause {
                    Cause::Refused(_) => "refused",
                    Cause::MoreImportant { .. } => "important",
                    Cause::Room => "room",
                },
                text: adaptation.to_string(),
                revision,
            };
            Bound::new(py, adapted)?.into_any()
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
        // An event of a later version.
        other => PyString::new(py, &format!("{other:?}")).into_any(),
    })
}
