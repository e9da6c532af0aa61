//! Runs random networks and checks their contracts.
//!
//! Usage: `promises DISCIPLINE [FROM] [TO] [LOSSY] [EVERY] [MAX] [VARIES] [CLASSES] [SCALED] [TIED] [IDLE] [BY_PUBLISHER] [SHARED] [FILMS]`.
//! Runs the seeds from FROM up to TO. The discipline `all` selects every discipline. The others are parts of a thousand:
//!
//! - LOSSY, EVERY and MAX: subscriptions that tolerate loss, ask for one sample in n, or ask for a maximum rate
//! - VARIES: publishers that declare an envelope
//! - CLASSES: links with classes
//! - SCALED: publishers of pictures that are scaled
//! - TIED: pairs of streams in both directions
//! - IDLE: publishers that pause, and whose reservations are released meanwhile
//! - BY_PUBLISHER: publishers that request the contracts
//! - SHARED: publishers that several subscriptions request at different rates, which come and go
//! - FILMS: publishers with the sizes of a generated film's pictures

use paceline_sched::Policy;
use paceline_sim::promises::{Mix, POLICIES, PromisesResult, run_under};

fn main() {
    let mut args = std::env::args().skip(1);
    let policy = args.next().unwrap_or_else(|| "all".to_owned());
    let policies: Vec<Policy> = policy.parse().map_or_else(|_| POLICIES.to_vec(), |it| vec![it]);
    let mut number = |default| args.next().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (from, to) = (number(0), number(100));
    let usual = Mix::default();
    let mut part = |default: u32| u32::try_from(number(default.into())).unwrap_or(default);
    let (lossy, every, max) = (part(usual.lossy), part(usual.every), part(usual.max));
    let (varies, classes) = (part(usual.varies), part(usual.classes));
    let (scaled, tied) = (part(usual.scaled), part(usual.tied));
    let (idle, by_publisher) = (part(usual.idle), part(usual.by_publisher));
    let shared = part(usual.shared);
    let films = part(usual.films);
    let requests = Mix { lossy, every, max, varies, films, classes, ..usual };
    let mix = Mix { scaled, tied, idle, by_publisher, shared, ..requests };
    for policy in policies {
        let (mut sums, mut broken) = (PromisesResult::default(), 0);
        for seed in from..to {
            match run_under(seed, policy, mix) {
                Ok(outcome) => sums.add(&outcome),
                Err(error) => {
                    broken += 1;
                    println!("{error}");
                }
            }
        }
        println!("{policy}: {broken} networks broke a contract, the others: {sums}");
    }
}
