//! Lines over samples or time, as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 50.0;
const TOP: f64 = 40.0;
const COLOURS: [&str; 4] = ["#c0392b", "#1b6ca8", "#1e8449", "#b9770e"];
/// The points of a line; further ones are left out evenly.
const POINTS_MAX: usize = 1_500;

/// A line with its name.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws `lines` under a title, with the names of both axes.
pub(crate) fn svg(title: &str, axes: [&str; 2], lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let right = all().map(|point| point.0).fold(1e-9, f64::max);
    let low = all().map(|point| point.1).fold(0.0, f64::min);
    let high = all().map(|point| point.1).fold(1e-9, f64::max);
    let x = |value: f64| LEFT + (WIDTH - LEFT - 20.0) * value / right;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut text = |x: f64, y: f64, anchor: &str, what: &str| {
        let _ =
            writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>");
    };
    text(LEFT, 16.0, "start", title);
    text(WIDTH - 20.0, HEIGHT - 10.0, "end", axes[0]);
    text(LEFT, TOP - 8.0, "start", axes[1]);
    text(LEFT - 6.0, y(high), "end", &format!("{high:.3}"));
    text(LEFT - 6.0, y(low), "end", &format!("{low:.3}"));
    text(x(right), HEIGHT - BOTTOM + 16.0, "end", &format!("{right:.0}"));
    // The names share the width above the axis.
    let step = ((WIDTH - LEFT - 20.0) / lines.len().max(1) as f64).min(220.0);
    for ((at, line), colour) in (0_u16..).zip(lines).zip(COLOURS.iter().cycle()) {
        let right = WIDTH - 20.0 - step * f64::from(at);
        let name = &line.name;
        let _ = writeln!(
            out,
            "<text x=\"{right:.1}\" y=\"30\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>"
        );
        let every = line.points.len().div_ceil(POINTS_MAX).max(1);
        let points = line.points.iter().step_by(every);
        let points: Vec<_> =
            points.map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>",
            points.join(" ")
        );
    }
    let (bottom, end) = (y(low), x(right));
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT},{TOP} V{bottom:.1} H{end:.1}\" fill=\"none\" stroke=\"#333\"/>\n</svg>"
    );
    out
}
