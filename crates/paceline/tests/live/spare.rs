//! Contracts with a second path, which takes over when a link of the first one fails.

use crate::cable::Cable;
use crate::support::{SOON, free_endpoint, isolated, pair, wait_until};
use paceline::contract::{Grant, GrantedHop, Proxy, RefusalReason};
use paceline::{Capacity, LinkConfig, Node, SubscribeError, Subscriber, SubscriberEvent};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_millis(500);
const PERIOD: Duration = Duration::from_millis(10);
const SIDES: [&str; 2] = ["left", "right"];

/// A robot and an operator, joined over a relay on each side. Fields are dropped in declaration order.
struct Diamond {
    robot: Node,
    operator: Node,
    relays: Vec<Node>,
    /// From the robot to each relay, then from each relay to the operator.
    cables: Vec<Cable>,
}

impl Diamond {
    fn open() -> Self {
        let capacity = Capacity::from_bits_per_s(10_000_000).unwrap();
        let ends = [(); 4].map(|()| free_endpoint());
        let cables: Vec<Cable> = ends.iter().map(|end| Cable::new(end)).collect();
        let link = |name: &str| LinkConfig::new(name).capacity(capacity);
        let sides = || SIDES.iter().enumerate();
        let relay = |(side, name): (usize, &&str)| {
            let out = link("out").connect(&cables[side + 2].endpoint());
            isolated(name, [link("in").listen(&ends[side]), out])
        };
        let relays = sides().map(relay).collect();
        let near = sides().map(|(side, name)| link(name).connect(&cables[side].endpoint()));
        let far = sides().map(|(side, name)| link(name).listen(&ends[side + 2]));
        let (robot, operator) = (isolated("robot", near), isolated("operator", far));
        wait_until("all nodes know each other", || {
            robot.nodes().len() == 4 && operator.nodes().len() == 4
        });
        Self { robot, operator, relays, cables }
    }

    fn reservations(&self) -> usize {
        let status = self.robot.status(SOON);
        status.iter().map(|node| node.reservations.len()).sum()
    }
}

/// Returns the relay of a path.
fn side(hops: &[GrantedHop]) -> Option<usize> {
    SIDES.iter().position(|name| hops.get(1).is_some_and(|hop| hop.node_name == **name))
}

/// The events of the subscription so far.
#[derive(Default)]
struct Seen {
    grant: Option<Grant>,
    without: usize,
    ended: Vec<String>,
}

impl Seen {
    fn hear(&mut self, subscriber: &Subscriber) {
        while let Some(event) = subscriber.try_event() {
            match event {
                SubscriberEvent::Granted(grant) => self.grant = Some(grant),
                SubscriberEvent::NoSpare(refusal) => {
                    assert!(refusal.spare);
                    self.without += 1;
                }
                SubscriberEvent::Refused(_, refusal) => self.ended.push(refusal.to_string()),
                SubscriberEvent::Withdrawn(_) => self.ended.push("withdrawn".to_owned()),
                SubscriberEvent::Publishers(_)
                | SubscriberEvent::BestEffort(..)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::Adapted { .. }
                | SubscriberEvent::Warned(..)
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_) => {}
                // An event of a later version.
                _ => {}
            }
        }
    }

    fn sides(&self) -> Option<(usize, Option<usize>)> {
        let grant = self.grant.as_ref()?;
        Some((side(&grant.hops)?, side(&grant.spare)))
    }
}

#[test]
fn a_stream_with_a_spare_continues_after_each_link_has_failed() {
    let net = Diamond::open();
    let mut camera = net.robot.publisher("camera").period(PERIOD).bytes_max(200).declare().unwrap();
    let mut pictures = net.operator.subscriber("camera").within(WITHIN).spare().declare().unwrap();
    let (mut seen, mut seqs, mut put) = (Seen::default(), Vec::new(), 0_u64);
    wait_until("both paths are granted", || {
        seen.hear(&pictures);
        seen.sides().is_some_and(|(_, spare)| spare.is_some())
    });
    assert!(camera.wait_matching(SOON));
    // The refusals from before the second relay was connected are over.
    seen.ended.clear();
    // Publishes until `done`, and prints the longest time between two deliveries.
    let mut last = Instant::now();
    let mut stream = |seen: &mut Seen, what: &str, done: &dyn Fn(&Seen, u64) -> bool| {
        let (began, mut gap, mut arrived) = (Instant::now(), Duration::ZERO, 0);
        while !done(seen, arrived) {
            assert!(began.elapsed() < SOON, "{what}: {:?}", seen.sides());
            assert_eq!(camera.put(vec![7; 200]).unwrap().seq, put);
            put += 1;
            std::thread::sleep(PERIOD);
            while let Some(sample) = pictures.try_recv() {
                seqs.push(sample.seq);
                arrived += 1;
                (gap, last) = (gap.max(last.elapsed()), Instant::now());
            }
            seen.hear(&pictures);
        }
        println!("{what}: {gap:?} between two samples, {:?}", began.elapsed());
    };
    stream(&mut seen, "undisturbed", &|_, arrived| arrived >= 50);
    // The first path is cut behind its relay, then at the robot.
    for hop in [2, 0] {
        let (first, _) = seen.sides().unwrap();
        let without = seen.without;
        net.cables[hop + first].cut();
        stream(&mut seen, "after a cut", &|seen, arrived| {
            let moved = seen.sides() == Some((1 - first, None));
            moved && seen.without > without && arrived >= 50
        });
        net.cables[hop + first].restore();
        stream(&mut seen, "both paths again", &|seen, _| {
            seen.sides().is_some_and(|(_, spare)| spare.is_some())
        });
    }
    assert!(seen.ended.is_empty(), "the contract stayed in force: {:?}", seen.ended);
    wait_until("each sample is delivered or missing", || {
        // A loss at the end shows with the next sample.
        put += u64::from(camera.put(vec![7; 200]).is_ok());
        std::thread::sleep(PERIOD);
        seqs.extend(std::iter::from_fn(|| pictures.try_recv()).map(|sample| sample.seq));
        let first = seqs.first().copied().unwrap_or_default();
        put - first == seqs.len() as u64 + pictures.missing()
    });
    assert!(seqs.is_sorted_by(|a, b| a < b), "in order, once");
    drop(pictures);
    wait_until("nothing stays reserved", || net.reservations() == 0);
    drop(net.relays);
}

#[test]
fn a_spare_needs_a_contract_and_a_second_path() {
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let (robot, operator) = pair(|link| link.capacity(capacity));
    let bare = operator.subscriber("camera").spare().check().unwrap_err();
    assert!(matches!(bare, SubscribeError::SpareWithoutContract), "{bare}");
    assert!(bare.to_string().contains("add a delay bound (within)"), "{bare}");
    let proxied = operator.subscriber("camera").within(WITHIN).spare().proxy(Proxy::Auto);
    assert!(matches!(proxied.check().unwrap_err(), SubscribeError::SpareWithProxy));
    let idle = operator.subscriber("camera").within(WITHIN).spare().idle(SOON).check().unwrap_err();
    assert!(idle.to_string().contains("idle") && idle.to_string().contains("spare"), "{idle}");
    let camera = robot.publisher("camera").period(PERIOD).bytes_max(200).declare().unwrap();
    let wish = || operator.subscriber("camera").within(WITHIN).spare();
    let is_alone = |refusal: &paceline::contract::Refusal| {
        refusal.spare
            && refusal.reason == RefusalReason::NoSecondPath { shared: true }
            && refusal.link == "radio"
    };
    wait_until("a dry run names the link", || {
        let quotes = wish().quotes().unwrap();
        quotes.iter().any(|quote| quote.refusal.as_ref().is_some_and(is_alone))
    });
    let pictures = wish().declare().unwrap();
    wait_until("the refusal names the link", || {
        let mut events = std::iter::from_fn(|| pictures.try_event());
        events.any(|event| matches!(event, SubscriberEvent::Refused(_, it) if is_alone(&it)))
    });
    let status = robot.status(SOON);
    assert!(status.iter().all(|node| node.reservations.is_empty()), "nothing is reserved");
    drop((camera, pictures));
}
