//! The mixed-integer program, with one binary variable for each place of a proxy.
//!
//! With one proxy per tag, variable x(t, j) is 1 if the proxy of tag t is at node j. With several,
//! z(t, i, j) is 1 if subscriber i is served at node j, and y(t, j) if there is a proxy. No
//! products occur, so no linearisation is needed (compare [`printed`](crate::printed)).

use crate::budget::Remaining;
use crate::error::PlanError;
use crate::model::Model;
use crate::problem::PlanProblem;
use crate::program::{Answer, size, solve};
use crate::refuse::refuse;
use crate::solution::Planned;

/// The most variables of a program.
const VARIABLES_MAX: usize = 50_000;

/// Solves the mixed-integer program of a problem.
///
/// # Errors
/// As [`plan`](crate::plan()), and [`PlanError::Value`] if the program has too many variables.
pub fn integer(problem: &PlanProblem, remaining: &mut Remaining<'_>) -> Result<Planned, PlanError> {
    let model = Model::new(problem)?;
    let tags: Vec<usize> = (0..problem.tags.len()).collect();
    let size = size(&model, &tags);
    if size > VARIABLES_MAX {
        return Err(PlanError::Value(format!(
            "the program has {size} variables: must have at most {VARIABLES_MAX}; use another \
             solver"
        )));
    }
    match solve(&model, &tags, true, remaining) {
        Answer::Optimal(assignment) => {
            let cost = model.total(&assignment);
            Ok(model.planned(&assignment, cost))
        }
        Answer::Feasible(assignment) => Ok(model.planned(&assignment, 0.0)),
        Answer::Infeasible => Err(refuse(&model, remaining)),
        Answer::Unknown => Err(PlanError::Unknown),
    }
}
