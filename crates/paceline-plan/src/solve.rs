//! The planner.

use crate::budget::Remaining;
use crate::error::PlanError;
use crate::model::Model;
use crate::problem::PlanProblem;
use crate::refuse::{refuse, unmet};
use crate::search::{Found, search};
use crate::solution::Planned;

/// Plans the proxies of all tags.
///
/// Without exceeded limits every tag is planned alone, and exactly with one proxy. Limits are met
/// by prices and a mixed-integer program. The plan states its gap to a proven lower bound.
///
/// # Errors
/// [`PlanError::Value`] for an invalid problem, [`PlanError::Disconnected`],
/// [`PlanError::Infeasible`], and [`PlanError::Unknown`] if no plan was found in time.
pub fn plan(problem: &PlanProblem, remaining: &mut Remaining<'_>) -> Result<Planned, PlanError> {
    let model = Model::new(problem)?;
    if let Some(error) = unmet(&model) {
        return Err(error);
    }
    match search(&model, remaining) {
        Found::Plan(assignment, bound) => Ok(model.planned(&assignment, bound)),
        Found::None => Err(refuse(&model, remaining)),
        Found::Unknown => Err(PlanError::Unknown),
    }
}
