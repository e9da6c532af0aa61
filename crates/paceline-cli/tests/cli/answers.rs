//! The lines that other nodes cause in the log of a publisher.

use crate::host::{Host, LIMIT, free_port};
use paceline::{LinkConfig, Node, SubscriberEvent};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const REQUESTS: usize = 60;

#[test]
fn a_subscriber_that_repeats_a_refused_request_causes_few_lines() {
    let robot = Host::new();
    let endpoint = format!("tcp/127.0.0.1:{}", free_port());
    let listen = format!("name=thin,listen={endpoint},capacity=100kbit");
    let camera = robot.start(&["pub", "cam", "--test-card", "640x480@20", "--link", &listen]);
    let link = LinkConfig::new("thin").connect(&endpoint);
    let node = Node::builder().isolated().name("greedy").link(link).open().unwrap();
    let began = Instant::now();
    let wanted = || node.subscriber("cam").within(Duration::from_millis(200)).declare().unwrap();
    let mut subscriber = wanted();
    let mut refused = 0;
    while refused < REQUESTS {
        match subscriber.try_event() {
            Some(SubscriberEvent::Refused(..)) => {
                refused += 1;
                subscriber = wanted();
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(began.elapsed() < LIMIT, "{refused} refusals");
    }
    camera.signal(Signal::TERM);
    let log = camera.ended().stderr;
    let lines = log.lines().filter(|line| line.contains("greedy")).count();
    let all = refused * 2;
    // Eight lines and a count per 10 s.
    let windows = usize::try_from(began.elapsed().as_secs() / 10).unwrap() + 1;
    assert!(lines <= 9 * windows, "{lines} lines in {:?}: {log}", began.elapsed());
    assert!((1..all / 2).contains(&lines), "{lines} lines for {all} answers: {log}");
    assert!(log.contains("refused: greedy: ") && log.contains("similar lines"), "{log}");
}
