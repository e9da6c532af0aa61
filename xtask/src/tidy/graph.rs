//! Checks the dependencies of each crate against the layers of ARCHITECTURE.md.

use super::Findings;
use std::fs;
use std::path::Path;

/// A crate and its permitted dependencies. A new entry changes the architecture and must be
/// documented there.
struct Layer {
    folder: &'static str,
    uses: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer { folder: "crates/paceline-sched", uses: &["prefetch-index"] },
    Layer { folder: "crates/paceline-admit", uses: &["paceline-sched"] },
    Layer { folder: "crates/paceline-time", uses: &["paceline-sched", "aes", "cmac"] },
    Layer {
        folder: "crates/paceline-objects",
        uses: &["paceline-sched", "paceline-time", "bytes", "cel", "thiserror"],
    },
    Layer { folder: "crates/paceline-plan", uses: &["paceline-sched", "good_lp", "roxmltree"] },
    Layer {
        folder: "crates/paceline-proto",
        uses: &["paceline-sched", "paceline-admit", "bytes", "thiserror"],
    },
    Layer {
        folder: "crates/paceline-node",
        uses: &[
            "paceline-sched",
            "paceline-time",
            "paceline-proto",
            "bytes",
            "lz4_flex",
            "serde",
            "serde_json",
            "thiserror",
            "ts-rs",
        ],
    },
    Layer {
        folder: "crates/paceline-sim",
        uses: &["paceline-sched", "paceline-proto", "paceline-node", "bytes", "serde", "toml"],
    },
    Layer {
        folder: "crates/paceline-media",
        uses: &[
            "fast_image_resize",
            "h264-reader",
            "jpeg-encoder",
            "mp4-atom",
            "ogg",
            "openh264",
            "opus",
            "png",
            "rubato",
            "thiserror",
            "zune-jpeg",
        ],
    },
    Layer {
        folder: "crates/paceline-record",
        uses: &[
            "paceline-media",
            "crc32fast",
            "lz4_flex",
            "ruzstd",
            "serde",
            "serde_json",
            "thiserror",
        ],
    },
    Layer {
        folder: "crates/paceline-edge",
        uses: &[
            "paceline-media",
            "paceline-node",
            "paceline-proto",
            "paceline-sched",
            "base64",
            "bytes",
            "md-5",
            "rtcp-types",
            "rtsp-types",
            "sdp-types",
            "str0m",
            "thiserror",
            "url",
        ],
    },
    Layer {
        folder: "crates/paceline-fuzz",
        uses: &[
            "paceline-sched",
            "paceline-proto",
            "paceline-node",
            "paceline-edge",
            "paceline-media",
            "paceline-record",
            "bytes",
        ],
    },
    Layer {
        folder: "crates/paceline",
        uses: &[
            "paceline-media",
            "paceline-node",
            "paceline-objects",
            "paceline-proto",
            "paceline-sched",
            "paceline-time",
            "base64",
            "bytes",
            "crossbeam-queue",
            "event-listener",
            "getrandom",
            "jsonwebtoken",
            "nix",
            "quinn",
            "thread-priority",
            "ring",
            "rtrb",
            "rustix",
            "rustls",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "toml",
            "tracing",
            "x509-parser",
        ],
    },
    Layer {
        folder: "crates/paceline-plain",
        uses: &["paceline", "bytes", "thiserror", "tracing", "zenoh"],
    },
    Layer {
        folder: "crates/paceline-tool",
        uses: &[
            "paceline",
            "paceline-media",
            "paceline-sched",
            "anyhow",
            "bytes",
            "clap",
            "rustix",
            "serde",
            "serde_json",
            "signal-hook",
            "tracing",
            "tracing-subscriber",
        ],
    },
    Layer {
        folder: "crates/paceline-http",
        uses: &[
            "paceline",
            "paceline-edge",
            "paceline-media",
            "paceline-proto",
            "paceline-record",
            "paceline-sched",
            "paceline-tool",
            "anyhow",
            "base64",
            "bytes",
            "clap",
            "futures-util",
            "getrandom",
            "http-body-util",
            "hyper",
            "hyper-util",
            "nix",
            "quinn",
            "rcgen",
            "ring",
            "rustls",
            "serde",
            "serde_json",
            "tokio",
            "tokio-rustls",
            "tokio-tungstenite",
            "tracing",
            "web-transport-quinn",
        ],
    },
    Layer {
        folder: "crates/paceline-cli",
        uses: &[
            "paceline",
            "paceline-edge",
            "paceline-http",
            "paceline-media",
            "paceline-plain",
            "paceline-plan",
            "paceline-record",
            "paceline-sched",
            "paceline-sim",
            "paceline-tool",
            "anyhow",
            "bytes",
            "regex-syntax",
            "clap",
            "clap_complete",
            "clap_mangen",
            "futures-util",
            "rcgen",
            "retina",
            "ring",
            "rustix",
            "rustls",
            "serde",
            "serde_json",
            "signal-hook",
            "tokio",
            "tokio-rustls",
            "toml",
            "tracing",
        ],
    },
    Layer {
        folder: "crates/paceline-lab",
        uses: &[
            "paceline",
            "paceline-admit",
            "paceline-media",
            "paceline-objects",
            "paceline-plain",
            "paceline-plan",
            "paceline-proto",
            "paceline-sched",
            "paceline-sim",
            "paceline-time",
            "paceline-tool",
            "anyhow",
            "bytes",
            "clap",
            "rcgen",
            "rustix",
            "serde",
            "serde_json",
            "signal-hook",
            "tracing",
            "tun-rs",
            "zenoh",
        ],
    },
    Layer {
        folder: "crates/paceline-py",
        uses: &[
            "paceline",
            // Only the command line.
            "paceline-cli",
            "paceline-http",
            "paceline-media",
            "bytes",
            "pyo3",
            "serde_json",
            // Needed only for their features; see the crate's manifest.
            "proc-macro2",
            "quote",
            "syn",
        ],
    },
    Layer { folder: "xtask", uses: &["anyhow"] },
];

/// Additional permitted dependencies of tests.
const TESTS: &[&str] = &[
    "allocation-counter",
    "openh264",
    "paceline-fuzz",
    "paceline-record",
    "paceline-sched",
    "paceline-sim",
    "proptest",
    "rcgen",
    "response-time-analysis",
    "serde_json",
    "signal-hook",
    "ts-rs",
    "zenoh",
];

/// Those of the hostile member in the live test of `paceline-fuzz`, which speaks to a node over each carrier.
const MEMBER: &[&str] = &["paceline", "quinn", "ring", "rustls", "tokio", "tokio-rustls"];

pub(super) fn check(root: &Path, findings: &mut Findings) {
    let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let members = members(&workspace);
    for member in &members {
        match LAYERS.iter().find(|layer| layer.folder == member) {
            Some(layer) => check_crate(root, layer, findings),
            None => findings.error(format!("{member}: has no layer: add it to xtask's graph.rs")),
        }
    }
    for layer in LAYERS.iter().filter(|layer| !members.iter().any(|m| m == layer.folder)) {
        findings.error(format!("{}: has a layer in graph.rs, but is not a member", layer.folder));
    }
}

fn check_crate(root: &Path, layer: &Layer, findings: &mut Findings) {
    let folder = layer.folder;
    let manifest = match fs::read_to_string(root.join(folder).join("Cargo.toml")) {
        Ok(manifest) => manifest,
        Err(error) => return findings.error(format!("{folder}/Cargo.toml: {error}")),
    };
    for dependency in dependencies(&manifest) {
        let Dependency { name, for_tests } = &dependency;
        let member = folder == "crates/paceline-fuzz" && MEMBER.contains(&name.as_str());
        let test_only = *for_tests && (TESTS.contains(&name.as_str()) || member);
        if !layer.uses.contains(&name.as_str()) && !test_only {
            findings.error(format!(
                "{folder} depends on {name}: not allowed by its layer (xtask's graph.rs)"
            ));
        }
    }
    let inherits = manifest
        .split("[lints]")
        .nth(1)
        .is_some_and(|after| after.trim_start().starts_with("workspace = true"));
    if !inherits {
        findings.error(format!("{folder}/Cargo.toml: add [lints] workspace = true"));
    }
}

/// Returns the quoted names in `members = [ … ]`.
pub(super) fn members(manifest: &str) -> Vec<String> {
    let list = manifest.split_once("\nmembers = [").map_or("", |(_, after)| after);
    let list = list.split(']').next().unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) for_tests: bool,
}

/// Returns the dependencies of a manifest, from every dependency table.
pub(super) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut inside = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let for_tests = header.contains("dev-dependencies");
            inside = header.ends_with("dependencies").then_some(for_tests);
            if let Some((_, name)) = header.rsplit_once("dependencies.") {
                found.push(Dependency { name: name.to_owned(), for_tests });
            }
        } else if let Some(for_tests) = inside
            && let Some((key, _)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = key.trim().trim_end_matches(".workspace").trim_matches('"');
            found.push(Dependency { name: name.to_owned(), for_tests });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_every_table() {
        let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nbytes.workspace = true\n\
            # zenoh = \"1\"\nserde = { version = \"1\" }\n[lints]\nworkspace = true\n\
            [dev-dependencies]\nproptest.workspace = true\n[dependencies.anyhow]\nversion = \"1\"\n\
            [target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n";
        let read = dependencies(manifest);
        let names: Vec<_> = read.iter().map(|d| (d.name.as_str(), d.for_tests)).collect();
        let expected = [
            ("bytes", false),
            ("serde", false),
            ("proptest", true),
            ("anyhow", false),
            ("rustix", false),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn members_are_read_without_the_default_members() {
        let manifest = "[workspace]\nmembers = [\n  \"crates/a\",\n  \"xtask\",\n]\n\
            default-members = [\"crates/b\"]\n";
        assert_eq!(members(manifest), ["crates/a", "xtask"]);
    }

    #[test]
    fn no_layer_uses_a_later_one() {
        let place =
            |name: &str| LAYERS.iter().position(|l| l.folder.ends_with(&format!("/{name}")));
        for (at, layer) in LAYERS.iter().enumerate() {
            for used in layer.uses.iter().filter_map(|name| place(name)) {
                assert!(used < at, "{} uses a later layer", layer.folder);
            }
        }
    }
}
