//! Lists of the available tags, for messages.

use paceline::Node;
use std::collections::BTreeSet;
use std::time::Duration;

const SHOWN: usize = 10;

/// Lists the tags that are currently published.
pub(crate) fn there(node: &Node) -> String {
    let status = node.status(Duration::from_millis(500));
    let publishers = status.iter().flat_map(|node| &node.publishers);
    told(&publishers.map(|publisher| publisher.tag.to_string()).collect())
}

/// Lists these tags, at most ten by name.
pub(crate) fn told(tags: &BTreeSet<String>) -> String {
    if tags.is_empty() {
        return "no tag is published now".to_owned();
    }
    let shown: Vec<&str> = tags.iter().take(SHOWN).map(String::as_str).collect();
    match tags.len() - shown.len() {
        0 => format!("the tags there are: {}", shown.join(", ")),
        more => format!("the tags there are: {} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tags_are_cut() {
        assert_eq!(told(&BTreeSet::new()), "no tag is published now");
        let tags: BTreeSet<String> = (10..22).map(|n| format!("t/{n}")).collect();
        let text = told(&tags);
        assert!(text.starts_with("the tags there are: t/10, t/11"), "{text}");
        assert!(text.ends_with("t/19 and 2 more"), "{text}");
    }
}
