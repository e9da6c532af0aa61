//! `paceline demo`, whole: three processes, two links, everybody served.

use std::process::{Command, Stdio};

#[test]
fn everybody_in_the_demo_gets_what_was_asked_for() {
    let child = Command::new(env!("CARGO_BIN_EXE_paceline"))
        .args(["demo", "--no-http", "--seconds", "5", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    // The demo gives up by itself when its nodes do not meet, so this ends.
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}\n{stdout}");
    let lines: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 6, "{stdout}");
    assert!(lines[0]["rows"].is_array() && lines[0]["t_s"].is_f64());
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!(summary["ok"], true);
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["ok"] == true && row["refused"] == serde_json::json!([])));
    assert_eq!(rows[2]["width"], 160);
    let links = summary["links"].as_array().unwrap();
    assert!(links.iter().any(|link| link["capacity_bits_per_s"] == 2_000_000));
    let folder = std::env::temp_dir().join(format!("paceline-demo-{id}"));
    assert!(!folder.exists(), "it leaves nothing behind");
}
