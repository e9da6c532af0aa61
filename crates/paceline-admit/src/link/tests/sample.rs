//! A sample of which the traffic counts only a part.

use super::*;

/// A quarter of 8,000 bytes may be lost: 6,000 bytes ten times a second.
fn tolerant(deadline: Duration) -> Demand {
    let traffic = Traffic::leaky(6_000, 480_000, 1_000).unwrap();
    Demand::new(traffic, deadline).unwrap().with_sample(8_000)
}

#[test]
fn what_is_sent_is_sent_in_full() {
    // 8,000 bytes and one packet of 1,000 before them: 18 ms at 4 Mbit/s, whatever the test.
    for rule in [Rule::Edf, Rule::Vds { coincide: false }, Rule::StaticPriority, Rule::Fifo] {
        let mut thin = link(4, rule, 1_000);
        let refused = admit(&mut thin, 1, &tolerant(micros(17_999))).unwrap_err();
        let numbers = (refused.resource, refused.needed, refused.available);
        assert_eq!(numbers, (Resource::Delay, 18_000_000, 17_999_000), "{rule:?}");
        let longer = refused.offer.deadline.unwrap();
        assert!(longer >= micros(18_000) && longer < micros(18_100), "{rule:?}: {longer}");
        let smaller = refused.offer.burst.unwrap();
        assert!((5_980..6_000).contains(&smaller), "{rule:?}: {smaller}");
        assert_eq!(refused.offer.rate, None, "fewer of them are as long");
        admit(&mut thin, 1, &tolerant(micros(18_000))).unwrap();
    }
}

#[test]
fn others_make_room_for_the_part_that_counts_alone() {
    // Three are due at once: 18,000 bytes and the packet fit into 38 ms, 24,000 would not.
    let mut thin = link(4, Rule::Vds { coincide: false }, 1_000);
    for number in 1..=3 {
        admit(&mut thin, number, &tolerant(micros(38_000))).unwrap();
    }
    let refused = admit(&mut thin, 4, &tolerant(micros(38_000))).unwrap_err();
    assert!(matches!(refused.resource, Resource::Due { .. }), "{refused}");
}

#[test]
fn who_shares_a_stream_gets_its_samples_in_full() {
    let whole = Demand::new(Traffic::leaky(8_000, 640_000, 1_000).unwrap(), micros(90_000));
    let whole = whole.unwrap();
    assert_eq!(whole.join(&tolerant(micros(20_000))).sample(), 8_000);
    assert_eq!(tolerant(micros(20_000)).join(&whole).sample(), 8_000);
    // A link that becomes slower keeps no more than it can send.
    let mut link = link(4, Rule::Edf, 1_000);
    admit(&mut link, 1, &tolerant(micros(18_000))).unwrap();
    let slower = LinkSpec { capacity: mbit(3), ..link.spec().clone() };
    let (after, lost) = link.rebuilt(slower);
    assert!(after.is_empty() && lost.len() == 1, "{lost:?}");
}
