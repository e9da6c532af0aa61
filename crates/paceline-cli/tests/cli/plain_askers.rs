//! Plain programs that query and do not read the answers, and queries with a delay bound.

use crate::plain::{Pair, node_of, wait_for};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use zenoh::query::{ConsolidationMode, Reply};
use zenoh::{Session, Wait};

const RULE: &str = "[[query]]\nkey = \"robot/**\"\ntimeout = \"10min\"\n";
const PATIENCE: Duration = Duration::from_secs(600);

/// A proxy for a program's connection that throttles received data until `wide` is set.
pub(crate) struct Slow {
    pub(crate) port: u16,
    pub(crate) wide: Arc<AtomicBool>,
    /// Bytes forwarded to the program.
    pub(crate) came: Arc<AtomicUsize>,
    /// True once the node closed the connection.
    pub(crate) closed: Arc<AtomicBool>,
}

impl Slow {
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let slow = Self {
            port: listener.local_addr().unwrap().port(),
            wide: Arc::default(),
            came: Arc::default(),
            closed: Arc::default(),
        };
        let (wide, came, closed) = (slow.wide.clone(), slow.came.clone(), slow.closed.clone());
        std::thread::spawn(move || {
            let (program, _) = listener.accept().unwrap();
            let node = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut to) = (program.try_clone().unwrap(), node.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
            let (mut from, mut to) = (node, program);
            let mut buffer = vec![0; 32 << 10];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..n]).is_err() {
                    break;
                }
                // The handshake passes without delay. Zenoh closes a connection that accepts nothing for 5 s.
                if came.fetch_add(n, Ordering::Relaxed) > 100_000 && !wide.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(30));
                }
            }
            closed.store(true, Ordering::Relaxed);
            let _ = to.shutdown(Shutdown::Both);
        });
        slow
    }
}

fn ask(session: &Session, selector: &str) -> Vec<Reply> {
    let get = session.get(selector.to_owned()).consolidation(ConsolidationMode::None);
    get.timeout(PATIENCE).wait().unwrap().iter().collect()
}

fn is_named(replies: &[Reply]) -> bool {
    let [reply] = replies else { return false };
    reply.result().is_ok_and(|sample| sample.payload().to_bytes().as_ref() == b"robot")
}

#[test]
fn a_slow_reader_of_answers_delays_no_other() {
    let pair = Pair { capacity: "1gbit", ..Pair::new() };
    let _robot = pair.start(&pair.robot, RULE);
    let _operator = pair.start(&pair.operator, RULE);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let name = here.declare_queryable("robot/name").callback(|query| {
        query.reply("robot/name", "robot").wait().unwrap();
    });
    let _name = name.wait().unwrap();
    // 24 MB in 800 answers exceed all buffers of the path and the queue of the operator's node.
    let large = here.declare_queryable("robot/large").callback(|query| {
        std::thread::spawn(move || {
            for _ in 0..800 {
                query.reply("robot/large", vec![7; 30_000]).wait().unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
        });
    });
    let _large = large.wait().unwrap();
    wait_for("the robot's programs are asked", || {
        is_named(&ask(&there, "robot/name")).then_some(())
    });
    let slow = Slow::before(pair.ports[2]);
    let far = pair.session_on(slow.port);
    let dropped = || node_of(&pair.operator, "operator")["dropped"]["subscriber_full"].as_u64();
    let replies = far.get("robot/large").consolidation(ConsolidationMode::None).timeout(PATIENCE);
    let replies = replies.wait().unwrap();
    let count = wait_for("what has no room is counted", || {
        // Meanwhile other queries are answered every time.
        assert!(is_named(&ask(&there, "robot/name")));
        dropped().filter(|count| *count > 0)
    });
    for _ in 0..20 {
        assert!(is_named(&ask(&there, "robot/name")));
    }
    assert!(!slow.wide.load(Ordering::Relaxed) && !slow.closed.load(Ordering::Relaxed));
    assert!(slow.came.load(Ordering::Relaxed) < 20 << 20, "it has not read all");
    // The slow program receives the buffered answers, and an error about the rest.
    slow.wide.store(true, Ordering::Relaxed);
    let replies: Vec<_> = replies.iter().collect();
    let (answers, errors): (Vec<_>, Vec<_>) =
        replies.iter().map(Reply::result).partition(Result::is_ok);
    let [Err(error)] = errors.as_slice() else { panic!("{errors:?}") };
    let output = error.payload().try_to_string().unwrap().into_owned();
    let lost = 800 - answers.len() as u64;
    assert!(count <= lost && Some(lost) == dropped(), "{count}, {lost}: {output}");
    let reported =
        format!("{lost} answers were dropped: they arrived faster than this program reads");
    assert!(output.contains(&reported), "{output}");
    let log = std::fs::read_to_string(pair.operator.path("log")).unwrap();
    assert!(log.contains("answers to 'robot/large' arrive faster than the program here"), "{log}");
    assert!(is_named(&ask(&far, "robot/name")), "it is answered as before");
}

#[test]
fn queries_with_a_delay_bound_are_reserved_in_both_directions() {
    let pair = Pair::new();
    let bound = "within = \"300ms\"\nhz = 10\nmax_bytes = \"1kB\"\n";
    let _robot = pair.start(&pair.robot, &format!("{RULE}{bound}"));
    let _operator = pair.start(&pair.operator, &format!("{RULE}{bound}"));
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let name = here.declare_queryable("robot/name").callback(|query| {
        query.reply("robot/name", "robot").wait().unwrap();
    });
    let _name = name.wait().unwrap();
    wait_for("the robot is asked", || is_named(&ask(&there, "robot/name")).then_some(()));
    // Queries have a reservation on the operator's link, answers on the robot's.
    let reserved = wait_for("both ways are reserved", || {
        let reported = node_of(&pair.operator, "operator");
        let all = reported["reservations"].as_array()?;
        let of = |what: &str, node: &str| {
            let is = |it: &&serde_json::Value| {
                it["tag"].as_str().is_some_and(|tag| tag.contains(what))
                    && it["hops"][0]["name"] == node
            };
            all.iter().find(is).cloned()
        };
        Some([of("/@ask/", "operator")?, of("/@answer/", "robot")?])
    });
    for reservation in &reserved {
        assert_eq!(reservation["within_us"], 300_000, "{reservation}");
        let hop = &reservation["hops"][0];
        assert_eq!(hop["link"], "radio", "{reservation}");
        // At least ten answers per second of 1,000 bytes, on a link of 2 Mbit/s.
        let bits = hop["bits_per_s"].as_u64().unwrap();
        assert!((80_000..2_000_000).contains(&bits), "{reservation}");
        assert!(reservation["bound_us"].as_u64().unwrap() <= 300_000, "{reservation}");
    }
    // A request beyond the link's capacity is refused with an offer, but is still carried.
    let greedy = "within = \"300ms\"\nhz = 1000\nmax_bytes = \"100kB\"\ntag = \"greedy\"\n";
    let other = RULE.replace("robot/**", "greedy/**");
    let rules = format!("{RULE}{bound}{other}{greedy}");
    for (host, running) in [(&pair.robot, &_robot), (&pair.operator, &_operator)] {
        pair.write(host, &rules);
        running.signal(rustix::process::Signal::HUP);
    }
    let log = || std::fs::read_to_string(pair.operator.path("log")).unwrap();
    wait_for("it is refused", || log().contains("query 2 (key 'greedy/**')").then_some(()));
    let log = log();
    let line = log.lines().find(|line| line.contains("query 2 (key 'greedy/**')")).unwrap();
    assert!(line.contains("was refused: "), "{line}");
    assert!(is_named(&ask(&there, "robot/name")), "the other rule goes on");
}
