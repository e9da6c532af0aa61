//! A million samples under contracts on random networks, with every link offered one and a half times its
//! capacity. `cargo xtask long` runs more of them.

use paceline_sched::Policy;
use paceline_sim::promises::{
    MORE_POLICIES, Mix, POLICIES, PromisesResult, run, run_full, run_offers, run_under,
};

/// The number of networks per discipline.
const SEEDS: u64 = 40;

fn kept(policy: Policy, mix: Mix) -> PromisesResult {
    kept_in(SEEDS, policy, mix)
}

fn kept_in(seeds: u64, policy: Policy, mix: Mix) -> PromisesResult {
    let mut sums = PromisesResult::default();
    for seed in 0..seeds {
        match run_under(seed, policy, mix) {
            Ok(outcome) => sums.add(&outcome),
            Err(error) => panic!("{error}"),
        }
    }
    println!("{policy}: {sums}");
    sums
}

#[test]
fn contracts_are_kept_under_every_deadline_discipline() {
    let mut all = PromisesResult::default();
    for &policy in POLICIES {
        let sums = kept(policy, Mix::default());
        // The networks are varied: some requests are granted and some refused, links are well used, and
        // delays approach their bounds.
        let asked = sums.granted + sums.refused;
        assert!(sums.granted * 10 > asked && sums.refused * 20 > asked, "{policy}: {sums}");
        assert!(sums.used / sums.runs > 400 && sums.worst > 800, "{policy}: {sums}");
        all.add(&sums);
    }
    println!("all: {all}");
    assert!(all.samples >= 1_000_000, "{all}");
}

#[test]
fn contracts_are_kept_under_disciplines_with_levels_frames_rotations_and_shares() {
    for &policy in MORE_POLICIES {
        for mix in [Mix::default(), Mix { classes: 700, varies: 400, ..Mix::default() }] {
            let sums = kept_in(SEEDS / 2, policy, mix);
            assert!(sums.granted > 50 && sums.refused > 20, "{policy}: {sums}");
            assert!(sums.samples > 20_000 && sums.missed == 0, "{policy}: {sums}");
            assert!(sums.worst > 500, "{policy}: {sums}");
        }
    }
}

#[test]
fn every_window_of_streams_that_tolerate_loss_or_vary_in_size_is_kept() {
    let mut all = PromisesResult::default();
    for &policy in POLICIES {
        let sums = kept(policy, Mix { lossy: 500, varies: 400, ..Mix::default() });
        assert!(sums.granted * 10 > sums.granted + sums.refused, "{policy}: {sums}");
        // Only virtual deadlines use the loss tolerance to admit more.
        assert!(sums.missed == 0 || policy == Policy::Vds, "{policy}: {sums}");
        all.add(&sums);
    }
    println!("all: {all}");
    assert!(all.samples >= 1_000_000 && all.missed > 0, "{all}");
}

#[test]
fn contracts_in_classes_are_kept_next_to_best_effort_of_their_class() {
    let mut all = PromisesResult::default();
    for &policy in POLICIES {
        let sums = kept(policy, Mix { classes: 700, ..Mix::default() });
        let asked = sums.granted + sums.refused;
        assert!(sums.granted * 3 > asked && sums.refused * 10 > asked, "{policy}: {sums}");
        assert!(sums.worst > 500, "{policy}: {sums}");
        all.add(&sums);
    }
    println!("all: {all}");
    assert!(all.samples >= 500_000, "{all}");
}

#[test]
fn contracts_of_scaled_tied_idle_and_publishers_requests_are_kept() {
    let mut all = PromisesResult::default();
    for seed in 0..90 {
        all.add(&run_full(seed).unwrap_or_else(|error| panic!("{error}")));
    }
    println!("all: {all}");
    assert!(all.samples >= 200_000 && all.scaled > 5_000, "{all}");
    assert!(all.films > 1_000, "{all}");
    assert!(all.both > 50 && all.neither > 20, "{all}");
    assert!(all.released > 100 && all.by_publisher > 50, "{all}");
}

fn offers(seeds: u64) -> PromisesResult {
    let mut all = PromisesResult::default();
    for seed in 0..seeds {
        all.add(&run_offers(seed).unwrap_or_else(|error| panic!("{error}")));
    }
    println!("all: {all}");
    all
}

#[test]
fn every_offer_of_a_refusal_is_granted_and_kept() {
    let all = offers(40);
    assert!(all.offers > 50 && all.pairs > 0, "{all}");
}

/// Two refused requests were repeated at the same instants, and the room that one held for a moment refused the other.
#[test]
fn requests_that_are_repeated_do_not_refuse_each_other() {
    let outcome = run_offers(149).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.samples > 0, "{outcome}");
}

#[test]
#[ignore = "minutes: cargo xtask long runs it"]
fn a_thousand_offers_are_granted_and_kept() {
    let all = offers(800);
    assert!(all.offers > 1_000 && all.pairs > 20, "{all}");
}

/// The first samples of a half arrived before its mark; samples under a new contract waited behind best effort of their
/// stream; a reservation was released before a sample was reported or had arrived; and a scaler dropped samples that
/// arrived together.
#[test]
fn previously_failing_networks_of_special_requests_keep_their_contracts() {
    let mix = Mix { lossy: 200, ..Mix::default() };
    let (tied, idle) = (Mix { tied: 500, ..mix }, Mix { idle: 500, ..mix });
    let full = Mix { films: 0, ..Mix::FULL };
    let (mixed, scaled) = (Mix { by_publisher: 300, ..idle }, Mix { scaled: 500, ..full });
    let scaled = Mix { lossy: 300, varies: 300, tied: 0, idle: 0, by_publisher: 0, ..scaled };
    let seeds = [(63, tied), (74, tied), (46, idle), (48, idle), (40, mixed), (43, mixed)];
    for (seed, mix) in seeds.into_iter().chain([(104, mixed), (151, mixed), (9, scaled)]) {
        let outcome = run_under(seed, Policy::Vds, mix).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.samples > 0, "{seed}: {outcome}");
    }
}

/// A stream that got its contract again after a pause stayed best effort while another one carried its samples to the node;
/// a stream that was replaced twice was sent again; and a loss of an ended stream was counted for a later one.
#[test]
fn previously_failing_networks_of_every_request_keep_their_contracts() {
    let apart = Mix { films: 0, shared: 0, ..Mix::FULL };
    for (seed, mix) in [(72_061, apart), (72_640, Mix::FULL), (72_201, Mix::FULL)] {
        let outcome = run_under(seed, Policy::DWCS, mix).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.samples > 0, "{seed}: {outcome}");
    }
}

/// Samples that subscriptions received in a new stream overtook those on the old one, which closed, ended with the first new
/// sample, or went on without a contract.
#[test]
fn previously_failing_networks_of_overtaking_streams_keep_their_contracts() {
    let seeds = [(74_571, Policy::Vds), (77_240, Policy::DWCS), (79_110, Policy::Vds)];
    for (seed, policy) in seeds.into_iter().chain([(78_324, Policy::DelayEdd)]) {
        let outcome = run_under(seed, policy, Mix::FULL).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.samples > 0, "{seed}: {outcome}");
    }
}

/// A subscription without tolerance joined a stream that had used up its tolerance, and left before the end of the window.
#[test]
fn a_previously_failing_network_of_changing_tolerances_keeps_its_contracts() {
    let outcome =
        run_under(120_046, Policy::Vds, Mix::FULL).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.samples > 0, "{outcome}");
}

/// A sample was given up on a stream that its subscriptions had left, after it had arrived on the new one, and was counted
/// as lost.
#[test]
fn a_previously_failing_network_of_a_sample_on_two_streams_keeps_its_contracts() {
    let outcome =
        run_under(120_608, Policy::Hfsc, Mix::FULL).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.samples > 0, "{outcome}");
}

/// Samples of an ended request ended a stream that the next one replaced, a link missed samples of windows that a later node
/// thinned, and a scaler dropped the sample of an output that closed meanwhile.
#[test]
fn previously_failing_networks_of_later_thinning_keep_their_contracts() {
    let seeds = [(123_609, Policy::Hfsc), (124_766, Policy::Vds), (124_294, Policy::DWCS)];
    for (seed, policy) in seeds {
        let outcome = run_under(seed, policy, Mix::FULL).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.samples > 0, "{seed}: {outcome}");
    }
}

/// Thinners took different samples, the queue of a replaced stream was sent as best effort, samples were missing or came
/// twice at a change to a stream that already flowed, and samples overtook the message that announced them.
#[test]
fn previously_failing_networks_of_shared_contracts_keep_them() {
    let mix = Mix { shared: 900, ..Mix::default() };
    let mut all = PromisesResult::default();
    for seed in [54, 112, 150, 176, 223, 366, 397, 460, 558, 689, 775, 783, 913, 1_166] {
        all.add(&run_under(seed, Policy::Edf, mix).unwrap_or_else(|error| panic!("{error}")));
    }
    println!("all: {all}");
    assert!(all.shared > 200 && all.samples > 50_000, "{all}");
}

#[test]
fn a_network_is_the_same_each_time() {
    assert_eq!(run(3), run(3));
    assert!(run(3).is_ok_and(|outcome| outcome.samples > 0));
}

/// docs/concepts/admission.md describes the causes of these failures.
#[test]
fn previously_failing_networks_keep_their_contracts() {
    let mix = Mix { lossy: 300, ..Mix::default() };
    for seed in [2_694, 3_102, 3_344, 3_889, 4_533, 5_597, 6_258, 6_419, 20_817] {
        let outcome = run_under(seed, Policy::Vds, mix).unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.samples > 0, "{seed}: {outcome}");
    }
}
