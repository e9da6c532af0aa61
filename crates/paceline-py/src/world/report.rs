//! The report of a world.

use paceline::world::{
    DecisionWorkers, DelayParts, ExchangeCounters, ParticipantReport, SuppressReason, WorldReport,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

fn parts<'py>(py: Python<'py>, parts: DelayParts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let DelayParts { deciding, fragmenting, sending, observer } = parts;
    for (name, part) in [
        ("deciding_s", deciding),
        ("fragmenting_s", fragmenting),
        ("sending_s", sending),
        ("observer_s", observer),
    ] {
        dict.set_item(name, Duration::from(part).as_secs_f64())?;
    }
    Ok(dict)
}

fn counters<'py>(py: Python<'py>, counters: &ExchangeCounters) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in [
        ("offered", counters.offered),
        ("carried", counters.carried),
        ("lost", counters.lost),
        ("refreshed", counters.refreshed),
        ("messages", counters.messages),
        ("bytes", counters.bytes),
        ("promised", counters.promised),
        ("best_effort", counters.best_effort),
        ("evaluated", counters.evaluated),
    ] {
        dict.set_item(name, count)?;
    }
    let suppressed = PyDict::new(py);
    for reason in SuppressReason::ALL {
        suppressed.set_item(reason.name(), counters.suppressed(reason))?;
    }
    dict.set_item("suppressed", suppressed)?;
    Ok(dict)
}

fn participant<'py>(py: Python<'py>, other: &ParticipantReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("id", other.id.to_string())?;
    dict.set_item("name", &other.name)?;
    dict.set_item("as_owner", other.as_owner.map(|known| parts(py, known)).transpose()?)?;
    let observer = other.as_observer.as_ref().map(|observer| {
        let dict = parts(py, observer.parts)?;
        dict.set_item("exchanges", counters(py, &observer.exchanges)?)?;
        dict.set_item("disabled", observer.disabled.as_ref().map(ToString::to_string))?;
        Ok::<_, PyErr>(dict)
    });
    dict.set_item("as_observer", observer.transpose()?)?;
    let workers = other.workers.map(|DecisionWorkers { count, order }| {
        let dict = PyDict::new(py);
        dict.set_item("count", count)?;
        dict.set_item("order", order.name())?;
        Ok::<_, PyErr>(dict)
    });
    dict.set_item("workers", workers.transpose()?)?;
    Ok(dict)
}

/// Returns a report as nested dicts.
pub(super) fn of<'py>(py: Python<'py>, report: &WorldReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("world", &report.world)?;
    dict.set_item("id", report.id.to_string())?;
    dict.set_item("name", &report.name)?;
    dict.set_item("owned", report.owned)?;
    dict.set_item("replicas", report.replicas)?;
    let participants = report.participants.iter().map(|other| participant(py, other));
    dict.set_item("participants", participants.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("exchanges", counters(py, &report.exchanges)?)?;
    let applied = [
        ("old", report.applied.old),
        ("wrong", report.applied.wrong),
        ("unknown", report.applied.unknown),
        ("too_many", report.applied.too_many),
        ("over_share", report.applied.over_share),
    ];
    let packets = [
        ("wrong", report.packets.wrong),
        ("twice", report.packets.twice),
        ("own", report.packets.own),
        ("too_many", report.packets.too_many),
        ("hands_refused", report.packets.hands_refused),
    ];
    for (name, counts) in [("applied", applied), ("packets", packets)] {
        let inner = PyDict::new(py);
        for (name, count) in counts {
            inner.set_item(name, count)?;
        }
        dict.set_item(name, inner)?;
    }
    // Why packets and events were not used.
    let dropped = PyDict::new(py);
    for (reason, count) in [
        ("inbox_full", report.packets_dropped),
        ("forged", report.packets_forged),
        ("events_full", report.events_dropped),
    ] {
        dropped.set_item(reason, count)?;
    }
    dict.set_item("dropped", dropped)?;
    Ok(dict)
}
