//! Finds the paths in Rust code that begin with `crate::` or `super::`.

/// A path in the code, such as `crate::a::B`.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// The number of the line where it begins, from 0.
    pub(super) line: usize,
    /// The parts of the path, the first of them `crate`, `super` or a name.
    pub(super) parts: Vec<String>,
    /// The name that a `use` gives to the item.
    pub(super) alias: Option<String>,
}

/// Returns the paths of a code without comments and literals. A `use` with braces has a path for
/// each of its entries.
pub(super) fn paths(code: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let starts = ["crate", "super"].into_iter().flat_map(|word| code.match_indices(word));
    for (at, word) in starts {
        let (before, rest) = code.split_at_checked(at).unwrap_or((code, ""));
        let inside = before.ends_with(|c: char| is_name(c) || c == ':' || c == '$');
        let after = rest.get(word.len()..).unwrap_or_default();
        if !inside && after.trim_start().starts_with("::") {
            tree(rest, before.matches('\n').count(), &[], &mut found);
        }
    }
    found.sort_by_key(|found: &Found| found.line);
    found
}

/// Returns the paths of the `use` declarations, whatever their first part is.
pub(super) fn uses(code: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("use ") {
        let (before, rest) = code.split_at_checked(at).unwrap_or((code, ""));
        if !before.ends_with(is_name) {
            let rest = rest.get(word.len()..).unwrap_or_default();
            tree(rest, before.matches('\n').count(), &[], &mut found);
        }
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads the path or the group of paths at the start of `text`. Returns the text after it.
fn tree<'a>(text: &'a str, line: usize, prefix: &[String], found: &mut Vec<Found>) -> &'a str {
    let mut text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        text = group.trim_start();
        while !text.is_empty() && !text.starts_with('}') {
            let after = tree(text, line, prefix, found).trim_start();
            // Anything unexpected ends the group.
            let Some(after) = after.strip_prefix(',') else {
                return after.strip_prefix('}').unwrap_or(after);
            };
            text = after.trim_start();
        }
        return text.strip_prefix('}').unwrap_or(text);
    }
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, after) = text.split_at_checked(end).unwrap_or((text, ""));
    let mut parts = prefix.to_vec();
    if !name.is_empty() {
        parts.push(name.to_owned());
        if let Some(deeper) = after.trim_start().strip_prefix("::") {
            return tree(deeper, line, &parts, found);
        }
    }
    let (alias, after) = alias(after);
    found.push(Found { line, parts, alias });
    after.strip_prefix('*').unwrap_or(after)
}

/// Reads ` as NAME`.
fn alias(text: &str) -> (Option<String>, &str) {
    let Some(name) = text.trim_start().strip_prefix("as ") else { return (None, text) };
    let name = name.trim_start();
    let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let (name, after) = name.split_at_checked(end).unwrap_or((name, ""));
    (Some(name.to_owned()), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(found: Vec<Found>) -> Vec<String> {
        let text = |found: Found| {
            let alias = found.alias.map(|alias| format!(" as {alias}")).unwrap_or_default();
            format!("{} {}{alias}", found.line, found.parts.join("::"))
        };
        found.into_iter().map(text).collect()
    }

    #[test]
    fn paths_are_found_in_declarations_and_in_expressions() {
        let code = "use crate::a::B;\nlet x = crate::c::d::<u8>(super::e::F);\nsuper::super::g();";
        let expected = ["0 crate::a::B", "1 crate::c::d", "1 super::e::F", "2 super::super::g"];
        assert_eq!(found(paths(code)), expected);
    }

    #[test]
    fn groups_have_a_path_for_each_entry() {
        let code = "pub use crate::{a::{B, C as D}, e::*,\n  self, f};\nuse crate::g;";
        let expected = [
            "0 crate::a::B",
            "0 crate::a::C as D",
            "0 crate::e",
            "0 crate::self",
            "0 crate::f",
            "2 crate::g",
        ];
        assert_eq!(found(paths(code)), expected);
    }

    #[test]
    fn other_words_are_no_paths() {
        assert_eq!(paths("pub(crate) fn supercrate::a() { my_crate::b(); x.crate; }"), []);
    }

    #[test]
    fn declarations_may_begin_with_a_module() {
        let code = "mod a;\npub use a::{B, C};\npub(crate) use self::d::E;\nreuse a;";
        assert_eq!(found(uses(code)), ["1 a::B", "1 a::C", "2 self::d::E"]);
    }
}
