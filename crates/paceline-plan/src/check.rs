//! The checks of a problem before it is planned.

use crate::error::PlanError;
use crate::problem::{Objective, PlanNode, PlanProblem, PlanTag};
use std::collections::BTreeSet;

/// The most nodes.
const NODES_MAX: usize = 100_000;
/// The most directed links.
const LINKS_MAX: usize = 1_000_000;
/// The most pairs of publisher and subscriber of all tags.
const STREAMS_MAX: usize = 1_000_000;
/// The most proxies of a tag.
const PROXIES_MAX: usize = 32;
/// The most processors of a node, and the longest time per sample in seconds.
const CPU_MAX: f64 = 1e6;

fn wrong<T>(text: String) -> Result<T, PlanError> {
    Err(PlanError::Value(text))
}

pub(crate) fn check(problem: &PlanProblem) -> Result<(), PlanError> {
    nodes(&problem.nodes)?;
    links(problem)?;
    let mut names = BTreeSet::new();
    let mut streams = 0_usize;
    for (index, tag) in problem.tags.iter().enumerate() {
        if !names.insert(&tag.tag) {
            return wrong(format!("tags[{index}].tag is \"{}\" again: merge the tags", tag.tag));
        }
        self::tag(problem, index, tag)?;
        streams =
            streams.saturating_add(tag.publishers.len().saturating_mul(tag.subscribers.len()));
    }
    if streams > STREAMS_MAX {
        return wrong(format!(
            "the tags have {streams} pairs of publisher and subscriber: must be at most \
             {STREAMS_MAX}; plan groups of tags"
        ));
    }
    if let Objective::Weighted(weight) = problem.objective
        && !(weight.is_finite() && weight >= 0.0)
    {
        return wrong(format!("weight is {weight}: must be at least 0, in bit/s per processor"));
    }
    let proxies = problem.proxies;
    if !(1..=PROXIES_MAX).contains(&proxies) {
        return wrong(format!(
            "proxies is {proxies}: must be from 1 to {PROXIES_MAX} per tag; the default is 1"
        ));
    }
    Ok(())
}

fn nodes(nodes: &[PlanNode]) -> Result<(), PlanError> {
    if nodes.is_empty() || nodes.len() > NODES_MAX {
        let count = nodes.len();
        return wrong(format!("nodes has {count} entries: must have 1 to {NODES_MAX}"));
    }
    let mut names = BTreeSet::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.id.is_empty() {
            return wrong(format!("nodes[{index}].id is empty: give the node a name"));
        }
        if !names.insert(&node.id) {
            let id = &node.id;
            return wrong(format!("nodes[{index}].id is \"{id}\" again: ids must be unique"));
        }
        if let Some(cpu) = node.cpu.filter(|cpu| !(0.0..=CPU_MAX).contains(cpu)) {
            return wrong(format!(
                "nodes[{index}].cpu is {cpu}: must be from 0 to {CPU_MAX} processors; leave it out \
                 for no limit"
            ));
        }
    }
    Ok(())
}

fn links(problem: &PlanProblem) -> Result<(), PlanError> {
    if problem.links.len() > LINKS_MAX {
        let count = problem.links.len();
        return wrong(format!("links has {count} directions: must have at most {LINKS_MAX}"));
    }
    let mut pairs = BTreeSet::new();
    for (index, link) in problem.links.iter().enumerate() {
        for (end, node) in [("from", link.from), ("to", link.to)] {
            inside(problem, &format!("links[{index}].{end}"), node)?;
        }
        let name = |node: usize| problem.nodes.get(node).map_or("", |node| node.id.as_str());
        let (from, to) = (name(link.from), name(link.to));
        if link.from == link.to {
            return wrong(format!("the link {from} → {to} is a loop: remove it"));
        }
        if !pairs.insert((link.from, link.to)) {
            return wrong(format!(
                "the link {from} → {to} is given twice: keep one, with the sum of the capacities"
            ));
        }
    }
    Ok(())
}

fn inside(problem: &PlanProblem, place: &str, node: usize) -> Result<(), PlanError> {
    match problem.nodes.len() {
        count if node < count => Ok(()),
        count => wrong(format!("{place} is node {node}: must be from 0 to {}", count - 1)),
    }
}

fn tag(problem: &PlanProblem, index: usize, tag: &PlanTag) -> Result<(), PlanError> {
    let place = format!("tags[{index}]");
    if tag.tag.is_empty() {
        return wrong(format!("{place}.tag is empty: give the tag a name"));
    }
    if tag.publishers.is_empty() {
        return wrong(format!("{place}.publishers is empty: name at least one node"));
    }
    if tag.publishers.iter().collect::<BTreeSet<_>>().len() < tag.publishers.len() {
        return wrong(format!("{place}.publishers has a node twice: keep one"));
    }
    let allowed = tag.allowed.iter().flatten();
    let subscribers = tag.subscribers.iter().map(|subscriber| &subscriber.node);
    for node in tag.publishers.iter().chain(allowed).chain(subscribers) {
        inside(problem, &place, *node)?;
    }
    if tag.allowed.as_ref().is_some_and(Vec::is_empty) {
        return wrong(format!("{place}.allowed is empty: name a node, or leave it out for all"));
    }
    if tag.period.is_zero() || tag.bytes == 0 {
        return wrong(format!("{place}: period and bytes must be more than 0"));
    }
    let cpu = tag.cpu;
    for (name, cost) in [("receive", cpu.receive), ("send", cpu.send), ("scale", cpu.scale)] {
        if !(0.0..=CPU_MAX).contains(&cost) {
            return wrong(format!("{place}.cpu_{name} is {cost}: must be from 0 to {CPU_MAX} s"));
        }
    }
    for (number, subscriber) in tag.subscribers.iter().enumerate() {
        if subscriber.scale == 0 || subscriber.bytes == 0 {
            return wrong(format!(
                "{place}.subscribers[{number}]: scale and bytes must be at least 1"
            ));
        }
    }
    Ok(())
}
