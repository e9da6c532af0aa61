//! Classes: assignment of streams, link sharing and policing.

use super::*;
use crate::plan::StreamNames;
use paceline_sched::LossTolerance;
use paceline_sched::curve::Curve;
use paceline_sched::hfsc::Curves;

fn bits(bits: u64) -> Option<Capacity> {
    Capacity::from_bits_per_s(bits).ok()
}

fn linear(bits: u64) -> Option<Curve> {
    Curve::linear(bits).ok()
}

fn class(name: &str) -> LinkClass {
    LinkClass { name: name.to_owned(), ..LinkClass::default() }
}

fn below(parent: &str, name: &str) -> LinkClass {
    LinkClass { parent: Some(parent.to_owned()), ..class(name) }
}

pub(super) fn tagged(name: &str, pattern: &str) -> LinkClass {
    let tags = vec![Pattern::new(pattern).unwrap()];
    LinkClass { wants: Match { tags, ..Match::default() }, ..class(name) }
}

fn index_of(place: usize) -> StreamIndex {
    StreamIndex(u32::try_from(place).unwrap())
}

fn names(tag: &str, node: &str, peer: &str) -> StreamNames {
    StreamNames { peer: peer.to_owned(), node: node.to_owned(), tag: Tag::new(tag).ok() }
}

fn tree(classes: &[LinkClass]) -> Arc<ClassTree> {
    Arc::new(ClassTree::new(classes.to_vec(), bits(2_000_000)).unwrap())
}

#[test]
fn a_stream_belongs_to_the_first_matching_class() {
    let contracts = Match { contracted: Some(true), ..Match::default() };
    let from = Match { nodes: vec!["robot".to_owned()], ..Match::default() };
    let to = Match { peers: vec!["operator".to_owned()], ..Match::default() };
    let tree = tree(&[
        class("inner"),
        LinkClass { wants: contracts, ..below("inner", "contracts") },
        tagged("video", "robot/*/video"),
        LinkClass { wants: from, ..class("robot") },
        LinkClass { wants: to, ..class("operator") },
    ]);
    let of = |tag, node, peer, contracted| {
        let place = tree.class_of(&names(tag, node, peer), contracted);
        tree.classes()[place].name.clone()
    };
    assert_eq!(of("robot/1/video", "robot", "operator", true), "contracts");
    assert_eq!(of("robot/1/video", "robot", "operator", false), "video");
    assert_eq!(of("robot/1/state", "robot", "operator", false), "robot");
    assert_eq!(of("robot/1/state", "gate", "operator", false), "operator");
    assert_eq!(of("robot/1/state", "gate", "archive", false), DEFAULT);
}

#[test]
fn shares_become_curves_and_unspecified_shares_are_even() {
    let tree = tree(&[
        LinkClass { share: Some(50), ..class("fleet") },
        LinkClass { share: Some(40), parent: Some("fleet".to_owned()), ..tagged("a", "a") },
        LinkClass { parent: Some("fleet".to_owned()), ..tagged("b", "b") },
        LinkClass {
            curves: Curves { link_share: linear(500_000), ..Curves::default() },
            ..tagged("c", "c")
        },
    ]);
    // 1 Mbit/s of the link remains next to `fleet`; `c` has half of it, and the default class the rest.
    let parts: Vec<_> =
        tree.classes().iter().zip(&tree.parts).map(|(c, part)| (c.name.as_str(), *part)).collect();
    let wanted =
        [("fleet", 500_000), ("a", 200_000), ("b", 300_000), ("c", 250_000), (DEFAULT, 250_000)];
    assert_eq!(parts, wanted);
}

#[test]
fn contradictory_classes_are_refused_by_name() {
    let real = |bits| Curves { real_time: linear(bits), link_share: None, upper_limit: None };
    let limit = Curves { upper_limit: linear(9), ..real(9) };
    let cases: Vec<(Vec<LinkClass>, &str)> = vec![
        (vec![class("a"), class("a")], "class 'a': name: class \"a\" is listed twice"),
        (vec![class("")], "class: must be 1 to 64 bytes of text"),
        (vec![below("b", "a")], "parent: class \"a\" has the parent \"b\", which is not listed"),
        (vec![below("b", "a"), below("a", "b")], "parent: class \"a\" is below itself"),
        (
            vec![LinkClass { share: Some(101), ..class("a") }],
            "share: 101 %: must be a whole number",
        ),
        (
            vec![
                LinkClass { share: Some(60), ..class("a") },
                LinkClass { share: Some(50), ..class("b") },
            ],
            "class 'b': share: 50 %: with the earlier shares 110 % of the class above",
        ),
        (
            vec![LinkClass { curves: real(1), ..class("a") }, below("a", "b")],
            "class 'a': real_time: class 'b' is below it, and only a class without subclasses has streams",
        ),
        (vec![tagged("a", "x"), below("a", "b")], "class 'a': match: class 'b' is below it"),
        (
            vec![LinkClass { per_peer: true, curves: real(1), ..class("a") }],
            "class 'a': real_time: conflicts with per_peer",
        ),
        (
            vec![
                LinkClass { curves: real(1_000_000), ..class("a") },
                LinkClass { curves: real(950_000), ..class("b") },
            ],
            "class 'b': real_time: with the earlier guarantees it exceeds the link, of which 5 % are reserved for control: service curves promise 1950000 bit/s in the long run, the link carries 1900000",
        ),
        (
            vec![LinkClass { curves: limit, ..class("a") }],
            "upper limit without a link-sharing curve",
        ),
        (vec![tagged(DEFAULT, "x")], "class 'default': match: default is the class of streams"),
        (
            (0..65).map(|n| class(&n.to_string())).collect(),
            "class: 65 of them: must be at most 64 per link",
        ),
    ];
    for (classes, part) in cases {
        let error = ClassTree::new(classes, bits(2_000_000)).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let error =
        ClassTree::new(vec![LinkClass { curves: real(1), ..class("a") }], None).unwrap_err();
    assert!(
        error.to_string().contains("the link has none: set a capacity for the link"),
        "{error}"
    );
}

/// A link with classes, best-effort streams with a constant backlog, and a peer that acknowledges.
pub(super) struct Rig {
    pub(super) a: End,
    pub(super) b: End,
    pub(super) now: Instant,
    seq: u64,
}

impl Rig {
    pub(super) fn new(classes: &[LinkClass], tags: &[&str]) -> Self {
        let spec = LinkSpec {
            capacity: bits(2_000_000),
            classes: Some(tree(classes)),
            ..LinkSpec::default()
        };
        let (mut a, mut b) = pair(spec);
        let mut now = at(10_000);
        talk(&mut now, &mut a, &mut b, 8);
        for (place, tag) in tags.iter().enumerate() {
            let spec = to(node(2), Kind::Data, None);
            let names = Some(Arc::new(names(tag, "robot", "operator")));
            assert!(a.link.open_stream(index_of(place), StreamSpec { names, ..spec }));
        }
        Self { a, b, now, seq: 0 }
    }

    /// Advances time in steps of 1 ms, with `offer` samples of 500 bytes per step and stream.
    pub(super) fn run(&mut self, millis: u64, streams: usize, offer: u64) {
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            for place in 0..streams {
                for _ in 0..offer {
                    self.seq += 1;
                    self.a.link.handle_sample(
                        self.now,
                        index_of(place),
                        sample(self.now, self.seq, 500),
                    );
                }
            }
            self.exchange();
        }
    }

    /// Sends and delivers all frames that are due.
    fn exchange(&mut self) {
        self.a.poll(self.now);
        self.a.sent.drain(..).for_each(|frame| self.b.hear(self.now, frame));
        self.b.poll(self.now);
        self.b.sent.drain(..).for_each(|frame| self.a.hear(self.now, frame));
    }

    pub(super) fn sent(&self, place: usize) -> u64 {
        self.a.link.counters(index_of(place)).unwrap().sent
    }

    fn view(&self, name: &str) -> ClassView {
        self.a.link.classes().into_iter().find(|view| view.name == name).unwrap()
    }
}

#[test]
fn a_class_keeps_its_share_for_any_number_of_other_streams() {
    let thirds = [
        LinkClass { share: Some(25), ..tagged("one", "one") },
        LinkClass { share: Some(75), ..tagged("many", "many/**") },
    ];
    let mut rig = Rig::new(&thirds, &["one", "many/1", "many/2", "many/3"]);
    rig.run(4_000, 4, 2);
    let (one, many) = (rig.view("one"), rig.view("many"));
    let part = one.served * 100 / (one.served + many.served);
    assert!((24..=26).contains(&part), "{part} %: {one:?} {many:?}");
    assert_eq!((one.streams, many.streams), (1, 3));
    assert_eq!(many.counters.sent, rig.sent(1) + rig.sent(2) + rig.sent(3));
    assert!(rig.sent(1).abs_diff(rig.sent(3)) <= 2, "in turn");
    assert_eq!(rig.view(DEFAULT).served, 0);
}

#[test]
fn the_background_uses_capacity_that_no_class_needs() {
    let mut rig = Rig::new(&[class("all")], &["live", "page"]);
    let spec = StreamSpec { background: true, ..to(node(2), Kind::Data, None) };
    rig.a.link.update_stream(rig.now, index_of(1), spec);
    rig.run(1_000, 2, 2);
    assert!(rig.sent(0) > 300, "{}", rig.sent(0));
    assert_eq!(rig.sent(1), 0, "live samples always wait");
    let before = rig.sent(0);
    // The backlog of the first stream is sent, and then the other one.
    rig.run(3_000, 0, 0);
    assert!(rig.sent(0) > before && rig.sent(1) > 100, "{} {}", rig.sent(0), rig.sent(1));
}

#[test]
fn classes_change_while_samples_wait_and_closed_streams_stay_counted() {
    let mut rig = Rig::new(&[tagged("one", "one")], &["one", "two"]);
    rig.run(100, 2, 4);
    let waiting = |rig: &Rig| rig.a.link.streams().map(|(_, _, _, waiting)| waiting).sum::<usize>();
    let before = waiting(&rig);
    assert!(before > 100);
    rig.a.link.set_classes(rig.now, Some(tree(&[tagged("two", "two")])));
    assert_eq!(waiting(&rig), before);
    rig.run(3_000, 0, 0);
    assert_eq!(waiting(&rig), 0);
    assert!(rig.view("two").served > 0 && rig.view(DEFAULT).served > 0);
    let counters = rig.a.link.close_stream(index_of(1)).unwrap();
    assert_eq!((rig.view("two").streams, rig.view("two").counters), (0, counters));
    rig.a.link.set_classes(rig.now, None);
    assert_eq!(rig.a.link.classes(), []);
    let before = rig.sent(0);
    rig.run(100, 1, 1);
    assert!(rig.sent(0) > before);
}

#[test]
fn policers_drop_or_delay_the_excess_of_a_class() {
    for (action, dropped) in [("drop", true), ("delay", false)] {
        let police = format!("leaky:4p,100p/s else {action}").parse().unwrap();
        let police = Some(ClassPolice::from(&police));
        let classes = [LinkClass { police, ..tagged("flood", "flood/*") }];
        let mut rig = Rig::new(&classes, &["flood/1", "flood/2", "other"]);
        rig.run(2_000, 3, 1);
        let view = rig.view("flood");
        assert!((200..=204).contains(&view.counters.sent), "{action}: {view:?}");
        assert!(rig.sent(0).abs_diff(rig.sent(1)) <= if dropped { 204 } else { 2 }, "{action}");
        assert!(rig.sent(2) > 500, "{action}: {}", rig.sent(2));
        assert_eq!(view.counters.drops.of(DropReason::Policed) > 3_000, dropped, "{view:?}");
        for (index, _, counters, waiting) in rig.a.link.streams() {
            let gone = counters.sent + counters.drops.total() + waiting as u64;
            assert_eq!(counters.offered, gone, "{action} {index:?}");
        }
        let idle = rig.now + Duration::from_millis(20);
        assert!(dropped || rig.a.link.poll_timeout() <= idle, "it wakes for queued samples");
    }
}

/// Runs a stream that may send 50 samples per second and sends 150, in groups of three 1 ms apart, for two
/// seconds. `flood` other streams have a constant backlog. Returns the number of delivered samples by
/// position in the group, and the counters.
fn demoted(kind: Kind, flood: usize) -> ([usize; 3], StreamCounters) {
    let police = Some(ClassPolice::from(&"leaky:1p,50p/s else demote".parse().unwrap()));
    // A fifth of the link is half of the stream's rate, and one and a half times its contract.
    let police = LinkClass { police, share: Some(20), ..tagged("arm", "arm") };
    let tags: Vec<_> = core::iter::once("arm").chain((0..flood).map(|_| "bulk")).collect();
    let mut rig = Rig::new(&[police], &tags);
    let contract = Contract {
        period: Duration::from_millis(20),
        deadline: Duration::from_millis(40),
        loss: LossTolerance::NONE,
        late: Late::Drop,
        jitter: Duration::from_millis(2),
    };
    let spec = rig.a.link.spec_of(STREAM).unwrap().clone();
    let spec = StreamSpec { contract: Some(contract), kind, ..spec };
    rig.a.link.update_stream(rig.now, STREAM, spec);
    for millis in 0..2_000 {
        rig.now += Duration::from_millis(1);
        for place in 1..=flood {
            rig.seq += 1;
            let other = sample(rig.now, 1_000_000 + rig.seq, 500);
            rig.a.link.handle_sample(rig.now, index_of(place), other);
        }
        if millis % 20 < 3 {
            let seq = millis / 20 * 3 + millis % 20;
            rig.a.link.handle_sample(
                rig.now,
                STREAM,
                RawSample { kind, ..sample(rig.now, seq, 500) },
            );
        }
        rig.exchange();
    }
    let came = |place| rig.b.got.iter().filter(|&&seq| seq < 300 && seq % 3 == place).count();
    ([came(0), came(1), came(2)], rig.a.link.counters(STREAM).unwrap())
}

#[test]
fn demoted_samples_are_sent_when_the_link_is_idle() {
    let (came, counters) = demoted(Kind::Data, 0);
    assert_eq!(came, [100; 3]);
    assert_eq!((counters.drops.total(), counters.violations), (0, 0), "{counters:?}");
}

#[test]
fn demoted_samples_never_delay_contracted_samples() {
    let (came, counters) = demoted(Kind::Data, 3);
    let [promised, second, third] = came;
    assert_eq!(promised, 100, "{came:?} {counters:?}");
    assert!((1..100).contains(&(second + third)), "the other streams of its class: {came:?}");
    let dropped =
        counters.drops.of(DropReason::Policed) + counters.drops.of(DropReason::DeadlineMissed);
    assert_eq!(counters.drops.total(), dropped, "{counters:?}");
    assert_eq!(counters.drops.of(DropReason::DeadlineMissed), 0, "the next one arrives before");
    assert!(counters.offered - counters.sent - dropped <= 2, "still queued: {counters:?}");
}

#[test]
fn excess_video_is_dropped_and_best_effort_is_unaffected() {
    let (_, video) = demoted(Kind::VideoI, 0);
    assert_eq!(video.drops.of(DropReason::Policed), 200, "{video:?}");
    let police = Some(ClassPolice::from(&"leaky:1p,50p/s else demote".parse().unwrap()));
    let mut rig = Rig::new(&[LinkClass { police, ..class("all") }], &["all"]);
    rig.run(1_000, 1, 1);
    let counters = rig.a.link.counters(STREAM).unwrap();
    assert!(rig.sent(0) > 300 && counters.drops.of(DropReason::Policed) == 0, "{counters:?}");
}

#[test]
fn very_small_samples_pay_for_their_headers() {
    let police = Some(ClassPolice::from(&"leaky:2kB,10kB/s else drop".parse().unwrap()));
    let classes = [LinkClass { police, ..class("all") }];
    let mut rig = Rig::new(&classes, &["all"]);
    for seq in 0..2_000 {
        rig.now += Duration::from_millis(1);
        rig.a.link.handle_sample(rig.now, STREAM, sample(rig.now, seq, 1));
    }
    // Each takes 161 bytes on the wire if sent alone: 22 kB conform in 2 s.
    let offered = rig.a.link.counters(STREAM).unwrap();
    let taken = offered.offered - offered.drops.of(DropReason::Policed);
    assert!((120..=140).contains(&taken), "{taken}");
}

/// The upper limit of a class delays a sample with `Late::Send`, however short its period.
#[test]
fn a_link_sleeps_exactly_until_an_upper_limit_permits_a_sample() {
    let (link_share, upper_limit) = (linear(1_000_000), linear(80_000));
    let curves = Curves { real_time: None, link_share, upper_limit };
    let mut rig = Rig::new(&[LinkClass { curves, ..class("slow") }], &[]);
    let (period, jitter) = (Duration::from_micros(1), Duration::ZERO);
    let (loss, late) = (LossTolerance::NONE, Late::Send);
    let contract = Contract { period, deadline: period, loss, late, jitter };
    assert!(rig.a.link.open_stream(STREAM, to(node(2), Kind::Data, Some(contract))));
    let (mut left, mut wakes) = (Vec::new(), 0);
    while left.len() < 8 {
        rig.seq += 1;
        rig.a.link.handle_sample(rig.now, STREAM, sample(rig.now, rig.seq, 500));
        rig.exchange();
        let due = rig.a.link.poll_timeout().min(rig.b.link.poll_timeout()).max(rig.now);
        let before = rig.sent(0);
        if due > rig.now {
            rig.a.poll(due - Duration::from_nanos(1));
            assert_eq!(rig.sent(0), before, "one could have left before {due:?}");
        }
        rig.now = due;
        rig.exchange();
        left.extend((before..rig.sent(0)).map(|_| rig.now));
        wakes += 1;
        assert!(wakes < 1_000, "it wakes for more than samples, answers and signs of life");
    }
    // 10,000 bytes per second; a sample's size on the wire is only slightly above its 500 bytes.
    for pair in left.windows(2).skip(4) {
        let between = pair[1].since(pair[0]).as_nanos() / 1_000_000;
        assert!((50..80).contains(&between), "{left:?}");
    }
}
