//! Checks for conflicting rules of one node: rules that duplicate samples or form a loop.

use crate::history;
use crate::key::KeyError;
use crate::rule::{QueryRule, Rules};

/// A conflict between two rules. Rule numbers start at 1.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleConflict {
    /// An export returns the samples of an import to their origin.
    #[error(
        "import {import} (key '{key}') and export {export} (tag '{tag}') are a loop: samples that \
         plain programs put on '{key}' would return to them on '{back}'; use separate tags for the \
         import, like \"{example}/{{key}}\", that the export does not match"
    )]
    Loop {
        /// The number of the import rule.
        import: usize,
        /// The number of the export rule.
        export: usize,
        /// The keys of the import.
        key: String,
        /// The tags of the export.
        tag: String,
        /// The keys that the export puts on.
        back: String,
        /// A suggestion for a prefix.
        example: &'static str,
    },
    /// Two import rules publish the same key on the same tag.
    #[error(
        "imports {first} (key '{key}') and {second} (key '{other}') map the same keys to the same \
         tags: every sample would be published twice; keep one, or change the tags of one"
    )]
    SameImport {
        /// The number of the first rule.
        first: usize,
        /// The number of the second rule.
        second: usize,
        /// The keys of the first rule.
        key: String,
        /// The keys of the second rule.
        other: String,
    },
    /// Two export rules put the same tag on the same key.
    #[error(
        "exports {first} (tag '{tag}') and {second} (tag '{other}') put the same tags on the same \
         keys: every sample would be put twice; keep one, or change the keys of one"
    )]
    SameExport {
        /// The number of the first rule.
        first: usize,
        /// The number of the second rule.
        second: usize,
        /// The tags of the first rule.
        tag: String,
        /// The tags of the second rule.
        other: String,
    },
    /// Two query rules carry the same queries.
    #[error(
        "queries {first} (key '{key}') and {second} (key '{other}') {what}: every query would be \
         answered twice; keep one, or change the keys and the tag of one"
    )]
    SameQuery {
        /// The number of the first rule.
        first: usize,
        /// The number of the second rule.
        second: usize,
        /// The keys of the first rule.
        key: String,
        /// The keys of the second rule.
        other: String,
        /// A description of the overlap.
        what: String,
    },
    /// A template without a valid result.
    #[error("{0}")]
    Key(#[from] KeyError),
}

impl RuleConflict {
    /// Returns the later rule of the conflict: the name of its kind in the configuration, and its
    /// index from 0.
    #[must_use]
    pub const fn culprit(&self) -> Option<(&'static str, usize)> {
        match self {
            Self::Loop { export, .. } => Some(("export", *export - 1)),
            Self::SameImport { second, .. } => Some(("import", *second - 1)),
            Self::SameExport { second, .. } => Some(("export", *second - 1)),
            Self::SameQuery { second, .. } => Some(("query", *second - 1)),
            Self::Key(_) => None,
        }
    }
}

/// Checks the rules of one node for conflicts. The check compares patterns, so it also rejects
/// rules that would loop for some names only.
///
/// # Errors
/// The first [`RuleConflict`], which names both rules and the remedy.
pub fn check(rules: &Rules) -> Result<(), RuleConflict> {
    check_queries(&rules.queries)?;
    for (second, later) in rules.imports.iter().enumerate() {
        let makes = later.tag.makes()?;
        for (first, earlier) in rules.imports.iter().enumerate().take(second) {
            if earlier.tokens == later.tokens
                && earlier.key.intersects(&later.key)
                && earlier.tag.makes()?.intersects(&makes)
            {
                let (key, other) = (earlier.key.to_string(), later.key.to_string());
                let (first, second) = (first + 1, second + 1);
                return Err(RuleConflict::SameImport { first, second, key, other });
            }
        }
    }
    for (second, later) in rules.exports.iter().enumerate() {
        let makes = later.key.makes()?;
        for (first, earlier) in rules.exports.iter().enumerate().take(second) {
            if earlier.tokens == later.tokens
                && earlier.tag.intersects(&later.tag)
                && earlier.key.makes()?.intersects(&makes)
            {
                let (tag, other) = (earlier.tag.to_string(), later.tag.to_string());
                let (first, second) = (first + 1, second + 1);
                return Err(RuleConflict::SameExport { first, second, tag, other });
            }
        }
        for (at, import) in rules.imports.iter().enumerate() {
            // Token rules do not rename keys.
            let returns = later.tokens || makes.intersects(&import.key);
            if import.tokens == later.tokens
                && import.tag.makes()?.intersects(&later.tag)
                && returns
            {
                return Err(RuleConflict::Loop {
                    import: at + 1,
                    export: second + 1,
                    key: import.key.to_string(),
                    tag: later.tag.to_string(),
                    back: if later.tokens { import.key.to_string() } else { makes.to_string() },
                    example: "here",
                });
            }
        }
    }
    Ok(())
}

fn check_queries(rules: &[QueryRule]) -> Result<(), RuleConflict> {
    for (second, later) in rules.iter().enumerate() {
        for (first, earlier) in rules.iter().enumerate().take(second) {
            let what = if earlier.tag == later.tag {
                format!("have the same tag '{}'", later.tag)
            } else if history::overlap(&earlier.key, &later.key) {
                "have keys in common".to_owned()
            } else {
                continue;
            };
            let (key, other) = (earlier.key.to_string(), later.key.to_string());
            let (first, second) = (first + 1, second + 1);
            return Err(RuleConflict::SameQuery { first, second, key, other, what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyPattern, Template};
    use crate::rule::{ExportRule, ImportRule};

    fn import(key: &str, tag: &str) -> ImportRule {
        let key = KeyPattern::new(key).unwrap();
        let tag = Template::new(tag, "key", &key).unwrap();
        ImportRule::new(key, tag)
    }

    fn export(tag: &str, key: &str) -> ExportRule {
        let tag = KeyPattern::new(tag).unwrap();
        let key = Template::new(key, "tag", &tag).unwrap();
        ExportRule::new(tag, key)
    }

    fn found(imports: &[ImportRule], exports: &[ExportRule]) -> Option<String> {
        let (imports, exports) = (imports.to_vec(), exports.to_vec());
        let rules = Rules { imports, exports, ..Rules::default() };
        check(&rules).err().map(|conflict| conflict.to_string())
    }

    #[test]
    fn loops_are_refused_with_both_rules_named() {
        let loops = [
            ("robot/**", "{key}", "robot/**", "{tag}"),
            ("robot/**", "lab/{1}", "lab/**", "robot/{1}"),
            ("robot/*/camera", "{1}", "*", "robot/{1}/camera"),
            ("robot/camera", "picture", "**", "robot/camera"),
            ("0/**/*/*", "ros2/{1}/{2}/{3}", "ros2/**", "0/{1}"),
        ];
        for (key, tag, pattern, back) in loops {
            let message = found(&[import(key, tag)], &[export(pattern, back)]).expect(key);
            for part in ["import 1", "export 1", key, pattern, "are a loop"] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
        let fine = [
            // Both directions, with separate tags for each node.
            ("robot/**", "robot/{key}", "operator/**", "{1}"),
            // A throttled copy for programs of the same host.
            ("robot/**", "{key}", "robot/**", "slow/{tag}"),
            ("robot/camera", "picture", "picture", "robot/camera/slow"),
        ];
        for (key, tag, pattern, back) in fine {
            assert_eq!(found(&[import(key, tag)], &[export(pattern, back)]), None, "{key}");
        }
    }

    #[test]
    fn overlapping_queries_are_named() {
        let rule = |key: &str, tag: &str| {
            let tag = tag.to_owned();
            QueryRule { tag, ..QueryRule::new(KeyPattern::new(key).unwrap()) }
        };
        let found = |rules: [QueryRule; 2]| {
            let rules = Rules { queries: rules.to_vec(), ..Rules::default() };
            check(&rules).err().map(|conflict| conflict.to_string())
        };
        let same = found([rule("a/**", "x"), rule("b", "x")]).unwrap();
        assert!(
            same.contains("queries 1 (key 'a/**') and 2 (key 'b') have the same tag"),
            "{same}"
        );
        let same = found([rule("a/**", "x"), rule("a/b", "y")]).unwrap();
        assert!(same.contains("have keys in common"), "{same}");
        let same = found([rule("a/*/@adv/**", "x"), rule("a/**", "y")]).unwrap();
        assert!(same.contains("have keys in common"), "{same}");
        assert_eq!(found([rule("a/**", "x"), rule("b", "y")]), None);
        assert_eq!(found([rule("a/**", "x"), rule("b/@adv/**", "y")]), None);
    }

    #[test]
    fn two_rules_for_one_key_are_named() {
        let same = found(&[import("a/**", "{key}"), import("a/b", "{key}")], &[]).unwrap();
        assert!(same.contains("imports 1 (key 'a/**') and 2 (key 'a/b')"), "{same}");
        assert_eq!(found(&[import("a/**", "{key}"), import("a/b", "other/{key}")], &[]), None);
        let same = found(&[], &[export("a/*", "{tag}"), export("*/b", "{tag}")]).unwrap();
        assert!(same.contains("exports 1 (tag 'a/*') and 2 (tag '*/b')"), "{same}");
        assert_eq!(found(&[], &[export("a/*", "{tag}"), export("*/b", "slow/{tag}")]), None);
    }
}
