use super::*;
use std::string::ToString;
use std::vec::Vec;

const MBIT: u64 = 1_000_000;

fn line(bits_per_s: u64) -> Option<Curve> {
    Some(Curve::linear(bits_per_s).unwrap())
}

fn share(bits_per_s: u64) -> Curves {
    Curves { link_share: line(bits_per_s), ..Curves::default() }
}

fn guarantee(bits_per_s: u64) -> Curves {
    Curves { real_time: line(bits_per_s), ..Curves::default() }
}

fn both(bits_per_s: u64) -> Curves {
    Curves { real_time: line(bits_per_s), link_share: line(bits_per_s), upper_limit: None }
}

fn capped(bits_per_s: u64, limit: u64) -> Curves {
    Curves { link_share: line(bits_per_s), upper_limit: line(limit), real_time: None }
}

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Serves the picked leaf with packets of `bytes`, one per millisecond. Returns the classes in order.
fn serve(tree: &mut Hfsc, from: u64, packets: u64, bytes: u64) -> Vec<ClassIndex> {
    let mut served = Vec::new();
    for millis in from..from + packets {
        let pick = tree.pick(at(millis)).unwrap();
        tree.charge(at(millis + 1), pick, bytes, Some(bytes));
        served.push(pick.class);
    }
    served
}

#[test]
fn a_guarantee_precedes_shares_and_shares_do_not_count_against_it() {
    let mut tree = Hfsc::new();
    let bulk = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    let voice = tree.add(ClassIndex::ROOT, both(8_000)).unwrap();
    tree.set_active(at(0), voice, 100);
    tree.set_active(at(0), bulk, 100);
    assert_eq!(tree.deadline(voice), Some(at(100)));
    assert_eq!(tree.deadline(bulk), None);
    let pick = tree.pick(at(0)).unwrap();
    assert_eq!(pick, Pick { class: voice, criterion: Criterion::RealTime });
    tree.charge(at(1), pick, 100, Some(100));
    // The next packet is due after 200 ms and eligible after 100 ms; until then virtual times decide.
    assert_eq!((tree.deadline(voice), tree.next_change(at(1))), (Some(at(200)), Some(at(100))));
    let pick = tree.pick(at(1)).unwrap();
    assert_eq!(pick, Pick { class: bulk, criterion: Criterion::LinkShare });
    tree.set_passive(at(1), bulk);
    let pick = tree.pick(at(1)).unwrap();
    assert_eq!(pick, Pick { class: voice, criterion: Criterion::LinkShare });
    tree.charge(at(2), pick, 100, Some(100));
    assert_eq!(tree.deadline(voice), Some(at(200)), "the share was for free");
    assert_eq!(tree.service(voice), Some(ServedBytes { total: 200, by_real_time: 100 }));
    assert_eq!(tree.service(ClassIndex::ROOT), Some(ServedBytes { total: 200, by_real_time: 100 }));
}

#[test]
fn a_child_that_drops_its_last_packet_in_service_never_stalls_siblings() {
    // openwrt#24277: such a child was removed from its parent twice, and the siblings waited forever.
    let mut tree = Hfsc::new();
    let parent = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    let dropper = tree.add(parent, both(MBIT)).unwrap();
    let steady = tree.add(parent, share(MBIT)).unwrap();
    tree.set_active(at(0), steady, 1_000);
    for millis in 0..1_000 {
        tree.set_active(at(millis), dropper, 1_000);
        let mut turns = 0;
        while let Some(pick) = tree.pick(at(millis)).filter(|_| turns < 4) {
            turns += 1;
            if pick.class == dropper {
                tree.set_passive(at(millis), dropper);
                tree.set_passive(at(millis), dropper);
                tree.charge(at(millis), pick, 1_000, None);
                tree.charge(at(millis), pick, 0, None);
                tree.set_passive(at(millis), dropper);
            } else {
                tree.charge(at(millis), pick, 1_000, Some(1_000));
            }
        }
        assert_eq!(turns, 4, "at {millis} ms no class was picked");
        assert!(!tree.is_active(dropper) && tree.is_active(parent));
    }
    assert!(tree.service(steady).unwrap().total > 2_000_000);
    tree.set_passive(at(1_000), steady);
    assert!(!tree.is_active(parent) && !tree.is_active(ClassIndex::ROOT));
    assert_eq!((tree.pick(at(1_000)), tree.next_change(at(1_000))), (None, None));
}

#[test]
fn a_class_that_drops_its_queue_gets_no_more_than_its_share() {
    let mut tree = Hfsc::new();
    let heavy = tree.add(ClassIndex::ROOT, share(3 * MBIT)).unwrap();
    let steady = tree.add(heavy, share(MBIT)).unwrap();
    let light = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    let dropper = tree.add(light, share(MBIT)).unwrap();
    tree.set_active(at(0), steady, 1_000);
    for millis in 0..4_000 {
        tree.set_active(at(millis), dropper, 1_000);
        let pick = tree.pick(at(millis)).unwrap();
        let next = (pick.class == steady).then_some(1_000);
        if pick.class == dropper {
            tree.set_passive(at(millis), dropper);
        }
        tree.charge(at(millis), pick, 1_000, next);
    }
    let light = tree.service(light).unwrap().total / 1_000;
    assert!((980..=1_020).contains(&light), "{light} of 4,000 packets for a quarter");
}

#[test]
fn siblings_share_by_their_curves_and_a_newcomer_gets_no_arrears() {
    let mut tree = Hfsc::new();
    let one = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    let three = tree.add(ClassIndex::ROOT, share(3 * MBIT)).unwrap();
    let late = tree.add(ClassIndex::ROOT, share(4 * MBIT)).unwrap();
    tree.set_active(at(0), one, 500);
    tree.set_active(at(0), three, 500);
    let count = |served: &[ClassIndex], class| served.iter().filter(|&&c| c == class).count();
    let served = serve(&mut tree, 0, 400, 500);
    assert_eq!((count(&served, one), count(&served, three)), (100, 300));
    tree.set_active(at(400), late, 500);
    let served = serve(&mut tree, 400, 800, 500);
    let counts = [one, three, late].map(|class| count(&served, class));
    for (count, share) in counts.into_iter().zip([100, 300, 400]) {
        assert!(count.abs_diff(share) <= 2, "{counts:?}");
    }
}

#[test]
fn leaving_and_joining_again_within_a_busy_period_gains_nothing() {
    let mut tree = Hfsc::new();
    let flicker = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    let steady = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    tree.set_active(at(0), flicker, 500);
    tree.set_active(at(0), steady, 500);
    for millis in 0..1_000 {
        tree.set_passive(at(millis), flicker);
        tree.set_active(at(millis), flicker, 500);
        serve(&mut tree, millis, 1, 500);
    }
    let total = tree.service(flicker).unwrap().total / 500;
    assert!((490..=510).contains(&total), "{total} of 1,000 packets for a half");
}

#[test]
fn an_upper_limit_delays_and_reports_until_when() {
    let mut tree = Hfsc::new();
    let tenant = tree.add(ClassIndex::ROOT, capped(MBIT, 8_000)).unwrap();
    let leaf = tree.add(tenant, share(MBIT)).unwrap();
    tree.set_active(at(50), leaf, 100);
    let pick = tree.pick(at(50)).unwrap();
    tree.charge(at(51), pick, 100, Some(100));
    assert_eq!(tree.pick(at(51)), None);
    assert_eq!(tree.next_change(at(51)), Some(at(150)));
    assert_eq!(tree.pick(at(149)), None);
    assert_eq!(tree.pick(at(150)).map(|pick| pick.class), Some(leaf));
    // A lower limit counts from the update, a higher one takes effect at once.
    tree.update(at(150), tenant, capped(MBIT, 80)).unwrap();
    let pick = tree.pick(at(150)).unwrap();
    tree.charge(at(151), pick, 100, Some(100));
    assert_eq!(tree.next_change(at(151)), Some(at(10_150)));
    tree.update(at(160), tenant, share(MBIT)).unwrap();
    assert_eq!(tree.pick(at(160)).map(|pick| pick.class), Some(leaf));
}

/// Admission relies on this: nothing above a leaf can take its guarantee.
#[test]
fn upper_limits_and_shares_above_a_leaf_do_not_limit_its_guarantee() {
    let mut tree = Hfsc::new();
    let busy = tree.add(ClassIndex::ROOT, share(100 * MBIT)).unwrap();
    let top = tree.add(ClassIndex::ROOT, capped(1, 1)).unwrap();
    let inner = tree.add(top, capped(1, 1)).unwrap();
    let limit = Curves { upper_limit: line(1), ..both(400_000) };
    let leaf = tree.add(inner, limit).unwrap();
    tree.set_active(at(0), busy, 100);
    tree.set_active(at(0), leaf, 100);
    // A packet of 100 bytes takes a millisecond of the link, and 2 ms of the guarantee.
    for millis in 0..1_000 {
        let pick = tree.pick(at(millis)).unwrap();
        tree.charge(at(millis + 1), pick, 100, Some(100));
        let served = tree.service(leaf).unwrap().by_real_time;
        assert!(served + 100 >= (millis + 1) * 50, "{served} bytes after {} ms", millis + 1);
    }
}

#[test]
fn a_limited_class_makes_up_for_at_most_100_ms_of_its_limit() {
    let mut tree = Hfsc::new();
    // 8 kbit/s: one byte per millisecond. The sibling takes nearly everything for a minute.
    let held = tree.add(ClassIndex::ROOT, capped(1_000, 8_000)).unwrap();
    let heavy = tree.add(ClassIndex::ROOT, share(999_000)).unwrap();
    tree.set_active(at(0), held, 10);
    tree.set_active(at(0), heavy, 10);
    serve(&mut tree, 0, 60_000, 10);
    let before = tree.service(held).unwrap().total;
    assert!((590..=620).contains(&before), "{before} bytes of 600 for a thousandth");
    tree.set_passive(at(60_000), heavy);
    let mut packets = 0;
    for millis in 60_000..61_000 {
        while let Some(pick) = tree.pick(at(millis)) {
            tree.charge(at(millis), pick, 10, Some(10));
            packets += 1;
        }
    }
    // 1,000 bytes for the second, 100 for the time in which it was delayed, and one packet.
    assert!((100..=111).contains(&packets), "{packets} packets");
}

#[test]
fn a_skipped_class_starts_level_with_siblings_when_its_curves_change() {
    let mut tree = Hfsc::new();
    let limited = tree.add(ClassIndex::ROOT, capped(MBIT, 8_000)).unwrap();
    let other = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    tree.set_active(at(0), limited, 500);
    tree.set_active(at(0), other, 500);
    let served = serve(&mut tree, 0, 1_800, 500);
    // 1,000 bytes per second allow four packets; the siblings' virtual times advanced without it.
    assert_eq!(served.iter().filter(|&&class| class == limited).count(), 4);
    tree.update(at(1_800), limited, share(2 * MBIT)).unwrap();
    let served = serve(&mut tree, 1_800, 300, 500);
    let two_thirds = served.iter().filter(|&&class| class == limited).count();
    assert!(two_thirds.abs_diff(200) <= 2, "{two_thirds} of 300 packets for two thirds");
}

#[test]
fn curves_change_while_the_tree_runs() {
    let mut tree = Hfsc::new();
    let leaf = tree.add(ClassIndex::ROOT, guarantee(8_000)).unwrap();
    tree.set_active(at(0), leaf, 100);
    assert_eq!(tree.deadline(leaf), Some(at(100)));
    tree.update(at(10), leaf, guarantee(80_000)).unwrap();
    assert_eq!(tree.deadline(leaf), Some(at(20)));
    tree.set_next(leaf, 50);
    assert_eq!(tree.deadline(leaf), Some(at(15)));
    tree.update(at(10), leaf, share(MBIT)).unwrap();
    assert_eq!(tree.deadline(leaf), None);
    let pick = tree.pick(at(10)).unwrap();
    assert_eq!(pick.criterion, Criterion::LinkShare);
    tree.update(at(10), leaf, guarantee(8_000)).unwrap();
    tree.charge(at(11), pick, 50, Some(50));
    assert_eq!(tree.pick(at(11)).map(|pick| pick.criterion), Some(Criterion::RealTime));
    assert_eq!(tree.curves(leaf), Some(guarantee(8_000)));
}

#[test]
fn invalid_classes_are_refused_by_name() {
    let mut tree = Hfsc::new();
    let root = ClassIndex::ROOT;
    let text = |error: HfscError| error.to_string();
    assert_eq!(tree.add(root, Curves::default()), Err(HfscError::NoCurve));
    let limit = Curves { upper_limit: line(1), ..guarantee(1) };
    assert_eq!(tree.add(root, limit), Err(HfscError::UpperLimitWithoutLinkShare));
    assert_eq!(tree.add(ClassIndex(7), share(1)), Err(HfscError::Unknown(ClassIndex(7))));
    assert!(text(HfscError::Unknown(ClassIndex(7))).contains("class 7"));
    let leaf = tree.add(root, both(1)).unwrap();
    assert_eq!(tree.add(leaf, share(1)), Err(HfscError::RealTimeOnInner(leaf)));
    let inner = tree.add(root, share(1)).unwrap();
    tree.set_active(at(0), inner, 1);
    assert_eq!(tree.add(inner, share(1)), Err(HfscError::ParentActive(inner)));
    tree.set_passive(at(0), inner);
    let below = tree.add(inner, share(1)).unwrap();
    assert_eq!(tree.remove(inner), Err(HfscError::HasChildren(inner)));
    assert_eq!(tree.update(at(0), inner, both(1)), Err(HfscError::RealTimeOnInner(inner)));
    assert_eq!(tree.update(at(0), inner, guarantee(1)), Err(HfscError::RealTimeOnInner(inner)));
    assert_eq!(tree.update(at(0), below, Curves::default()), Err(HfscError::NoCurve));
    assert_eq!(tree.update(at(0), root, share(1)), Err(HfscError::Root));
    assert_eq!(tree.remove(root), Err(HfscError::Root));
    assert_eq!(tree.remove(ClassIndex(9)), Err(HfscError::Unknown(ClassIndex(9))));
    let mut deepest = below;
    while let Ok(next) = tree.add(deepest, share(1)) {
        deepest = next;
    }
    assert_eq!(tree.add(deepest, share(1)), Err(HfscError::TooDeep(deepest)));
    assert!(text(HfscError::TooDeep(deepest)).contains("is 16 levels below the root"));
    assert_eq!(tree.len(), usize::from(DEPTH_MAX) + 1);
}

#[test]
fn per_packet_calls_ignore_inner_classes() {
    let mut tree = Hfsc::new();
    let inner = tree.add(ClassIndex::ROOT, share(1)).unwrap();
    let leaf = tree.add(inner, share(1)).unwrap();
    for class in [ClassIndex::ROOT, inner, ClassIndex(99)] {
        tree.set_active(at(1), class, 100);
        tree.set_next(class, 100);
        tree.set_passive(at(1), class);
        let pick = Pick { class, criterion: Criterion::RealTime };
        tree.charge(at(1), pick, 100, Some(100));
        assert!(!tree.is_active(class));
        assert_eq!(tree.deadline(class), None);
    }
    assert_eq!(tree.service(ClassIndex(99)), None);
    assert_eq!((tree.pick(at(1)), tree.service(inner)), (None, Some(ServedBytes::default())));
    tree.remove(leaf).unwrap();
    assert!(tree.is_leaf(inner));
    tree.set_active(at(2), inner, 10);
    assert_eq!(tree.pick(at(2)).map(|pick| pick.class), Some(inner));
}

#[test]
fn a_reused_index_starts_fresh() {
    let mut tree = Hfsc::new();
    let first = tree.add(ClassIndex::ROOT, both(MBIT)).unwrap();
    tree.set_active(at(0), first, 100);
    let pick = tree.pick(at(0)).unwrap();
    tree.charge(at(1), pick, 100, Some(100));
    tree.remove(first).unwrap();
    assert_eq!((tree.pick(at(1)), tree.is_empty()), (None, true));
    // A pick from before the removal is charged to no class.
    tree.charge(at(1), pick, 100, Some(100));
    let second = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    assert_eq!((first, tree.service(second)), (second, Some(ServedBytes::default())));
    assert_eq!(tree.parent(second), Some(ClassIndex::ROOT));
}

#[test]
fn backward_time_is_clamped_and_years_of_idling_change_nothing() {
    let mut tree = Hfsc::new();
    let year = Duration::from_secs(365 * 24 * 3_600);
    let a = tree.add(ClassIndex::ROOT, Curves { upper_limit: line(8_000), ..both(8_000) }).unwrap();
    let b = tree.add(ClassIndex::ROOT, both(8_000)).unwrap();
    let mut now = at(0);
    for _ in 0..100 {
        now += year;
        for leaf in [a, b] {
            tree.set_active(now, leaf, 100);
            assert_eq!(tree.deadline(leaf), Some(now + Duration::from_millis(100)));
        }
        // A clock set back by a year changes nothing.
        let pick = tree.pick(now - year).unwrap();
        assert_eq!(pick, Pick { class: a, criterion: Criterion::RealTime });
        tree.charge(now - year, pick, 100, None);
        let pick = tree.pick(now).unwrap();
        tree.charge(now, pick, 100, None);
        assert_eq!((pick.class, tree.pick(now)), (b, None));
    }
    tree.set_active(Instant::FAR, a, 100);
    assert!(tree.pick(Instant::FAR).is_some());
    tree.set_active(Instant::FAR, a, u64::MAX);
    let pick = tree.pick(Instant::FAR).unwrap();
    tree.charge(Instant::FAR, pick, u64::MAX, Some(u64::MAX));
    tree.charge(Instant::FAR, pick, u64::MAX, Some(0));
    assert_eq!(tree.service(a).unwrap().total, u64::MAX);
}

#[test]
fn shares_far_below_the_rate_of_the_link_stay_shares() {
    let mut tree = Hfsc::new();
    let one = tree.add(ClassIndex::ROOT, share(1)).unwrap();
    let two = tree.add(ClassIndex::ROOT, share(2)).unwrap();
    // 1 GB at a time at 1 bit/s: after the third packet 64 bits of virtual time would be used up.
    for leaf in [one, two] {
        tree.set_active(at(0), leaf, 1 << 30);
    }
    let served = serve(&mut tree, 0, 3_000, 1 << 30);
    assert_eq!(served.iter().filter(|&&class| class == two).count(), 2_000);
}

#[test]
fn a_leaf_takes_at_most_380_bytes_and_decisions_take_none() {
    let mut tree = Hfsc::new();
    let empty = tree.memory();
    let mut leaves = Vec::new();
    for number in 1..=20_000 {
        leaves.push(tree.add(ClassIndex::ROOT, both(MBIT)).unwrap());
        let each = (tree.memory() - empty).div_ceil(number);
        assert!(number < 1_024 || each <= 380, "{each} bytes for each of {number} leaves");
    }
    let before = tree.memory();
    for &leaf in &leaves {
        tree.set_active(at(0), leaf, 100);
    }
    for millis in 0..20_000 {
        let pick = tree.pick(at(millis)).unwrap();
        tree.charge(at(millis), pick, 100, (millis % 3 > 0).then_some(90));
    }
    assert_eq!(tree.memory(), before);
}

#[test]
fn a_list_in_any_order_becomes_a_tree() {
    let spec = |name, parent, curves| ClassSpec { name, parent, curves };
    let list = [
        spec("pictures", Some("robot"), both(MBIT)),
        spec("robot", Some("tenant"), share(1)),
        spec("tenant", None, share(1)),
        spec("bulk", None, share(1)),
    ];
    let (tree, classes) = Hfsc::from_specs(&list).unwrap();
    assert_eq!(tree.len(), 4);
    assert_eq!(tree.parent(classes[0]), Some(classes[1]));
    assert_eq!(tree.parent(classes[1]), Some(classes[2]));
    assert_eq!(tree.parent(classes[2]), Some(ClassIndex::ROOT));
    assert_eq!(tree.curves(classes[0]), Some(both(MBIT)));
    assert_eq!(tree.parent(classes[3]), Some(ClassIndex::ROOT));
}

#[test]
fn a_list_with_a_loop_or_a_wrong_name_is_refused_by_name() {
    let spec = |name, parent| ClassSpec { name, parent, curves: share(1) };
    let error = |list: &[ClassSpec<'_>]| Hfsc::from_specs(list).unwrap_err();
    let list =
        [spec("x", Some("y")), spec("y", Some("c")), spec("c", Some("b")), spec("b", Some("c"))];
    assert_eq!(error(&list), SpecError::Loop { name: "c".into() });
    assert_eq!(error(&[spec("own", Some("own"))]), SpecError::Loop { name: "own".into() });
    let twice = error(&[spec("a", None), spec("a", None)]);
    assert!(twice.to_string().contains("\"a\" is listed twice"));
    let unknown = error(&[spec("a", Some("z"))]);
    assert_eq!(unknown, SpecError::UnknownParent { name: "a".into(), parent: "z".into() });
    let guaranteed = ClassSpec { name: "up", parent: None, curves: both(1) };
    let class = error(&[spec("a", Some("up")), guaranteed]);
    assert!(
        class.to_string().starts_with("class \"a\": class 1 has children and a real-time curve"),
        "{class}"
    );
}

/// A leaf is removed while its packet is in transmission. Its siblings continue to share at every level.
/// Neither the class above, whose only child it may have been, nor a leaf that reuses its index stalls.
#[test]
fn removing_a_leaf_in_service_affects_no_other() {
    let mut tree = Hfsc::new();
    let inner = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    let only = tree.add(inner, both(MBIT)).unwrap();
    let beside = tree.add(ClassIndex::ROOT, share(MBIT)).unwrap();
    for leaf in [only, beside] {
        tree.set_active(at(0), leaf, 100);
    }
    let pick = tree.pick(at(0)).unwrap();
    assert_eq!(pick, Pick { class: only, criterion: Criterion::RealTime });
    tree.remove(only).unwrap();
    tree.charge(at(2), pick, 100, Some(100));
    assert!(tree.is_leaf(inner) && !tree.is_active(inner));
    assert_eq!(serve(&mut tree, 2, 50, 100), [beside; 50]);
    // A leaf with the same index, and one below the same class, both get their shares.
    let again = tree.add(inner, share(MBIT)).unwrap();
    assert_eq!(again, only);
    assert_eq!(tree.service(again), Some(ServedBytes::default()));
    tree.set_active(at(60), again, 100);
    let served = serve(&mut tree, 60, 100, 100);
    let count = served.iter().filter(|class| **class == again).count();
    assert!((40..=60).contains(&count), "{count}");
    tree.remove(beside).unwrap();
    assert_eq!(serve(&mut tree, 200, 10, 100), [again; 10]);
}

#[test]
fn a_guarantee_counts_from_packet_arrival_in_any_report_order() {
    let mut tree = Hfsc::new();
    let first = tree.add(ClassIndex::ROOT, guarantee(100_000)).unwrap();
    let second = tree.add(ClassIndex::ROOT, guarantee(100_000)).unwrap();
    // 100 bytes take either of them 8 ms. Both arrived during a transmission that began at 1 ms.
    assert_eq!(tree.pick(at(1)), None);
    tree.set_active(at(7), second, 100);
    tree.set_active(at(2), first, 100);
    assert_eq!((tree.deadline(first), tree.deadline(second)), (Some(at(10)), Some(at(15))));
    // The last pick did not consider an earlier arrival, so the guarantee counts from that pick.
    tree.set_passive(at(7), first);
    assert!(tree.pick(at(9)).is_some());
    tree.set_active(at(3), first, 100);
    assert_eq!(tree.deadline(first), Some(at(17)));
}
