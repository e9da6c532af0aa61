//! A plan as a picture in SVG.

use paceline_plan::{PlanProblem, Planned};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 640.0;
const BORDER: f64 = 60.0;
/// Networks with more nodes are drawn on a circle, because the layout takes the square of the nodes.
const LAYOUT_MAX: usize = 400;
/// Names are drawn up to this number of nodes.
const NAMES_MAX: usize = 120;
/// The tags in the legend.
const LEGEND_MAX: usize = 20;
const COLOURS: [&str; 8] =
    ["#1b6ca8", "#c0392b", "#1e8449", "#8e44ad", "#b9770e", "#117a65", "#5d6d7e", "#a04000"];

type Point = (f64, f64);

fn colour(tag: usize) -> &'static str {
    COLOURS.get(tag % COLOURS.len()).copied().unwrap_or("#000")
}

/// Draws the links in grey, each stream in the colour of its tag with the part behind the proxy
/// dashed, and each proxy as a ring.
pub(super) fn svg(problem: &PlanProblem, planned: &Planned) -> String {
    let places = layout(problem);
    let at = |node: usize| places.get(node).copied().unwrap_or_default();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut drawn = BTreeSet::new();
    for link in &problem.links {
        if drawn.insert((link.from.min(link.to), link.from.max(link.to))) {
            line(&mut out, at(link.from), at(link.to), "#bbb", 1.0, "");
        }
    }
    streams(&mut out, planned, &at);
    for (index, node) in problem.nodes.iter().enumerate() {
        let (x, y) = at(index);
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"#333\"/>");
        if problem.nodes.len() <= NAMES_MAX {
            let name = escaped(&node.id);
            let (x, y) = (x + 8.0, y - 8.0);
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>");
        }
    }
    let mut rings: BTreeMap<usize, f64> = BTreeMap::new();
    for proxy in &planned.proxies {
        let radius = rings.entry(proxy.node).or_insert(6.0);
        *radius += 3.0;
        let ((x, y), colour) = (at(proxy.node), colour(proxy.tag));
        let tag = problem.tags.get(proxy.tag).map_or("", |tag| tag.tag.as_str());
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"2\"><title>proxy of {}</title></circle>",
            escaped(tag)
        );
    }
    legend(&mut out, problem);
    out.push_str("</svg>\n");
    out
}

fn streams(out: &mut String, planned: &Planned, at: &impl Fn(usize) -> Point) {
    let mut drawn = BTreeSet::new();
    for stream in &planned.streams {
        let mut is_scaled = false;
        for pair in stream.path.windows(2) {
            let [from, to] = pair else { continue };
            is_scaled |= *from == stream.proxy;
            if !drawn.insert((stream.tag, *from, *to, is_scaled)) {
                continue;
            }
            // Streams of different tags and directions lie next to each other.
            let shift = 2.5 + 2.0 * f64::from(u8::try_from(stream.tag % 8).unwrap_or(0));
            let (a, b) = (at(*from), at(*to));
            let length = (b.0 - a.0).hypot(b.1 - a.1).max(1.0);
            let (x, y) = (-(b.1 - a.1) / length * shift, (b.0 - a.0) / length * shift);
            let dashes = if is_scaled { " stroke-dasharray=\"6 4\"" } else { "" };
            let (a, b) = ((a.0 + x, a.1 + y), (b.0 + x, b.1 + y));
            line(out, a, b, colour(stream.tag), 2.0, dashes);
        }
    }
}

fn line(out: &mut String, a: Point, b: Point, colour: &str, width: f64, more: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
         stroke-width=\"{width}\"{more}/>",
        a.0, a.1, b.0, b.1
    );
}

fn legend(out: &mut String, problem: &PlanProblem) {
    let mut y = 20.0;
    for (index, tag) in problem.tags.iter().enumerate().take(LEGEND_MAX) {
        let name = escaped(&tag.tag);
        let colour = colour(index);
        let _ = writeln!(out, "<text x=\"12\" y=\"{y}\" fill=\"{colour}\">{name}</text>");
        y += 16.0;
    }
    let y = HEIGHT - 12.0;
    let _ = writeln!(
        out,
        "<text x=\"12\" y=\"{y}\" fill=\"#555\">line: original form; dashed: behind the proxy; \
         ring: proxy</text>"
    );
}

/// Escapes text for XML. Characters that XML forbids are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Places the nodes: on a circle, then by springs along links and repulsion (Fruchterman and
/// Reingold 1991).
fn layout(problem: &PlanProblem) -> Vec<Point> {
    let count = problem.nodes.len();
    let step = std::f64::consts::TAU / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX));
    let mut angle = 0.0_f64;
    let mut places: Vec<Point> = Vec::with_capacity(count);
    for _ in 0..count {
        places.push((angle.cos(), angle.sin()));
        angle += step;
    }
    let rounds = if count <= LAYOUT_MAX { 150 } else { 0 };
    let ideal = (4.0 / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX))).sqrt();
    for round in 0..rounds {
        let heat = 0.2 * (1.0 - f64::from(round) / 150.0);
        let forces = forces(&places, problem, ideal);
        for (place, force) in places.iter_mut().zip(forces) {
            let length = force.0.hypot(force.1).max(1e-9);
            let most = length.min(heat) / length;
            *place = (place.0 + force.0 * most, place.1 + force.1 * most);
        }
    }
    fitted(&places)
}

fn forces(places: &[Point], problem: &PlanProblem, ideal: f64) -> Vec<Point> {
    let mut forces = vec![(0.0, 0.0); places.len()];
    for (node, (force, a)) in forces.iter_mut().zip(places).enumerate() {
        for (_, b) in places.iter().enumerate().filter(|(other, _)| *other != node) {
            let (x, y) = (a.0 - b.0, a.1 - b.1);
            let square = (x * x + y * y).max(1e-6);
            force.0 += x / square * ideal * ideal;
            force.1 += y / square * ideal * ideal;
        }
    }
    for link in &problem.links {
        if let (Some(a), Some(b)) = (places.get(link.from), places.get(link.to)) {
            let (x, y) = (b.0 - a.0, b.1 - a.1);
            let pull = x.hypot(y) / ideal;
            if let Some(force) = forces.get_mut(link.from) {
                *force = (force.0 + x * pull, force.1 + y * pull);
            }
        }
    }
    forces
}

/// Scales places to the picture.
fn fitted(places: &[Point]) -> Vec<Point> {
    let fold = |of: fn(&Point) -> f64, pick: fn(f64, f64) -> f64, first: f64| {
        places.iter().map(of).fold(first, pick)
    };
    let (left, right) =
        (fold(|p| p.0, f64::min, f64::INFINITY), fold(|p| p.0, f64::max, f64::NEG_INFINITY));
    let (top, bottom) =
        (fold(|p| p.1, f64::min, f64::INFINITY), fold(|p| p.1, f64::max, f64::NEG_INFINITY));
    let scale = |value: f64, low: f64, high: f64, size: f64| match high - low > 1e-9 {
        true => BORDER + (value - low) / (high - low) * (size - 2.0 * BORDER),
        false => size / 2.0,
    };
    places
        .iter()
        .map(|p| (scale(p.0, left, right, WIDTH), scale(p.1, top, bottom, HEIGHT)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_plan::{PlanLink, PlanNode, PlanSubscriber, PlanTag, plan};

    #[test]
    fn names_are_escaped_and_all_parts_are_drawn() {
        let mut problem = PlanProblem::new(["a<b>", "c&\u{1}", "d"].map(PlanNode::new).to_vec());
        problem.links = vec![PlanLink::new(0, 1), PlanLink::new(1, 2)];
        let period = paceline_sched::Duration::from_millis(10);
        let mut tag = PlanTag::new("t\"", 0, period, 10);
        let within = Some(period.mul_div(3, 1));
        tag.subscribers.push(PlanSubscriber { node: 2, scale: 2, bytes: 10, within });
        problem.tags.push(tag);
        let planned = plan(&problem, &mut || std::time::Duration::from_secs(9)).unwrap();
        let text = svg(&problem, &planned);
        assert!(text.contains("a&lt;b&gt;") && text.contains("c&amp;\u{fffd}"), "{text}");
        assert!(text.contains("proxy of t&quot;") && !text.contains("NaN"), "{text}");
        assert_eq!(text.matches("stroke-dasharray").count(), 1, "{text}");
        assert_eq!(text.matches("<line").count(), 4);
    }
}
