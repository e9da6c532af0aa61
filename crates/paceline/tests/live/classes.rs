//! Classes of a live link: membership, isolation from a flood, and changes while it runs.
//!
//! The shares of the classes are proved in virtual time. These tests check counters.

use crate::sums;
use crate::support::{SOON, at_rate, pair, wait_until};
use paceline::class::{ClassPolice, ClassesError, Curve, Curves, LinkClass, Match};
use paceline::status::{ClassStatus, DropReason};
use paceline::{Capacity, Late, LinkConfig, Node, Pattern};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn class(name: &str, wants: Match) -> LinkClass {
    LinkClass { name: name.to_owned(), wants, ..LinkClass::default() }
}

fn view(node: &Node, name: &str) -> ClassStatus {
    let status = node.status(SOON).into_iter().find(|status| status.id == node.id()).unwrap();
    let mut classes = status.links.into_iter().flat_map(|link| link.classes);
    classes.find(|class| class.name == name).unwrap()
}

fn flooded() -> [LinkClass; 2] {
    let contracted = Match { contracted: Some(true), ..Match::default() };
    let real_time = Curve::burst(1_500, Duration::from_millis(20).into(), 400_000).ok();
    let curves = Curves { real_time, link_share: Curve::linear(1_000_000).ok(), upper_limit: None };
    let tags = Match { tags: vec![Pattern::new("flood").unwrap()], ..Match::default() };
    let police = "leaky:20p,200p/s + leaky:20kB,400kbit else drop".parse().unwrap();
    let police = Some(ClassPolice::from(&police));
    [
        LinkClass { curves, ..class("contracts", contracted) },
        LinkClass { police, ..class("flood", tags) },
    ]
}

#[test]
fn a_flood_stays_in_its_class_and_every_sample_is_accounted_for() {
    let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| {
        flooded().into_iter().fold(link.capacity(thin), |link, class| link.class(class))
    });
    let steer = robot.publisher("steer").hz(100.0).late(Late::Send);
    let mut steer = steer.declare().unwrap();
    let mut flood = robot.publisher("flood").declare().unwrap();
    let commands = operator.subscriber("steer").within(Duration::from_millis(50));
    let mut commands = commands.queue(1_000).declare().unwrap();
    let _flooded = operator.subscriber("flood").declare().unwrap();
    assert!(steer.wait_matching(SOON) && flood.wait_matching(SOON));
    let over = AtomicBool::new(false);
    let puts = std::thread::scope(|scope| {
        let flooder = scope.spawn(|| {
            let mut puts = 0;
            while !over.load(Ordering::Relaxed) && puts < 2_000_000 {
                flood.put(vec![0; 64]).unwrap();
                puts += 1;
            }
            puts
        });
        at_rate(100, 200, |_| {
            steer.put(vec![0; 64]).unwrap();
        });
        over.store(true, Ordering::Relaxed);
        flooder.join().unwrap()
    });
    let counters = |name| view(&robot, name).counters;
    wait_until("every sample of the flood is accounted for", || {
        let flood = counters("flood");
        flood.offered == puts && flood.sent + flood.dropped.total() == puts
    });
    let flood = counters("flood");
    println!("{puts} samples of 64 bytes in 2 s: {flood:?}");
    assert!(flood.dropped.of(DropReason::Policed) > 0 && flood.sent > 0);
    wait_until("every command was sent", || counters("contracts").sent == 200);
    let contracts = view(&robot, "contracts");
    println!("contracts: {contracts:?}");
    assert_eq!(contracts.counters.dropped.total(), 0);
    assert!(contracts.served_bytes > 200 * 64 && contracts.streams == 1);
    let mut ages: Vec<_> = std::iter::from_fn(|| commands.try_recv()).map(|s| s.age).collect();
    ages.sort();
    assert_eq!(ages.len(), 200);
    println!("commands p50 {:?} p99 {:?} max {:?}", ages[100], ages[198], ages[199]);
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_contract_needs_the_guarantee_of_its_class_while_the_link_runs() {
    let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| {
        flooded().into_iter().fold(link.capacity(thin).buffer_bytes(50_000), LinkConfig::class)
    });
    let mut steer = robot.publisher("steer").hz(50.0).bytes_max(64).declare().unwrap();
    let commands = operator.subscriber("steer").within(Duration::from_millis(80));
    let commands = commands.declare().unwrap();
    assert!(steer.wait_matching(SOON));
    let reserved = || {
        let status = robot.status(SOON).into_iter().find(|status| status.id == robot.id());
        status.unwrap().links.into_iter().find(|link| link.name == "radio").unwrap()
    };
    wait_until("the contract is reserved in its class", || {
        reserved().classes.first().is_some_and(|class| class.reserved_bits_per_s > 0)
    });
    for _ in 0..10 {
        steer.put(vec![0; 64]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    wait_until("the greatest queue is reported", || {
        reserved().buffer.is_some_and(|it| it.greatest_bytes > 0)
    });
    let now = reserved();
    println!("{now:?}");
    let class = &now.classes[0];
    assert_eq!((class.name.as_str(), class.guaranteed_bits_per_s), ("contracts", 400_000));
    let buffer = now.buffer.unwrap();
    assert!(buffer.bytes == 50_000 && (1..=50_000).contains(&buffer.reserved_bytes), "{buffer:?}");
    assert!(buffer.greatest_bytes <= buffer.reserved_bytes, "{now:?}");
    // The node reserves the same, and its subscriber's node reserves space for it.
    let host = |node: &Node| {
        let status = node.status(SOON).into_iter().find(|status| status.id == node.id());
        status.unwrap().buffer.unwrap()
    };
    let (here, there) = (host(&robot), host(&operator));
    println!("{here:?} {there:?}");
    assert_eq!((here.reserved_bytes, here.bytes), (buffer.reserved_bytes, 1_000_000_000));
    assert!((1..=here.reserved_bytes).contains(&here.greatest_bytes), "{here:?}");
    // Ten commands of 64 bytes were not read.
    assert!(there.reserved_bytes >= 64 && (64..=640).contains(&there.greatest_bytes), "{there:?}");
    // Without the class, the contract falls into the class default and is withdrawn.
    robot.set_classes("radio", vec![flooded()[1].clone()]).unwrap();
    let refusals = || {
        let status = operator.status(SOON).into_iter().find(|status| status.id == operator.id());
        status.unwrap().subscriptions.into_iter().flat_map(|it| it.refusals).collect::<Vec<_>>()
    };
    wait_until("it is refused", || !refusals().is_empty());
    let text = refusals().remove(0);
    assert!(text.starts_with("class 'default' of link 'radio'"), "{text}");
    robot.set_classes("radio", flooded().into()).unwrap();
    wait_until("it is granted again", || reserved().classes[0].reserved_bits_per_s > 0);
    drop(commands);
}

#[test]
fn classes_change_while_the_link_runs() {
    let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(thin));
    let mut sensor = robot.publisher("sensor").declare().unwrap();
    let mut heard = operator.subscriber("sensor").declare().unwrap();
    assert!(sensor.wait_matching(SOON));
    let wanted = LinkClass { per_peer: true, ..class("peers", Match::default()) };
    robot.set_classes("radio", vec![wanted.clone()]).unwrap();
    for _ in 0..10 {
        sensor.put(vec![0; 100]).unwrap();
        heard.recv().unwrap();
    }
    let rows = || {
        let status = robot.status(SOON).into_iter().find(|status| status.id == robot.id());
        status.unwrap().links.remove(0).classes
    };
    wait_until("the peer has a class of its own", || {
        let rows = rows();
        rows.len() == 2 && rows[1].peer == Some(operator.id()) && rows[1].counters.sent == 10
    });
    let error = robot.set_classes("radio", vec![wanted.clone(), wanted.clone()]).unwrap_err();
    assert!(matches!(error, ClassesError::Class(..)), "{error}");
    let error = robot.set_classes("cable", vec![wanted]).unwrap_err();
    assert_eq!(error.to_string(), "link 'cable': this node has no link of that name");
    assert_eq!(rows().len(), 2, "invalid changes had no effect");
    robot.set_classes("radio", Vec::new()).unwrap();
    sensor.put(vec![0; 100]).unwrap();
    heard.recv().unwrap();
    wait_until("there are no classes left", || rows().is_empty());
    sums::check(&[&robot, &operator]);
}
