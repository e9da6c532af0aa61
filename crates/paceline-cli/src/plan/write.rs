//! A problem as the JSON file that `paceline plan` reads.

use super::read::{CostName, DelayName, ObjectiveName};
use clap::ValueEnum;
use paceline_plan::{CostModel, DelayModel, Objective, PlanLink, PlanProblem, PlanTag};
use paceline_sched::Duration;
use serde_json::{Map, Value, json};

/// Returns the JSON object of a problem. Reading it gives the same problem.
pub(super) fn json(problem: &PlanProblem) -> Value {
    let id = |node: &usize| problem.nodes.get(*node).map_or("", |node| node.id.as_str());
    let nodes = problem.nodes.iter().map(|node| {
        object([("id", Some(json!(node.id))), ("cpu", node.cpu.map(|cpu| json!(cpu)))])
    });
    let links = problem.links.iter().map(|link| self::link(link, id));
    let tags = problem.tags.iter().map(|tag| self::tag(tag, id));
    let (objective, weight) = match problem.objective {
        Objective::Bandwidth => (ObjectiveName::Bandwidth, None),
        Objective::Cpu => (ObjectiveName::Cpu, None),
        Objective::Weighted(weight) => (ObjectiveName::Weighted, Some(json!(weight))),
    };
    let cost = match problem.cost {
        CostModel::PerSubscriber => CostName::PerSubscriber,
        CostModel::SharedUpstream => CostName::SharedUpstream,
        CostModel::Multicast => CostName::Multicast,
    };
    let delays = match problem.delays {
        DelayModel::Periods => DelayName::Periods,
        DelayModel::Links => DelayName::Links,
        DelayModel::Bounds => DelayName::Bounds,
    };
    object([
        ("nodes", Some(nodes.collect())),
        ("links", Some(links.collect())),
        ("tags", Some(tags.collect())),
        ("objective", Some(chosen(objective))),
        ("weight", weight),
        ("cost", Some(chosen(cost))),
        ("delay_model", Some(chosen(delays))),
        ("proxies", Some(json!(problem.proxies))),
    ])
}

fn link<'a>(link: &PlanLink, id: impl Fn(&usize) -> &'a str) -> Value {
    object([
        ("from", Some(json!(id(&link.from)))),
        ("to", Some(json!(id(&link.to)))),
        ("capacity", link.capacity.map(|rate| json!(format!("{}bit", rate.bits_per_s())))),
        ("delay", Some(time(link.delay))),
        ("segment", link.segment.map(|segment| json!(segment))),
        ("both", Some(json!(false))),
    ])
}

fn tag<'a>(tag: &PlanTag, id: impl Fn(&usize) -> &'a str) -> Value {
    let subscribers = tag.subscribers.iter().map(|it| {
        object([
            ("node", Some(json!(id(&it.node)))),
            ("scale", Some(json!(it.scale))),
            ("bytes", Some(size(it.bytes))),
            ("within", it.within.map(time)),
        ])
    });
    let ids = |nodes: &[usize]| nodes.iter().map(&id).collect::<Value>();
    object([
        ("tag", Some(json!(tag.tag))),
        ("publishers", Some(ids(&tag.publishers))),
        ("period", Some(time(tag.period))),
        ("bytes", Some(size(tag.bytes))),
        ("cpu_receive", Some(json!(tag.cpu.receive))),
        ("cpu_send", Some(json!(tag.cpu.send))),
        ("cpu_scale", Some(json!(tag.cpu.scale))),
        ("allowed", tag.allowed.as_deref().map(ids)),
        ("subscribers", Some(subscribers.collect())),
    ])
}

fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

fn chosen(value: impl ValueEnum) -> Value {
    value.to_possible_value().map_or(Value::Null, |value| json!(value.get_name()))
}

fn size(bytes: u64) -> Value {
    json!(format!("{bytes}B"))
}

/// Formats a time in the largest unit in which it is a whole number.
fn time(time: Duration) -> Value {
    let nanos = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    json!(format!("{}{name}", nanos / unit))
}

#[cfg(test)]
mod tests {
    use super::super::read::{Choices, problem};
    use super::*;
    use paceline_plan::{PlanNode, PlanSubscriber, SampleCpu};
    use paceline_sched::Capacity;

    #[test]
    fn a_written_problem_reads_as_the_same_problem() {
        let mut first = PlanProblem::new(["a", "b \"c\""].map(PlanNode::new).to_vec());
        first.nodes[0].cpu = Some(0.1);
        let capacity = Capacity::from_bits_per_s(1_999_999).ok();
        let delay = Duration::from_nanos(1_500);
        let link = PlanLink { capacity, delay, segment: Some(3), ..PlanLink::new(0, 1) };
        first.links = vec![link, PlanLink::new(1, 0)];
        let mut tag = PlanTag::new("t", 0, Duration::from_nanos(33_333_333), 10_001);
        tag.cpu = SampleCpu { receive: 1e-4, send: 0.0, scale: 0.012_345 };
        let within = Some(Duration::from_millis(90));
        tag.subscribers = vec![
            PlanSubscriber { node: 1, scale: 3, bytes: 999, within },
            PlanSubscriber { node: 1, scale: 1, bytes: 10_001, within: None },
        ];
        first.tags =
            vec![PlanTag { allowed: Some(vec![1]), tag: "u".to_owned(), ..tag.clone() }, tag];
        first.proxies = 3;
        for (objective, cost, delays) in [
            (Objective::Bandwidth, CostModel::PerSubscriber, DelayModel::Periods),
            (Objective::Cpu, CostModel::SharedUpstream, DelayModel::Links),
            (Objective::Weighted(0.25), CostModel::Multicast, DelayModel::Bounds),
        ] {
            first = PlanProblem { objective, cost, delays, ..first };
            let text = json(&first).to_string();
            assert_eq!(problem(&text, None, &Choices::default()), Ok(first.clone()), "{text}");
        }
    }
}
