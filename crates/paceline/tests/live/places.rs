//! Proxies at named nodes between publisher and subscriber, over real links.

use crate::sums;
use crate::support::{SOON, at_rate, free_endpoint, isolated, wait_until};
use paceline::contract::{Proxy, RefusalReason};
use paceline::{Capacity, Encoding, LinkConfig, Node, Subscriber, SubscriberEvent};
use paceline_media::{Size, TestCard, jpeg};
use std::time::{Duration, Instant};

const PICTURES: u32 = 60;
/// The rates and sizes of six subscribers: one in this many, and the width and height.
const FORMS: [(u32, (u32, u32)); 6] = [
    (1, (320, 240)),
    (3, (320, 240)),
    (6, (320, 240)),
    (1, (160, 120)),
    (3, (160, 120)),
    (6, (160, 120)),
];

/// Returns robot, mast, office and operator: a chain of two links, and a third link from the mast.
fn four() -> [Node; 4] {
    let ends = [(); 3].map(|()| free_endpoint());
    let [radio, lan, sea] = &ends;
    let robot = isolated("robot", [LinkConfig::new("radio").listen(radio)]);
    let mast = open_mast(&ends);
    let office = isolated("office", [LinkConfig::new("lan").connect(lan)]);
    let operator = isolated("operator", [LinkConfig::new("sea").connect(sea)]);
    [robot, mast, office, operator]
}

fn open_mast([radio, lan, sea]: &[String; 3]) -> Node {
    let links = [
        LinkConfig::new("radio").connect(radio),
        LinkConfig::new("lan").listen(lan),
        LinkConfig::new("sea").listen(sea),
    ];
    isolated("mast", links)
}

/// Returns the bytes of the camera's samples on the links robot → mast, mast → office and mast → operator.
fn bytes(robot: &Node) -> [u64; 3] {
    let status = robot.status(SOON);
    let on = |node: &str, link: &str| {
        let node = status.iter().find(|it| it.name == node).unwrap();
        let link = node.links.iter().find(|it| it.name == link).unwrap();
        link.streams.iter().map(|stream| stream.counters.bytes).sum()
    };
    [on("robot", "radio"), on("mast", "lan"), on("mast", "sea")]
}

#[test]
fn six_subscribers_get_the_same_pictures_at_every_place() {
    let nodes = four();
    let [robot, mast, office, operator] = &nodes;
    let mast_alone = Proxy::Node("mast".into());
    let mut places = vec![Proxy::Publisher, mast_alone, Proxy::Subscriber, Proxy::Auto];
    let mut card = TestCard::new(Size::new(320, 240).unwrap()).unwrap();
    let mut sent = Vec::new();
    while let Some(place) = places.pop() {
        let camera = robot.publisher("camera").encoding(Encoding::Jpeg);
        let mut camera = camera.period(Duration::from_secs(1) / 15).declare().unwrap();
        let mut all: Vec<Subscriber> = Vec::new();
        for (number, (every, (width, height))) in FORMS.into_iter().enumerate() {
            let node = if number % 2 == 0 { office } else { operator };
            let asked = node.subscriber("camera").queue(1_000).every(every).size(width, height);
            all.push(asked.proxy(place.clone()).declare().unwrap());
        }
        let rows = |node: &Node| {
            let status = node.status(SOON);
            let all = status.into_iter().flat_map(|it| it.subscriptions);
            all.filter(|it| !it.publishers.is_empty()).count()
        };
        wait_until("all receive the camera", || rows(robot) == FORMS.len());
        // After the first picture the size is known.
        camera.put(card.draw_jpeg(0, 7, 80).unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        all.iter_mut().for_each(|it| while it.try_recv().is_some() {});
        let before = bytes(robot);
        at_rate(15, PICTURES, |n| {
            camera.put(card.draw_jpeg(u64::from(n), 7, 80).unwrap()).unwrap();
        });
        std::thread::sleep(Duration::from_millis(500));
        for (got, (every, size)) in all.iter_mut().zip(FORMS) {
            let got: Vec<_> = std::iter::from_fn(|| got.try_recv()).collect();
            let seqs: Vec<u64> = got.iter().map(|sample| sample.seq).collect();
            // The first one may lie between two instants of the others.
            let spaced = seqs.windows(2).skip(1).all(|pair| pair[1] - pair[0] == u64::from(every));
            let whole = seqs.len().abs_diff((PICTURES / every) as usize) <= 1;
            assert!(spaced && whole, "{place}, one in {every}: {seqs:?}");
            for sample in got {
                let found = jpeg::dimensions(&sample.payload).unwrap();
                assert_eq!((found.width, found.height), size, "{place}");
            }
        }
        let after = bytes(robot);
        sent.push([0, 1, 2].map(|link| after[link] - before[link]));
        println!("{place}: robot-mast, mast-office, mast-operator: {:?}", sent.last());
    }
    let [chosen, at_subscriber, at_mast, at_publisher] = sent[..] else { panic!() };
    // The first link carries the full stream, and the links behind it what the publisher would send. Which one of six
    // pictures is sent depends on the moment of the start, and a picture may cross a link twice while streams are merged.
    let alike =
        |one: &[u64], other: &[u64]| one.iter().zip(other).all(|(a, b)| a.abs_diff(*b) * 20 <= *a);
    assert!(alike(&at_mast[..1], &at_subscriber[..1]), "{sent:?}");
    assert!(alike(&at_mast[1..], &at_publisher[1..]), "{sent:?}");
    assert!(at_mast[0] < at_publisher[0], "{at_mast:?} {at_publisher:?}");
    let sum = |bytes: [u64; 3]| bytes.iter().sum::<u64>();
    assert!(sum(at_mast) < sum(at_publisher).min(sum(at_subscriber)));
    let most = sum(at_mast) + sum(at_mast) / 20;
    assert!(sum(chosen) <= most, "the planner may also mix places: {sent:?}");
    sums::check(&[robot, mast, office, operator]);
}

#[test]
fn a_contract_ends_within_two_seconds_after_its_proxy_and_returns_with_it() {
    let capacity = Capacity::from_bits_per_s(10_000_000).unwrap();
    let ends = [(); 3].map(|()| free_endpoint());
    let [radio, _, sea] = &ends;
    let robot = isolated("robot", [LinkConfig::new("radio").listen(radio).capacity(capacity)]);
    let open = || {
        let links = [
            LinkConfig::new("radio").connect(radio).capacity(capacity),
            LinkConfig::new("sea").listen(sea).capacity(capacity),
        ];
        isolated("mast", links)
    };
    let mast = open();
    let operator = isolated("operator", [LinkConfig::new("sea").connect(sea).capacity(capacity)]);
    let pose = robot.publisher("pose").hz(50.0).bytes_max(1_000);
    let mut pose = pose.declare().unwrap();
    let asked = operator.subscriber("pose").every(5).within(Duration::from_millis(300));
    let mut poses = asked.proxy(Proxy::Node("mast".into())).declare().unwrap();
    let wait_for = |poses: &Subscriber, what: &str, is: &dyn Fn(&SubscriberEvent) -> bool| {
        wait_until(what, || std::iter::from_fn(|| poses.try_event()).any(|event| is(&event)))
    };
    let granted = |event: &SubscriberEvent| {
        let SubscriberEvent::Granted(grant) = event else { return false };
        let rates: Vec<u64> = grant.hops.iter().map(|hop| hop.bytes_per_s).collect();
        rates.len() == 2 && rates[0] == 5 * rates[1]
    };
    // A node that has just ended does not answer.
    let patience = Duration::from_millis(500);
    let reserved = |node: &Node| {
        node.status(patience).iter().map(|node| node.reservations.len()).sum::<usize>()
    };
    wait_for(&poses, "both parts are granted", &granted);
    let mut put = |seconds: u32| {
        at_rate(50, 50 * seconds, |_| {
            pose.put(vec![1; 900]).unwrap();
        })
    };
    put(1);
    let got = std::iter::from_fn(|| poses.try_recv()).count();
    assert!((9..=10).contains(&got), "{got}");
    drop(mast);
    let began = Instant::now();
    let refused = |event: &SubscriberEvent| {
        matches!(event, SubscriberEvent::Refused(_, it)
            if it.reason == RefusalReason::NoProxy { apart: false } && it.link == "mast")
            || matches!(event, SubscriberEvent::Withdrawn(_))
    };
    wait_for(&poses, "the subscription is notified", &refused);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    wait_until("nothing stays reserved after the death", || reserved(&robot) == 0);
    let mast = open();
    wait_for(&poses, "both parts are granted again", &granted);
    put(1);
    let got = std::iter::from_fn(|| poses.try_recv()).count();
    assert!((9..=10).contains(&got), "{got}");
    drop(poses);
    wait_until("nothing stays reserved", || reserved(&robot) == 0);
    sums::check(&[&robot, &mast, &operator]);
}
