//! `paceline sub --dry-run` and `paceline set`: admission queries, and changes of running subscriptions.

use crate::host::{Ended, Host, LIMIT, Running, free_port};
use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Checks the exit code, and that the output contains `part`.
fn printed(ended: &Ended, code: i32, part: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.text().contains(part), "{part:?} is not in {ended:?} {}", ended.text());
}

/// A camera behind 2 Mbit/s, and the operator's link flag.
fn camera(robot: &Host) -> (Running, String) {
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port},capacity=2mbit");
    let card = ["pub", "cam", "--test-card", "320x240@20", "--name", "cam", "--link", &listen];
    (robot.start(&card), connect)
}

#[test]
fn a_dry_run_answers_for_both_halves_idle_times_and_offers() {
    let (robot, operator) = (Host::new(), Host::new());
    let (_camera, connect) = camera(&robot);
    let link = ["--link", &connect, "--within", "200ms"];
    let dry = |more: &[&str]| {
        operator.run(&[&["sub", "cam", "--dry-run", "--max-hz", "5"], &link[..], more].concat())
    };
    printed(
        &dry(&["--with", "cmd"]),
        3,
        "cam of cam: no: there is no contract of 'cmd' to tie it to: publish it on the subscriber's host",
    );
    // A node keeps the link, and others of its host use it.
    let _node = operator.start(&["node", "--name", "operator", "--link", &connect]);
    let command = ["pub", "cmd", "go", "--hz", "10", "--name", "stick"];
    let _commands = operator.start(&command);
    let _steering = robot.start(&["sub", "cmd", "--within", "200ms"]);
    let tied = |more: &[&str]| {
        let all = ["sub", "cam", "--dry-run", "--within", "200ms", "--with", "cmd"];
        operator.run(&[&all[..], more].concat())
    };
    let until = Instant::now() + LIMIT;
    while tied(&["--max-hz", "5"]).code != Some(0) && Instant::now() < until {}
    let both = tied(&["--max-hz", "5"]);
    printed(&both, 0, "\n  with cmd: yes: within ");
    assert!(both.text().contains(" -thin->: "), "{}", both.text());
    let line = &tied(&["--max-hz", "5", "--json"]).json()[0];
    let other = &line["opposite"];
    assert_eq!((&other["tag"], &other["refusal"]), (&"cmd".into(), &serde_json::Value::Null));
    assert!(other["bound_us"].as_u64() > Some(0), "{line}");
    let idle = operator.run(&[
        "sub",
        "cam",
        "--dry-run",
        "--max-hz",
        "5",
        "--within",
        "200ms",
        "--idle",
        "2s",
    ]);
    printed(&idle, 0, "\n  released after 2s without a sample, and requested again");
    // 20 pictures per second need more than 2 Mbit/s; the offer fits.
    let ask = ["sub", "cam", "--dry-run", "--within", "200ms"];
    printed(&operator.run(&ask), 3, "cam of cam: no: ");
    let taken = operator.run(&[&ask[..], &["--take-offer"]].concat());
    printed(&taken, 0, "taking the offer: --max-hz ");
    let line = &operator.run(&[&ask[..], &["--take-offer", "--json"]].concat()).json()[0];
    assert_eq!((&line["granted"], &line["refusal"]), (&true.into(), &serde_json::Value::Null));
    assert!(line["taken"][0].as_str().unwrap().starts_with("--max-hz "), "{line}");
    let list = operator.run(&["ls", "--reservations", "--json"]).text();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let nodes = list["nodes"].as_array().unwrap();
    let reserved = nodes.iter().filter_map(|node| node["reservations"].as_array()).flatten();
    assert!(reserved.clone().all(|it| it["tag"] == "cmd"), "{list}");
    assert!(reserved.count() > 0, "the commands alone are reserved: {list}");
    let bare = operator.run(&["sub", "cam", "--dry-run", "--with", "cmd"]);
    bare.said(2, "with 'cmd' but without a contract");
}

#[test]
fn an_elastic_request_begins_at_the_step_that_fits() {
    let (robot, operator) = (Host::new(), Host::new());
    let (camera, connect) = camera(&robot);
    let ask =
        ["--max-hz", "20", "--min-hz", "2", "--size", "320x240,160x120", "--importance", "20"];
    let link = ["--within", "200ms", "--link", &connect, "--timeout", "60s", "--name", "console"];
    let dry = operator.run(&[&["sub", "cam", "--dry-run"], &ask[..], &link[..]].concat());
    printed(&dry, 0, "cam of cam: yes: ");
    assert!(dry.text().contains(" (step "), "{}", dry.text());
    let console = operator.start(&[&["sub", "cam"], &ask[..], &link[..]].concat());
    operator.wait_for_subscriptions(1);
    let until = Instant::now() + LIMIT;
    let row = loop {
        let list = operator.run(&["ls", "--json"]).text();
        let document: serde_json::Value = serde_json::from_str(&list).unwrap();
        let nodes = document["nodes"].as_array().unwrap().iter();
        let row = nodes.flat_map(|node| node["subscriptions"].as_array().unwrap()).next().cloned();
        if let Some(row) = row.filter(|row| row["elastic"]["step"].as_u64() > Some(0)) {
            break row;
        }
        assert!(Instant::now() < until, "{document}");
    };
    let (step, ladder) = (&row["elastic"]["step"], row["elastic"]["ladder"].as_array().unwrap());
    let at = usize::try_from(step.as_u64().unwrap()).unwrap();
    assert_eq!((&row["importance"], &ladder[at]), (&20.into(), &row["asked"]["form"]));
    assert_eq!(
        (&ladder[0], ladder.last()),
        (&"20 Hz at 320x240".into(), Some(&"2 Hz at 160x120".into()))
    );
    let shown = format!("{} (step {} of {})", ladder[at].as_str().unwrap(), at + 1, ladder.len());
    let list = operator.run(&["ls"]).text();
    assert!(list.contains(&shown), "{shown}: {list}");
    // A change begins with the most again, and ends at a step too.
    let set = robot.run(&["set", "cam", "--within", "300ms"]);
    printed(&set, 0, "granted: within ");
    console.signal(rustix::process::Signal::INT);
    let reported = console.ended().stderr;
    assert!(reported.contains("changed to ") && reported.contains(" needed"), "{reported}");
    assert!(!reported.contains("refused"), "{reported}");
    camera.signal(rustix::process::Signal::INT);
    let published = camera.ended();
    let said = format!("{}{}", published.text(), published.stderr);
    assert!(said.contains("granted: console: ") && !said.contains("refused"), "{said}");
}

#[test]
fn a_request_is_checked_before_and_changed_while_it_runs() {
    let (robot, operator) = (Host::new(), Host::new());
    let (_camera, connect) = camera(&robot);
    let sub = [
        "sub",
        "cam",
        "--max-hz",
        "10",
        "--name",
        "console",
        "--link",
        &connect,
        "--timeout",
        "60s",
    ];
    let console = operator.start(&sub);
    operator.wait_for_subscriptions(1);
    let ask = |hz: &str, within: &str| {
        operator.run(&["sub", "cam", "--dry-run", "--max-hz", hz, "--within", within])
    };
    let asked = ask("5", "200ms");
    printed(&asked, 0, "cam of cam: yes: within ");
    for part in
        ["\n  ", " -thin->: ", "ms, reserves ", " of 2 Mbit/s, ", "\n  estimate by its period: "]
    {
        assert!(asked.text().contains(part), "{part:?}: {}", asked.text());
    }
    printed(&ask("5", "3ms"), 3, "cam of cam: no: link 'thin' of ");
    // From the other host: properties without a flag stay unchanged.
    let set = |more: &[&str]| robot.run(&[&["set", "cam"], more].concat());
    let promised = set(&["--within", "200ms"]);
    printed(
        &promised,
        0,
        "cam at console: 10 Hz, best effort -> 10 Hz, within 200 ms\n\tgranted: within ",
    );
    printed(
        &set(&["--max-hz", "5", "--at", "console"]),
        0,
        "10 Hz, within 200 ms -> 5 Hz, within 200 ms",
    );
    printed(&set(&["--within", "3ms"]), 3, "5 Hz, within 3.00 ms\n\trefused: link 'thin' of ");
    let reset = set(&["--reset", "--every", "2", "--json"]);
    assert_eq!(reset.code, Some(0), "{reset:?}");
    let line = &reset.json()[0];
    assert_eq!(line["after"], "1 in 2, best effort", "{line}");
    assert_eq!((&line["node"], &line["refused"]), (&"console".into(), &serde_json::json!([])));
    console.signal(rustix::process::Signal::INT);
    let reported = console.ended().stderr;
    for note in [
        "the request changed: 5 Hz, within 200 ms",
        "refused: cam of cam: link 'thin' of 'cam' can't carry it in time",
        "the change was refused; the request is unchanged: 5 Hz, within 200 ms",
    ] {
        assert!(reported.contains(note), "{note}: {reported}");
    }
}

/// A daemon on each of two hosts, connected over 1 Mbit/s. The camera is attached to one, the console to the
/// other.
#[test]
fn answers_over_relays_match_their_requests_and_a_refusal_ends_nothing() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let link = |how| format!("name=radio,{how}=tcp/127.0.0.1:{port},capacity=1mbit");
    let node = |host: &Host, name: &str, how| {
        let running = host.start(&["node", "--name", name, "--link", &link(how)]);
        let until = Instant::now() + LIMIT;
        while !host.path("node.sock").exists() {
            assert!(Instant::now() < until, "the node listens");
            std::thread::sleep(Duration::from_millis(10));
        }
        running
    };
    let _nodes = [node(&robot, "robot", "listen"), node(&operator, "operator", "connect")];
    let _camera = robot.start(&["pub", "cam", "--test-card", "640x480@30", "--name", "cam"]);
    let sub = ["sub", "cam", "--max-hz", "3", "--size", "160x120", "--within", "400ms", "--json"];
    let mut console = Console::new(&operator, &[&sub[..], &["--name", "console"]].concat());
    console.sees(160);
    let small = "at 160x120, within 400 ms";
    for host in [&operator, &robot, &operator] {
        let set = |more: &[&str]| host.run(&[&["set", "cam", "--json"], more].concat());
        let more = set(&["--max-hz", "4"]);
        assert_eq!(more.code, Some(0), "{more:?}");
        let line = &more.json()[0];
        assert_eq!(
            (&line["answer"], &line["after"]),
            (&"granted".into(), &format!("4 Hz {small}").into())
        );
        let large = set(&["--max-hz", "30", "--size", "640x480"]);
        assert_eq!(large.code, Some(3), "{large:?}");
        let line = &large.json()[0];
        assert_eq!(
            (&line["answer"], &line["after"]),
            (&"refused".into(), &format!("4 Hz {small}").into())
        );
        assert_eq!(line["asked"], "30 Hz at 640x480, within 400 ms");
        assert_eq!(line["granted"], serde_json::json!([]));
        let why = line["refused"][0].as_str().unwrap();
        assert!(why.starts_with("link 'radio' of 'robot' can't carry it"), "{why}");
        console.sees(160);
        let less = set(&["--max-hz", "3"]);
        assert_eq!(less.code, Some(0), "{less:?}");
        let line = &less.json()[0];
        assert_eq!(
            (&line["answer"], &line["refused"]),
            (&"granted".into(), &serde_json::json!([]))
        );
        console.sees(160);
    }
    let end = operator.run(&["set", "cam", "--size", "640x480", "--max-hz", "30", "--or-stop"]);
    printed(&end, 3, "\n\trefused: link 'radio' of 'robot'");
    printed(&end, 3, "\n\tit receives nothing until there is room");
    let reported = console.ended();
    assert!(!reported.contains("no publisher on"), "{reported}");
    assert!(reported.contains(&format!("the request is unchanged: 4 Hz {small}")), "{reported}");
}

/// A `sub --json` whose output is read while it runs.
struct Console {
    running: Running,
    lines: Receiver<String>,
}

impl Console {
    fn new(host: &Host, args: &[&str]) -> Self {
        let mut child = host.command(args).spawn().expect("the command starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (to, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| to.send(line))
        });
        Self { running: Running::unread(child), lines }
    }

    /// Waits until three newly published pictures of this width arrive.
    fn sees(&self, width: u64) {
        while self.lines.try_recv().is_ok() {}
        for _ in 0..3 {
            let line = self.lines.recv_timeout(LIMIT).expect("it gets samples");
            let sample: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(sample["width"], width, "{sample}");
        }
    }

    /// Ends the command and returns its standard error.
    fn ended(&mut self) -> String {
        self.running.signal(rustix::process::Signal::INT);
        let mut reported = String::new();
        let stderr = self.running.child().stderr.take().expect("piped");
        self.running.status();
        BufReader::new(stderr).read_to_string(&mut reported).expect("text");
        reported
    }
}

#[test]
fn set_needs_a_subscription_and_a_change() {
    let host = Host::new();
    let _node = host.start_node();
    let set = |args: &[&str]| host.run(&[&["set"], args].concat());
    set(&["cam"]).said(2, "nothing to change: give --max-hz, ");
    set(&["cam", "--max-hz", "0"]).said(2, "--max-hz");
    set(&["cam", "--max-hz", "5", "--timeout", "300ms"])
        .said(3, "no subscription to cam; there are no subscriptions");
    let _subs = ["one", "two"].map(|name| host.start(&["sub", "cam", "--name", name]));
    host.wait_for_subscriptions(2);
    set(&["cam", "--max-hz", "5"]).said(2, "2 subscriptions to cam: at ");
    set(&["cam", "--max-hz", "5"]).said(2, "name one node with --at, or give --all");
    set(&["cam", "--max-hz", "5", "--at", "three", "--timeout", "300ms"])
        .said(3, "no subscription to cam at three; subscriptions: cam at one, cam at two");
    printed(
        &set(&["*", "--max-hz", "5", "--at", "two"]),
        0,
        "cam at two: all, best effort -> 5 Hz",
    );
    let both = set(&["cam", "--max-hz", "7", "--all"]);
    assert_eq!((both.code, both.text().lines().count()), (Some(0), 2), "{both:?}");
}

#[test]
fn a_shortfall_is_reported_with_its_reason() {
    let host = Host::new();
    let _node = host.start_node();
    let _pose = host.start(&["pub", "pose", "--test-card", "160x120@20"]);
    // No sample arrives within a microsecond.
    let sub = ["sub", "pose", "--within", "0.001ms", "--count", "5", "--timeout", "3s"];
    let late = host.run(&sub);
    late.said(3, "(deadline_missed): they could not arrive in time; try a longer --within");
    printed(&late, 3, "fewer than requested: ");
    let json = host.run(&[&sub[..], &["--json"]].concat());
    let summary = &json.json().pop().unwrap()["summary"];
    assert!(summary["reason"].as_str().unwrap().contains("deadline_missed"), "{summary}");
    let slow = host.run(&["sub", "pose", "--max-hz", "1", "--count", "50", "--timeout", "3s"]);
    slow.said(3, "at most 1 Hz were requested, and none was lost");
    // A busy machine may drop samples, which is another reason.
    let print = ["watch", "pose", "--print", "--count", "500", "--duration", "3s"];
    let mut runs = (0..3).map(|_| host.run(&print));
    let few = runs.find(|few| few.stderr.contains("the publisher sends too few: "));
    assert_eq!(few.expect("one run without drops").code, Some(3));
}
