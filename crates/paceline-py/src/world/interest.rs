//! What an observer receives.

use super::from_s;
use crate::errors;
use paceline::world::{
    DeclaredRule, ErrorControl, ExchangeTerms as Terms, InteractorModules, Interest as Inner,
    InterestRule, ObjectContract, UpdatePolicing,
};
use pyo3::prelude::*;

/// The terms at which an object is exchanged with an observer.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct ExchangeTerms(pub(super) Terms);

/// Converts a share from 0 to 1 to thousandths.
pub(super) fn permille(name: &str, share: f64) -> PyResult<u16> {
    if !(0.0..=1.0).contains(&share) {
        return Err(errors::value(format!("{name}={share}: it must be from 0 to 1, such as 0.5")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let permille = (share * 1e3).round() as u16;
    Ok(permille)
}

#[pymethods]
impl ExchangeTerms {
    /// Creates terms. The refresh is 10 gaps by default, at least 1 s.
    #[new]
    #[pyo3(signature = (every_s, *, refresh_s=None, fidelity=None, tolerance=0.0, weight=1.0))]
    fn new(
        every_s: f64,
        refresh_s: Option<f64>,
        fidelity: Option<f64>,
        tolerance: f64,
        weight: f64,
    ) -> PyResult<Self> {
        let mut terms = Terms::every(from_s("every_s", every_s)?.into());
        if let Some(refresh) = refresh_s {
            terms.refresh = from_s("refresh_s", refresh)?.into();
        }
        if let Some(fidelity) = fidelity {
            terms.fidelity_permille = permille("fidelity", fidelity)?;
        }
        terms = terms.tolerance(tolerance).weight(weight);
        terms.check().map_err(|error| errors::value(error.to_string()))?;
        Ok(Self(terms))
    }

    fn __repr__(&self) -> String {
        format!("ExchangeTerms(every_s={})", std::time::Duration::from(self.0.gap).as_secs_f64())
    }
}

/// What an observer receives.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Interest(pub(super) Inner);

/// Checks an interest.
fn checked(interest: Inner) -> PyResult<Interest> {
    interest.check().map_err(|error| errors::value(error.to_string()))?;
    Ok(Interest(interest))
}

#[pymethods]
impl Interest {
    /// All objects within `range`, at most one update of each per `every_s` seconds. By default all
    /// objects of the world.
    #[staticmethod]
    #[pyo3(signature = (every_s, *, range=f64::INFINITY))]
    fn every(every_s: f64, range: f64) -> PyResult<Self> {
        let interest = Inner::every(from_s("every_s", every_s)?);
        checked(Inner { range, ..interest })
    }

    /// Objects by distance: within each distance, at most one update per number of seconds. With
    /// `half_angle`, in radians, only objects in view; others at the terms `outside`, or not at all.
    #[staticmethod]
    #[pyo3(signature = (steps, *, half_angle=None, outside=None))]
    fn by_distance(
        steps: Vec<(f64, f64)>,
        half_angle: Option<f64>,
        outside: Option<&Bound<'_, ExchangeTerms>>,
    ) -> PyResult<Self> {
        let steps: Vec<_> = steps
            .into_iter()
            .map(|(within, every)| Ok((within, from_s("steps", every)?)))
            .collect::<PyResult<_>>()?;
        let mut interest = Inner::by_distance(&steps);
        match (half_angle, interest.rule) {
            (Some(half_angle), InterestRule::Distance(steps)) => {
                let outside = outside.map(|terms| terms.get().0);
                interest.rule = InterestRule::View { half_angle, steps, outside };
            }
            (_, rule) => interest.rule = rule,
        }
        checked(interest)
    }

    /// Objects by expressions in CEL, which the owner of an object evaluates. `terms` apply where
    /// there is no expression.
    #[staticmethod]
    #[pyo3(signature = (terms, *, whom=None, every=None, fidelity=None, tolerance=None, weight=None, range=f64::INFINITY))]
    fn declared(
        terms: &Bound<'_, ExchangeTerms>,
        whom: Option<String>,
        every: Option<String>,
        fidelity: Option<String>,
        tolerance: Option<String>,
        weight: Option<String>,
        range: f64,
    ) -> PyResult<Self> {
        let rule = DeclaredRule { whom, every, fidelity, tolerance, weight };
        let rule = InterestRule::Declared { rule, base: terms.get().0 };
        checked(Inner { range, rule, ..Inner::every(terms.get().0.gap) })
    }

    /// The same with a contract for the `objects` most important objects of each owner: at most
    /// `max_updates` in `per_s` seconds and one at least each `refresh_s`, of objects of at most
    /// `bytes`, `delay_s` after the change, each with at least the share `fidelity` of the object.
    #[pyo3(signature = (*, max_updates, bytes, delay_s, per_s=1.0, refresh_s=1.0, fidelity=1.0, objects=1))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn with_contract(
        &self,
        max_updates: u32,
        bytes: u32,
        delay_s: f64,
        per_s: f64,
        refresh_s: f64,
        fidelity: f64,
        objects: usize,
    ) -> PyResult<Self> {
        let contract = ObjectContract {
            per: from_s("per_s", per_s)?.into(),
            refresh: from_s("refresh_s", refresh_s)?.into(),
            fidelity_permille: permille("fidelity", fidelity)?,
            ..ObjectContract::per_second(max_updates, bytes, from_s("delay_s", delay_s)?)
        };
        checked(self.0.clone().with_contract(contract, objects))
    }

    /// The same with other modules: `error_control` is `acknowledged` or `refreshed`, `policing` is
    /// `shape` or `drop`, and `fragment_bytes` the greatest size of a fragment, by default the owner's.
    #[pyo3(signature = (*, error_control="acknowledged", policing="shape", fragment_bytes=None))]
    fn with_modules(
        &self,
        error_control: &str,
        policing: &str,
        fragment_bytes: Option<u32>,
    ) -> PyResult<Self> {
        let wrong = |name: &str, value: &str, choices: [&str; 2]| {
            errors::value(format!("{name}='{value}': must be {} or {}", choices[0], choices[1]))
        };
        let known = ErrorControl::ALL.into_iter().find(|known| known.name() == error_control);
        let error_control = known.ok_or_else(|| {
            wrong("error_control", error_control, ErrorControl::ALL.map(ErrorControl::name))
        })?;
        let known = UpdatePolicing::ALL.into_iter().find(|known| known.name() == policing);
        let policing = known.ok_or_else(|| {
            wrong("policing", policing, UpdatePolicing::ALL.map(UpdatePolicing::name))
        })?;
        let modules = InteractorModules { error_control, policing, fragment_bytes };
        checked(self.0.clone().with_modules(modules))
    }

    fn __repr__(&self) -> String {
        format!("Interest(range={})", self.0.range)
    }
}
