//! Fuzz body for tags, patterns and their matching.

use paceline_proto::tag::TAG_BYTES_MAX;
use paceline_proto::{Pattern, Tag};

/// Runs `data` as a pattern, a line end, and a tag.
pub fn tags(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (pattern, tag) = text.split_once('\n').unwrap_or((&text, "robot/camera"));
    let (asked, named) = (Pattern::new(pattern), Tag::new(tag));
    if let Ok(tag) = &named {
        assert!(tag.as_str().len() <= TAG_BYTES_MAX && !tag.as_str().contains('*'));
        assert_eq!(Pattern::new(tag.as_str()).map(|same| same.matches(tag)), Ok(true));
    }
    if let Err(error) = &named {
        assert!(!error.to_string().is_empty());
    }
    let (Ok(asked), Ok(named)) = (asked, named) else { return };
    let chunks = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    let plain = matches(&chunks(asked.as_str()), &chunks(named.as_str()));
    assert_eq!(asked.matches(&named), plain, "{asked} and {named}");
}

/// Matches by the literal rule: `*` is one chunk and `**` any number, but neither matches a private chunk.
pub(crate) fn matches(pattern: &[String], tag: &[String]) -> bool {
    let private = |chunk: &String| chunk.starts_with('@');
    match (pattern.split_first(), tag.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "**" => (0..=tag.len())
            .take_while(|&taken| !tag[..taken].iter().any(private))
            .any(|taken| matches(rest, &tag[taken..])),
        (Some((first, rest)), Some((have, more))) => {
            (first == have || first == "*" && !private(have)) && matches(rest, more)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}
