//! Queries of plain Zenoh programs at one node, answered by plain Zenoh programs at another.

use crate::host::{LIMIT, Running};
use crate::plain::{Pair, node_of, python, wait_for};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use zenoh::bytes::Encoding;
use zenoh::query::{ConsolidationMode, Query, QueryTarget, Queryable, Reply};
use zenoh::sample::SampleKind;
use zenoh::time::{NTP64, Timestamp, TimestampId};
use zenoh::{Session, Wait};

const RULE: &str = "[[query]]\nkey = \"robot/**\"\n";
/// A service name in the format of rmw_zenoh.
const SERVICE: &str = "0/add_two_ints/example_interfaces::srv::dds_::AddTwoInts_/\
     RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a";

fn answer(
    session: &Session,
    key: &str,
    complete: bool,
    answer: impl Fn(Query) + Send + Sync + 'static,
) -> Queryable<()> {
    let queryable = session.declare_queryable(key.to_owned()).complete(complete);
    queryable.callback(answer).wait().unwrap()
}

/// Returns all replies to `selector`, in order of arrival.
fn ask(session: &Session, selector: &str) -> Vec<Reply> {
    ask_within(session, selector, LIMIT)
}

fn ask_within(session: &Session, selector: &str, limit: Duration) -> Vec<Reply> {
    let get = session.get(selector.to_owned()).consolidation(ConsolidationMode::None);
    get.timeout(limit).wait().unwrap().iter().collect()
}

/// Queries until there is a reply: the other node learns of a queryable shortly after its declaration.
fn ask_until(session: &Session, selector: &str) -> Vec<Reply> {
    wait_for(selector, || Some(ask(session, selector)).filter(|replies| !replies.is_empty()))
}

/// Returns the text of the only reply.
fn text(replies: &[Reply]) -> String {
    let [reply] = replies else { panic!("one answer: {replies:?}") };
    let payload = match reply.result() {
        Ok(sample) => sample.payload(),
        Err(error) => error.payload(),
    };
    payload.try_to_string().unwrap().into_owned()
}

fn dropped(host: &crate::host::Host, name: &str, reason: &str) -> u64 {
    node_of(host, name)["dropped"][reason].as_u64().unwrap_or_default()
}

#[test]
fn a_program_is_queried_from_the_other_node_with_all_parts_of_a_query() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, RULE);
    let _operator = pair.start(&pair.operator, RULE);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let time =
        Timestamp::new(NTP64::from(Duration::from_secs(9)), TimestampId::try_from(7u8).unwrap());
    let (to, asked) = channel();
    let _queryable = answer(&here, "robot/arm/**", false, move |query| {
        // Sends the parts of the query, not the query itself: Zenoh completes a query when its last clone is
        // dropped.
        let payload = query.payload().map(|payload| payload.to_bytes().to_vec());
        let attachment = query.attachment().map(|attachment| attachment.to_bytes().to_vec());
        let selector = query.selector().into_owned();
        let _ = to.send((selector, payload, query.encoding().cloned(), attachment));
        let reply =
            query.reply("robot/arm/1", "one").encoding(Encoding::APPLICATION_CDR.with_schema("x"));
        reply.attachment(vec![8; 600]).timestamp(time).wait().unwrap();
        query.reply("robot/arm/2/joint", "two").wait().unwrap();
        query.reply_del("robot/arm/3").attachment(vec![3]).wait().unwrap();
        query.reply_err("broken").encoding(Encoding::TEXT_PLAIN).wait().unwrap();
    });
    ask_until(&there, "robot/arm/**");
    while asked.try_recv().is_ok() {}
    let get = there.get("robot/arm/**?speed=fast;_max=3").consolidation(ConsolidationMode::None);
    let get = get.payload("what").encoding(Encoding::TEXT_JSON).attachment(vec![7; 33]);
    let replies: Vec<_> = get.timeout(LIMIT).wait().unwrap().iter().collect();
    let (selector, payload, encoding, attachment) = asked.recv().unwrap();
    assert_eq!(selector.key_expr().as_str(), "robot/arm/**");
    assert_eq!(selector.parameters().get("speed"), Some("fast"));
    assert_eq!(selector.parameters().get("_max"), Some("3"));
    assert_eq!(payload.unwrap(), b"what");
    assert_eq!(encoding, Some(Encoding::TEXT_JSON));
    assert_eq!(attachment.unwrap(), [7; 33]);
    assert!(asked.try_recv().is_err(), "it was asked once");
    let [one, two, deletion, error] = replies.as_slice() else { panic!("{replies:?}") };
    let (one, two) = (one.result().unwrap(), two.result().unwrap());
    assert_eq!(
        (one.key_expr().as_str(), two.key_expr().as_str()),
        ("robot/arm/1", "robot/arm/2/joint")
    );
    assert_eq!(one.payload().to_bytes().as_ref(), b"one");
    assert_eq!(one.encoding(), &Encoding::APPLICATION_CDR.with_schema("x"));
    assert_eq!(one.attachment().unwrap().to_bytes().as_ref(), [8; 600]);
    assert_eq!((one.timestamp(), two.timestamp()), (Some(&time), None));
    let deletion = deletion.result().unwrap();
    assert_eq!(
        (deletion.kind(), deletion.key_expr().as_str()),
        (SampleKind::Delete, "robot/arm/3")
    );
    assert_eq!(deletion.attachment().unwrap().to_bytes().as_ref(), [3]);
    let error = error.result().unwrap_err();
    assert_eq!(error.payload().to_bytes().as_ref(), b"broken");
    assert_eq!(error.encoding(), &Encoding::TEXT_PLAIN);
    // A program may accept replies on any key; many replies arrive like one.
    let _many = answer(&here, "robot/many", false, |query| {
        for n in 0..200 {
            query.reply(format!("elsewhere/{n}"), vec![0; 1_000]).wait().unwrap();
        }
    });
    wait_for("many answers", || {
        let get = there.get("robot/many").consolidation(ConsolidationMode::None);
        let get = get.accept_replies(zenoh::query::ReplyKeyExpr::Any).timeout(LIMIT);
        let replies: Vec<_> = get.wait().unwrap().iter().collect();
        assert!(replies.iter().all(|reply| reply.result().is_ok()), "{replies:?}");
        (!replies.is_empty()).then(|| assert_eq!(replies.len(), 200))
    });
}

/// Regression test: a link without a capacity lost most of these. A frame took two Zenoh batches, and the
/// queue has room for 16.
#[test]
fn large_answers_all_arrive() {
    const BYTES: usize = 900_000;
    const ANSWERS: u8 = 36;
    for capacity in ["", "1gbit"] {
        let pair = Pair { capacity, ..Pair::new() };
        let _robot = pair.start(&pair.robot, RULE);
        let _operator = pair.start(&pair.operator, RULE);
        let (here, there) = (pair.session_at(1), pair.session_at(2));
        let _queryable = answer(&here, "robot/map/**", false, |query| {
            let answers: u8 = query.parameters().get("answers").unwrap_or("0").parse().unwrap();
            for n in 0..answers {
                query.reply(format!("robot/map/{n}"), vec![n; BYTES]).wait().unwrap();
            }
        });
        ask_until(&there, "robot/map/**?answers=1");
        for _ in 0..3 {
            let replies = ask(&there, &format!("robot/map/**?answers={ANSWERS}"));
            assert_eq!(
                replies.len(),
                usize::from(ANSWERS),
                "over a link with capacity '{capacity}'"
            );
            for reply in &replies {
                assert_eq!(reply.result().unwrap().payload().len(), BYTES);
            }
        }
        for host in [&pair.robot, &pair.operator] {
            let log = std::fs::read_to_string(host.path("log")).unwrap();
            assert!(!log.contains("did not arrive"), "{log}");
        }
    }
}

#[test]
fn each_program_answers_once_with_rules_in_both_directions() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, RULE);
    let operator = pair.start(&pair.operator, RULE);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let beside = pair.session_at(2);
    let names = |session: &Session, key: &str, name: &'static str, complete: bool| {
        answer(session, key, complete, move |query| {
            // A queryable on a wildcard also receives queries for keys that it does not serve.
            let _ = query.reply("robot/name", name).wait();
        })
    };
    let _one = names(&here, "robot/name", "robot", false);
    let _two = names(&here, "robot/*", "robot too", false);
    let all = |session: &Session, count: usize| {
        wait_for("all answer", || {
            let replies = ask(session, "robot/**");
            assert!(replies.len() <= count, "{replies:?}");
            let text = |reply: &Reply| text(std::slice::from_ref(reply));
            let mut texts: Vec<_> = replies.iter().map(text).collect();
            texts.sort();
            (texts.len() == count).then_some(texts)
        })
    };
    assert_eq!(all(&there, 2), ["robot", "robot too"]);
    let _three = names(&there, "robot/name", "operator", false);
    assert_eq!(all(&beside, 3), ["operator", "robot", "robot too"]);
    assert_eq!(all(&pair.session_at(1), 3), ["operator", "robot", "robot too"]);
    // A query without a queryable is not forwarded to the other node.
    assert!(ask(&there, "robot/name/less").is_empty());
    // A query for complete queryables reaches only those.
    let complete = |session: &Session| {
        let get = session.get("robot/whole").target(QueryTarget::AllComplete);
        get.timeout(LIMIT).wait().unwrap().iter().count()
    };
    assert_eq!(complete(&there), 0);
    let _whole = answer(&here, "robot/whole", true, |query| {
        query.reply("robot/whole", "").wait().unwrap();
    });
    wait_for("the complete one", || (complete(&there) == 1).then_some(()));
    // Removing a rule removes its queryables, and adding one restores them.
    pair.write(&pair.operator, "");
    operator.signal(Signal::HUP);
    // A query on its way while its queryable is removed may wait for its whole time limit.
    let few = || ask_within(&beside, "robot/**", Duration::from_secs(3)).len();
    wait_for("only its own", || (few() == 1).then_some(()));
    pair.write(&pair.operator, &format!("{RULE}answers = false\ntimeout = \"2s\"\n"));
    operator.signal(Signal::HUP);
    assert_eq!(all(&beside, 4).len(), 4);
    wait_for("it asks and does not answer", || {
        (ask(&pair.session_at(1), "robot/**").len() == 3).then_some(())
    });
}

#[test]
fn queries_beyond_the_rule_are_refused_with_its_limit_and_counted() {
    let pair = Pair::new();
    let limits = "max_bytes = \"2kB\"\nat_once = 2\ntimeout = \"1s\"\n";
    let _robot = pair.start(&pair.robot, &format!("{RULE}{limits}"));
    let _operator = pair.start(&pair.operator, &format!("{RULE}{limits}"));
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let _queryable = answer(&here, "robot/echo", false, |query| {
        let bytes = query.parameters().get("bytes").and_then(|bytes| bytes.parse().ok());
        query.reply("robot/echo", vec![b'x'; bytes.unwrap_or(1)]).wait().unwrap();
    });
    let (to, kept) = channel();
    let _silent = answer(&here, "robot/silent", false, move |query| {
        let _ = to.send(query);
    });
    assert_eq!(text(&ask_until(&there, "robot/echo")), "x");
    let output = text(&ask(&there, "robot/echo?bytes=3000"));
    assert!(
        output.contains("the rule of node robot accepts at most 2000")
            && output.contains("raise max_bytes"),
        "{output}"
    );
    wait_for("it is counted", || (dropped(&pair.robot, "robot", "too_large") == 1).then_some(()));
    let get = there.get("robot/echo").payload(vec![0; 3_000]).timeout(LIMIT);
    let output = text(&get.wait().unwrap().iter().collect::<Vec<_>>());
    assert!(output.contains("its rule accepts at most 2000; raise max_bytes"), "{output}");
    wait_for("it is counted", || {
        (dropped(&pair.operator, "operator", "too_large") == 1).then_some(())
    });
    // Two queries wait for a reply that never arrives; a third one is rejected at once.
    let silent: Vec<_> =
        (0..2).map(|_| there.get("robot/silent").timeout(LIMIT).wait().unwrap()).collect();
    let queries = [kept.recv_timeout(LIMIT).unwrap(), kept.recv_timeout(LIMIT).unwrap()];
    let output = text(&ask(&there, "robot/echo"));
    assert!(
        output.contains("2 queries already wait") && output.contains("raise at_once"),
        "{output}"
    );
    wait_for("it is counted", || {
        (dropped(&pair.operator, "operator", "queue_full") == 1).then_some(())
    });
    // They time out as in plain Zenoh; then new queries are accepted.
    for replies in silent {
        // Zenoh's session and its router may both report the timeout.
        let output: Vec<_> = replies.iter().map(|reply| text(&[reply]).to_lowercase()).collect();
        let ended = output.iter().all(|output| output.contains("timeout"));
        assert!(ended && !output.is_empty(), "{output:?}");
    }
    drop(queries);
    assert_eq!(text(&ask(&there, "robot/echo")), "x");
}

#[test]
fn a_dead_program_leaves_no_query_waiting() {
    let pair = Pair::new();
    let rule = "[[query]]\nkey = \"0/**\"\ntimeout = \"10min\"\n";
    let mut robot = pair.start(&pair.robot, rule);
    let _operator = pair.start(&pair.operator, rule);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    // A service and its client as in rmw_zenoh: the queryable is complete, and the query targets complete
    // ones.
    let call = || {
        let get = there.get(SERVICE).target(QueryTarget::AllComplete).payload(vec![0, 1, 0, 0]);
        let get = get.attachment(vec![7; 33]).consolidation(ConsolidationMode::None);
        get.timeout(Duration::from_secs(600)).wait().unwrap()
    };
    if let Some(python) = python("a_dead_program_leaves_no_query_waiting (a Python program)") {
        let mut command = Command::new(python);
        command.args(["-c", PYTHON_SERVICE, &pair.ports[1].to_string(), SERVICE]);
        command.stdout(Stdio::piped());
        let mut program = Running::unread(command.spawn().unwrap());
        let replies = wait_for("the service answers", || {
            Some(call().iter().collect::<Vec<_>>()).filter(|replies| !replies.is_empty())
        });
        let sample = replies[0].result().unwrap();
        assert_eq!(sample.key_expr().as_str(), SERVICE);
        assert_eq!(sample.attachment().unwrap().to_bytes().as_ref(), [7; 33]);
        // The next query is never answered: it ends when the program dies, long before its timeout.
        let unanswered = call();
        assert_eq!(program.first_line().trim(), "asked again");
        program.signal(Signal::KILL);
        program.status();
        assert!(unanswered.iter().all(|reply| reply.result().is_err()));
        wait_for("nobody is asked", || call().iter().next().is_none().then_some(()));
    }
    let (to, kept) = channel();
    let _service = answer(&here, SERVICE, true, move |query| {
        let _ = to.send(query);
    });
    let (waits, _query) = wait_for("the service is asked", || {
        let waits = call();
        kept.recv_timeout(Duration::from_millis(300)).ok().map(|query| (waits, query))
    });
    robot.signal(Signal::KILL);
    robot.status();
    let output = text(&waits.iter().collect::<Vec<_>>());
    assert!(output.contains("node robot left before it answered"), "{output}");
    wait_for("nobody is asked", || call().iter().next().is_none().then_some(()));
}

#[test]
fn a_removed_rule_ends_its_waiting_queries() {
    let pair = Pair::new();
    let rule = "[[query]]\nkey = \"robot/**\"\ntimeout = \"10min\"\n";
    let robot = pair.start(&pair.robot, rule);
    let operator = pair.start(&pair.operator, rule);
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let (to, kept) = channel();
    let _service = answer(&here, "robot/slow", true, move |query| {
        let _ = to.send(query);
    });
    let call = |selector: &str| {
        let get = there.get(selector.to_owned()).consolidation(ConsolidationMode::None);
        get.timeout(Duration::from_secs(600)).wait().unwrap()
    };
    let mut numbers = 0..;
    for (host, node, why) in [
        (&pair.robot, &robot, "node robot left before it answered"),
        (&pair.operator, &operator, "before node robot answered: it was removed or changed"),
    ] {
        // A query may arrive late, after others. One of this iteration arrives only once the rule serves.
        let mut calls = BTreeMap::new();
        let (waits, _query) = wait_for("the program is queried", || {
            let number = numbers.next()?.to_string();
            let waits = call(&format!("robot/slow?call={number}"));
            calls.insert(number, waits);
            let query = kept.recv_timeout(Duration::from_millis(300)).ok()?;
            Some((calls.remove(query.parameters().get("call")?)?, query))
        });
        pair.write(host, "");
        node.signal(Signal::HUP);
        let error = wait_for("the query ends", || {
            waits.recv_timeout(Duration::from_secs(5)).ok().flatten()
        });
        let output = text(&[error]);
        assert!(output.contains(why), "{output}");
        assert!(waits.recv().is_err(), "nothing follows");
        pair.write(host, rule);
        node.signal(Signal::HUP);
    }
}

const PYTHON_SERVICE: &str = "
import sys, time, zenoh
config = zenoh.Config()
config.insert_json5('mode', '\"client\"')
config.insert_json5('connect/endpoints', '[\"tcp/127.0.0.1:' + sys.argv[1] + '\"]')
asked = []
def answer(query):
    asked.append(query)
    if len(asked) == 1:
        query.reply(sys.argv[2], b'sum', attachment=query.attachment)
        asked[0] = None
        query.drop()
    else:
        print('asked again', flush=True)
with zenoh.open(config) as session:
    queryable = session.declare_queryable(sys.argv[2], answer, complete=True)
    time.sleep(600)
";

#[test]
fn looping_queries_are_dropped_and_named() {
    let pair = Pair::new();
    let _robot = pair.start(&pair.robot, RULE);
    // The plain endpoints form a loop: the operator's node connects to the robot's programs.
    let connect = format!("connect = [\"tcp/127.0.0.1:{}\"]\n", pair.ports[1]);
    let _operator = pair.start(&pair.operator, &format!("{connect}{RULE}"));
    let (here, there) = (pair.session_at(1), pair.session_at(2));
    let _queryable = answer(&here, "robot/name", false, |query| {
        query.reply("robot/name", "robot").wait().unwrap();
    });
    let log = |host: &crate::host::Host| std::fs::read_to_string(host.path("log")).unwrap();
    wait_for("the loop is named", || {
        ask(&there, "robot/name");
        [&pair.robot, &pair.operator]
            .iter()
            .any(|host| log(host).contains("a loop: node "))
            .then_some(())
    });
    wait_for("it is counted", || {
        let count =
            dropped(&pair.robot, "robot", "loop") + dropped(&pair.operator, "operator", "loop");
        (count > 0).then_some(())
    });
}
