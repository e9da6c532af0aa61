use super::*;
use crate::form::Rate;
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use core::num::NonZeroU32;
use paceline_sched::Duration;
use proptest::prelude::*;

const PERIOD: Duration = Duration::from_nanos(33_333_333);

fn kinds(text: &str) -> Vec<Kind> {
    let kind = |letter| match letter {
        'I' => Kind::VideoI,
        'P' => Kind::VideoP,
        'B' => Kind::VideoB,
        'L' => Kind::VideoLeading,
        _ => Kind::Data,
    };
    text.chars().map(kind).collect()
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        2 => Just(Kind::VideoI),
        4 => Just(Kind::VideoP),
        4 => Just(Kind::VideoB),
        3 => Just(Kind::VideoLeading),
        1 => Just(Kind::Data),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(Rate::ALL),
        (1u32..9).prop_map(|n| NonZeroU32::new(n).map_or(Rate::ALL, Rate::every)),
        (1_000u32..40_000).prop_map(|mhz| NonZeroU32::new(mhz).map_or(Rate::ALL, Rate::max)),
    ]
}

/// The model: returns whether the last sample of `all` is decodable with the marked ones, by a full look
/// back.
fn decodable(all: &[(Kind, bool)]) -> bool {
    let Some(((kind, _), before)) = all.split_last() else { return true };
    if !matches!(kind, Kind::VideoP | Kind::VideoB | Kind::VideoLeading) {
        return true;
    }
    // Leading samples need two groups, and the leading samples of the second one.
    let mut groups = if *kind == Kind::VideoLeading { 2 } else { 1 };
    for (other, has) in before.iter().rev() {
        let leads = groups == 2 && *other == Kind::VideoLeading;
        if !has && (leads || matches!(other, Kind::VideoI | Kind::VideoP)) {
            return false;
        }
        groups -= u32::from(*other == Kind::VideoI);
        if groups == 0 {
            return true;
        }
    }
    false
}

fn thinned(group: &str, rate: Rate, count: u64) -> Vec<(u64, Thinned)> {
    let mut thinner = Thinner::new(rate, Some(PERIOD));
    let samples = (0..count).zip(kinds(group).into_iter().cycle());
    samples.map(|(seq, kind)| (seq, thinner.offer(kind, seq, 0))).collect()
}

fn thinned_alone(group: &str, rate: Rate, count: u64) -> Vec<(u64, Thinned)> {
    let mut thinner = Thinner::new(rate, Some(PERIOD));
    thinner.set_alone(true);
    let samples = (0..count).zip(kinds(group).into_iter().cycle());
    samples.map(|(seq, kind)| (seq, thinner.offer(kind, seq, 0))).collect()
}

fn passed(thinned: &[(u64, Thinned)]) -> Vec<u64> {
    let passed = thinned.iter().filter(|(_, what)| *what == Thinned::Pass);
    passed.map(|(seq, _)| *seq).collect()
}

fn max_hz(hertz: u32) -> Rate {
    NonZeroU32::new(hertz * 1_000).map_or(Rate::ALL, Rate::max)
}

#[test]
fn a_gate_opens_with_an_i_picture_and_closes_on_a_missing_reference() {
    let mut gate = DecodeGate::new();
    assert!(!gate.admit(Kind::VideoP) && !gate.admit(Kind::VideoB) && gate.admit(Kind::Data));
    assert!(gate.admit(Kind::VideoI) && gate.admit(Kind::VideoB));
    gate.broke(Kind::VideoB);
    gate.broke(Kind::State);
    assert!(gate.admit(Kind::VideoP));
    gate.broke(Kind::VideoP);
    assert!(!gate.admit(Kind::VideoB) && !gate.is_open());
    assert!(gate.admit(Kind::VideoI));
    gate.lost();
    assert!(!gate.admit(Kind::VideoP) && gate.admit(Kind::Audio));
}

#[test]
fn only_b_pictures_are_skipped() {
    // 30 to 20 Hz with two Bs in three: one of the two is dropped.
    let got = thinned("IBBPBBPBBPBB", max_hz(20), 120);
    assert!(got.iter().all(|(_, what)| matches!(what, Thinned::Pass | Thinned::Drop)));
    let passed = passed(&got);
    assert_eq!(passed.len(), 80);
    assert!((0..120).step_by(3).all(|reference| passed.contains(&reference)));
    assert!(passed.windows(2).all(|pair| pair[1] - pair[0] <= 2), "{passed:?}");
    // A rate equal to that of the references, and a rate that keeps everything.
    let references = thinned("IBBPBBPBBPBB", max_hz(10), 120);
    assert_eq!(self::passed(&references), (0..120).step_by(3).collect::<Vec<_>>());
    assert_eq!(self::passed(&thinned("IBBP", Rate::ALL, 50)).len(), 50);
    assert_eq!(self::passed(&thinned("IBBP", max_hz(60), 50)).len(), 50);
}

#[test]
fn references_above_the_rate_are_too_dense() {
    let got = thinned("IPPPPPPPPPPPPPP", max_hz(10), 30);
    let first = got.iter().position(|(_, what)| *what == Thinned::TooDense);
    // Two of the first six are due; the burst allows three more.
    assert_eq!(first, Some(5), "{got:?}");
    assert!(got[5..15].iter().all(|(_, what)| *what == Thinned::TooDense));
    assert_eq!(got[15].1, Thinned::Pass, "the next I fits again");
}

#[test]
fn a_dropped_picture_drops_its_dependents() {
    let mut thinner = Thinner::new(Rate::ALL, None);
    assert_eq!(thinner.offer(Kind::VideoP, 0, 0), Thinned::Undecodable);
    assert_eq!(thinner.offer(Kind::VideoI, 1, 0), Thinned::Pass);
    assert_eq!(thinner.offer(Kind::VideoP, 2, 0), Thinned::Pass);
    thinner.broke(Kind::VideoP);
    assert_eq!(thinner.offer(Kind::VideoB, 3, 0), Thinned::Undecodable);
    assert_eq!(thinner.offer(Kind::VideoI, 4, 0), Thinned::Pass);
}

#[test]
fn leading_pictures_need_the_group_before() {
    let mut gate = DecodeGate::new();
    assert!(gate.admit(Kind::VideoI) && !gate.admit(Kind::VideoLeading), "it starts here");
    assert!(gate.admit(Kind::VideoP) && gate.admit(Kind::VideoI) && gate.admit(Kind::VideoLeading));
    gate.broke(Kind::VideoLeading);
    assert!(!gate.admit(Kind::VideoLeading) && gate.admit(Kind::VideoP));
    gate.broke(Kind::VideoP);
    assert!(
        gate.admit(Kind::VideoI) && !gate.admit(Kind::VideoLeading) && gate.admit(Kind::VideoB)
    );
}

#[test]
fn pictures_that_decode_alone_are_thinned_exactly() {
    // One passes ahead, before the thinner knows the stream; then one in five.
    let got = thinned("I", max_hz(6), 100);
    assert!(got.iter().all(|(_, what)| matches!(what, Thinned::Pass | Thinned::Drop)));
    let passed = passed(&got);
    assert_eq!(passed.len(), 20);
    assert_eq!(passed[..3], [0, 1, 10]);
    assert!(passed[2..].windows(2).all(|pair| pair[1] - pair[0] == 5), "{passed:?}");
}

#[test]
fn groups_that_are_too_dense_are_thinned_to_their_key_pictures_without_a_scaler() {
    // 3 Hz of two key pictures per second: the second picture passed ahead, before the group was known.
    let got = thinned_alone("IPPPPPPPPPPPPPP", max_hz(3), 300);
    let passed_of = passed(&got);
    assert_eq!(passed_of[..3], [0, 1, 30], "{passed_of:?}");
    assert!(passed_of[2..].iter().all(|seq| seq % 15 == 0), "{passed_of:?}");
    // A third of the pictures that are due have no key picture: these are named, and no others.
    let missing = got.iter().filter(|(_, what)| *what == Thinned::TooDense).count();
    let (due, have) = (30, passed_of.len());
    assert!((due - have).abs_diff(missing) <= 3, "{missing} of {due} named, {have} passed");
    // 1 Hz fits, and each second key picture passes.
    let got = thinned_alone("IPPPPPPPPPPPPPP", max_hz(1), 600);
    assert!(got.iter().skip(30).all(|(_, what)| *what != Thinned::TooDense), "{got:?}");
    assert!(passed(&got).len().abs_diff(20) <= 1, "{:?}", passed(&got));
}

#[test]
fn a_group_without_an_end_is_no_burst() {
    let letters = format!("I{}", "P".repeat(299));
    let got = thinned_alone(&letters, max_hz(6), 300);
    assert_eq!(passed(&got), [0, 1]);
    // Each picture that was due later is missing, and counted.
    let named = got.iter().filter(|(_, what)| *what == Thinned::TooDense).count();
    assert_eq!(named, 56, "two wait for a key picture");
}

#[test]
fn groups_that_fit_again_are_thinned_by_their_b() {
    let letters = format!("{}{}", "IPPPPPPPP".repeat(3), "IBBPBBPBB".repeat(3));
    let got = thinned_alone(&letters, Rate::every(NonZeroU32::new(3).unwrap()), 54);
    let passed = passed(&got);
    // Six, and two that were due before.
    assert_eq!(passed.iter().filter(|seq| **seq >= 36).count(), 8, "{passed:?}");
}

/// A random structure of groups of pictures, as encoders produce them.
fn structure(random: &mut impl FnMut(u64) -> u64) -> String {
    let (length, between, open) = (1 + random(40), random(4), random(2) == 0);
    let pyramid = between > 1 && random(2) == 0;
    let mut group = "I".to_owned();
    if open {
        group.extend((0..between).map(|_| 'L'));
    }
    while (group.len() as u64) < length {
        group.push('P');
        let mut left = between;
        if pyramid {
            group.push('P');
            left -= 1;
        }
        group.extend((0..left).map(|_| 'B'));
    }
    group
}

/// No stream is silent for longer than one group, whatever its structure, the rate, and where it begins.
#[test]
fn no_structure_of_groups_is_silent() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for history in 0..100_000 {
        let group = structure(&mut random);
        let every = 1 + random(12);
        let rate = Rate::every(NonZeroU32::new(u32::try_from(every).unwrap()).unwrap());
        let begin = random(group.len() as u64);
        let mut thinner = Thinner::new(rate, Some(PERIOD));
        thinner.set_alone(history % 2 == 0);
        let mut all: Vec<(Kind, bool)> = Vec::new();
        let mut last = None;
        let count = 3 * (group.len() as u64 + every);
        for (seq, kind) in (begin..begin + count)
            .zip(kinds(&group).into_iter().cycle().skip(usize::try_from(begin).unwrap()))
        {
            all.push((kind, false));
            let passes = thinner.offer(kind, seq, 0) == Thinned::Pass;
            assert!(
                !passes || decodable(&all),
                "{history}: {group} from {begin}, 1 in {every}: {seq}"
            );
            all.last_mut().unwrap().1 = passes;
            let quiet = seq - last.unwrap_or(begin);
            // Pictures may have passed ahead of their time, by three at most.
            let most = group.len() as u64 + 4 * every;
            assert!(
                quiet <= most,
                "{history}: {group} from {begin}, 1 in {every}: silent until {seq}"
            );
            if passes {
                last = Some(seq);
            }
        }
    }
}

proptest! {
    #[test]
    fn the_gate_admits_exactly_the_decodable_pictures(
        steps in prop::collection::vec((kind(), prop::bool::weighted(0.2)), 1..60)
    ) {
        let mut gate = DecodeGate::new();
        let mut all: Vec<(Kind, bool)> = Vec::new();
        for (kind, dropped) in steps {
            all.push((kind, false));
            let admitted = gate.admit(kind);
            prop_assert_eq!(admitted, decodable(&all), "{:?}", all);
            if admitted && dropped {
                gate.broke(kind);
            }
            all.last_mut().unwrap().1 = admitted && !dropped;
        }
    }

    /// Whatever the structure: what passes can be decoded, at most three are ahead, and each due sample that could be
    /// decoded passes, was replaced by one ahead, or is named.
    #[test]
    fn thinning_keeps_the_rate_and_decodability(
        steps in prop::collection::vec((kind(), prop::bool::weighted(0.05)), 1..200),
        rate in rate(),
        alone in any::<bool>(),
    ) {
        let mut thinner = Thinner::new(rate, Some(PERIOD));
        thinner.set_alone(alone);
        let mut scaler = TemporalScaler::new(rate, Some(PERIOD));
        let mut all: Vec<(Kind, bool)> = Vec::new();
        let (mut due, mut passed, mut named) = (0u64, 0u64, 0u64);
        for (seq, (kind, dropped)) in (0..).zip(steps) {
            due += u64::from(scaler.take(seq, 0));
            all.push((kind, false));
            let decodable = decodable(&all);
            let got = thinner.offer(kind, seq, 0);
            match got {
                Thinned::Pass => passed += 1,
                Thinned::TooDense | Thinned::Undecodable => named += 1,
                Thinned::Drop => {}
            }
            prop_assert!(got != Thinned::Pass || decodable, "{} of {:?}", seq, all);
            prop_assert!(passed <= due + 3);
            // Two at most wait for the next key picture.
            prop_assert!(passed + named + 2 >= due, "{} + {} of {}: {:?}", passed, named, due, all);
            if got == Thinned::Pass && dropped {
                thinner.broke(kind);
            }
            all.last_mut().unwrap().1 = got == Thinned::Pass && !dropped;
        }
    }
}
