//! Checks the length of documents, and that every relative link resolves.

use super::{Findings, files};
use std::fs;
use std::path::Path;

/// The maximum number of lines of some documents.
const LINES_MAX: &[(&str, usize)] =
    &[("README.md", 110), ("ARCHITECTURE.md", 300), ("CONTRIBUTING.md", 100)];

pub(super) fn check(root: &Path, findings: &mut Findings) {
    for path in files::with_extension(root, "md") {
        let name = files::relative(root, &path);
        findings.files += 1;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                findings.error(format!("{name}: {error}"));
                continue;
            }
        };
        let lines = text.lines().count();
        if let Some((_, max)) = LINES_MAX.iter().find(|(file, max)| *file == name && lines > *max) {
            findings.error(format!("{name}: {lines} lines, at most {max}: move some to docs/"));
        }
        let folder = path.parent().unwrap_or(root);
        for target in links(&text).filter(|target| !folder.join(target).exists()) {
            findings.error(format!("{name}: the link target {target} does not exist"));
        }
    }
}

/// Returns the files that inline links point to, relative to the document. Code blocks are skipped.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    let lines = text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    lines.flat_map(|line| line.split("](").skip(1)).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        let file = target.split('#').next()?;
        let elsewhere = file.contains("://") || file.starts_with("mailto:");
        (!file.is_empty() && !elsewhere).then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_links_are_followed() {
        let text = "[a](docs/a.md#part) [b](https://example.org) [c](#here)\n\
            ```\n[d](d.md)\n```\n![e](e.svg \"title\")";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md", "e.svg"]);
    }
}
