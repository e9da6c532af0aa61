//! Seeds of histories of `Ingress`, `Link` and schedulers, both targeted and random.

use crate::Seed;
use paceline_sim::Random;

fn chance(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| random.next().to_le_bytes()[0]).collect()
}

/// Opens stream `index` to the first hop, with its properties and, if enabled, its contract.
fn open(index: u8, more: &[u8]) -> Vec<u8> {
    [&[4, index, 0], more].concat()
}

/// Returns histories of `Link` as read by `link.rs`: two bytes of setup, then steps.
fn links() -> Vec<(&'static str, Vec<u8>)> {
    let best_effort = [0, 0];
    let contract = [0, 1, 20, 40, 1, 0, 0, 0, 0];
    // A burst of pictures of 70,000 bytes, a sample, a message, and time.
    let burst = |index| vec![14, 40, index, 7, 7, 0];
    let sample = |index, size| vec![8, index, 1, size, 0];
    let message = vec![15, 0, 4, 1];
    let later = vec![3, 100];
    let fair: Vec<u8> = (0..4).flat_map(|index| open(index, &best_effort)).collect();
    let bursts: Vec<u8> = (0..4).flat_map(burst).collect();
    let mixed = [open(0, &contract), open(1, &best_effort)].concat();
    let steady: Vec<u8> =
        (0..20).flat_map(|k| [sample(0, 3), sample(1, 7), vec![0, k]].concat()).collect();
    vec![
        ("fair-vds", [&[0x13, 2], &fair[..], &bursts, &later, &message, &later].concat()),
        ("fair-dwcs", [&[0x12, 3], &fair[..], &bursts, &later, &message, &later].concat()),
        ("fifo", [&[0x10, 0], &fair[..], &bursts, &steady].concat()),
        ("fifo-thin", [&[0x10, 2], &fair[..], &steady, &bursts].concat()),
        ("contracts", [&[0x53, 2], &mixed[..], &steady, &later, &steady].concat()),
        ("contracts-fifo", [&[0x50, 0], &mixed[..], &steady, &later, &steady].concat()),
        (
            "lossy",
            [&[0x1b, 0], &fair[..], &bursts, &[19, 0, 7, 3], &bursts, &later, &steady].concat(),
        ),
        (
            "no-answer",
            [&[0x03, 0, 17][..], &fair[..], &bursts, &[16, 17, 16], &later, &[16]].concat(),
        ),
        ("silence", [&[0x10, 0], &fair[..], &bursts, &[19, 0, 2, 19, 0, 3], &steady].concat()),
        (
            "restarts",
            [&[0x14, 2], &fair[..], &bursts, &[19, 0, 0, 19, 1, 1], &later, &steady].concat(),
        ),
        (
            "close-begun",
            [
                &[0x10, 2],
                &open(0, &best_effort)[..],
                &sample(0, 7),
                &[6, 0],
                &open(0, &best_effort),
                &sample(0, 3),
            ]
            .concat(),
        ),
    ]
}

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> =
        links().into_iter().map(|(name, bytes)| ("link", name.to_owned(), bytes)).collect();
    for number in 0..20u64 {
        let len = usize::try_from(60 + number * 15).unwrap();
        seeds.push(("link", format!("chance-{number:02}"), chance(number, len)));
        seeds.push(("repair", format!("chance-{number:02}"), chance(number + 500, 2 * len)));
        seeds.push(("ingress", format!("chance-{number:02}"), chance(!number, len)));
        // One seed per policy and eligibility.
        let policy = u8::try_from(number % 12).unwrap();
        let calls = [vec![policy, u8::from(number >= 12)], chance(number << 32, 4 * len)].concat();
        seeds.push(("sched", format!("chance-{number:02}"), calls));
        if number < 12 {
            seeds.push(("schedule", format!("chance-{number:02}"), chance(number + 100, len)));
            // Long enough for a tree of classes and their streams.
            let classes = chance(number + 700, 150 + 2 * len);
            seeds.push(("schedule", format!("classes-{number:02}"), classes));
        }
    }
    // Outputs with every kind of rate, and many samples at 25 Hz, with and without a declared period.
    let install =
        [0, 5, 0, 0, 0, 0, 1, 2, 1, 0, 1, 1, 39, 2, 0, 1, 1, 119, 2, 0, 2, 1, 9, 1, 2, 0, 1];
    for period in [0, 5] {
        let bytes = [&[period], &install[..], &[0], &[2, 255, 2, 255]].concat();
        seeds.push(("ingress", format!("rates-{period}"), bytes));
    }
    seeds
}
