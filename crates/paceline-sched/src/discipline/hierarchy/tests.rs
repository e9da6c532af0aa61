use super::*;
use crate::contract::{Contract, LossTolerance};
use crate::curve::Curve;
use crate::discipline::ServiceClass;
use crate::time::Duration;
use std::vec::Vec;

/// The rate of the link: 1,000 bytes take 1 ms.
const BITS_PER_S: u64 = 8_000_000;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn share(bits_per_s: u64) -> Curves {
    Curves { link_share: Some(Curve::linear(bits_per_s).unwrap()), ..Curves::default() }
}

fn guaranteed(bits_per_s: u64) -> Curves {
    let rate = Some(Curve::linear(bits_per_s).unwrap());
    Curves { real_time: rate, link_share: rate, ..Curves::default() }
}

fn leaf(curves: Curves, policy: Policy) -> LeafSpec {
    LeafSpec { curves, policy, eligibility: Eligibility::OncePerPeriod }
}

/// Streams that always have samples of 1,000 bytes, and their results.
struct Link {
    hierarchy: Hierarchy,
    now: Instant,
    served: Vec<u64>,
    violations: Vec<u64>,
}

impl Link {
    fn new(hierarchy: Hierarchy) -> Self {
        Self { hierarchy, now: Instant::ZERO, served: Vec::new(), violations: Vec::new() }
    }

    fn join(&mut self, class: ClassIndex, terms: impl Into<Terms>) -> StreamIndex {
        let stream = StreamIndex(u32::try_from(self.served.len()).unwrap());
        assert!(self.hierarchy.seat(stream, class));
        self.hierarchy.join(stream, terms);
        self.served.push(0);
        self.violations.push(0);
        self.announce(stream);
        stream
    }

    fn announce(&mut self, stream: StreamIndex) {
        self.hierarchy.handle_head(stream, Head::whole(self.now, ms(1), 1_000));
    }

    fn run(&mut self, slots: u64) {
        for _ in 0..slots {
            while let Some(miss) = self.hierarchy.poll_missed(self.now) {
                self.violations[miss.stream.0 as usize] += u64::from(miss.violated);
                if miss.dropped {
                    self.announce(miss.stream);
                }
            }
            let picked = self.hierarchy.pick(self.now);
            self.now += ms(1);
            if let Some(stream) = picked {
                let service = self.hierarchy.handle_served(stream, 1_000, self.now);
                self.violations[stream.0 as usize] += u64::from(service.violated);
                self.served[stream.0 as usize] += 1;
                self.announce(stream);
            }
        }
    }
}

fn every(period: u64, x: u32, y: u32) -> ServiceClass {
    let contract = Contract::every(ms(period)).unwrap();
    ServiceClass::Contracted(contract.with_loss(LossTolerance::new(x, y).unwrap()))
}

#[test]
fn a_flood_of_one_peer_takes_nothing_from_the_others() {
    let mut tree = Hierarchy::new();
    let tenant = tree.add(ClassIndex::ROOT, share(BITS_PER_S / 2)).unwrap();
    let calm = tree.add_leaf(tenant, &leaf(guaranteed(BITS_PER_S / 4), Policy::Vds)).unwrap();
    let stormy = tree.add_leaf(tenant, &leaf(share(BITS_PER_S / 4), Policy::Fifo)).unwrap();
    let other =
        tree.add_leaf(ClassIndex::ROOT, &leaf(share(BITS_PER_S / 2), Policy::DWCS)).unwrap();
    let mut link = Link::new(tree);
    // A quarter of the link: 1 of 4 slots, and at most 1 of 2 samples missed, for each of two streams
    // with a period of 4 ms.
    let a = link.join(calm, every(4, 1, 2));
    let b = link.join(calm, every(4, 1, 2));
    let mut storm = Vec::new();
    for _ in 0..50 {
        storm.push(link.join(stormy, ServiceClass::BestEffort));
    }
    let c = link.join(other, ServiceClass::BestEffort);
    link.run(8_000);
    let of = |stream: StreamIndex| link.served[stream.0 as usize];
    assert_eq!(link.violations[a.0 as usize] + link.violations[b.0 as usize], 0);
    assert!((1_990..=2_010).contains(&(of(a) + of(b))), "{} and {}", of(a), of(b));
    let stormed: u64 = storm.iter().map(|&stream| of(stream)).sum();
    assert!((1_980..=2_020).contains(&stormed), "{stormed}");
    assert!((3_980..=4_020).contains(&of(c)), "{}", of(c));
    let service = link.hierarchy.service(tenant).unwrap();
    assert_eq!(service.total, (of(a) + of(b) + stormed) * 1_000);
}

#[test]
fn unused_capacity_of_a_leaf_goes_to_its_siblings() {
    let mut tree = Hierarchy::new();
    let left = tree.add_leaf(ClassIndex::ROOT, &leaf(share(BITS_PER_S / 2), Policy::Edf)).unwrap();
    let right =
        tree.add_leaf(ClassIndex::ROOT, &leaf(share(BITS_PER_S / 2), Policy::Fifo)).unwrap();
    let mut link = Link::new(tree);
    let a = link.join(left, ServiceClass::BestEffort);
    let b = link.join(right, ServiceClass::BestEffort);
    link.run(100);
    assert_eq!(link.served, [50, 50]);
    link.hierarchy.suspend(a);
    link.run(100);
    assert_eq!(link.served, [50, 150]);
    link.hierarchy.resume(a);
    link.run(100);
    assert!(link.served[0].abs_diff(100) <= 1, "idle time is not saved up: {:?}", link.served);
    link.hierarchy.leave(b);
    link.hierarchy.remove_head(a);
    assert_eq!(link.hierarchy.pick(link.now), None);
}

#[test]
fn an_upper_limit_idles_the_link_and_reports_until_when() {
    let mut tree = Hierarchy::new();
    let half = Some(Curve::linear(BITS_PER_S / 2).unwrap());
    let curves = Curves { link_share: half, upper_limit: half, ..Curves::default() };
    let capped = tree.add_leaf(ClassIndex::ROOT, &leaf(curves, Policy::Fifo)).unwrap();
    let mut link = Link::new(tree);
    let stream = link.join(capped, ServiceClass::BestEffort);
    link.run(1_000);
    let served = link.served[stream.0 as usize];
    assert!((499..=502).contains(&served), "{served}");
    while link.hierarchy.pick(link.now).is_some() {
        link.run(1);
    }
    let next = link.hierarchy.next_change(link.now).unwrap();
    assert_eq!(link.hierarchy.pick(next), Some(stream));
}

#[test]
fn a_stream_can_move_to_another_class() {
    let mut tree = Hierarchy::new();
    let left = tree.add_leaf(ClassIndex::ROOT, &leaf(share(8_000), Policy::Vds)).unwrap();
    let right = tree.add_leaf(ClassIndex::ROOT, &leaf(share(8_000), Policy::Vds)).unwrap();
    let inner = tree.add(ClassIndex::ROOT, share(8_000)).unwrap();
    let stream = StreamIndex(7);
    assert!(!tree.seat(stream, inner) && !tree.seat(stream, ClassIndex(99)));
    tree.join(stream, ServiceClass::BestEffort);
    tree.handle_head(stream, Head::whole(Instant::ZERO, ms(1), 1_000));
    assert_eq!(tree.pick(Instant::ZERO), None, "without a class it is not scheduled");
    assert!(tree.seat(stream, left));
    tree.join(stream, every(10, 0, 1));
    tree.handle_head(stream, Head::whole(Instant::ZERO, ms(1), 1_000));
    assert_eq!(
        (tree.pick(Instant::ZERO), tree.deadline(stream)),
        (Some(stream), Some(Instant::ZERO + ms(10)))
    );
    assert!(tree.seat(stream, right));
    assert_eq!((tree.pick(Instant::ZERO), tree.window(stream)), (None, None));
    tree.join(stream, every(10, 0, 1));
    assert!(tree.window(stream).is_some());
    // The seat in the left leaf is free for another stream.
    assert!(tree.seat(StreamIndex(8), left));
    assert_eq!(tree.poll_missed(Instant::FAR), None);
    assert_eq!(tree.pick(Instant::FAR), None);
}

#[test]
fn a_leaf_shares_as_its_discipline_does_without_a_tree() {
    let mut tree = Hierarchy::new();
    let fair = tree.add_leaf(ClassIndex::ROOT, &leaf(share(BITS_PER_S), Policy::Drr)).unwrap();
    let mut link = Link::new(tree);
    let best_effort = Terms::new(ServiceClass::BestEffort);
    let a = link.join(fair, best_effort.with_rate(100_000_000));
    let b = link.join(fair, best_effort.with_rate(50_000_000));
    link.run(3_000);
    let (a, b) = (link.served[a.0 as usize], link.served[b.0 as usize]);
    assert!(a.abs_diff(2 * b) <= 4, "{a} and {b}: backlogged streams are not idle in between");
}

#[test]
fn invalid_calls_cost_no_stream_anything() {
    let mut tree = Hierarchy::new();
    let home = tree.add_leaf(ClassIndex::ROOT, &leaf(share(8_000), Policy::Fifo)).unwrap();
    assert_eq!(tree.add(home, share(8_000)), Err(HfscError::ParentActive(home)));
    assert!(tree.add_leaf(home, &leaf(share(8_000), Policy::Fifo)).is_err());
    let stream = StreamIndex(0);
    assert!(tree.seat(stream, home));
    tree.join(stream, ServiceClass::BestEffort);
    tree.handle_served(stream, 1_000, Instant::ZERO);
    tree.handle_segment(stream, 1_000, Left { service: ms(1), segment: 1, last: true });
    assert_eq!(tree.service(home).map(|service| service.total), Some(0));
    tree.handle_head(stream, Head::whole(Instant::ZERO, ms(1), 100));
    for _ in 0..1_000 {
        tree.handle_skipped(stream);
    }
    assert_eq!(tree.stale.len(), 1);
    assert_eq!(tree.pick(Instant::ZERO), Some(stream));
    tree.handle_served(stream, 100, Instant::ZERO);
    assert_eq!(tree.service(home).map(|service| service.total), Some(100));
}

fn named<'a>(name: &'a str, parent: Option<&'a str>, leaf: bool) -> BranchSpec<'a> {
    let class = crate::hfsc::ClassSpec { name, parent, curves: share(1_000) };
    BranchSpec { class, leaf: leaf.then_some((Policy::Fifo, Eligibility::OncePerPeriod)) }
}

#[test]
fn a_list_in_any_order_becomes_a_hierarchy() {
    let list = [named("a/1", Some("a"), true), named("a", None, false), named("b", None, true)];
    let (mut hierarchy, indexes) = Hierarchy::from_specs(&list).unwrap();
    let stream = StreamIndex(0);
    assert!(hierarchy.seat(stream, indexes[0]) && hierarchy.seat(stream, indexes[2]));
    assert!(!hierarchy.seat(stream, indexes[1]), "it is for classes");
    assert!(!hierarchy.seat(stream, ClassIndex::ROOT), "there is no background");
    let wrong = [named("a/1", Some("a"), true), named("a", None, true)];
    let error = Hierarchy::from_specs(&wrong).unwrap_err();
    assert!(matches!(error, crate::hfsc::SpecError::Class { name, .. } if name == "a"));
    assert!(Hierarchy::from_specs(&[named("a", Some("c"), true)]).is_err());
}

#[test]
fn the_background_is_picked_when_no_class_has_work() {
    let mut hierarchy = Hierarchy::new();
    let class = hierarchy.add_leaf(ClassIndex::ROOT, &leaf(share(1), Policy::Vds)).unwrap();
    hierarchy.add_background();
    let later = hierarchy.add_leaf(ClassIndex::ROOT, &leaf(share(1), Policy::Vds)).unwrap();
    let mut link = Link::new(hierarchy);
    let pages = [
        link.join(ClassIndex::ROOT, ServiceClass::Background),
        link.join(ClassIndex::ROOT, ServiceClass::Background),
    ];
    let live =
        [link.join(class, ServiceClass::BestEffort), link.join(later, ServiceClass::BestEffort)];
    link.run(100);
    assert_eq!(live.map(|stream| link.served[stream.0 as usize] > 40), [true, true]);
    assert_eq!(pages.map(|stream| link.served[stream.0 as usize]), [0, 0]);
    live.iter().for_each(|stream| link.hierarchy.leave(*stream));
    link.run(100);
    assert_eq!(pages.map(|stream| link.served[stream.0 as usize]), [link.served[0]; 2], "in turn");
    assert!(link.served[0] > 0);
}

#[test]
fn the_guarantee_of_a_leaf_counts_from_the_arrival_of_its_head() {
    let mut hierarchy = Hierarchy::new();
    let curves =
        |bits_per_s| Curves { real_time: Curve::linear(bits_per_s).ok(), ..Curves::default() };
    let slow =
        hierarchy.add_leaf(ClassIndex::ROOT, &leaf(curves(BITS_PER_S / 2), Policy::Edf)).unwrap();
    let fast =
        hierarchy.add_leaf(ClassIndex::ROOT, &leaf(curves(BITS_PER_S), Policy::Edf)).unwrap();
    let mut link = Link::new(hierarchy);
    let streams = [slow, fast].map(|class| {
        let stream = StreamIndex(class.0);
        assert!(link.hierarchy.seat(stream, class));
        link.hierarchy.join(stream, ServiceClass::BestEffort);
        stream
    });
    assert_eq!(link.hierarchy.pick(Instant::from_millis(1)), None);
    // The slow leaf must serve 1,000 bytes within 2 ms of arrival, the fast one within 1 ms. Both
    // arrivals are reported at the same refresh. The packet in the slow leaf arrived first and has the
    // earlier deadline.
    for (stream, came) in streams.into_iter().zip([2, 4]) {
        let came = Instant::from_millis(came);
        link.hierarchy.handle_head(stream, Head::whole(came, ms(1), 1_000));
    }
    assert_eq!(link.hierarchy.pick(Instant::from_millis(9)), Some(streams[0]));
}
