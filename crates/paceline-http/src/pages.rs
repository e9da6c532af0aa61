//! The dashboard's files, embedded if they were built before the binary.

use super::answer::{self, Answer};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The index page if the dashboard was not built.
const MISSING: &str = r#"<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Paceline</title>
<h1>Paceline</h1>
<p>This <code>paceline</code> was built without its pages. With Node 20 or newer,
<code>cargo xtask web</code> builds them. Then build <code>paceline</code> again.</p>
<p>The API works without them: <a href="/api/v1/state">/api/v1/state</a>, <a href="/metrics">/metrics</a>.
</html>
"#;

/// The client for pages. Its name stays while its content changes, like the name of a page.
const CLIENT: &str = "/client.js";

/// Returns the file at `path`, if it exists.
pub(super) fn find(path: &str) -> Option<Answer> {
    let index = path == "/" || path == "/index.html";
    let name = match path {
        _ if index => "/index.html",
        "/operator" => "/operator.html",
        path => path,
    };
    let found = PAGES.iter().find(|(known, _)| *known == name);
    match (found, index) {
        (Some((_, content)), true) => Some(answer::bytes("text/html; charset=utf-8", *content)),
        (Some((name, content)), false) if *name == CLIENT || name.ends_with(".html") => {
            Some(answer::bytes(kind(name), *content))
        }
        (Some((name, content)), false) => Some(answer::lasting(kind(name), content)),
        (None, true) => Some(answer::bytes("text/html; charset=utf-8", MISSING)),
        (None, false) => None,
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_embedded_files_are_served_and_always_a_first_page() {
        assert!(find("/").is_some() && find("/index.html").is_some());
        for path in ["/nothing.js", "/../Cargo.toml", "/assets/../index.html", "//index.html", ""] {
            assert!(find(path).is_none(), "{path}");
        }
        assert!(MISSING.contains("cargo xtask web"));
    }
}
