//! The structure of a video: how many pictures others need, and how often it can begin.

use crate::form::Rate;
use crate::sample::Kind;
use core::num::NonZeroU64;
use paceline_sched::{Duration, Instant};

/// The pictures that a video needs, as its publisher has seen it so far. A node without a decoder can only leave out
/// the others, or everything between two key pictures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Structure {
    /// The key and reference pictures in each thousand pictures, in the densest part: 0 to 1000.
    pub references: u16,
    /// The largest number of pictures from one key picture to the next; `None` before the second one, and for a video
    /// of one group.
    pub keys: Option<u32>,
    /// The mean time between two pictures, above 0. A declared period is more precise.
    pub period: Duration,
}

/// The references of a whole video in [`Structure::references`].
pub(crate) const THOUSAND: u16 = 1_000;

impl Structure {
    /// Returns true if pictures can be left out so that this rate is met and the others can be decoded. `period` is the
    /// declared period.
    #[must_use]
    pub fn allows(&self, rate: Rate, period: Option<Duration>) -> bool {
        let each = u128::from(period.unwrap_or(self.period).as_nanos());
        let asked = rate.period(period.or(Some(self.period))).unwrap_or(self.period);
        let asked = u128::from(asked.as_nanos());
        // A hundredth is less than the precision of a measured period.
        let below = |part: u128, whole: u128| part * 100 <= whole * 101;
        let all = below(asked, each);
        let references = below(asked * u128::from(self.references), each * u128::from(THOUSAND));
        let keys = self.keys.is_some_and(|keys| below(each * u128::from(keys), asked));
        all || references || keys
    }

    /// Returns the rate of its key pictures in millihertz, rounded down; `None` if it has one group, or less than one
    /// key picture in 1,000 s.
    #[must_use]
    pub fn keys_millihertz(&self, period: Option<Duration>) -> Option<NonZeroU64> {
        let each = period.unwrap_or(self.period).as_nanos();
        let time = each.saturating_mul(u64::from(self.keys?));
        1_000_000_000_000_u64.checked_div(time).and_then(NonZeroU64::new)
    }
}

/// The pictures after which a part ends at the next key picture, and without one.
const PART_MIN: u32 = 8;
const PART_MAX: u32 = 32;
/// The references that may pass in a row before they are due, and the shortest stretch in which more matter.
const BURST: u32 = 3;
const STRETCH_MIN: u32 = 4;

/// A part of a video.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    pictures: u32,
    references: u32,
    /// It begins with a key picture.
    whole: bool,
}

impl Part {
    /// Returns its references per thousand. Without whole groups, the first picture may be one beyond their share.
    fn share(self, key: bool) -> u32 {
        let beyond = u32::from(!(self.whole && key));
        per_thousand(self.references.saturating_sub(beyond), self.pictures)
    }
}

fn per_thousand(part: u32, whole: u32) -> u32 {
    part.saturating_mul(THOUSAND.into()) / whole.max(1)
}

/// Measures the [`Structure`] of a video from its pictures.
#[derive(Clone, Debug, Default)]
pub struct StructureMeter {
    known: Option<Structure>,
    begun: Option<Instant>,
    /// All pictures so far.
    count: u64,
    part: Part,
    /// Which of the last 32 pictures are references, the newest in the lowest bit.
    recent: u32,
    /// The largest share of the parts and stretches so far.
    share: u32,
    /// The pictures since the last key picture; `None` before the first.
    since_key: Option<u32>,
}

impl StructureMeter {
    /// Returns the structure so far; `None` until a part has shown it.
    #[must_use]
    pub const fn structure(&self) -> Option<Structure> {
        self.known
    }

    /// Records the next picture. `alone` is true for a key picture that needs no other one, unlike the begin of a gradual
    /// refresh.
    pub fn note(&mut self, now: Instant, kind: Kind, alone: bool) {
        let key = kind == Kind::VideoI && alone;
        let begun = *self.begun.get_or_insert(now);
        let keys = self.note_key(key);
        let ended = self.part.pictures >= if key { PART_MIN } else { PART_MAX };
        if ended {
            self.share = self.share.max(self.part.share(key));
        }
        if ended || self.count == 0 {
            self.part = Part { whole: key, ..Part::default() };
        }
        let needed = matches!(kind, Kind::VideoI | Kind::VideoP);
        self.part.pictures += 1;
        self.part.references += u32::from(needed);
        self.count += 1;
        self.note_stretches(needed);
        let known = self.known.is_some() || ended;
        let references = u16::try_from(self.share).unwrap_or(THOUSAND).min(THOUSAND);
        let same = |it: Structure| it.references == references && it.keys == keys;
        if !known || self.known.is_some_and(same) {
            return;
        }
        let mean = now.since(begun).as_nanos() / (self.count - 1).max(1);
        let period = Duration::from_nanos(mean.max(1));
        self.known = Some(Structure { references, keys, period });
    }

    /// Takes stretches with many references in a row into account.
    fn note_stretches(&mut self, needed: bool) {
        self.recent = self.recent << 1 | u32::from(needed);
        let pictures = u32::try_from(self.count).unwrap_or(u32::MAX).min(u32::BITS);
        for stretch in STRETCH_MIN..=pictures {
            let references = (self.recent & u32::MAX >> (u32::BITS - stretch)).count_ones();
            let share = per_thousand(references.saturating_sub(BURST), stretch);
            self.share = self.share.max(share);
        }
    }

    /// Returns the largest distance of two key pictures. A long group without an end counts from twice the distance on.
    fn note_key(&mut self, key: bool) -> Option<u32> {
        let since = self.since_key.map(|pictures| pictures.saturating_add(1));
        self.since_key = if key { Some(0) } else { since };
        let known = self.known.and_then(|it| it.keys);
        match (since, known) {
            (Some(since), None) if key => Some(since),
            (Some(since), Some(known)) if key || since / 2 >= known => Some(since.max(known)),
            (_, known) => known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;
    use proptest::prelude::*;

    const PERIOD: Duration = Duration::from_millis(40);

    fn kind(letter: char) -> Kind {
        match letter {
            'I' | 'R' => Kind::VideoI,
            'B' => Kind::VideoB,
            'L' => Kind::VideoLeading,
            _ => Kind::VideoP,
        }
    }

    /// Returns the last structure that pictures of these letters show; R is the begin of a gradual refresh.
    fn structure(letters: impl Iterator<Item = char>) -> Option<Structure> {
        let (mut meter, mut now) = (StructureMeter::default(), Instant::ZERO);
        for letter in letters {
            meter.note(now, kind(letter), letter != 'R');
            now += PERIOD;
        }
        meter.structure()
    }

    fn every(n: u32) -> Rate {
        Rate::every(NonZeroU32::new(n).unwrap())
    }

    fn hz(millihertz: u32) -> Rate {
        Rate::max(NonZeroU32::new(millihertz).unwrap())
    }

    #[test]
    fn rates_between_the_references_and_the_keys_are_not_allowed() {
        let of = |group: &str| structure(group.chars().cycle().take(200)).unwrap();
        let chain = of("IPPPPPPPPPPPPPPPPPPPPPPPP");
        assert_eq!((chain.keys, chain.period), (Some(25), PERIOD));
        assert!(chain.allows(Rate::ALL, None) && chain.allows(hz(25_000), None));
        assert!(!chain.allows(every(2), None) && !chain.allows(hz(5_000), None));
        assert!(chain.allows(every(25), None) && chain.allows(hz(1_000), None));
        assert_eq!(chain.keys_millihertz(None), NonZeroU64::new(1_000));
        let thirds = of("IBBPBBPBBPBB");
        assert!(thirds.allows(every(2), None) && thirds.allows(every(3), None));
        assert!(!thirds.allows(every(4), None) && thirds.allows(every(12), None));
        // A declared period counts: these are 50 pictures per second.
        let declared = Some(Duration::from_millis(20));
        assert!(!thirds.allows(hz(8_000), declared) && thirds.allows(hz(17_000), declared));
        let alone = of("I");
        assert!((1..50).all(|n| alone.allows(every(n), None)));
        // A gradual refresh is no key picture: without a decoder nothing can be left out.
        let refresh = of("RPPPPPPPPPPPPPPPPPPPPPPPP");
        assert_eq!(refresh.keys, None);
        assert!([2, 25, 1_000].iter().all(|n| !refresh.allows(every(*n), None)));
    }

    #[test]
    fn a_long_group_is_known_soon() {
        let letters = || std::iter::once('I').chain(std::iter::repeat('P'));
        assert_eq!(structure(letters().take(32)), None);
        let known = structure(letters().take(33)).unwrap();
        assert_eq!((known.references, known.keys), (968, None));
        // Two groups of four, then one without an end.
        let letters = "IPPPIPPPI".chars().chain(std::iter::repeat('P')).take(1_000);
        assert!(structure(letters).unwrap().keys >= Some(500));
    }

    proptest! {
        /// Whatever the group, an allowed rate is met by leaving out pictures, and by [`super::super::Thinner`].
        #[test]
        fn allowed_rates_are_met(group in "I[PBBB]{0,30}", n in 1u32..40) {
            let letters = || group.chars().cycle();
            let Some(known) = structure(letters().take(400)) else { return Ok(()) };
            prop_assume!(known.allows(every(n), None));
            let mut thinner = super::super::Thinner::new(every(n), Some(PERIOD));
            thinner.set_alone(true);
            let mut passed = 0_u32;
            for (seq, letter) in (0..4_000).zip(letters()) {
                let what = thinner.offer(kind(letter), seq, 0);
                passed += u32::from(what == super::super::Thinned::Pass);
            }
            let due = 4_000_u32.div_ceil(n);
            // A hundredth counts as met. The first group, of which nothing is known, may cost the next one.
            let due = due.saturating_sub(due / 40 + 2 * 31 / n);
            prop_assert!(passed + 4 >= due && passed <= 4_000_u32.div_ceil(n) + 3, "{passed} of {due}: {group}, 1 in {n}");
        }
    }
}
