//! Random work of honest participants next to a hostile node, compared with a map of paths.

use crate::net::{Net, Random, about, car, end, introduction, intruder, keeps, ms, view};
use paceline_objects::packet::{Claim, Fate, Hand, Ownership, Packet};
use std::collections::BTreeMap;

/// The owner and the paint of each path.
type Model = BTreeMap<String, (usize, String)>;

/// Sends one hostile packet about a path that has an owner, or about another one.
fn act(net: &mut Net, random: &mut Random, model: &Model, step: u32) {
    let peer = intruder(random.below(4) as u64);
    let known = model.keys().nth(random.below(model.len().max(1))).cloned();
    let path = known.unwrap_or_else(|| format!("many/{step}"));
    let owner = net.id(random.below(3));
    let epoch = u32::try_from(random.below(1 << 32)).expect("32 bits");
    let ownership = Ownership { epoch, yields: random.below(2) == 0 };
    match random.below(8) {
        0 => net.hostile(&Packet::PeerDescription(about(peer, step, vec![car()]))),
        1 => net.hostile_fragment(peer, vec![introduction(step, &path, ownership)]),
        2 => net.hostile_view(peer, vec![Claim { path, owner: peer, ownership }]),
        3 => net.hostile_view(peer, vec![Claim { path, owner, ownership }]),
        4 => {
            let last = u32::try_from(random.below(step as usize + 1)).expect("small");
            net.hostile_fragment(
                peer,
                vec![end(last, Fate::Deleted), end(last, Fate::Moved(owner))],
            );
        }
        5 => net.hostile(&Packet::Hand(Hand {
            from: peer,
            path,
            schema: car().fingerprint(),
            epoch,
            groups: Vec::new(),
        })),
        6 => {
            let mut farewell = view(owner, u32::MAX / 4, Vec::new());
            farewell.leaving = true;
            net.inject(owner, &Packet::ObserverView(farewell).encode());
        }
        _ => {
            let many = (0..20).map(|object| {
                introduction(step * 32 + object, &format!("many/{step}/{object}"), ownership)
            });
            net.hostile_fragment(peer, many.collect());
        }
    }
}

fn work(net: &mut Net, random: &mut Random, model: &mut Model, step: u32) {
    let peer = random.below(3);
    // Each path is used once: after the end of an object, the hostile node may own its path.
    let known = model.keys().nth(random.below(12)).cloned();
    let path = known.unwrap_or_else(|| format!("car/{step}"));
    let paint = format!("paint-{step}");
    match (random.below(4), model.get(&path).cloned()) {
        (_, None) => {
            if net.try_create(peer, &path, &paint).is_ok() {
                // Everybody knows its owner before the hostile node chooses it.
                net.run(ms(500));
                model.insert(path, (peer, paint));
            }
        }
        (0 | 1, Some((owner, _))) => {
            let object = net.owned(owner, &path).expect("it owns it");
            net.paint(owner, object, &paint);
            model.insert(path, (owner, paint));
        }
        (2, Some((owner, paint))) if owner != peer => {
            let object = net.owned(owner, &path).expect("it owns it");
            net.hand_over(owner, object, peer);
            net.run(ms(1_500));
            assert!(
                net.owned(peer, &path).is_some(),
                "{path} was handed over by {owner} to {peer}: {:?}",
                [0, 1, 2].map(|peer| net.known(peer, &path))
            );
            model.insert(path, (peer, paint));
        }
        (2, Some(_)) => {}
        (_, Some((owner, _))) => {
            let object = net.owned(owner, &path).expect("it owns it");
            net.delete(owner, object);
            model.remove(&path);
        }
    }
}

fn run(seed: u64, steps: u32) {
    let mut net = Net::new(&[keeps(); 3]);
    net.observe_all();
    let (mut random, mut model) = (Random(seed | 1), Model::new());
    for step in 1..=steps {
        work(&mut net, &mut random, &mut model, step);
        for _ in 0..random.below(6) {
            act(&mut net, &mut random, &model, step);
        }
        net.run(ms(random.below(600) as u64));
    }
    net.run(ms(3_000));
    for (path, (owner, paint)) in &model {
        net.check(path, *owner, paint);
    }
}

#[test]
fn honest_participants_agree_with_a_map_of_paths() {
    (1..9).for_each(|seed| run(seed * 0x9E37_79B9, 150));
}

#[test]
#[ignore = "takes minutes: cargo xtask long"]
fn a_thousand_random_worlds_agree_with_a_map_of_paths() {
    (1..1_001).for_each(|seed| run(seed * 0x9E37_79B9, 150));
}
