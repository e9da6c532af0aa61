//! Checks the imports between the modules of each crate: no circles, and no import between the
//! parts of `paceline-proto` that stand next to each other.
//!
//! Test code may import any module.

mod circles;
mod imports;
mod paths;

use super::files;
use super::ratchet::{Limit, Measure};
use circles::{Edges, circles};
use imports::Crate;
use std::path::Path;

/// The crate of the core's parts.
const CORE: &str = "paceline-proto";
/// Parts of a module, given by its path below the crate, that must not import each other. The modules that they share
/// stand below them.
const PARTS: &[(&[&str], &[&str])] =
    &[(&[], &["control", "ingress", "link"]), (&["control"], &["contracts", "routing"])];

/// Returns the number of circles of each crate, and of imports between the parts of the core.
pub(super) fn measures(root: &Path) -> Vec<Measure> {
    let mut measures = Vec::new();
    for folder in folders(root) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source = Crate::read(root, &folder.join("src"));
        let edges = source.edges(&[]);
        let inner = source.parents().into_iter().filter(|parent| !parent.is_empty());
        let inner = inner.flat_map(|parent| described(&source.edges(&parent)));
        measures.push(measure("circles", &name, described(&edges)));
        measures.push(measure("inner-circles", &name, inner.collect()));
        if name == CORE {
            let between = PARTS.iter().flat_map(|(parent, parts)| {
                let parent: Vec<String> = parent.iter().map(|&name| name.to_owned()).collect();
                between_parts(&source.edges(&parent), parts)
            });
            measures.push(measure("imports-between-parts", CORE, between.collect()));
        }
    }
    measures
}

/// Returns the folders of the crates.
fn folders(root: &Path) -> Vec<std::path::PathBuf> {
    let manifests = files::with_extension(root, "toml").into_iter();
    let manifests = manifests.filter(|path| path.ends_with("Cargo.toml"));
    let folders = manifests.filter_map(|path| path.parent().map(Path::to_owned));
    folders.filter(|folder| folder.join("src").is_dir()).collect()
}

fn measure(check: &'static str, group: &str, places: Vec<String>) -> Measure {
    let value = u32::try_from(places.len()).map_or(f64::INFINITY, f64::from);
    let (group, limit) = (group.to_owned(), Limit::AtMost(0.0));
    Measure { check, group, value, limit, unit: "found", places }
}

/// Returns each circle with the place of an import for each of its steps.
fn described(edges: &Edges) -> Vec<String> {
    circles(edges).iter().map(|circle| describe(circle, edges)).collect()
}

fn describe(circle: &[String], edges: &Edges) -> String {
    let next = circle.iter().skip(1).chain(circle.first());
    let mut text = circle.join(" → ");
    text += " → ";
    text += circle.first().map_or("", String::as_str);
    for (from, to) in circle.iter().zip(next) {
        let places = edges.get(&(from.clone(), to.clone())).map_or(&[][..], Vec::as_slice);
        let more = match places.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        text += &format!("; {}{more}", places.first().map_or("", String::as_str));
    }
    text
}

fn between_parts(edges: &Edges, parts: &[&str]) -> Vec<String> {
    let is_part = |module: &String| parts.contains(&module.as_str());
    let between = edges.iter().filter(|((from, to), _)| is_part(from) && is_part(to));
    let lines = between.flat_map(|((from, to), places)| {
        places.iter().map(move |place| format!("{place}: {from} imports {to}"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(of: &[(&str, &str, &[&str])]) -> Edges {
        let own = |places: &[&str]| places.iter().map(|&place| place.to_owned()).collect();
        of.iter().map(|(a, b, places)| (((*a).to_owned(), (*b).to_owned()), own(places))).collect()
    }

    #[test]
    fn a_circle_is_printed_with_its_imports() {
        let edges = edges(&[("a", "b", &["a.rs:1", "a.rs:9"]), ("b", "a", &["b.rs:2"])]);
        assert_eq!(described(&edges), ["a → b → a; a.rs:1 and 1 more; b.rs:2"]);
    }

    #[test]
    fn parts_may_only_import_what_is_below_them() {
        let edges = edges(&[
            ("control", "ids", &["control.rs:1"]),
            ("control", "link", &["control.rs:2", "control/a.rs:3"]),
            ("pull", "control", &["pull.rs:1"]),
        ]);
        let expected =
            ["control.rs:2: control imports link", "control/a.rs:3: control imports link"];
        assert_eq!(between_parts(&edges, &["control", "ingress", "link"]), expected);
    }
}
