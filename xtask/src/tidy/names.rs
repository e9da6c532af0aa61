//! Checks that no two public types of the crates have the same name.
//!
//! Only plain `pub` counts: other types do not appear in the documentation or in a user's imports.

use super::ratchet::{Limit, Measure};
use super::{files, scan};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The keywords that declare a type.
const KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// A name that several crates may use, once each.
struct Exemption {
    name: &'static str,
    crates: &'static [&'static str],
    /// The reason, which the error message repeats if another type takes the name.
    reason: &'static str,
}

const EXEMPT: &[Exemption] = &[
    Exemption {
        name: "Node",
        crates: &["paceline", "paceline-node"],
        reason: "a node with threads, and the same without; a program uses one of them",
    },
    Exemption {
        name: "Size",
        crates: &["paceline-media", "paceline-proto"],
        reason: "the width and height of a picture; media must not depend on proto",
    },
];

/// A public type.
#[derive(Debug, Eq, PartialEq)]
struct Type {
    name: String,
    folder: String,
    /// The path of its file and its line.
    place: String,
}

/// Returns the number of names that belong to several public types.
pub(super) fn measures(root: &Path) -> Vec<Measure> {
    let places = duplicates(&read(root));
    let value = u32::try_from(places.len()).map_or(f64::INFINITY, f64::from);
    let (check, group, limit) = ("public-names", "workspace".to_owned(), Limit::AtMost(0.0));
    vec![Measure { check, group, value, limit, unit: "found", places }]
}

/// Returns the public types of the crates, without their tests.
fn read(root: &Path) -> Vec<Type> {
    let mut found = Vec::new();
    for path in files::with_extension(&root.join("crates"), "rs") {
        let name = files::relative(root, &path);
        let mut parts = name.split('/').skip(1);
        if let (Some(folder), Some("src")) = (parts.next(), parts.next()) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            found.extend(types(folder, &name, &text));
        }
    }
    found
}

/// Returns the public types of a file.
fn types(folder: &str, file: &str, text: &str) -> Vec<Type> {
    if file.ends_with("/tests.rs") || file.contains("/tests/") {
        return Vec::new();
    }
    let code = scan::without_tests(&scan::layers(text).code);
    let lines = code.lines().enumerate().filter_map(|(number, line)| {
        let (folder, place) = (folder.to_owned(), format!("{file}:{}", number + 1));
        declared(line).map(|name| Type { name: name.to_owned(), folder, place })
    });
    lines.collect()
}

/// Returns the name of the public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().filter(|&word| word != "unsafe");
    let is_public = words.next() == Some("pub") && KEYWORDS.contains(&words.next()?);
    let rest = words.next().filter(|_| is_public)?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

/// Returns each name that several types have, with their places.
fn duplicates(types: &[Type]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Type>> = BTreeMap::new();
    for found in types {
        by_name.entry(&found.name).or_default().push(found);
    }
    let mut lines = Vec::new();
    for (name, types) in by_name.into_iter().filter(|(_, types)| types.len() > 1) {
        let exemption = EXEMPT.iter().find(|exemption| exemption.name == name);
        if exemption.is_some_and(|exemption| covers(exemption, &types)) {
            continue;
        }
        let places: Vec<&str> = types.iter().map(|found| found.place.as_str()).collect();
        let allowed = exemption.map_or_else(String::new, |Exemption { crates, reason, .. }| {
            format!("; only {} may share it: {reason}", crates.join(" and "))
        });
        lines.push(format!("{name}: {}{allowed}", places.join(", ")));
    }
    lines
}

/// Returns true if each type is in another crate of the exemption.
fn covers(exemption: &Exemption, types: &[&Type]) -> bool {
    types.iter().all(|found| {
        let here = types.iter().filter(|other| other.folder == found.folder).count();
        here == 1 && exemption.crates.contains(&found.folder.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let types = files.iter().flat_map(|(folder, text)| types(folder, folder, text));
        duplicates(&types.collect::<Vec<_>>())
    }

    #[test]
    fn two_public_types_with_one_name_are_found() {
        let (one, other) =
            ("\npub struct Link {\n", "pub enum Link<'a> {\n    pub type Link = ();");
        assert_eq!(found(&[("a", one), ("b", "pub struct Links;")]), [""; 0]);
        assert_eq!(found(&[("a", one), ("b", other)]), ["Link: a:2, b:1, b:2"]);
        assert_eq!(found(&[("a", one), ("a", one)]), ["Link: a:2, a:2"]);
        let rest =
            ["pub trait T: Copy {", "pub unsafe trait T {", "pub union T {", "pub type T = ();"];
        let all = rest.join("\n");
        assert_eq!(found(&[("a", &all)]), ["T: a:1, a:2, a:3, a:4"]);
        let late = format!("#[cfg(test)]\nmod tests {{\n}}\n{all}");
        assert_eq!(found(&[("a", &late)]), ["T: a:4, a:5, a:6, a:7"]);
    }

    #[test]
    fn other_visibilities_and_tests_do_not_count() {
        for text in [
            "struct Link;",
            "pub(crate) struct Link;",
            "pub(in crate::link) enum Link {}",
            "// pub struct Link;",
            "pub const LINK: &str = \"\npub struct Link;\n\";",
            "pub fn struct_of(Link: u8) {}",
            "#[cfg(test)]\nmod tests {\n    pub struct Link;\n}",
            "pub struct $name;",
        ] {
            assert_eq!(found(&[("a", "pub struct Link;"), ("b", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn an_exemption_covers_one_type_of_each_of_its_crates() {
        let size = "pub struct Size;";
        let (media, proto) = (("paceline-media", size), ("paceline-proto", size));
        assert_eq!(found(&[media, proto]), [""; 0]);
        for more in [media, ("paceline-sim", size)] {
            let lines = found(&[media, proto, more]);
            assert!(lines[0].contains("only paceline-media and paceline-proto"), "{lines:?}");
        }
    }
}
