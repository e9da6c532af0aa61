//! The construction and solution of the mixed-integer program.

use crate::budget::Remaining;
use crate::list::{Assignment, at, float};
use crate::model::Model;
use crate::problem::CostModel;
use crate::usage::{Sum, Usage};
use good_lp::solvers::{ResolutionError, SolutionStatus};
use good_lp::{
    Expression, IntoAffineExpression as _, ProblemVariables, Solution, SolverModel, Variable,
    WithTimeLimit, constraint, microlp, variable,
};
use std::collections::BTreeMap;

/// The result of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Optimal(Assignment),
    Feasible(Assignment),
    Infeasible,
    /// The time ended first, or rounding made the answer useless.
    Unknown,
}

/// Returns the number of variables of the program of some tags.
pub(crate) fn size(model: &Model<'_>, tags: &[usize]) -> usize {
    let nodes = model.problem.nodes.len();
    let of = |tag: &usize| {
        let subscribers = model.problem.tags.get(*tag).map_or(0, |tag| tag.subscribers.len());
        let links = match model.problem.cost {
            // At most one more for each link on a segment.
            CostModel::Multicast if model.shares_segments() => 2 * model.problem.links.len(),
            CostModel::Multicast => model.problem.links.len(),
            CostModel::PerSubscriber | CostModel::SharedUpstream => 0,
        };
        if model.problem.proxies == 1 { nodes } else { (nodes + links) * (subscribers + 1) }
    };
    tags.iter().map(of).sum()
}

/// One program under construction.
struct Program {
    variables: ProblemVariables,
    cost: Expression,
    rows: BTreeMap<usize, Expression>,
    rules: Vec<(Expression, Rule, f64)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rule {
    Exactly,
    AtMost,
}

/// The variables of a tag: of each subscriber, or of all of them, by node.
type Places = Vec<Vec<(usize, Variable)>>;

impl Program {
    fn new() -> Self {
        let variables = ProblemVariables::new();
        Self { variables, cost: Expression::default(), rows: BTreeMap::new(), rules: Vec::new() }
    }

    fn binary(&mut self, usage: &Usage, is_limited: bool) -> Variable {
        let variable = self.variables.add(variable().binary());
        self.cost.add_mul(usage.cost, variable);
        for &(resource, amount) in usage.loads.iter().filter(|_| is_limited) {
            self.rows.entry(resource).or_default().add_mul(amount, variable);
        }
        variable
    }

    fn one_of(&mut self, places: &[(usize, Variable)]) {
        let mut sum = Expression::default();
        places.iter().for_each(|(_, place)| sum.add_mul(1.0, *place));
        self.rules.push((sum, Rule::Exactly, 1.0));
    }

    /// Demands that `upper` is 1 if `lower` is.
    fn implies(&mut self, lower: Variable, upper: Variable) {
        self.rules.push((lower - upper, Rule::AtMost, 0.0));
    }
}

/// Solves the program of some tags. The others have no proxies in the answer.
pub(crate) fn solve(
    model: &Model<'_>,
    tags: &[usize],
    is_limited: bool,
    remaining: &mut Remaining<'_>,
) -> Answer {
    let mut program = Program::new();
    let mut places = Vec::with_capacity(tags.len());
    for &tag in tags {
        let of_tag = match model.problem.proxies {
            1 => one(&mut program, model, tag, is_limited),
            _ => many(&mut program, model, tag, is_limited),
        };
        if of_tag.iter().any(Vec::is_empty) {
            return Answer::Infeasible;
        }
        places.push((tag, of_tag));
    }
    run(program, model, &places, is_limited, remaining)
}

/// Solves the program in which each tag has one of the given places of a single proxy.
pub(crate) fn choose(
    model: &Model<'_>,
    pools: &[Vec<&(usize, Usage)>],
    remaining: &mut Remaining<'_>,
) -> Answer {
    let mut program = Program::new();
    let mut places = Vec::with_capacity(pools.len());
    for (tag, pool) in pools.iter().enumerate() {
        let of_tag: Vec<_> =
            pool.iter().map(|(node, usage)| (*node, program.binary(usage, true))).collect();
        program.one_of(&of_tag);
        places.push((tag, vec![of_tag]));
    }
    run(program, model, &places, true, remaining)
}

fn run(
    mut program: Program,
    model: &Model<'_>,
    places: &[(usize, Places)],
    is_limited: bool,
    remaining: &mut Remaining<'_>,
) -> Answer {
    // Costs near 1 keep the solver's tolerances meaningful.
    let scale =
        (&program.cost).linear_coefficients().map(|(_, cost)| cost.abs()).fold(0.0, f64::max);
    if scale > 0.0 {
        program.cost *= 1.0 / scale;
    }
    let left = remaining();
    if left.is_zero() {
        return Answer::Unknown;
    }
    let mut solver = program.variables.minimise(program.cost).using(microlp);
    for (sum, rule, right) in program.rules {
        let _ = solver.add_constraint(match rule {
            Rule::Exactly => constraint!(sum == right),
            Rule::AtMost => constraint!(sum <= right),
        });
    }
    for (resource, sum) in program.rows {
        let limit = at(&model.limits, resource);
        let most: f64 = (&sum).linear_coefficients().map(|(_, load)| load).sum();
        if most > limit {
            // A limit of 0 excludes every load.
            let unit = if limit > 0.0 { limit } else { 1.0 };
            let _ = solver.add_constraint(constraint!(sum * (1.0 / unit) <= limit / unit));
        }
    }
    match solver.with_time_limit(left.as_secs_f64()).solve() {
        Ok(solution) => {
            let optimal = matches!(solution.status(), SolutionStatus::Optimal);
            let assignment = read(model, places, &solution);
            if is_limited && !model.is_valid(&assignment) {
                return Answer::Unknown;
            }
            if optimal { Answer::Optimal(assignment) } else { Answer::Feasible(assignment) }
        }
        Err(ResolutionError::Infeasible) => Answer::Infeasible,
        Err(_) => Answer::Unknown,
    }
}

fn read(model: &Model<'_>, places: &[(usize, Places)], solution: &impl Solution) -> Assignment {
    let mut assignment = vec![Vec::new(); model.problem.tags.len()];
    for (tag, of_tag) in places {
        let taken = |places: &Vec<(usize, Variable)>| {
            places
                .iter()
                .max_by(|a, b| solution.value(a.1).total_cmp(&solution.value(b.1)))
                .map_or(0, |it| it.0)
        };
        let subscribers = model.problem.tags.get(*tag).map_or(0, |tag| tag.subscribers.len());
        if let Some(proxies) = assignment.get_mut(*tag) {
            *proxies = match model.problem.proxies {
                1 => vec![of_tag.first().map_or(0, taken); subscribers],
                _ => of_tag.iter().map(taken).collect(),
            };
        }
    }
    assignment
}

fn one(program: &mut Program, model: &Model<'_>, tag: usize, is_limited: bool) -> Places {
    let (pool, _) = model.ranked(tag).pool(model, usize::MAX, &mut || core::time::Duration::MAX);
    let places: Vec<_> =
        pool.iter().map(|(node, usage)| (*node, program.binary(usage, is_limited))).collect();
    program.one_of(&places);
    vec![places]
}

fn many(program: &mut Program, model: &Model<'_>, tag: usize, is_limited: bool) -> Places {
    let Some((spec, forms)) = model.tag(tag) else { return Vec::new() };
    let nodes = model.candidates(spec);
    let mut places = Vec::with_capacity(spec.subscribers.len());
    for to in 0..spec.subscribers.len() {
        let fast = nodes.iter().filter(|&&node| model.in_time(tag, to, node));
        let of_subscriber: Vec<_> = fast
            .map(|&node| (node, program.binary(&model.served(tag, to, node), is_limited)))
            .collect();
        program.one_of(&of_subscriber);
        places.push(of_subscriber);
    }
    let mut open = BTreeMap::new();
    let mut scaled = BTreeMap::new();
    for (of_subscriber, &form) in places.iter().zip(&forms.of) {
        for &(node, place) in of_subscriber {
            let opened = *open
                .entry(node)
                .or_insert_with(|| program.binary(&model.opened(tag, node), is_limited));
            program.implies(place, opened);
            if forms.get(form).scaling > 0.0 && model.problem.cost != CostModel::PerSubscriber {
                let scaling = *scaled
                    .entry((node, form))
                    .or_insert_with(|| program.binary(&model.scaled(tag, node, form), is_limited));
                program.implies(place, scaling);
            }
        }
    }
    let mut count = Expression::default();
    open.values().for_each(|&opened| count.add_mul(1.0, opened));
    program.rules.push((count, Rule::AtMost, float(model.problem.proxies)));
    if model.problem.cost == CostModel::Multicast {
        trees(program, model, tag, (&places, &open), is_limited);
    }
    places
}

/// Adds a variable for each form of each publisher's stream on each link.
fn trees(
    program: &mut Program,
    model: &Model<'_>,
    tag: usize,
    (places, open): (&Places, &BTreeMap<usize, Variable>),
    is_limited: bool,
) {
    let Some((spec, forms)) = model.tag(tag) else { return };
    for &from in &spec.publishers {
        let mut used: BTreeMap<(usize, usize), Variable> = BTreeMap::new();
        let mut sent: BTreeMap<(usize, usize), Variable> = BTreeMap::new();
        let mut on = |program: &mut Program, form: usize, link: usize| {
            *used.entry((form, link)).or_insert_with(|| {
                let mut copy = Sum::new(model, spec);
                if !model.shares_segments() {
                    copy.link(link, forms.get(form));
                    return program.binary(&copy.finish(), is_limited);
                }
                copy.copy(link, forms.get(form));
                let copy = program.binary(&copy.finish(), is_limited);
                let bits =
                    *sent.entry((form, at(&model.first_on_segment, link))).or_insert_with(|| {
                        let mut bits = Sum::new(model, spec);
                        bits.bits(forms.get(form));
                        program.binary(&bits.finish(), is_limited)
                    });
                program.implies(copy, bits);
                copy
            })
        };
        for (&node, &opened) in open {
            model.routes.walk(from, node, |link| {
                let on = on(program, 0, link);
                program.implies(opened, on);
            });
        }
        for ((of_subscriber, to), &form) in places.iter().zip(&spec.subscribers).zip(&forms.of) {
            // A subscriber has one proxy, so a link carries the form if any of the places uses it.
            let mut over: BTreeMap<usize, Expression> = BTreeMap::new();
            for &(node, place) in of_subscriber {
                model.routes.walk(node, to.node, |link| {
                    over.entry(link).or_default().add_mul(1.0, place);
                });
            }
            for (link, sum) in over {
                let on = on(program, form, link);
                program.rules.push((sum - on, Rule::AtMost, 0.0));
            }
        }
    }
}

impl Model<'_> {
    /// Returns the use of one subscriber that no other one shares.
    fn served(&self, tag: usize, to: usize, node: usize) -> Usage {
        let Some((spec, forms)) = self.tag(tag) else { return Usage::default() };
        let mut sum = Sum::new(self, spec);
        let form = forms.of_subscriber(to);
        let target = spec.subscribers.get(to).map_or(node, |to| to.node);
        for &from in &spec.publishers {
            match self.problem.cost {
                CostModel::PerSubscriber => {
                    sum.path(from, node, forms.get(0));
                    sum.path(node, target, form);
                    sum.scale(node, form);
                }
                CostModel::SharedUpstream => sum.path(node, target, form),
                CostModel::Multicast => {}
            }
        }
        sum.finish()
    }

    /// Returns the use of the streams to a proxy.
    fn opened(&self, tag: usize, node: usize) -> Usage {
        let Some((spec, forms)) = self.tag(tag) else { return Usage::default() };
        let mut sum = Sum::new(self, spec);
        if self.problem.cost == CostModel::SharedUpstream {
            spec.publishers.iter().for_each(|&from| sum.path(from, node, forms.get(0)));
        }
        sum.finish()
    }

    /// Returns the use of scaling to a form at a node.
    fn scaled(&self, tag: usize, node: usize, form: usize) -> Usage {
        let Some((spec, forms)) = self.tag(tag) else { return Usage::default() };
        let mut sum = Sum::new(self, spec);
        spec.publishers.iter().for_each(|_| sum.scale(node, forms.get(form)));
        sum.finish()
    }
}
