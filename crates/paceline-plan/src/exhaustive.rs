//! The reference: a search of all proxies of all subscribers (Juvva 1999, appendix A, with the test
//! of line 4 corrected).

use crate::error::PlanError;
use crate::list::{Assignment, TOLERANCE};
use crate::model::Model;
use crate::problem::PlanProblem;
use crate::refuse::refuse;
use crate::solution::Planned;
use crate::usage::Usage;

/// The most places of a tag's proxies. A larger problem needs another solver.
const PLACES_MAX: usize = 1_000_000;

/// The proxies of the subscribers of a tag, and their use.
type Place = (Vec<usize>, Usage);

/// Searches all places of all proxies. For small problems and for tests: the work grows with the
/// number of nodes to the power of the subscribers, and of the tags if there are limits.
///
/// # Errors
/// As [`plan`](crate::plan()), and [`PlanError::Value`] above a million places per tag.
pub fn exhaustive(problem: &PlanProblem) -> Result<Planned, PlanError> {
    let model = Model::new(problem)?;
    let mut tags = Vec::with_capacity(problem.tags.len());
    for tag in 0..problem.tags.len() {
        let mut places = places(&model, tag)?;
        places.sort_by(|a, b| a.1.cost.total_cmp(&b.1.cost));
        tags.push(places);
    }
    let is_limited = model.limits.iter().any(|limit| limit.is_finite());
    let assignment = match is_limited {
        true => limited(&model, &tags),
        false => tags.iter().map(|places| places.first().map(|place| place.0.clone())).collect(),
    };
    match assignment {
        Some(assignment) => {
            let cost = model.total(&assignment);
            Ok(model.planned(&assignment, cost))
        }
        None => Err(refuse(&model, &mut || core::time::Duration::from_secs(1))),
    }
}

/// Returns all places of a tag's proxies that meet the delay bounds.
fn places(model: &Model<'_>, tag: usize) -> Result<Vec<Place>, PlanError> {
    let Some((spec, _)) = model.tag(tag) else { return Ok(Vec::new()) };
    let nodes = model.candidates(spec);
    let mut partial: Vec<Vec<usize>> = vec![Vec::new()];
    for subscriber in 0..spec.subscribers.len() {
        let mut longer = Vec::new();
        for proxies in &partial {
            for &node in nodes.iter().filter(|&&node| model.in_time(tag, subscriber, node)) {
                let mut proxies = proxies.clone();
                proxies.push(node);
                let mut distinct = proxies.clone();
                distinct.sort_unstable();
                distinct.dedup();
                if distinct.len() <= model.problem.proxies {
                    longer.push(proxies);
                }
            }
            if longer.len() > PLACES_MAX {
                return Err(PlanError::Value(format!(
                    "{}: more than {PLACES_MAX} places: too many for an exhaustive search, use \
                     another solver",
                    spec.tag
                )));
            }
        }
        partial = longer;
    }
    Ok(partial
        .into_iter()
        .map(|proxies| {
            let usage = model.usage(tag, &proxies);
            (proxies, usage)
        })
        .collect())
}

/// A depth-first search over the tags.
struct Search<'a, 'b> {
    model: &'a Model<'b>,
    tags: &'a [Vec<Place>],
    /// The least cost of the tags from each one on.
    rest: Vec<f64>,
    loads: Vec<f64>,
    chosen: Vec<usize>,
    best: Option<(f64, Vec<usize>)>,
}

fn limited(model: &Model<'_>, tags: &[Vec<Place>]) -> Option<Assignment> {
    let mut rest = vec![0.0];
    for places in tags.iter().rev() {
        let least = places.first()?.1.cost;
        rest.push(rest.last().copied().unwrap_or(0.0) + least);
    }
    rest.reverse();
    let loads = vec![0.0; model.limits.len()];
    let mut search = Search { model, tags, rest, loads, chosen: Vec::new(), best: None };
    search.descend(0.0);
    let (_, chosen) = search.best?;
    let places = tags.iter().zip(chosen).map(|(places, place)| places.get(place));
    places.map(|place| place.map(|place| place.0.clone())).collect()
}

impl Search<'_, '_> {
    fn descend(&mut self, cost: f64) {
        let depth = self.chosen.len();
        let (model, tags) = (self.model, self.tags);
        let Some(places) = tags.get(depth) else {
            self.best = Some((cost, self.chosen.clone()));
            return;
        };
        let rest = crate::list::at(&self.rest, depth + 1);
        for (index, (_, usage)) in places.iter().enumerate() {
            let best = self.best.as_ref().map_or(f64::INFINITY, |best| best.0);
            // The places are in the order of their cost.
            if cost + usage.cost + rest >= best * (1.0 - TOLERANCE * 1e-3) {
                return;
            }
            model.add(&mut self.loads, usage, 1.0);
            if model.exceeded(&self.loads).is_none() {
                self.chosen.push(index);
                self.descend(cost + usage.cost);
                self.chosen.pop();
            }
            model.add(&mut self.loads, usage, -1.0);
        }
    }
}
