//! Runs random networks and checks their contracts.
//!
//! Usage: `promises DISCIPLINE [FROM] [TO] [LOSSY] [EVERY] [MAX] [VARIES] [CLASSES]`. Runs the seeds from FROM up to TO. LOSSY,
//! EVERY and MAX state how many of a thousand subscriptions tolerate loss, ask for one sample in n, or ask
//! for a maximum rate, VARIES how many of a
//! thousand publishers declare an envelope, and CLASSES how many of a thousand links have classes. The discipline `all` selects every discipline.

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
    let mix = Mix { lossy, every, max, varies, classes };
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
