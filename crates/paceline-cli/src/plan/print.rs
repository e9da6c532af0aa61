//! A plan as JSON and as tables.

use super::live::{Live, bits_of};
use paceline_plan::{Objective, PlanError, PlanProblem, PlanState, Planned, PlannedProxy, cost_of};
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table, width};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Limit of the rows in a text table; JSON has all rows.
const ROWS_SHOWN: usize = 50;
/// Differences from the present cost below this are not reported, in percent.
const SAVES_MIN: f64 = 0.05;

fn name(problem: &PlanProblem, node: usize) -> String {
    problem.nodes.get(node).map_or_else(String::new, |node| node.id.clone())
}

fn tag(problem: &PlanProblem, tag: usize) -> String {
    problem.tags.get(tag).map_or_else(String::new, |tag| tag.tag.clone())
}

fn subscriber(problem: &PlanProblem, tag: usize, subscriber: usize) -> String {
    let found = problem.tags.get(tag).and_then(|tag| tag.subscribers.get(subscriber));
    found.map_or_else(String::new, |found| name(problem, found.node))
}

/// The present places of the running network, for comparison with a plan.
pub(super) struct Present {
    /// The present place of each tag's subscribers.
    places: Vec<Vec<usize>>,
    cost: f64,
    /// The known limits of the comparison.
    pub(super) notes: Vec<String>,
}

impl Present {
    pub(super) fn new(problem: &PlanProblem, live: &Live) -> Result<Self, PlanError> {
        let cost = cost_of(problem, &live.places)?;
        Ok(Self { places: live.places.clone(), cost, notes: live.notes.clone() })
    }

    /// Returns each tag and subscriber with its present place, by index.
    fn rows(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let tags = self.places.iter().enumerate();
        tags.flat_map(|(tag, nodes)| nodes.iter().enumerate().map(move |(to, &at)| (tag, to, at)))
    }

    /// Returns the rows of scaled streams with another place in the plan, and that place.
    fn moves(&self, problem: &PlanProblem, planned: &Planned) -> Vec<[String; 4]> {
        let planned_at = |tag: usize, to: usize| {
            let serves = |it: &&PlannedProxy| it.tag == tag && it.subscribers.contains(&to);
            planned.proxies.iter().find(serves).map(|proxy| proxy.node)
        };
        let is_scaled = |tag: usize, to: usize| {
            let tag = problem.tags.get(tag);
            let form = tag.and_then(|tag| Some((tag.bytes, tag.subscribers.get(to)?)));
            form.is_some_and(|(bytes, to)| (1, bytes) != (to.scale, to.bytes))
        };
        let moved = self.rows().filter_map(|(tag, to, at)| {
            let proxy = planned_at(tag, to).filter(|proxy| *proxy != at && is_scaled(tag, to))?;
            let names = [self::tag(problem, tag), subscriber(problem, tag, to)];
            let [tag, subscriber] = names;
            Some([tag, subscriber, name(problem, at), name(problem, proxy)])
        });
        moved.collect()
    }

    fn json(&self, problem: &PlanProblem) -> Value {
        let streams = self.rows().map(|(tag, to, at)| {
            json!({
                "tag": self::tag(problem, tag),
                "subscriber": subscriber(problem, tag, to),
                "proxy": name(problem, at),
            })
        });
        json!({ "cost": self.cost, "streams": streams.collect::<Vec<_>>() })
    }

    /// Compares the present places with a plan, or describes them alone.
    pub(super) fn text(&self, problem: &PlanProblem, planned: Option<&Planned>) -> String {
        let mut out = format!("at the present places: {}", cost(problem, self.cost));
        let Some(planned) = planned else { return out + "\n" + &self.notes() };
        let saves = match self.cost > 0.0 {
            true => (1.0 - planned.cost / self.cost) * 100.0,
            false => 0.0,
        };
        if saves.abs() < SAVES_MIN {
            return out + "; no plan is cheaper\n" + &self.notes();
        }
        let _ = match saves < 0.0 {
            true => writeln!(
                out,
                "; they exceed a limit or delay bound, and the plan costs {:.1} % more",
                -saves
            ),
            false => writeln!(out, "; the plan saves {saves:.1} %"),
        };
        out.push_str(&self.notes());
        let columns = [("TAG", Name), ("SUBSCRIBER", Name), ("NOW AT", Name), ("PLANNED AT", Name)];
        let mut table = Table::new(&columns);
        let moves = self.moves(problem, planned);
        let count = moves.len();
        moves.into_iter().take(ROWS_SHOWN).for_each(|row| table.row(row.into()));
        add(&mut out, &table, count);
        out
    }

    fn notes(&self) -> String {
        self.notes.iter().map(|note| format!("note: {note}\n")).collect()
    }
}

/// Returns the JSON object of a plan.
pub(super) fn json(problem: &PlanProblem, planned: &Planned, present: Option<&Present>) -> Value {
    let proxies: Vec<Value> = planned
        .proxies
        .iter()
        .map(|proxy| {
            let of = |&to: &usize| subscriber(problem, proxy.tag, to);
            json!({
                "tag": tag(problem, proxy.tag),
                "node": name(problem, proxy.node),
                "subscribers": proxy.subscribers.iter().map(of).collect::<Vec<_>>(),
            })
        })
        .collect();
    let streams: Vec<Value> = planned
        .streams
        .iter()
        .map(|stream| {
            let path: Vec<String> = stream.path.iter().map(|&node| name(problem, node)).collect();
            json!({
                "tag": tag(problem, stream.tag),
                "subscriber": subscriber(problem, stream.tag, stream.subscriber),
                "proxy": name(problem, stream.proxy),
                "path": path,
                "delay_ns": stream.delay.as_nanos(),
                "bound_ns": stream.within.map(paceline_sched::Duration::as_nanos),
            })
        })
        .collect();
    let plan = json!({
        "status": planned.state.to_string(),
        "gap": planned.gap,
        "cost": planned.cost,
        "proxies": proxies,
        "streams": streams,
        "because": planned.because,
    });
    with_present(plan, problem, present)
}

/// Adds the fields of `--live`.
fn with_present(mut plan: Value, problem: &PlanProblem, present: Option<&Present>) -> Value {
    if let (Some(fields), Some(present)) = (plan.as_object_mut(), present) {
        fields.insert("present".to_owned(), present.json(problem));
        fields.insert("notes".to_owned(), json!(present.notes));
    }
    plan
}

/// Returns the JSON object of a problem without a plan.
pub(super) fn infeasible(
    problem: &PlanProblem,
    error: &PlanError,
    present: Option<&Present>,
) -> Value {
    let plan = json!({
        "status": "infeasible",
        "gap": null,
        "cost": null,
        "proxies": [],
        "streams": [],
        "because": error.to_string(),
    });
    with_present(plan, problem, present)
}

/// Formats a plan as tables.
pub(super) fn text(problem: &PlanProblem, planned: &Planned, present: Option<&Present>) -> String {
    let quality = match planned.state {
        PlanState::Optimal => "optimal".to_owned(),
        PlanState::Gap => {
            format!("at most {:.2} % above the optimum", above(planned))
        }
    };
    let mut out = format!("{}: {quality}\n", cost(problem, planned.cost));
    if let Some(present) = present {
        out.push_str(&present.text(problem, Some(planned)));
    }
    let mut table = Table::new(&[("TAG", Name), ("PROXY AT", Name), ("SUBSCRIBERS", Left)]);
    for proxy in planned.proxies.iter().take(ROWS_SHOWN) {
        let names = proxy.subscribers.iter().map(|&to| subscriber(problem, proxy.tag, to));
        let names: Vec<String> = names.collect();
        table.row(vec![tag(problem, proxy.tag), name(problem, proxy.node), names.join(", ")]);
    }
    add(&mut out, &table, planned.proxies.len());
    let columns = [("TAG", Name), ("PATH", Left), ("DELAY", Right), ("BOUND", Right)];
    let mut table = Table::new(&columns);
    for stream in planned.streams.iter().take(ROWS_SHOWN) {
        let mark = |&node: &usize| match node == stream.proxy {
            true => format!("[{}]", name(problem, node)),
            false => name(problem, node),
        };
        let path: Vec<String> = stream.path.iter().map(mark).collect();
        let bound = stream.within.map_or_else(|| "-".to_owned(), |within| within.to_string());
        let delay = stream.delay.to_string();
        table.row(vec![tag(problem, stream.tag), path.join(" "), delay, bound]);
    }
    add(&mut out, &table, planned.streams.len());
    links(&mut out, problem, planned);
    let _ = writeln!(out, "\n{}", planned.because.replace(". ", ".\n"));
    out
}

/// Returns by how many percent the cost can exceed the optimum.
fn above(planned: &Planned) -> f64 {
    match planned.bound > 0.0 {
        true => (planned.cost / planned.bound - 1.0) * 100.0,
        false => f64::INFINITY,
    }
}

fn add(out: &mut String, table: &Table, rows: usize) {
    if table.is_empty() {
        return;
    }
    let _ = write!(out, "\n{}", table.render(width()));
    if let Some(more) = rows.checked_sub(ROWS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "and {more} more; --json prints all");
    }
}

/// Adds the links with a capacity that carry streams, the fullest first.
fn links(out: &mut String, problem: &PlanProblem, planned: &Planned) {
    let mut used = Vec::new();
    for (link, &bits) in problem.links.iter().zip(&planned.link_bits) {
        if let Some(capacity) = link.capacity.filter(|_| bits > 0.0) {
            let most = bits_of(capacity.bits_per_s());
            used.push((bits / most, link, bits, most));
        }
    }
    used.sort_by(|a, b| b.0.total_cmp(&a.0));
    let columns = [("LINK", Left), ("LOAD", Right), ("CAPACITY", Right), ("USED", Right)];
    let mut table = Table::new(&columns);
    for (part, link, bits, most) in used.iter().take(ROWS_SHOWN) {
        let ends = format!("{} → {}", name(problem, link.from), name(problem, link.to));
        table.row(vec![ends, rate(*bits), rate(*most), format!("{:.1} %", part * 100.0)]);
    }
    add(out, &table, used.len());
}

fn rate(bits: f64) -> String {
    match bits {
        bits if bits >= 1e9 => format!("{:.3} gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.3} mbit/s", bits / 1e6),
        bits if bits >= 1e3 => format!("{:.3} kbit/s", bits / 1e3),
        bits => format!("{bits:.1} bit/s"),
    }
}

fn cost(problem: &PlanProblem, cost: f64) -> String {
    match problem.objective {
        Objective::Bandwidth => {
            format!("{} on {}", rate(cost), show::count(problem.links.len(), "link"))
        }
        Objective::Cpu => format!("{cost:.6} s of processor time per second"),
        Objective::Weighted(weight) => {
            format!("weighted cost {cost:.3} (bit/s + {weight} × processors)")
        }
    }
}
