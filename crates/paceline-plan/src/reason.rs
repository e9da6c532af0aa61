//! The reasons for the places of a plan, in words.

use crate::list::{Assignment, TOLERANCE};
use crate::model::Model;
use crate::problem::{Objective, PlanTag};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The most tags that the text describes.
const SHOWN_MAX: usize = 8;

/// Returns a sentence for each tag with the cost of its alternatives.
pub(crate) fn because(model: &Model<'_>, assignment: &Assignment) -> String {
    let mut text = String::new();
    for (tag, proxies) in assignment.iter().enumerate().take(SHOWN_MAX) {
        if let Some(spec) = model.problem.tags.get(tag).filter(|_| !proxies.is_empty()) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&of_tag(model, tag, spec, proxies));
        }
    }
    if let Some(more) = assignment.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = write!(text, " {more} more tags.");
    }
    text
}

fn of_tag(model: &Model<'_>, tag: usize, spec: &PlanTag, proxies: &[usize]) -> String {
    let cost = model.usage(tag, proxies).cost;
    let saved = model.saved(tag, proxies);
    let shared = match saved > cost * TOLERANCE {
        true => format!(", after multicast on segments saves {}", amount(model, saved)),
        false => String::new(),
    };
    let nodes: BTreeSet<usize> = proxies.iter().copied().collect();
    let names: Vec<String> = nodes.iter().map(|&node| model.name(node)).collect();
    let is_original =
        |to: usize| model.tag(tag).is_some_and(|(_, forms)| crate::list::at(&forms.of, to) == 0);
    if (0..proxies.len()).all(is_original) {
        return format!("{} is not scaled and costs {}{shared}.", spec.tag, amount(model, cost));
    }
    let mut text = format!(
        "{} is scaled at {} for {}{shared}",
        spec.tag,
        names.join(", "),
        amount(model, cost)
    );
    let publisher = spec.publishers.first().copied().unwrap_or(0);
    let ends = [("the publisher", Some(publisher)), ("each subscriber", None)];
    for (name, node) in ends {
        let own = || spec.subscribers.iter().map(|it| it.node).collect::<Vec<_>>();
        let other = node.map_or_else(own, |node| vec![node; proxies.len()]);
        if other == proxies {
            continue;
        }
        let distinct: BTreeSet<usize> = other.iter().copied().collect();
        let late = other.iter().enumerate().find(|&(to, &node)| !model.in_time(tag, to, node));
        let cost = amount(model, model.usage(tag, &other).cost);
        let _ = match late {
            Some((to, _)) => {
                let late =
                    spec.subscribers.get(to).map_or_else(String::new, |it| model.name(it.node));
                write!(text, "; at {name} it is too late for {late}")
            }
            None if distinct.len() > model.problem.proxies => {
                write!(text, "; at {name} it needs {} proxies and {cost}", distinct.len())
            }
            None => write!(text, "; at {name} it costs {cost}"),
        };
    }
    text.push('.');
    text
}

/// Formats a cost with the unit of the objective.
fn amount(model: &Model<'_>, cost: f64) -> String {
    match model.problem.objective {
        Objective::Bandwidth => match cost {
            cost if cost >= 1e6 => format!("{:.3} mbit/s", cost / 1e6),
            cost if cost >= 1e3 => format!("{:.3} kbit/s", cost / 1e3),
            cost => format!("{cost:.1} bit/s"),
        },
        Objective::Cpu => format!("{cost:.6} s of processor time per second"),
        Objective::Weighted(_) => format!("a weighted cost of {cost:.3}"),
    }
}
