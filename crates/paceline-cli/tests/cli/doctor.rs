//! The doctor's report on this host and on hosts that lack something.

use crate::host::Host;
use std::time::{Duration, Instant};

#[test]
fn every_row_has_its_fields_and_determines_the_exit_code() {
    let host = Host::new();
    let begun = Instant::now();
    let doctor = host.run(&["doctor", "--json"]);
    println!("took {:?}", begun.elapsed());
    let document = &doctor.json()[0];
    assert_eq!(document["schema"], 1);
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.len() >= 15, "{document}");
    for row in rows {
        for field in ["what", "found", "wanted"] {
            assert!(row[field].as_str().is_some_and(|text| !text.is_empty()), "{row}");
        }
        let state = row["state"].as_str().unwrap();
        assert!(["ok", "lack", "unknown"].contains(&state), "{row}");
        assert_eq!(row["fix"].is_string(), state == "lack", "{row}");
        assert!(row["needed"].is_boolean(), "{row}");
    }
    let lacks = rows.iter().any(|row| row["state"] == "lack" && row["needed"] == true);
    assert_eq!(document["ok"], !lacks);
    assert_eq!(doctor.code, Some(if lacks { 3 } else { 0 }), "{doctor:?}");
    let delivery = rows.iter().find(|row| row["what"] == "two nodes over loopback").unwrap();
    assert_eq!(delivery["state"], "ok", "{delivery}");
}

#[test]
fn an_unusable_folder_fails_a_required_check() {
    let host = Host::new();
    let doctor = host.run(&["doctor", "--runtime-dir", "/proc/nowhere"]);
    assert_eq!(doctor.code, Some(3), "{doctor:?}");
    let text = doctor.text();
    assert!(
        text.contains("/proc/nowhere cannot be used") && text.contains("LACK, needed"),
        "{text}"
    );
    assert!(text.contains("To fix:\n") && text.contains("set PACELINE_RUNTIME_DIR"), "{text}");
}

#[test]
fn an_invalid_configuration_fails_a_required_check() {
    let host = Host::new();
    std::fs::write(host.path("p.toml"), "nmae = 1\n").unwrap();
    let mut command = host.command(&["doctor"]);
    command.env("PACELINE_CONFIG", host.path("p.toml"));
    let doctor = crate::host::Running::gathered(command.spawn().unwrap()).ended();
    assert_eq!(doctor.code, Some(3), "{doctor:?}");
    assert!(doctor.text().contains("did you mean name?"), "{}", doctor.text());
}

#[test]
fn the_socket_row_shows_a_running_node() {
    let host = Host::new();
    let mut node =
        crate::host::Running::unread(host.command(&["node", "--name", "gate"]).spawn().unwrap());
    node.first_line();
    std::thread::sleep(Duration::from_millis(100));
    let text = host.run(&["doctor"]).text();
    assert!(text.contains(", a node listens"), "{text}");
}

#[test]
fn security_checks_the_running_node_with_its_flags() {
    let host = Host::new();
    let security = || {
        let doctor = host.run(&["doctor", "--security", "--json"]);
        doctor.json()[0]["rows"].as_array().unwrap().clone()
    };
    let state = |rows: &[serde_json::Value], what: &str| {
        rows.iter().find(|row| row["what"] == what).unwrap()["state"].clone()
    };
    assert_eq!(state(&security(), "open to anybody"), "ok");
    let open = format!("name=wide,listen=tcp/127.0.0.1:{},insecure", crate::host::free_port());
    let mut node =
        crate::host::Running::unread(host.command(&["node", "--link", &open]).spawn().unwrap());
    node.first_line();
    let rows = security();
    for what in ["open to anybody", "policy"] {
        assert_eq!(state(&rows, what), "lack", "{rows:?}");
    }
    assert!(rows[0]["found"].as_str().unwrap().starts_with("the running node, process "));
    assert!(rows[1]["found"].as_str().unwrap().contains("'wide'"), "{rows:?}");
}
