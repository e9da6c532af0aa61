//! Reads the modules of a crate and the imports between them.

use super::circles::Edges;
use super::paths::{Found, paths, uses};
use crate::tidy::{files, scan};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module from the root of its crate, without `crate`.
type Module = Vec<String>;

/// The code of a crate, without its tests.
#[derive(Debug, Default)]
pub(super) struct Crate {
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    name: String,
    module: Module,
    code: String,
}

impl Crate {
    /// Reads the files below `folder`, a crate's `src`.
    pub(super) fn read(root: &Path, folder: &Path) -> Self {
        let sources = files::with_extension(folder, "rs").into_iter().map(|path| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            (files::relative(root, &path), files::relative(folder, &path), text)
        });
        Self::of(sources)
    }

    /// Takes the name of each file, its path below `src` and its text.
    fn of(sources: impl Iterator<Item = (String, String, String)>) -> Self {
        let mut tests = BTreeSet::new();
        let mut files = Vec::new();
        for (name, path, text) in sources {
            let module = module(&path);
            let code = scan::layers(&text).code;
            for test in test_modules(&code) {
                tests.insert([module.clone(), vec![test]].concat());
            }
            files.push(File { name, module, code: scan::without_tests(&code) });
        }
        let is_test = |file: &File| tests.iter().any(|test| file.module.starts_with(test));
        files.retain(|file| !is_test(file));
        Self { files }
    }

    /// Returns the modules that contain other modules.
    pub(super) fn parents(&self) -> BTreeSet<Module> {
        let parent = |module: &Module| module.split_last().map(|(_, parent)| parent.to_vec());
        self.files.iter().filter_map(|file| parent(&file.module)).collect()
    }

    /// Returns the imports between the modules directly below `parent`.
    pub(super) fn edges(&self, parent: &[String]) -> Edges {
        let below = |module: &Module| module.strip_prefix(parent)?.first().cloned();
        let children: BTreeSet<String> =
            self.files.iter().filter_map(|file| below(&file.module)).collect();
        let exports = self.exports(parent, &children);
        let mut edges = Edges::new();
        for file in &self.files {
            let Some(from) = below(&file.module) else { continue };
            for found in paths(&file.code) {
                let Some(to) = below(&absolute(&file.module, &found.parts)) else { continue };
                let to = if children.contains(&to) { Some(&to) } else { exports.get(&to) };
                if let Some(to) = to.filter(|to| **to != from) {
                    let place = format!("{}:{}", file.name, found.line + 1);
                    let places = edges.entry((from.clone(), to.clone())).or_default();
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
            }
        }
        edges
    }

    /// Returns the child that each name of the parent module comes from.
    fn exports(&self, parent: &[String], children: &BTreeSet<String>) -> BTreeMap<String, String> {
        let mut exports = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.module == parent) {
            for Found { parts, alias, .. } in uses(&file.code) {
                let parts = match parts.first().map(String::as_str) {
                    Some("crate" | "super") => absolute(parent, &parts)
                        .strip_prefix(parent)
                        .map(<[String]>::to_vec)
                        .unwrap_or_default(),
                    Some("self") => parts.into_iter().skip(1).collect(),
                    _ => parts,
                };
                if let [child, .., name] = parts.as_slice()
                    && children.contains(child)
                {
                    exports.insert(alias.unwrap_or_else(|| name.clone()), child.clone());
                }
            }
        }
        exports
    }
}

/// Returns the module of a file.
fn module(path: &str) -> Module {
    match path.strip_suffix(".rs").unwrap_or(path) {
        "lib" | "main" => Module::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

/// Returns the names of the modules that are compiled only for tests and have their own files.
fn test_modules(code: &str) -> Vec<String> {
    let after = code.split("#[cfg(test)]").skip(1).map(without_attributes);
    let names = after.filter_map(|item| {
        let (before, name) = item.split_once("mod ")?;
        let (name, _) = name.split_once(';')?;
        let visible = before.is_empty() || before.starts_with("pub");
        let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        (visible && plain && !before.contains(';')).then(|| name.to_owned())
    });
    names.collect()
}

fn without_attributes(item: &str) -> &str {
    let item = item.trim_start();
    match item.strip_prefix("#[").and_then(|attribute| attribute.split_once(']')) {
        Some((_, item)) => without_attributes(item),
        None => item,
    }
}

/// Returns a path from the root of the crate, for a path in a module.
fn absolute(module: &[String], parts: &[String]) -> Module {
    let mut path = module.to_vec();
    for part in parts {
        match part.as_str() {
            "crate" => path.clear(),
            "super" => {
                path.pop();
            }
            "self" => {}
            name => path.push(name.to_owned()),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Crate {
        let own = |(path, text): &(&str, &str)| {
            ((*path).to_owned(), (*path).to_owned(), (*text).to_owned())
        };
        Crate::of(files.iter().map(own))
    }

    fn edges(source: &Crate, parent: &[&str]) -> Vec<String> {
        let parent: Module = parent.iter().map(|&name| name.to_owned()).collect();
        let text = |((from, to), places): ((String, String), Vec<String>)| {
            format!("{from} {to} {}", places.join(" "))
        };
        source.edges(&parent).into_iter().map(text).collect()
    }

    #[test]
    fn imports_are_found_by_path_and_by_re_export() {
        let source = of(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::{C, D as E};\npub struct Root;"),
            ("a.rs", "use crate::b::{self, B};\nuse super::c;\nuse crate::Root;"),
            ("b.rs", "fn b() { crate::E::new(); } // crate::a::A"),
            ("c.rs", "use crate::c::C;"),
        ]);
        assert_eq!(edges(&source, &[]), ["a b a.rs:1", "a c a.rs:2", "b c b.rs:1"]);
    }

    #[test]
    fn files_in_folders_belong_to_the_module_above() {
        let source = of(&[
            ("main.rs", ""),
            ("a.rs", "pub use x::X;"),
            ("a/x.rs", "use super::y::Y;\nuse super::super::b;"),
            ("a/y.rs", "use super::X;\nuse crate::a::x::Z;"),
            ("b.rs", ""),
        ]);
        assert_eq!(edges(&source, &[]), ["a b a/x.rs:2"]);
        assert_eq!(edges(&source, &["a"]), ["x y a/x.rs:1", "y x a/y.rs:1 a/y.rs:2"]);
        assert_eq!(source.parents().len(), 2);
    }

    #[test]
    fn tests_may_import_anything() {
        let source = of(&[
            ("a.rs", "#[cfg(test)]\nmod tests {\n  use crate::b;\n}\nuse crate::c;"),
            (
                "b.rs",
                "#[cfg(test)]\n#[path = \"b/tests.rs\"]\nmod tests;\n#[cfg(test)]\npub(crate) mod twin;",
            ),
            ("b/tests.rs", "use crate::a;"),
            ("b/twin.rs", "use crate::a;"),
            ("c.rs", ""),
        ]);
        assert_eq!(edges(&source, &[]), ["a c a.rs:5"]);
    }
}
