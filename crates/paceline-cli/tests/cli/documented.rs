//! Every configuration block of the documentation starts a node.

use crate::host::{Host, LIMIT, free_port};
use crate::trust::Network;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Returns the pages of a folder and its subfolders.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// Returns the TOML blocks of the documentation with their pages, except scenario files.
fn blocks() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    pages(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")), &mut found);
    let mut blocks = Vec::new();
    for page in found.into_iter().filter(|page| !page.ends_with("scenarios.md")) {
        let text = std::fs::read_to_string(&page).unwrap();
        let parts = text.split("```toml\n").skip(1);
        blocks
            .extend(parts.map(|part| (page.clone(), part.split("```").next().unwrap().to_owned())));
    }
    blocks
}

#[test]
fn every_configuration_of_the_documentation_starts_a_node() {
    let network = Network::new();
    std::fs::write(
        network.dir().join("jwks.json"),
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
    )
    .unwrap();
    std::fs::write(network.dir().join("http.tokens"), "read 0123456789abcdef\n").unwrap();
    let keys: String = (7..10).map(|id| format!("{id} AES128 0123456789abcdef\n")).collect();
    std::fs::write(network.dir().join("ntp.keys"), keys).unwrap();
    let blocks = blocks();
    assert!(blocks.len() > 10, "{}", blocks.len());
    std::thread::scope(|scope| {
        for (page, block) in &blocks {
            scope.spawn(|| starts(&network, page, block));
        }
    });
}

/// Starts a node with a block, whose addresses and files are replaced by those of this host.
fn starts(network: &Network, page: &Path, block: &str) {
    let host = Host::new();
    let dir = network.dir().display().to_string();
    let mut text = block
        .replace("/etc/paceline", &dir)
        .replace("/var/log/paceline", &host.path("").display().to_string())
        .replace("0.0.0.0", "127.0.0.1");
    for name in ["robot.example", "quic/robot", "tcp/localhost"] {
        let local = name
            .split_once('/')
            .map_or("127.0.0.1".to_owned(), |(protocol, _)| format!("{protocol}/127.0.0.1"));
        text = text.replace(&format!("{name}:"), &format!("{local}:"));
    }
    for port in ["7600", "7447", "8470"] {
        text = text.replace(&format!(":{port}"), &format!(":{}", free_port()));
    }
    let rules = ["[[import]]", "[[export]]", "[[query]]"].iter().any(|rule| block.contains(rule));
    if rules && !block.contains("[plain]") {
        // The default port is shared by all tests of this host.
        text += &format!("[plain]\nlisten = [\"tcp/127.0.0.1:{}\"]\n", free_port());
    }
    let file = host.path("block.toml");
    std::fs::write(&file, &text).unwrap();
    let file = file.display().to_string();
    let policy = block.contains("[[rule]]") || block.contains("[[issuer]]");
    let flag = if policy { "--policy" } else { "--config" };
    let node = host.start(&["node", flag, &file]);
    let until = Instant::now() + LIMIT;
    while !host.path("node.sock").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let ls = host.run(&["ls", "--json"]);
    assert_eq!(ls.code, Some(0), "{}:\n{text}\n{ls:?}", page.display());
    node.signal(rustix::process::Signal::TERM);
    let ended = node.ended();
    assert_eq!(ended.code, Some(0), "{}:\n{text}\n{ended:?}", page.display());
}
