//! Compares HFSC with a naive scheduler, written directly from its rules (Stoica, Zhang & Ng, SIGCOMM 1997),
//! on random histories of a tree of classes.

mod twin;

use super::random::SplitMix;
use paceline_sched::curve::Curve;
use paceline_sched::hfsc::{ClassIndex, Curves, Hfsc, Pick};
use paceline_sched::time::{Duration, Instant};
use twin::Twin;

/// Returns one of `items`, or `None` if there are none.
fn one_of(random: &mut SplitMix, items: &[usize]) -> Option<usize> {
    (!items.is_empty()).then(|| random.one_of(items))
}

struct Pair {
    random: SplitMix,
    /// The highest rate of a class, and the typical transmission time of a packet in nanoseconds.
    rate: u64,
    packet: u64,
    now: u64,
    hfsc: Hfsc,
    twin: Twin,
}

/// Runs one history. The error states the first difference, or the class that starves.
pub(super) fn scenario(seed: u64) -> Result<(), String> {
    let mut random = SplitMix::new(seed);
    let rate = 10_u64.pow(u32::try_from(3 + random.below(9)).unwrap());
    let packet = (12_000_u64 * 1_000_000_000 / rate).max(1);
    let (hfsc, twin) = (Hfsc::new(), Twin::new());
    let mut pair = Pair { random, rate, packet, now: 0, hfsc, twin };
    for _ in 0..1 + pair.random.below(14) {
        pair.add();
    }
    // Most failures need few steps, so many short histories find more.
    let steps = if pair.random.once_in(4) { 250 } else { 50 };
    let steps = pair.random.below(steps);
    let result = (0..steps).try_for_each(|_| pair.step());
    result.and_then(|()| pair.drain()).map_err(|what| format!("seed {seed}: {what}"))
}

fn index(class: usize) -> ClassIndex {
    ClassIndex(u32::try_from(class).unwrap())
}

impl Pair {
    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn len(&mut self) -> u64 {
        match self.random.below(4) {
            0 => 1_500,
            1 => 64,
            _ => self.random.below(2_000),
        }
    }

    fn curve(&mut self) -> Curve {
        let rate = |random: &mut SplitMix, most: u64| 1 + random.below(most);
        let (m1, m2) = (rate(&mut self.random, self.rate), rate(&mut self.random, self.rate));
        let d = Duration::from_nanos(1 + self.random.below(self.packet * 20));
        let curve = match self.random.below(6) {
            0 => Curve::linear(self.rate),
            1 => Curve::linear(m2),
            2 => Curve::two_piece(0, d, m2),
            3 => Curve::burst(self.len(), d, m2),
            _ => Curve::two_piece(m1, d, m2),
        };
        curve.or_else(|_| Curve::linear(m2)).unwrap()
    }

    fn curves(&mut self) -> Curves {
        let mut some = |one_in, wanted| {
            let curve = self.curve();
            (self.random.once_in(one_in) == wanted).then_some(curve)
        };
        Curves { real_time: some(2, true), link_share: some(5, false), upper_limit: some(4, true) }
    }

    fn add(&mut self) {
        let parents = self.twin.classes();
        let root = self.random.once_in(3);
        let parent = one_of(&mut self.random, &parents).filter(|_| !root).unwrap_or(0);
        let mut curves = self.curves();
        if self.random.once_in(2) {
            // Most classes can become parents.
            curves.real_time = None;
            curves.link_share = Some(self.curve());
        }
        if let Ok(class) = self.hfsc.add(index(parent), curves) {
            self.twin.add(usize::try_from(class.0).unwrap(), parent, curves);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.advance();
        let leaves = self.twin.leaves();
        let leaf = one_of(&mut self.random, &leaves);
        let len = self.len();
        match (self.random.below(40), leaf) {
            (0..13, Some(leaf)) => {
                // Some leaves are activated with an earlier arrival time than leaves activated before them.
                let ago = if self.random.once_in(3) { self.random.below(self.packet) } else { 0 };
                let arrival = self.now.saturating_sub(ago);
                self.hfsc.set_active(Instant::from_nanos(arrival), index(leaf), len);
                self.twin.set_active(arrival, leaf, len);
            }
            (13, Some(leaf)) => self.empty(leaf),
            (14, Some(leaf)) => {
                self.hfsc.set_next(index(leaf), len);
                self.twin.set_next(leaf, len);
            }
            (15, _) => self.add(),
            (16, Some(leaf)) if self.random.once_in(2) => {
                self.hfsc.remove(index(leaf)).map_err(|error| error.to_string())?;
                self.twin.remove(leaf);
            }
            (17, _) => self.update(),
            _ => self.serve()?,
        }
        self.compare()
    }

    fn advance(&mut self) {
        let kind = self.random.below(24);
        let next = self.hfsc.next_change(self.instant()).map_or(self.now, Instant::as_nanos);
        self.now = match kind {
            0..12 => self.now + self.random.below(self.packet),
            12..16 => next,
            16 => self.now + self.random.below(self.packet * 100),
            17 => self.now.saturating_sub(self.random.below(self.packet)),
            18 if self.random.once_in(10) => self.now + self.random.below(1 << 55),
            _ => self.now,
        };
    }

    fn empty(&mut self, leaf: usize) {
        self.hfsc.set_passive(self.instant(), index(leaf));
        self.twin.set_passive(self.now, leaf);
    }

    fn update(&mut self) {
        let classes = self.twin.classes();
        let Some(class) = one_of(&mut self.random, &classes) else { return };
        let (fresh, mut curves) = (self.curves(), self.twin.curves(class));
        match self.random.below(4) {
            0 => curves.real_time = fresh.real_time,
            1 => curves.link_share = fresh.link_share,
            2 => curves.upper_limit = fresh.upper_limit,
            _ => curves = fresh,
        }
        if self.hfsc.update(self.instant(), index(class), curves).is_ok() {
            self.twin.update(self.now, class, curves);
        }
    }

    fn pick(&mut self) -> Result<Option<Pick>, String> {
        let pick = self.hfsc.pick(self.instant());
        let expected = self.twin.pick(self.now);
        let expected = expected.map(|(class, criterion)| Pick { class: index(class), criterion });
        if pick != expected {
            return Err(format!("at {} ns {pick:?}, expected {expected:?}", self.now));
        }
        Ok(pick)
    }

    /// Serves a packet. Meanwhile the leaf may lose its packets, get others or disappear.
    fn serve(&mut self) -> Result<(), String> {
        let Some(pick) = self.pick()? else { return Ok(()) };
        let class = usize::try_from(pick.class.0).unwrap();
        let bytes = match self.random.below(12) {
            0 => 0,
            1 => self.len(),
            _ => self.twin.waiting(class).unwrap_or(0),
        };
        let next = (!self.random.once_in(3)).then(|| self.len());
        if self.random.once_in(5) {
            self.empty(class);
            if self.random.once_in(4) {
                self.empty(class);
            }
        }
        if self.random.once_in(12) {
            let len = self.len();
            self.hfsc.set_active(self.instant(), pick.class, len);
            self.twin.set_active(self.now, class, len);
        }
        self.now += self.random.below(self.packet);
        self.charge(pick, bytes, next);
        if self.random.once_in(9) {
            self.empty(class);
        }
        Ok(())
    }

    fn charge(&mut self, pick: Pick, bytes: u64, next: Option<u64>) {
        let class = usize::try_from(pick.class.0).unwrap();
        self.hfsc.charge(self.instant(), pick, bytes, next);
        self.twin.charge(self.now, (class, pick.criterion), bytes, next);
    }

    fn compare(&self) -> Result<(), String> {
        let change = self.hfsc.next_change(self.instant()).map(Instant::as_nanos);
        if change != self.twin.next_change(self.now) {
            let expected = self.twin.next_change(self.now);
            return Err(format!(
                "at {} ns next change {change:?}, expected {expected:?}",
                self.now
            ));
        }
        for class in self.twin.classes().into_iter().chain([0]) {
            let service = self.hfsc.service(index(class)).map(|s| (s.total, s.by_real_time));
            let expected = (self.twin.service(class), self.twin.deadline(class));
            let deadline = self.hfsc.deadline(index(class)).map(Instant::as_nanos);
            let leaf = self.hfsc.is_leaf(index(class)) == self.twin.is_leaf(class);
            if service != Some(expected.0) || deadline != expected.1 || !leaf {
                let now = self.now;
                let got = format!("{service:?} {deadline:?}, expected {expected:?}");
                return Err(format!("at {now} ns class {class}: {got}"));
            }
        }
        Ok(())
    }

    /// Checks that every waiting class is served in the end.
    fn drain(&mut self) -> Result<(), String> {
        let waiting = |pair: &Self| -> Vec<usize> {
            let leaves = pair.twin.leaves().into_iter();
            leaves.filter(|&leaf| pair.twin.waiting(leaf).is_some()).collect()
        };
        for _ in 0..200 {
            let before = waiting(self);
            match self.pick()? {
                Some(pick) => self.charge(pick, self.waiting_len(pick), None),
                None if before.is_empty() => return Ok(()),
                None => {
                    let next = self.hfsc.next_change(self.instant());
                    let stalled = || format!("at {} ns {before:?} wait for ever", self.now);
                    self.now = next.ok_or_else(stalled)?.as_nanos();
                }
            }
            self.compare()?;
        }
        Err(format!("at {} ns still waiting: {:?}", self.now, waiting(self)))
    }

    fn waiting_len(&self, pick: Pick) -> u64 {
        self.twin.waiting(usize::try_from(pick.class.0).unwrap()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::hfsc::Criterion;

    /// The comparison covers the criterion of each pick.
    #[test]
    fn both_criteria_occur_in_the_histories() {
        let mut seen = [0, 0];
        for seed in 0..40 {
            let mut pair = Pair {
                random: SplitMix::new(seed),
                rate: 1_000_000,
                packet: 12_000_000,
                now: 0,
                hfsc: Hfsc::new(),
                twin: Twin::new(),
            };
            (0..8).for_each(|_| pair.add());
            for _ in 0..100 {
                pair.step().unwrap();
                match pair.pick().unwrap().map(|pick| pick.criterion) {
                    Some(Criterion::RealTime) => seen[0] += 1,
                    Some(Criterion::LinkShare) => seen[1] += 1,
                    None => {}
                }
            }
        }
        assert!(seen.iter().all(|&times| times > 200), "{seen:?}");
    }
}
