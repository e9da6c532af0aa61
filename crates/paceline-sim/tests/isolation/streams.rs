//! The effect on other streams when one stream violates its declaration, or the network is flooded.

use super::chain::{Chain, Got, Misdeed, SECONDS, STREAMS};
use paceline_sched::{Duration, Late};

const MISDEEDS: [Misdeed; 4] =
    [Misdeed::Doubles, Misdeed::Bursts, Misdeed::Bunches, Misdeed::Stalls];

/// Panics if a stream violates its contract or its deliveries differ from those before.
fn check(place: usize, hops: usize, (before, after): (&Got, &Got), what: &str) {
    let (name, hertz, _, within) = STREAMS[place];
    let all = hertz * SECONDS;
    let lost = before.samples.abs_diff(after.samples) * 100;
    assert!(after.samples * 20 >= all * 19, "{what}: {name} got {} of {all}", after.samples);
    assert!(lost < all * 5, "{what}: {name}: {before:?}, {after:?}");
    let most = before.p99.saturating_add(Chain::slack(hops));
    assert!(after.p99 <= most, "{what}: {name}: {before:?}, {after:?}");
    assert!(after.longest <= Duration::from_millis(within), "{what}: {name}: {after:?}");
}

#[test]
fn a_stream_delays_others_by_at_most_a_segment_per_hop() {
    println!(
        "| hops | sender | misbehaviour | others: most p99 added | longest of its bound | samples |"
    );
    for hops in [2, 3] {
        for late in [Late::Drop, Late::Send] {
            let calm = Chain::new(hops, late).run((0, Misdeed::None));
            for (bad, misdeed) in (0..STREAMS.len()).flat_map(|bad| MISDEEDS.map(|it| (bad, it))) {
                let what = format!("{hops} hops, {} {misdeed:?}, {late:?}", STREAMS[bad].0);
                let got = Chain::new(hops, late).run((bad, misdeed));
                let others = (0..STREAMS.len()).filter(|place| *place != bad);
                let (mut added, mut part, mut samples) = (Duration::ZERO, 0, 0);
                for place in others {
                    check(place, hops, (&calm[place], &got[place]), &what);
                    added = added.max(got[place].p99.saturating_sub(calm[place].p99));
                    let bound = Duration::from_millis(STREAMS[place].3);
                    part = part.max(got[place].longest.as_nanos() * 100 / bound.as_nanos());
                    samples += got[place].samples;
                }
                let sender = STREAMS[bad].0;
                println!(
                    "| {hops} | {sender} | {misdeed:?}, {late:?} | {added} | {part} % | {samples} |"
                );
            }
        }
    }
}

#[test]
fn under_tenfold_load_each_stream_waits_at_most_a_segment_per_hop() {
    println!("| hops | offered | stream | p99 alone | with the overload | longest | bound |");
    for hops in [2, 3] {
        let calm = Chain::new(hops, Late::Drop).run((0, Misdeed::None));
        for times in [5, 10] {
            let mut chain = Chain::new(hops, Late::Drop);
            chain.flood(times);
            let got = chain.run((0, Misdeed::None));
            for (place, (name, _, _, within)) in STREAMS.into_iter().enumerate() {
                let (before, after) = (calm[place], got[place]);
                check(place, hops, (&before, &after), &format!("{times} times, {hops} hops"));
                let (p99, longest) = (after.p99, after.longest);
                let row =
                    format!("{hops} | {times} × | {name} | {} | {p99} | {longest}", before.p99);
                println!("| {row} | {within} ms |");
            }
        }
    }
}
