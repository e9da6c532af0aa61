//! Lists of the available tags, for messages.

use paceline::Node;
use std::collections::BTreeSet;
use std::time::Duration;

const SHOWN: usize = 10;

/// Lists the tags that are currently published.
pub(crate) fn published(node: &Node) -> String {
    let status = node.status(Duration::from_millis(500));
    let publishers = status.iter().flat_map(|node| &node.publishers);
    describe(&publishers.map(|publisher| publisher.tag.to_string()).collect())
}

/// Lists these tags, at most ten by name.
pub(crate) fn describe(tags: &BTreeSet<String>) -> String {
    if tags.is_empty() {
        return "no tag is published".to_owned();
    }
    format!("published tags: {}", some(tags))
}

/// Lists these names, at most ten; the rest are counted.
pub(crate) fn some(names: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tags_are_cut() {
        assert_eq!(describe(&BTreeSet::new()), "no tag is published");
        let tags: BTreeSet<String> = (10..22).map(|n| format!("t/{n}")).collect();
        let text = describe(&tags);
        assert!(text.starts_with("published tags: t/10, t/11"), "{text}");
        assert!(text.ends_with("t/19 and 2 more"), "{text}");
    }
}
