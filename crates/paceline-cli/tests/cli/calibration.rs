//! The calibrated processing cost of samples: admission charges it, and the doctor reports an unusable
//! calibration.

use crate::host::{Host, Running, free_port};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Writes a calibration file in which each sample takes `nanos`.
fn write(host: &Host, facts: (&str, u64, &str), nanos: u64) {
    let (version, cores, processor) = facts;
    let sample = |bytes| json!({ "bytes": bytes, "load_permille": 0, "nanos": nanos });
    let samples = [64, 64_000].map(sample);
    let file = json!({
        "schema": 1, "version": version, "processor": processor, "cores": cores, "samples": samples,
    });
    let folder = host.path("state/paceline");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("calibration.json"), file.to_string()).expect("a file");
}

fn row(host: &Host) -> Value {
    let document = host.run(&["doctor", "--json"]).json().remove(0);
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["what"] == "calibration").expect("the row").clone()
}

/// Writes a calibration file for this host; the doctor's report on a stale file describes this host.
fn calibrate(host: &Host, nanos: u64) {
    write(host, ("0.0.0", 999, "an abacus"), nanos);
    let fix = row(host)["fix"].as_str().expect("a fix").to_owned();
    let stale =
        "it was measured by paceline 0.0.0 on 999 cores of an abacus, and this is paceline ";
    let here = fix.strip_prefix(stale).expect("both hosts are described");
    let here = here.strip_suffix("; paceline doctor --calibrate").expect("the fix is named");
    let (version, rest) = here.split_once(" on ").expect("a version");
    let (cores, processor) = rest.split_once(" cores of ").expect("cores");
    write(host, (version, cores.parse().expect("a number"), processor), nanos);
}

#[test]
fn a_contract_beyond_the_processor_is_refused_and_the_offer_is_granted() {
    let (robot, operator) = (Host::new(), Host::new());
    assert_eq!(row(&robot)["found"], "none: contracts are charged no processor time");
    calibrate(&robot, 40_000_000);
    let row = row(&robot);
    assert_eq!(
        (&row["state"], &row["found"]),
        (&"ok".into(), &"a sample costs 40000.0 µs plus 0.0 µs per KB".into())
    );
    let port = free_port();
    let link = |end: &str| format!("name=wide,{end}=tcp/127.0.0.1:{port},capacity=100mbit");
    let mut node = Running::unread(
        robot.command(&["node", "--name", "gate", "--link", &link("listen")]).spawn().unwrap(),
    );
    node.first_line();
    let _camera = robot.start(&["pub", "cam", "--test-card", "320x240@20"]);
    let connect = link("connect");
    // 20 samples per second of 40 ms each take 800 ms.
    let all =
        ["sub", "cam", "--link", &connect, "--within", "300ms", "--require", "--timeout", "20s"];
    let refused = operator.run(&all);
    refused.said(3, "the processor of 'gate' can't carry it: with existing contracts it would take 800 ms of each second, of at most 500 ms; try --max-hz ");
    let offered = refused
        .stderr
        .split("try --max-hz ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let offered = offered.expect("an offer");
    let hz: f64 = offered.parse().unwrap();
    assert!((11.0..=12.5).contains(&hz), "{offered}: 500 ms are 12.5 samples a second");
    let fewer = operator.run(&[&all[..], &["--max-hz", offered, "--count", "5"]].concat());
    assert_eq!(fewer.code, Some(0), "{fewer:?}");
    // `ls --reservations` reports the reserved share, as text and as numbers.
    let nothing = robot.run(&["ls", "--reservations"]).text();
    let shows = |text: &str| {
        text.lines().any(|line| line.starts_with("gate") && line.ends_with(" 50.00 %"))
    };
    assert!(nothing.starts_with("nothing is reserved") && shows(&nothing), "{nothing}");
    let _holder = operator.start(&[&all[..6], &["--max-hz", offered]].concat());
    let held = crate::plain::wait_for("it is held", || {
        let gate = crate::plain::node_named(&robot, "gate");
        gate["processor"]["held_us_per_s"].as_u64().filter(|held| *held > 0)
    });
    assert!((440_000..=500_000).contains(&held), "{held}: eleven samples or more of 40 ms");
    let shown = robot.run(&["ls", "--reservations"]).text();
    assert!(shown.starts_with("RESERVATIONS\n") && shows(&shown), "{shown}");
    let percent = format!("{}.{:02} %", held / 10_000, held % 10_000 / 100);
    assert!(shown.contains(&percent), "{percent}: {shown}");
}

#[test]
fn a_calibration_that_cannot_be_used_is_named_and_nothing_is_charged() {
    let host = Host::new();
    calibrate(&host, 40_000_000);
    let file = host.path("state/paceline/calibration.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(row(&host)["state"], "lack");
    let node = host.start_node();
    node.signal(Signal::INT);
    let ended = node.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "ignoring the calibration ",
        "no processor time is charged",
        "it is not a calibration",
        "doctor --calibrate",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

/// Runs a real calibration. Its result depends on the host, so the test checks no measured figure, only that
/// the node charges the measured cost.
#[test]
fn the_measured_calibration_is_read_and_charged() {
    const BUSY: &str = "try again when the host is less busy";
    let host = Host::new();
    // The default path for an unprivileged user; root writes a system-wide file.
    let file = host.path("state/paceline/calibration.json");
    let calibrate = ["doctor", "--calibrate", "--json", "--out", crate::host::arg(&file)];
    let mut measured = host.run(&calibrate);
    for _ in 0..2 {
        if measured.stderr.contains(BUSY) {
            measured = host.run(&calibrate);
        }
    }
    assert_eq!(measured.code, Some(0), "{}", measured.stderr);
    let reported = measured.json().remove(0);
    let number = |value: &Value| value.as_u64().expect("a number");
    let samples = reported["samples"].as_array().expect("samples");
    assert_eq!(samples.len(), 8, "four sizes, with and without load: {reported}");
    for sample in samples {
        assert!(number(&sample["nanos"]) > 0, "{sample}");
        assert!(number(&sample["charged_nanos"]) >= number(&sample["nanos"]), "{sample}");
    }
    for pair in
        samples.windows(2).filter(|pair| pair[0]["bytes"].as_u64() < pair[1]["bytes"].as_u64())
    {
        assert!(
            number(&pair[0]["charged_nanos"]) <= number(&pair[1]["charged_nanos"]),
            "{reported}"
        );
    }
    assert_eq!(reported["file"], file.display().to_string());
    assert_eq!(row(&host)["state"], "ok", "it is this host's");
    // A node that starts now charges 20 samples per second of 64 bytes with headers.
    let port = free_port();
    let link = |end: &str| format!("name=wide,{end}=tcp/127.0.0.1:{port},capacity=100mbit");
    let mut node = Running::unread(
        host.command(&["node", "--name", "gate", "--link", &link("listen")]).spawn().unwrap(),
    );
    node.first_line();
    std::fs::write(host.path("poses"), [7; 640]).expect("a file");
    let _pose =
        host.start(&["pub", "pose", "--file", "poses", "--chunk", "64B", "--hz", "20", "--loop"]);
    let operator = Host::new();
    let _holder = operator.start(&[
        "sub",
        "pose",
        "--link",
        &link("connect"),
        "--within",
        "300ms",
        "--require",
    ]);
    let held = crate::plain::wait_for("it is held", || {
        let gate = crate::plain::node_named(&host, "gate");
        gate["processor"]["held_us_per_s"].as_u64().filter(|held| *held > 0)
    });
    let nanos = |bytes: u64| {
        number(&reported["sample_nanos"]) + bytes * number(&reported["byte_picos"]) / 1_000
    };
    assert!(held + 1 >= 20 * nanos(64) / 1_000, "{held} µs of {reported}");
    assert!(held <= 30 * nanos(1_000) / 1_000 + 1, "{held} µs of {reported}");
}
