//! Plain Zenoh programs on two nodes. Their sessions run in this process, or in Python programs with
//! eclipse-zenoh; the nodes are separate processes.

use crate::host::{Host, LIMIT, Running, arg, free_port};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use zenoh::bytes::Encoding;
use zenoh::sample::{Sample, SampleKind};
use zenoh::time::{NTP64, Timestamp, TimestampId};
use zenoh::{Config, Session, Wait};

/// Two hosts with a thin link between their nodes, each with an endpoint for plain programs.
pub(crate) struct Pair {
    pub(crate) robot: Host,
    pub(crate) operator: Host,
    /// Ports of the link, of the robot's plain endpoint and of the operator's.
    pub(crate) ports: [u16; 3],
    /// Capacity of the link, or "" for none.
    pub(crate) capacity: &'static str,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self {
            robot: Host::new(),
            operator: Host::new(),
            ports: [free_port(), free_port(), free_port()],
            capacity: "2mbit",
        }
    }

    /// Writes a node's configuration file with these rules.
    pub(crate) fn write(&self, host: &Host, rules: &str) -> PathBuf {
        let [link, robot, operator] = self.ports;
        let at_robot = host.path("") == self.robot.path("");
        let (name, way, port) =
            if at_robot { ("robot", "listen", robot) } else { ("operator", "connect", operator) };
        let path = host.path("config.toml");
        let capacity = match self.capacity {
            "" => String::new(),
            given => format!("capacity = \"{given}\"\n"),
        };
        let text = format!(
            "name = \"{name}\"\n[[link]]\nname = \"radio\"\n{way} = [\"tcp/127.0.0.1:{link}\"]\n\
             {capacity}[plain]\nlisten = [\"tcp/127.0.0.1:{port}\"]\n{rules}"
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn start(&self, host: &Host, rules: &str) -> Running {
        let config = self.write(host, rules);
        let mut command = host.command(&["node", "--config", arg(&config), "--log", "info"]);
        command.stderr(std::fs::File::create(host.path("log")).unwrap());
        let mut node = Running::unread(command.spawn().unwrap());
        let line = node.first_line();
        let log = std::fs::read_to_string(host.path("log")).unwrap();
        assert!(line.contains("; plain Zenoh at tcp/127.0.0.1:"), "{line}: {log}");
        node
    }

    pub(crate) fn session_at(&self, port: usize) -> Session {
        self.session_on(self.ports[port])
    }

    pub(crate) fn session_on(&self, port: u16) -> Session {
        let endpoint = format!("[\"tcp/127.0.0.1:{port}\"]");
        let mut config = Config::default();
        for (key, value) in [
            ("mode", "\"client\""),
            ("connect/endpoints", endpoint.as_str()),
            ("scouting/multicast/enabled", "false"),
        ] {
            config.insert_json5(key, value).unwrap();
        }
        paceline_plain::open_session(config).unwrap()
    }
}

/// Returns the samples on `key`, in order.
pub(crate) fn listen(session: &Session, key: &str) -> Receiver<Sample> {
    let (to, got) = channel();
    let callback = move |sample| {
        let _ = to.send(sample);
    };
    session.declare_subscriber(key.to_owned()).callback(callback).background().wait().unwrap();
    got
}

/// Returns the number in a sample's payload.
pub(crate) fn number(sample: &Sample) -> u64 {
    sample.payload().try_to_string().unwrap().parse().unwrap()
}

/// Puts numbers on `key` until `done`. Their timestamps are 10 ms apart, which is 100 per second.
fn put_until(session: &Session, key: &str, from: u64, mut done: impl FnMut() -> bool) -> u64 {
    let until = Instant::now() + LIMIT;
    let mut n = from;
    while !done() {
        assert!(Instant::now() < until, "what was to come on {key} came");
        put(session, key, n);
        n += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    n
}

pub(crate) fn put(session: &Session, key: &str, n: u64) {
    let payload = n.to_string();
    let put = session.put(key, payload).encoding(Encoding::APPLICATION_CDR.with_schema("x/y"));
    put.attachment(vec![7; 33]).timestamp(stamp(n)).wait().unwrap();
}

pub(crate) fn stamp(n: u64) -> Timestamp {
    let time = Duration::from_millis(1_700_000_000_000 + 10 * n);
    Timestamp::new(NTP64::from(time), TimestampId::try_from(7u8).unwrap())
}

/// Returns the status of the `host`'s own node.
fn status(host: &Host) -> serde_json::Value {
    let ls = host.run(&["ls", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ls.text()).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    let own = |node: &&serde_json::Value| node["name"] == "robot" || node["name"] == "operator";
    let own: Vec<_> = nodes.iter().filter(own).collect();
    let mine = if host.path("config.toml").exists() { own } else { Vec::new() };
    serde_json::json!(mine)
}

/// Returns the status of the node with this name that `host` reaches.
pub(crate) fn node_named(host: &Host, name: &str) -> serde_json::Value {
    let document: serde_json::Value =
        serde_json::from_str(&host.run(&["ls", "--json"]).text()).unwrap();
    let mut nodes = document["nodes"].as_array().into_iter().flatten();
    nodes.find(|node| node["name"] == name).cloned().unwrap_or_default()
}

pub(crate) fn node_of(host: &Host, name: &str) -> serde_json::Value {
    let nodes = status(host);
    let found = nodes.as_array().into_iter().flatten().find(|node| node["name"] == name);
    found.cloned().unwrap_or_default()
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const IMPORT: &str = "[[import]]\nkey = \"robot/**\"\n";

#[test]
fn a_plain_subscriber_receives_the_rate_of_its_rule() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, IMPORT);
    let rules = "[[export]]\ntag = \"robot/**\"\nkey = \"far/{1}\"\nmax_hz = 10\n";
    let _operator = pair.start(&pair.operator, rules);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let got = listen(&there, "far/**");
    let mut samples: Vec<Sample> = Vec::new();
    put_until(&here, "robot/imu", 0, || {
        samples.extend(got.try_iter());
        samples.len() >= 12
    });
    for sample in &samples {
        assert_eq!(sample.key_expr().as_str(), "far/imu");
        assert_eq!(sample.encoding(), &Encoding::APPLICATION_CDR.with_schema("x/y"));
        assert_eq!(sample.attachment().unwrap().to_bytes().as_ref(), [7; 33]);
        let (stamped, sent) = (sample.timestamp().unwrap(), stamp(number(sample)));
        let apart = stamped.get_time().as_nanos().abs_diff(sent.get_time().as_nanos());
        assert!(apart <= 2, "{apart} ns off");
    }
    let numbers: Vec<_> = samples.iter().map(number).collect();
    let steps: Vec<_> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step >= 10), "{steps:?}");
    assert!(steps.iter().filter(|step| **step == 10).count() >= 8, "{steps:?}");
    // A deletion is a sample too.
    wait_for("the deletion", || {
        here.delete("robot/other").wait().unwrap();
        got.try_iter().find(|sample| sample.kind() == SampleKind::Delete)
    });
}

#[test]
fn pictures_stay_whole_here_and_arrive_small_and_seldom_there() {
    let pair = Pair::new();
    let import = "[[import]]\nkey = \"robot/camera\"\nencoding = \"image/jpeg\"\nhz = 30\n";
    let _robot = pair.start(&pair.robot, import);
    let rules =
        "[[export]]\ntag = \"robot/camera\"\nevery = 10\nsize = \"160x120\"\nwithin = \"5s\"\n";
    let _operator = pair.start(&pair.operator, rules);
    let (here, beside, there) = (pair.session_at(1), pair.session_at(1), pair.session_at(2));
    let (local, remote) = (listen(&beside, "robot/camera"), listen(&there, "robot/camera"));
    let size = paceline_media::Size { width: 320, height: 240 };
    let mut card = paceline_media::TestCard::new(size).unwrap();
    let (mut whole, mut small) = (Vec::new(), Vec::new());
    let mut sent = 0u64;
    let number = |sample: &Sample| {
        let attachment = sample.attachment().unwrap().to_bytes();
        u64::from_le_bytes(attachment.as_ref().try_into().unwrap())
    };
    wait_for("pictures come", || {
        let picture = card.draw_jpeg(sent, 0, 80).unwrap();
        let attachment = sent.to_le_bytes().to_vec();
        here.put("robot/camera", picture)
            .attachment(attachment)
            .timestamp(stamp(sent))
            .wait()
            .unwrap();
        sent += 1;
        whole.extend(local.try_iter().map(|sample| number(&sample)));
        small.extend(remote.try_iter());
        (small.len() >= 4).then_some(())
    });
    wait_for("all are whole here", || {
        whole.extend(local.try_iter().map(|sample| number(&sample)));
        (whole.last() == Some(&(sent - 1))).then_some(())
    });
    // The first samples may be lost before the subscribers are known.
    assert!(whole.len() >= 30 && whole.windows(2).all(|pair| pair[1] == pair[0] + 1), "{whole:?}");
    let mut numbers = Vec::new();
    for sample in &small {
        let picture = sample.payload().to_bytes();
        let jpeg: paceline_media::Format = "image/jpeg".parse().unwrap();
        let size = jpeg.picture_size(&picture).unwrap();
        assert_eq!((size.width, size.height), (160, 120));
        numbers.push(number(sample));
    }
    assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{numbers:?}");
}

#[test]
fn nothing_is_subscribed_without_a_plain_subscriber() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, IMPORT);
    let rules = "[[export]]\ntag = \"robot/**\"\nkey = \"far/{1}\"\n";
    let _operator = pair.start(&pair.operator, rules);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let subscriptions =
        || node_of(&pair.operator, "operator")["subscriptions"].as_array().map(Vec::len);
    put(&here, "robot/imu", 0);
    assert_eq!(subscriptions(), Some(0));
    let (to, got) = channel();
    let subscriber = there
        .declare_subscriber("far/imu")
        .callback(move |sample: Sample| {
            let _ = to.send(number(&sample));
        })
        .wait()
        .unwrap();
    wait_for("it subscribes", || (subscriptions() == Some(1)).then_some(()));
    put_until(&here, "robot/imu", 1, || got.try_recv().is_ok());
    subscriber.undeclare().wait().unwrap();
    wait_for("it subscribes no more", || (subscriptions() == Some(0)).then_some(()));
}

#[test]
fn a_reload_keeps_unchanged_rules() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, IMPORT);
    let kept = "[[export]]\ntag = \"robot/imu\"\n";
    let rules = format!("{kept}[[export]]\ntag = \"robot/gps\"\nkey = \"old\"\n");
    let operator = pair.start(&pair.operator, &rules);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let (imu, new) = (listen(&there, "robot/imu"), listen(&there, "new"));
    let old = listen(&there, "old");
    let mut heard = Vec::new();
    let n = put_until(&here, "robot/imu", 0, || {
        put(&here, "robot/gps", 0);
        heard.extend(imu.try_iter().map(|sample| number(&sample)));
        old.try_recv().is_ok() && heard.len() > 5
    });
    pair.write(&pair.operator, &format!("{kept}[[export]]\ntag = \"robot/gps\"\nkey = \"new\"\n"));
    operator.signal(Signal::HUP);
    let mut heard_new = false;
    put_until(&here, "robot/imu", n, || {
        put(&here, "robot/gps", 1);
        heard.extend(imu.try_iter().map(|sample| number(&sample)));
        heard_new |= new.try_recv().is_ok();
        heard_new && heard.last().is_some_and(|last| *last > n + 20)
    });
    // The unchanged rule keeps delivering without a gap.
    let gaps: Vec<_> = heard.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    // An invalid file changes nothing; the error names both rules.
    pair.write(&pair.operator, "[[import]]\nkey = \"a/**\"\n[[export]]\ntag = \"a/**\"\n");
    operator.signal(Signal::HUP);
    let log = || std::fs::read_to_string(pair.operator.path("log")).unwrap();
    wait_for("the loop is named", || log().contains("are a loop").then_some(()));
    assert!(log().contains("import 1 (key 'a/**') and export 1 (tag 'a/**')"), "{}", log());
    let last = heard.last().copied().unwrap_or_default() + 100;
    put_until(&here, "robot/imu", last, || imu.try_iter().any(|sample| number(&sample) >= last));
}

#[test]
fn looping_samples_are_dropped_and_both_rules_are_named() {
    let pair = Pair::new();
    // The plain endpoints form a loop: the operator's node connects to the robot's programs.
    let _robot = pair.start(&pair.robot, IMPORT);
    let connect = format!("connect = [\"tcp/127.0.0.1:{}\"]\n", pair.ports[1]);
    let rules = format!("{connect}[[export]]\ntag = \"robot/**\"\n");
    let _operator = pair.start(&pair.operator, &rules);
    let here = pair.session_at(1);
    let sent = put_until(&here, "robot/imu", 0, || {
        std::fs::read_to_string(pair.robot.path("log")).unwrap().contains("a loop with export 1")
    });
    let log = std::fs::read_to_string(pair.robot.path("log")).unwrap();
    for part in ["import 1 (key 'robot/**'): a loop with export 1 of node operator", "'robot/imu'"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
    let robot = wait_for("it is counted", || {
        let robot = node_of(&pair.robot, "robot");
        robot["dropped"]["loop"].as_u64().filter(|count| *count > 0).map(|_| robot)
    });
    let published = robot["publishers"][0]["published"].as_u64().unwrap();
    assert!(published <= sent, "{published} of {sent}: nothing went round");
}

/// A key and a liveliness token in the format of rmw_zenoh.
const CHATTER: &str = "0/front/chatter/std_msgs::msg::dds_::String_/\
     RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
const TOKEN: &str = "@ros2_lv/0/8f20917502ee955ac4476e0266340d5c/0/10/MP/%/%front/talker/%front%chatter/\
     std_msgs::msg::dds_::String_/\
     RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18/::,7:,:,:,,";

/// Returns the rules of the configuration files in docs/guides/ros2.md, in order, without the links.
fn ros_rules() -> Vec<String> {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/ros2.md"));
    let page = page.unwrap();
    let files = page.split("```toml").skip(1).filter_map(|rest| rest.split("```").next());
    let rules = files.map(|file| {
        let rules = ["[[import]]", "[[export]]", "[[query]]"];
        let start = rules.iter().filter_map(|rule| file.find(rule)).min();
        file[start.unwrap()..].to_owned()
    });
    rules.collect()
}

#[test]
fn a_robot_is_served_by_the_files_of_the_documentation() {
    let rules = ros_rules();
    let [on_robot, on_operator] = rules.as_slice() else { panic!("{rules:?}") };
    let pair = Pair::new();
    let mut robot = pair.start(&pair.robot, on_robot);
    let more = "[[export]]\ntag = \"robot/front/chatter/*/*\"\nkey = \"0/front/chatter/{1}/{2}\"\nevery = 3\n";
    let _operator = pair.start(&pair.operator, &format!("{on_operator}{more}"));
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let got = listen(&there, CHATTER);
    let mut samples = Vec::new();
    put_until(&here, CHATTER, 0, || {
        samples.extend(got.try_iter());
        samples.len() >= 5
    });
    let numbers: Vec<_> = samples.iter().map(number).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] >= 3), "one in three: {numbers:?}");
    assert_eq!(samples[0].attachment().unwrap().to_bytes().as_ref(), [7; 33]);
    // Commands travel in the opposite direction.
    let command = CHATTER.replace("front/chatter", "cmd_vel");
    let commands = listen(&here, &command);
    put_until(&there, &command, 0, || commands.try_recv().is_ok());
    // The operator's programs see a node appear and disappear.
    let seen = || {
        let replies = there.liveliness().get("@ros2_lv/**").timeout(LIMIT).wait().unwrap();
        replies
            .iter()
            .filter_map(|reply| Some(reply.into_result().ok()?.key_expr().to_string()))
            .next()
    };
    let token = here.liveliness().declare_token(TOKEN).wait().unwrap();
    wait_for("the token is there", || seen().filter(|key| key == TOKEN));
    token.undeclare().wait().unwrap();
    wait_for("the token is gone", || seen().is_none().then_some(()));
    let _token = here.liveliness().declare_token(TOKEN).wait().unwrap();
    wait_for("the token is back", seen);
    robot.signal(Signal::KILL);
    robot.status();
    wait_for("the token is gone with its node", || seen().is_none().then_some(()));
}

/// Returns a Python interpreter with eclipse-zenoh, if there is one.
pub(crate) fn python(test: &str) -> Option<String> {
    let python = std::env::var("PACELINE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let try_import = Command::new(&python)
        .args(["-c", "import zenoh"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if try_import.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    println!(
        "skipped: {test} (no zenoh in {python}: install python/tools.txt, or name another Python in PACELINE_PYTHON)"
    );
    None
}

const PYTHON_PUBLISHER: &str = "
import sys, time, zenoh
config = zenoh.Config()
config.insert_json5('mode', '\"client\"')
config.insert_json5('connect/endpoints', '[\"tcp/127.0.0.1:' + sys.argv[1] + '\"]')
with zenoh.open(config) as session:
    publisher = session.declare_publisher('robot/imu', encoding='application/cdr')
    while True:
        publisher.put(b'1', attachment=b'of python')
        time.sleep(0.01)
";

#[test]
fn a_python_program_is_served_and_may_die_at_any_time() {
    let Some(python) = python("a_python_program_is_served_and_may_die_at_any_time") else { return };
    let pair = Pair::new();
    let mut robot = pair.start(&pair.robot, IMPORT);
    let mut operator = pair.start(&pair.operator, "[[export]]\ntag = \"robot/**\"\n");
    let there = pair.session_at(2);
    let got = listen(&there, "robot/imu");
    let port = pair.ports[1].to_string();
    let start = || {
        let mut command = Command::new(&python);
        command.args(["-c", PYTHON_PUBLISHER, &port]);
        Running::unread(command.spawn().unwrap())
    };
    for _ in 0..2 {
        let mut program = start();
        let sample = got.recv_timeout(LIMIT).unwrap();
        assert_eq!(sample.encoding(), &Encoding::APPLICATION_CDR);
        assert_eq!(sample.attachment().unwrap().to_bytes().as_ref(), b"of python");
        program.signal(Signal::KILL);
        program.status();
        while got.recv_timeout(Duration::from_millis(300)).is_ok() {}
    }
    for node in [&mut robot, &mut operator] {
        assert!(node.child().try_wait().unwrap().is_none(), "the nodes run on");
    }
    let here = pair.session_at(1);
    put_until(&here, "robot/imu", 5, || got.try_iter().any(|sample| number(&sample) >= 5));
}
