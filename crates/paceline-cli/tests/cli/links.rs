//! Two hosts connected by a link.

use crate::host::{Host, LIMIT, Running, free_port};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

#[test]
fn two_hosts_meet_over_a_thin_link() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port},capacity=2mbit");
    let _camera = robot.start(&["pub", "cam", "--test-card", "320x240@20", "--link", &listen]);
    let sub = operator.run(&[
        "sub",
        "cam",
        "--link",
        &connect,
        "--max-hz",
        "5",
        "--size",
        "160x120",
        "--within",
        "300ms",
        "--loss",
        "1/2",
        "--count",
        "10",
        "--timeout",
        "30s",
        "--json",
    ]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert_eq!(sub.json()[9]["width"], 160);
    let until = Instant::now() + LIMIT;
    let thin = loop {
        let ls = robot.run(&["ls", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
        let nodes = document["nodes"].as_array().unwrap();
        let mut links = nodes.iter().filter_map(|node| node["links"].as_array()).flatten();
        if let Some(thin) =
            links.find(|link| link["use_bits_per_s"].is_u64() && link["name"] == "thin")
        {
            break thin.clone();
        }
        assert!(Instant::now() < until, "{document}");
    };
    assert_eq!(thin["capacity_bits_per_s"], 2_000_000);
    assert!(thin["wire_bytes"].as_u64().unwrap() > 10_000, "{thin}");
}

#[test]
fn a_contract_above_the_capacity_is_refused() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=100kbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port}");
    let _camera = robot.start(&["pub", "cam", "--test-card", "640x480@20", "--link", &listen]);
    let sub = operator.run(&[
        "sub",
        "cam",
        "--link",
        &connect,
        "--within",
        "200ms",
        "--count",
        "1",
        "--timeout",
        "8s",
    ]);
    sub.said(3, "link 'thin' of '");
    assert!(sub.stderr.contains("; try --"), "{}", sub.stderr);
    assert!(!sub.stderr.contains("samples of at most"), "{}", sub.stderr);
    let required = ["sub", "cam", "--link", &connect, "--within", "200ms", "--require"];
    let required = operator.run(&required);
    required.said(3, "no sample and --require: cam of pub-cam refused, for the reason above");
    required.said(3, "link 'thin' of '");
    let wish = ["sub", "cam", "--link", &connect, "--within", "200ms", "--take-offer"];
    let reduced = operator.run(&[&wish[..], &["--count", "3", "--timeout", "20s"]].concat());
    reduced.said(0, "");
    let said = reduced.text() + &reduced.stderr;
    assert!(said.contains("taking the offer: --") && said.contains("granted: "), "{said}");
}

#[test]
fn an_endpoint_that_stays_unreachable_is_reported_with_cause_and_fix() {
    let host = Host::new();
    // A bound socket that does not listen: no other program listens at the port.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let tcp = format!("tcp/{}", closed.local_addr().unwrap());
    let unix = format!("unix/{}", host.path("none.sock").display());
    // Another program, which closes each connection.
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mute = format!("tcp/{}", other.local_addr().unwrap());
    std::thread::spawn(move || other.incoming().for_each(drop));
    let links = [&tcp, &unix, &mute].map(|endpoint| format!("connect={endpoint}"));
    let links = links.iter().flat_map(|link| ["--link", link.as_str()]);
    let args: Vec<_> = ["sub", "a", "--timeout", "6s"].into_iter().chain(links).collect();
    let sub = host.run(&args);
    for (endpoint, cause) in [
        (tcp, "connection refused: no program listens there; start the other node"),
        (unix, "no process listens there; start the other node, or correct the path"),
        (mute, "without an introduction; check that a Paceline node listens there"),
    ] {
        let lines: Vec<_> = sub.stderr.lines().filter(|line| line.contains(&endpoint)).collect();
        let [line] = lines.as_slice() else { panic!("one line for {endpoint}: {}", sub.stderr) };
        assert!(line.contains(&format!("no connection to {endpoint} for ")), "{line}");
        assert!(line.contains(cause), "{line}");
    }
}

#[test]
fn require_refuses_best_effort() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=1mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port}");
    // This publisher declares no rate.
    let mut log = robot.command(&["pub", "log", "-", "--link", &listen]);
    let mut log = log.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = log.stdin.take().expect("piped");
    let _log = Running::gathered(log);
    std::thread::spawn(move || {
        let until = Instant::now() + LIMIT;
        while Instant::now() < until && lines.write_all(b"tick\n").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let wish = ["log", "--link", &connect, "--within", "200ms"];
    let borne =
        operator.run(&[&["sub"], &wish[..], &["--count", "60", "--timeout", "15s"]].concat());
    borne.said(0, "best effort: log of pub-log: its publishing rate");
    let required =
        operator.run(&[&["sub"], &wish[..], &["--require", "--timeout", "15s"]].concat());
    required.said(3, "and --require: log of pub-log granted no contract, for the ");
    required.said(3, "best effort: log of pub-log: its publishing rate is unknown");
    let recorded =
        [&["record", "log", "--out", "log.mcap"], &wish[1..], &["--require", "--duration", "15s"]]
            .concat();
    let recorded = operator.run(&recorded);
    recorded.said(3, "best effort: log: its publishing rate is unknown");
    let asked = operator.run(&[&["sub"], &wish[..], &["--dry-run"]].concat());
    asked.said(3, "");
    assert!(
        asked.text().contains("no, only as best effort: its publishing rate is unknown"),
        "{}",
        asked.text()
    );
}

#[test]
fn a_port_in_use_is_named() {
    let host = Host::new();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let link = format!("name=radio,listen=tcp/127.0.0.1:{port}");
    let node = host.run(&["node", "--link", &link]);
    node.said(1, &format!("--link: link 'radio': cannot open tcp/127.0.0.1:{port}"));
    node.said(1, "choose another port, or end the program that uses this one");
}

#[test]
fn an_open_address_needs_a_flag() {
    let host = Host::new();
    let link = format!("listen=tcp/0.0.0.0:{}", free_port());
    host.run(&["node", "--link", &link]).said(2, "--link: link 'link1': ");
}

#[test]
fn a_dry_run_answers_and_reservations_are_listed() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=10mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port}");
    let _camera = robot.start(&["pub", "cam", "--test-card", "320x240@20", "--link", &listen]);
    let ask = |more: &[&str]| {
        let mut args = vec!["sub", "cam", "--dry-run", "--link", &connect];
        args.extend(more);
        operator.run(&args)
    };
    let yes = ask(&["--within", "200ms"]);
    yes.said(0, "");
    assert!(yes.text().contains(": yes: within "), "{}", yes.text());
    assert!(yes.text().contains(" -thin->"), "{}", yes.text());
    let no = ask(&["--within", "4ms", "--json"]);
    no.said(3, "");
    let line: serde_json::Value = serde_json::from_str(no.text().trim()).unwrap();
    assert_eq!((&line["granted"], &line["tag"]), (&false.into(), &"cam".into()), "{line}");
    assert_eq!(line["refusal"]["link"], "thin", "{line}");
    let offered = line["refusal"]["offer"]["within_us"].as_u64().unwrap();
    assert!(offered > 4_000, "{line}");
    // The offered bound is granted.
    ask(&["--within", &format!("{}ms", offered / 1_000)]).said(0, "");
    ask(&[]).said(0, "");
    ask(&["--within", "0ms"]).said(2, "--within");
    operator
        .run(&["sub", "nothing", "--dry-run", "--timeout", "100ms"])
        .said(3, "no publisher of nothing within");
    // A dry run reserves nothing.
    let list = operator.run(&["ls", "--reservations", "--link", &connect]);
    list.said(0, "");
    assert!(list.text().starts_with("nothing is reserved"), "{}", list.text());
    let sub = ["sub", "cam", "--link", &connect, "--within", "200ms"];
    let _sub = operator.start(&sub);
    let until = Instant::now() + LIMIT;
    loop {
        let list = robot.run(&["ls", "--reservations"]);
        if list.text().contains("RESERVATIONS") {
            let text = list.text();
            let row = text.lines().find(|line| line.starts_with("cam ")).unwrap();
            assert!(row.contains("200 ms") && row.contains("thin"), "{}", list.text());
            assert!(
                text.contains("\nBUFFERS\n") && text.contains(" 256000000 "),
                "{}",
                list.text()
            );
            break;
        }
        assert!(Instant::now() < until, "{}", list.text());
    }
}

/// 40 pictures per second of high quality need several times the link's capacity.
#[test]
fn an_adaptive_source_fits_a_thin_link() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port}");
    let card = ["pub", "cam", "--test-card", "320x240@40", "--quality", "95", "--json"];
    let card = robot.command(&[&card[..], &["--adapt", "--link", &listen]].concat()).spawn();
    let mut camera = Running::unread(card.unwrap());
    let lines = BufReader::new(camera.child().stdout.take().unwrap()).lines();
    let _sub = operator.start(&["sub", "cam", "--link", &connect]);
    let until = Instant::now() + LIMIT;
    for line in lines.map_while(Result::ok) {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["quality"].as_u64().unwrap() <= 55 {
            break;
        }
        assert!(Instant::now() < until, "{line}");
    }
    let file = robot.path("poor.wav");
    std::fs::write(&file, b"RIFF").unwrap();
    let pub_file = ["pub", "cam", "--file", crate::host::arg(&file), "--adapt"];
    robot.run(&pub_file).said(2, "--adapt: only the test card is encoded here");
}

#[test]
fn the_use_of_a_link_is_at_most_its_capacity_although_another_node_does_not_answer() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("connect=tcp/127.0.0.1:{port},capacity=2mbit");
    let _flood = robot.start(&["pub", "flood", "--test-card", "640x480@30", "--link", &listen]);
    let _sub = operator.start(&["sub", "flood", "--json", "--link", &connect]);
    let thin = || {
        let ls = robot.run(&["ls", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
        let links = document["nodes"].as_array().unwrap().iter();
        let mut links = links.filter_map(|node| node["links"].as_array()).flatten();
        links.find(|link| link["name"] == "thin").cloned().unwrap_or_default()
    };
    let until = Instant::now() + LIMIT;
    while thin()["use_bits_per_s"].as_u64().is_none_or(|used| used < 1_500_000) {
        assert!(Instant::now() < until, "the link never filled up: {}", thin());
    }
    // Starts late on purpose: the process with the link keeps the role of the host's node, and keeps
    // answering.
    let silent = robot.start(&["pub", "silent", "--test-card", "160x120@1"]);
    while !robot.run(&["ls", "--json"]).text().contains("\"silent\"") {
        assert!(Instant::now() < until, "it was never listed");
    }
    // The reading waits for the stopped process until its timeout; the rate is of the second before the link's node answered.
    silent.signal(rustix::process::Signal::STOP);
    let shown = thin();
    silent.signal(rustix::process::Signal::CONT);
    let used = shown["use_bits_per_s"].as_u64().unwrap();
    assert!(used <= 2_100_000, "{used} bit/s on a link of 2 Mbit/s: {shown}");
    let each = shown["neighbours"].as_array().unwrap().iter();
    let each: u64 = each.filter_map(|to| to["use_bits_per_s"].as_u64()).sum();
    assert!(each.abs_diff(used) <= 1, "{each} to the neighbours of {used}");
}

#[test]
fn a_stream_that_starves_says_so_each_second_with_the_reason() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("connect=tcp/127.0.0.1:{port},capacity=2mbit");
    let _camera = robot.start(&["pub", "cam", "--test-card", "640x480@30", "--link", &listen]);
    let sub = operator.run(&["sub", "cam", "--link", &connect, "--timeout", "12s"]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let text = sub.text();
    let (seconds, last) = text.trim_end().rsplit_once('\n').unwrap();
    let explained = |line: &str| {
        line.contains(" missing ")
            && !line.contains(" missing 0 ")
            && line.contains("samples dropped on link 'thin' of 'pub-cam' (superseded)")
    };
    assert!(seconds.lines().any(explained), "{text}");
    // The delivered rate stands next to the requested one, which is that of the publisher.
    let rates = |line: &str| -> Option<(f64, f64)> {
        let rates = line.strip_prefix("average rate: ")?.split_once(" Hz")?.0;
        let (delivered, requested) = rates.split_once(" of ")?;
        Some((delivered.parse().ok()?, requested.parse().ok()?))
    };
    let rates: Vec<_> = seconds.lines().filter_map(rates).collect();
    assert!(rates.len() > 3, "{text}");
    assert!(rates.iter().any(|(delivered, requested)| delivered * 2.0 < *requested), "{text}");
    assert!(last.contains("; fewer than requested: ") && last.contains("superseded"), "{text}");
    // A met count is not fewer, but its losses are named.
    let sub = operator.run(&["sub", "cam", "--link", &connect, "--count", "9"]);
    let text = sub.text();
    assert!(sub.code == Some(0) && text.contains("delivered 9 samples"), "{sub:?}");
    assert!(text.contains("superseded") && !text.contains("fewer than requested"), "{text}");
}
