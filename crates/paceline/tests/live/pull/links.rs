//! Pulls over links: thin links, several hops, concurrent live streams, and scaling.

use super::{all, fill, history, holding, meets, publish, seqs};
use crate::sums;
use crate::support::{SOON, at_rate, free_endpoint, isolated, pair, wait_until};
use paceline::{Capacity, Encoding, Late, LinkConfig, Node, Sample};
use paceline_media::{Size, TestCard, jpeg, read_card_jpeg};
use std::time::Duration;

fn mbit(mbit: u64) -> Capacity {
    Capacity::from_bits_per_s(mbit * 1_000_000).unwrap()
}

/// Opens three nodes in a row, with a wide link followed by a thin one.
fn row() -> (Node, Node, Node) {
    let (first, second) = (free_endpoint(), free_endpoint());
    let wide = |link: LinkConfig| link;
    let thin = |link: LinkConfig| link.capacity(mbit(2));
    let robot = isolated("robot", [wide(LinkConfig::new("wide").listen(&first))]);
    let gate = isolated(
        "gate",
        [
            wide(LinkConfig::new("wide").connect(&first)),
            thin(LinkConfig::new("thin").listen(&second)),
        ],
    );
    let operator = isolated("operator", [thin(LinkConfig::new("thin").connect(&second))]);
    meets(&operator, 2);
    (robot, gate, operator)
}

#[test]
fn a_pull_over_two_hops_is_in_order_and_uses_the_nearest_holder() {
    let (robot, gate, operator) = row();
    let mut log = robot.publisher("log").history(history(100)).declare().unwrap();
    fill(&mut log, 60, 5_000);
    let (got, summary) = all(operator.pull("log").newest(60));
    assert_eq!(summary.missing, []);
    let is = |(sample, n): (&Sample, u8)| sample.seq == u64::from(n) && sample.payload[0] == n;
    assert!(got.iter().zip(0..).all(is));
    assert_eq!(summary.bytes, 300_000);
    let near = gate.buffer("log").declare().unwrap();
    wait_until("the nearer buffer is fed", || {
        log.put("x").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        !near.is_empty()
    });
    let (_, summary) = all(operator.pull("log"));
    assert_eq!(summary.nodes[0].name, "gate");
}

#[test]
fn pictures_are_pulled_at_the_requested_size() {
    let (robot, operator) = pair(|link| link.capacity(mbit(4)));
    let camera = robot.publisher("camera").encoding(Encoding::Jpeg).hz(30.0);
    let mut camera = camera.history(history(40)).declare().unwrap();
    let mut card = TestCard::new(Size::new(640, 480).unwrap()).unwrap();
    for n in 0..40 {
        camera.put(card.draw_jpeg(n, 7, 80).unwrap()).unwrap();
    }
    meets(&operator, 1);
    let pull = || operator.pull("camera");
    let (got, summary) = all(pull().newest(40).size(160, 120));
    assert_eq!((got.len(), summary.missing.len()), (40, 0), "none is left out for being late");
    for (sample, n) in got.iter().zip(0..) {
        let found = jpeg::dimensions(&sample.payload).unwrap();
        assert_eq!((found.width, found.height, sample.seq), (160, 120, n));
    }
    let card = read_card_jpeg(&got[39].payload).unwrap().expect("the card can be read");
    assert_eq!((card.frame, card.micros), (39, 7));
    let ten = seqs(pull().seq(0..=39).every(4).size(320, 240));
    assert_eq!(ten, (0..10).map(|n| n * 4).collect::<Vec<_>>());
    let (got, summary) = all(pull().size(1_280, 960));
    assert!(got.is_empty());
    let reason = summary.missing[0].reason.to_string();
    assert!(reason.contains("1280x960 is above the source size 640x480"), "{reason}");
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_pull_continues_while_live_samples_arrive() {
    let (robot, operator) = pair(|link| link.capacity(mbit(8)));
    let mut log = holding(&robot, "log", 1_000);
    publish(&mut log, 0..500);
    let live = operator.subscriber("log").queue(10_000);
    let mut live = live.declare().unwrap();
    wait_until("both meet", || operator.nodes().len() == 2 && log.wait_matching(SOON));
    let (end, over) = std::sync::mpsc::channel::<()>();
    let talker = std::thread::spawn(move || {
        while over.try_recv().is_err() {
            log.put("live").unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        log
    });
    for _ in 0..3 {
        assert_eq!(seqs(operator.pull("log").seq(0..=499)).len(), 500);
    }
    end.send(()).unwrap();
    let _log = talker.join().unwrap();
    let rest = std::iter::from_fn(|| live.recv_timeout(Duration::from_millis(300)).ok());
    let got: Vec<_> = rest.collect();
    assert!(got.len() > 10);
    assert!(got.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1), "no live sample is lost");
    sums::check(&[&robot, &operator]);
}

#[test]
fn pulling_25_mb_does_not_disturb_a_contracted_stream() {
    let (robot, operator) = pair(|link| link.capacity(mbit(8)));
    let mut log = holding(&robot, "log", 25);
    fill(&mut log, 25, 1_000_000);
    let steer = robot.publisher("steer").hz(100.0).late(Late::Send);
    let mut steer = steer.bytes_max(64).declare().unwrap();
    let within = Duration::from_millis(20);
    let commands = operator.subscriber("steer").within(within);
    let mut commands = commands.queue(10_000).declare().unwrap();
    assert!(steer.wait_matching(SOON));
    let (end, over) = std::sync::mpsc::channel::<()>();
    let driver = std::thread::spawn(move || {
        let mut put = 0;
        while over.try_recv().is_err() {
            at_rate(100, 10, |_| {
                steer.put(vec![0; 64]).unwrap();
            });
            put += 10;
        }
        put
    });
    let mut pulled = operator.pull("log").newest(25).run().unwrap();
    let mut got = 0u8;
    for sample in &mut pulled {
        assert_eq!((sample.seq, sample.payload.len()), (u64::from(got), 1_000_000));
        assert!(sample.payload.iter().all(|byte| *byte == got));
        got += 1;
    }
    assert_eq!((got, &pulled.summary().unwrap().missing[..]), (25, &[][..]));
    end.send(()).unwrap();
    let put = driver.join().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut ages: Vec<_> = std::iter::from_fn(|| commands.try_recv()).map(|s| s.age).collect();
    ages.sort();
    let of = |part: usize| ages[(ages.len() - 1) * part / 1_000];
    println!("{put} commands: p50 {:?} p99.9 {:?} max {:?}", of(500), of(999), of(1_000));
    assert_eq!(ages.len(), put, "every command arrives");
    sums::check(&[&robot, &operator]);
}
