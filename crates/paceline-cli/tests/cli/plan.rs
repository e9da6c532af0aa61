//! `paceline plan`: the example files and those of the guide, and named errors.

use crate::host::{Ended, Host, LIMIT, arg, free_port};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plans")
}

fn plan(args: &[&str]) -> Ended {
    let all: Vec<&str> = ["plan"].iter().chain(args).copied().collect();
    Host::new().run(&all)
}

fn json(args: &[&str]) -> Value {
    let all: Vec<&str> = args.iter().chain(&["--json"]).copied().collect();
    let ended = plan(&all);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.text()).unwrap()
}

#[test]
fn every_example_has_an_optimal_plan() {
    let mut files: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let topology = file.with_extension("graphml");
        let mut args = vec![arg(&file)];
        if topology.exists() {
            args.extend(["--topology", arg(&topology)]);
        }
        let planned = json(&args);
        assert_eq!(planned["status"], "optimal", "{planned}");
        for stream in planned["streams"].as_array().unwrap() {
            let late = stream["bound_ns"]
                .as_u64()
                .is_some_and(|most| stream["delay_ns"].as_u64().is_none_or(|delay| delay > most));
            assert!(!late, "{stream}");
        }
    }
}

#[test]
fn the_example_of_the_guide_scales_at_the_office() {
    let host = Host::new();
    let (file, picture) = (folder().join("camera.json"), host.path("plan.svg"));
    let ended = host.run(&["plan", arg(&file), "--svg", arg(&picture)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = ended.text();
    assert!(text.starts_with("37.729 mbit/s on 8 links: optimal\n"), "{text}");
    assert!(text.contains("robot mast [office] operator  165 ms  400 ms"), "{text}");
    // The guide prints this table.
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/plan-proxies.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for line in text.lines().filter(|line| !line.contains(" costs ")) {
        assert!(guide.contains(line), "docs/guides/plan-proxies.md lacks '{line}'");
    }
    let drawn = std::fs::read_to_string(picture).unwrap();
    assert!(drawn.contains("proxy of robot/camera"), "{drawn}");
}

#[test]
fn the_solvers_and_the_models_can_be_chosen() {
    let cost = |name: &str, args: &[&str]| {
        let file = folder().join(name);
        let all: Vec<&str> = [arg(&file)].iter().chain(args).copied().collect();
        json(&all)["cost"].as_f64().unwrap()
    };
    let auto = cost("camera.json", &[]);
    for solver in ["exhaustive", "integer"] {
        let other = cost("camera.json", &["--solver", solver]);
        assert!((other - auto).abs() < 1e-6 * auto, "{solver}");
    }
    let with = |args: &[&str]| cost("three-rates.json", args);
    let multicast = with(&[]);
    assert!(with(&["--cost", "shared_upstream"]) > multicast);
    assert!(with(&["--cost", "per_subscriber", "--proxies", "3"]) > multicast);
    assert!(with(&["--objective", "cpu", "--timeout", "10s"]) < 1.0);
    assert!(with(&["--objective", "weighted", "--weight", "1000000"]) >= multicast);
    assert!(with(&["--delay-model", "links", "--proxies", "1"]) > 0.0);
}

#[test]
fn an_infeasible_problem_names_the_subscriber_the_delay_and_the_constraint() {
    let host = Host::new();
    let text = std::fs::read_to_string(folder().join("camera.json")).unwrap();
    let file = host.path("tight.json");
    std::fs::write(&file, text.replace("\"within\": \"400ms\"", "\"within\": \"98ms\"")).unwrap();
    let ended = host.run(&["plan", arg(&file)]);
    ended.said(3, "robot/camera: infeasible for the subscriber operator within 98 ms");
    ended
        .said(3, "the binding constraint is its delay bound; the smallest feasible delay is 99 ms");
    let ended = host.run(&["plan", arg(&file), "--json"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.text()).unwrap();
    assert_eq!((&answer["status"], &answer["gap"]), (&"infeasible".into(), &Value::Null));
    assert!(answer["because"].as_str().is_some_and(|text| text.contains("99 ms")), "{answer}");
    // Within 99 ms the stream must not be scaled before the operator, and does not fit the link.
    std::fs::write(&file, text.replace("\"within\": \"400ms\"", "\"within\": \"99ms\"")).unwrap();
    let ended = host.run(&["plan", arg(&file)]);
    ended.said(
        3,
        "the binding constraint is the capacity of the link office → operator, 2000000 bit/s",
    );
    ended.said(3, "the smallest feasible delay is 165 ms");
}

#[test]
fn invalid_files_are_named_with_the_field() {
    let host = Host::new();
    let text = std::fs::read_to_string(folder().join("camera.json")).unwrap();
    let file = host.path("wrong.json");
    for (from, to, expected) in [
        (
            "\"from\": \"mast\"",
            "\"from\": \"mist\"",
            "links[1].from is \"mist\": no node has this id",
        ),
        ("\"20mbit\"", "20", "links[0].capacity is 20: needs a unit"),
        ("\"to\": \"mast\"", "\"to\": \"robot\"", "the link robot → robot is a loop: remove it"),
        ("\"proxies\": 2", "\"proxies\": 0", "proxies is 0: must be a whole number from 1 to 32"),
    ] {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        host.run(&["plan", arg(&file)]).said(2, expected);
    }
    let link =
        "{\"from\": \"office\", \"to\": \"archive\", \"capacity\": \"1gbit\", \"delay\": \"1ms\"}";
    let cut = text.replace(&format!(",\n    {link}"), "");
    assert_ne!(cut, text);
    std::fs::write(&file, cut).unwrap();
    host.run(&["plan", arg(&file)])
        .said(3, "no path of links leads from the publisher robot to the subscriber archive");
    let graph = host.path("loop.graphml");
    std::fs::write(
        &graph,
        "<graphml><graph><node id=\"a\"/><edge source=\"a\" target=\"a\"/></graph></graphml>",
    )
    .unwrap();
    host.run(&["plan", arg(&file), "--topology", arg(&graph)])
        .said(2, "loop.graphml: line 1: the edge a → a is a loop");
    plan(&[arg(&file), "--proxies", "99"]).said(2, "must be a whole number from 1 to 32");
    plan(&["absent.json"]).said(1, "cannot read absent.json");
}

#[test]
fn a_plan_of_the_running_network_names_a_cheaper_place() {
    let [robot, mast, office, operator] = [(); 4].map(|()| Host::new());
    let ports = [(); 3].map(|()| free_port());
    let listen = |name: &str, place: usize, bits: &str| {
        format!("name={name},listen=tcp/127.0.0.1:{},capacity={bits}", ports[place])
    };
    let connect = |name: &str, place: usize| {
        format!("name={name},connect=tcp/127.0.0.1:{},capacity=20mbit", ports[place])
    };
    operator.run(&["plan", "--live"]).said(3, "--live: no node is reachable: start one");
    let (radio, lan, sea) =
        (connect("radio", 0), listen("lan", 1, "50mbit"), listen("sea", 2, "5mbit"));
    let _mast =
        mast.start(&["node", "--name", "mast", "--link", &radio, "--link", &lan, "--link", &sea]);
    let radio = listen("radio", 0, "20mbit");
    let card = ["pub", "camera", "--test-card", "320x240@10", "--name", "robot", "--link", &radio];
    let _camera = robot.start(&card);
    let lan = connect("lan", 1);
    let _office = office.start(&["sub", "camera", "--name", "office", "--link", &lan]);
    let here = |args: &[&str]| office.run(&[&["plan", "--live"], args].concat());
    let until = Instant::now() + LIMIT;
    let mut ended = here(&["camera", "--json"]);
    while ended.code != Some(0) && Instant::now() < until {
        ended = here(&["camera", "--json"]);
    }
    let full: Value = serde_json::from_str(&ended.text()).unwrap();
    assert_eq!(full["cost"], full["present"]["cost"], "no stream is scaled: {full}");
    here(&["lidar"]).said(3, "--live: no publisher on lidar; published tags: camera");
    let _alone = robot.start(&["pub", "alone", "--test-card", "160x120@5"]);
    let alone = || robot.run(&["plan", "--live", "alone"]);
    while !alone().stderr.contains("nothing to plan") {
        assert!(Instant::now() < until, "{:?}", alone());
    }
    alone().said(3, "nothing to plan: no other host subscribes to alone");
    let sea = connect("sea", 2);
    let thin = ["sub", "camera", "--every", "5", "--size", "160x120", "--link", &sea];
    let _operator = operator.start(&[&thin[..], &["--name", "operator"]].concat());
    let (file, picture) = (office.path("live.json"), office.path("live.svg"));
    let planned = loop {
        let ended = here(&["--json", "--problem", arg(&file), "--svg", arg(&picture)]);
        let planned: Value = serde_json::from_str(&ended.text()).unwrap();
        if planned["streams"].as_array().is_some_and(|streams| streams.len() == 2) {
            break planned;
        }
        assert!(Instant::now() < until, "{planned}");
    };
    assert_eq!(planned["status"], "optimal", "{planned}");
    let proxy = |of: &Value, to: &str| {
        let mut streams = of["streams"].as_array().unwrap().iter();
        streams.find(|stream| stream["subscriber"] == to).unwrap()["proxy"].clone()
    };
    assert_eq!(proxy(&planned, "operator"), "mast", "{planned}");
    assert_eq!(proxy(&planned["present"], "operator"), "robot", "{planned}");
    let cost = |of: &Value| of["cost"].as_f64().unwrap();
    assert!(cost(&planned) < cost(&planned["present"]), "{planned}");
    let read = json(&[arg(&file)]);
    assert_eq!((&read["cost"], &read["streams"]), (&planned["cost"], &planned["streams"]));
    assert!(std::fs::read_to_string(picture).unwrap().contains("proxy of camera"));
    let text = here(&[]).text();
    assert!(text.contains("; the plan saves ") && text.contains("NOW AT"), "{text}");
}
