//! Checks that units which no other needs can be left out, and that key units are a start.

use paceline_media::video::{AccessUnit, Class};

use crate::ffmpeg::{Mode, PICTURES, decoded};

/// The numbers of units in each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) i: usize,
    pub(crate) p: usize,
    pub(crate) b: usize,
    pub(crate) leading: usize,
}

pub(crate) fn counts(units: &[AccessUnit<'_>]) -> Counts {
    let count = |class| units.iter().filter(|unit| unit.class == class).count();
    let (i, p, b) = (count(Class::I), count(Class::P), count(Class::B));
    Counts { i, p, b, leading: count(Class::Leading) }
}

/// The classes, one letter each.
pub(crate) fn letters(units: &[AccessUnit<'_>]) -> String {
    let letter = |unit: &AccessUnit<'_>| match unit.class {
        Class::I => 'I',
        Class::P => 'P',
        Class::B => 'B',
        Class::Leading => 'L',
    };
    units.iter().map(letter).collect()
}

/// Decodes `units`, which must be without errors and show one picture each, all of them among `all`, in the
/// same order.
fn check(format: &str, what: &str, units: &[Vec<u8>], all: &[Vec<u8>]) {
    let (pictures, errors) = decoded(format, &units.concat());
    assert_eq!(errors, "", "{what}");
    assert_eq!(pictures.len(), units.len(), "{what}");
    let mut rest = all.iter();
    let exact = pictures.iter().all(|picture| rest.any(|other| other == picture));
    assert!(exact, "{what}: other pictures than in the whole stream");
}

/// The number of key units at which decoding is started.
const STARTS: usize = 2;

/// Checks a stream against ffmpeg: whole; without the units that no other needs; and from key units on.
///
/// `bare` takes the headers of the stream out of a unit, which is done for all units but the first.
/// `complete` adds to a key unit those that it lacks.
pub(crate) fn check_stream(
    format: &str,
    mode: &Mode<'_>,
    stream: &[u8],
    units: &[AccessUnit<'_>],
    bare: impl Fn(&[u8]) -> Vec<u8>,
    mut complete: impl FnMut(&[u8], Class) -> Vec<u8>,
) {
    let joined: Vec<u8> = units.iter().flat_map(|unit| unit.bytes).copied().collect();
    assert!(joined == stream, "{}: units joined are not the stream", mode.name);
    assert_eq!(units.len(), PICTURES, "{}", mode.name);
    assert_eq!(units.first().map(|unit| unit.class), Some(Class::I), "{}", mode.name);
    println!("{}: {:?} {}", mode.name, counts(units), letters(units));

    let bared = |(at, unit): (usize, &AccessUnit<'_>)| {
        let own = if at == 0 { unit.bytes.to_vec() } else { bare(unit.bytes) };
        complete(&own, unit.class)
    };
    let whole: Vec<Vec<u8>> = units.iter().enumerate().map(bared).collect();
    let (all, errors) = decoded(format, stream);
    assert_eq!((all.len(), errors.as_str()), (PICTURES, ""), "{}", mode.name);
    check(format, mode.name, &whole, &all);

    let kept = |from: usize, keep: &dyn Fn(usize, Class) -> bool| -> Vec<Vec<u8>> {
        let pairs = units.iter().zip(&whole).enumerate().skip(from);
        pairs
            .filter(|(at, (unit, _))| keep(*at, unit.class))
            .map(|(_, (_, it))| it.clone())
            .collect()
    };
    let name = |what: &str| format!("{}, {what}", mode.name);
    check(format, &name("without B"), &kept(0, &|_, class| class != Class::B), &all);
    check(
        format,
        &name("every second B"),
        &kept(0, &|at, class| class != Class::B || at % 2 == 0),
        &all,
    );
    let needed = |_: usize, class: Class| matches!(class, Class::I | Class::P);
    check(format, &name("only I and P"), &kept(0, &needed), &all);
    let keys = units.iter().enumerate().filter(|(_, unit)| unit.class == Class::I);
    for (key, _) in keys.skip(1).take(STARTS) {
        // The leading units of the first key unit need units before it.
        let next = units.iter().skip(key + 1).position(|unit| unit.class == Class::I);
        let next = next.map_or(units.len(), |more| key + 1 + more);
        let late = kept(key, &|at, class| at >= next || class != Class::Leading);
        check(format, &name(&format!("from unit {key}")), &late, &all);
    }
}

/// Calls `read` with damaged copies of a stream: flipped bits, lost and repeated bytes.
pub(crate) fn damage(stream: &[u8], read: impl Fn(&[u8])) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for _ in 0..500 {
        let mut copy = stream.to_vec();
        for _ in 0..1 + random(8) {
            // Headers are near the beginning of the stream.
            let range = if random(2) == 0 { 100 } else { copy.len() };
            let at = random(range);
            match random(4) {
                0 => drop(copy.drain(at..(at + 1 + random(50)).min(copy.len()))),
                1 => copy.insert(at, copy[at]),
                _ => copy[at] ^= 1 << random(8),
            }
        }
        read(&copy);
        read(&copy[random(copy.len())..]);
    }
}
