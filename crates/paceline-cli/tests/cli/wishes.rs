//! `paceline ask` and `paceline set`: what would be granted, and something else while it runs.

use crate::host::{Ended, Host, free_port};

/// It ended so, and printed this.
fn printed(ended: &Ended, code: i32, part: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.text().contains(part), "{part:?} is not in {ended:?} {}", ended.text());
}

/// A camera behind 2 Mbit/s, and the operator's end of the link.
fn camera(robot: &Host) -> (crate::host::Running, String) {
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port},capacity=2mbit");
    let card = ["pub", "cam", "--test-card", "320x240@20", "--name", "cam", "--link", &listen];
    (robot.start(&card), connect)
}

#[test]
fn a_promise_is_asked_for_before_and_a_subscription_changed_while_it_runs() {
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
        "60",
    ];
    let console = operator.start(&sub);
    operator.wait_for_subscriptions(1);
    let ask =
        |hz: &str, within: &str| operator.run(&["ask", "cam", "--max-hz", hz, "--within", within]);
    printed(&ask("5", "200"), 0, "cam of cam: yes: within ");
    printed(&ask("5", "3"), 3, "cam of cam: no: link 'thin' of ");
    // From the other host: what was asked for goes on, what is said is new.
    let set = |more: &[&str]| robot.run(&[&["set", "cam"], more].concat());
    let promised = set(&["--within", "200"]);
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
    printed(&set(&["--within", "3"]), 3, "5 Hz, within 3.00 ms\n\trefused: link 'thin' of ");
    let reset = set(&["--reset", "--every", "2", "--json"]);
    assert_eq!(reset.code, Some(0), "{reset:?}");
    let line = &reset.json()[0];
    assert_eq!(line["after"], "1 in 2, best effort", "{line}");
    assert_eq!((&line["node"], &line["refused"]), (&"console".into(), &serde_json::json!([])));
    console.signal(rustix::process::Signal::INT);
    let told = console.ended().stderr;
    for note in ["asks for something else now: 5 Hz, within 200 ms", "refused: publisher "] {
        assert!(told.contains(note), "{note}: {told}");
    }
}

#[test]
fn whom_to_change_and_what_must_be_said() {
    let host = Host::new();
    let _node = host.start_node();
    let set = |args: &[&str]| host.run(&[&["set"], args].concat());
    set(&["cam"]).said(2, "nothing to change: say --max-hz, ");
    set(&["cam", "--max-hz", "0"]).said(2, "--max-hz");
    set(&["cam", "--max-hz", "5", "--timeout", "300"])
        .said(3, "no subscription to cam; ls shows those there are");
    let _subs = ["one", "two"].map(|name| host.start(&["sub", "cam", "--name", name]));
    host.wait_for_subscriptions(2);
    set(&["cam", "--max-hz", "5"]).said(2, "2 subscriptions to cam: at ");
    set(&["cam", "--max-hz", "5"]).said(2, "name one node with --at, or say --all");
    set(&["cam", "--max-hz", "5", "--at", "three", "--timeout", "300"])
        .said(3, "no subscription to cam at three");
    printed(
        &set(&["*", "--max-hz", "5", "--at", "two"]),
        0,
        "cam at two: all, best effort -> 5 Hz",
    );
    let both = set(&["cam", "--max-hz", "7", "--all"]);
    assert_eq!((both.code, both.text().lines().count()), (Some(0), 2), "{both:?}");
}
