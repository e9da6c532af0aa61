//! The elastic camera of a run, and the oracle that its grants are compared with.

use crate::bench::interrupt;
use crate::bench::stats::float;
use anyhow::{Context as _, Result, bail};
use paceline::contract::Cause;
use paceline::{Node, Publisher, Subscriber, SubscriberEvent};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CAMERA: &str = "camera";
const HZ: f64 = 30.0;
const LEAST_HZ: f64 = 1.5;
const IMPORTANCE: u8 = 20;
/// 9.6 Mbit/s of payload at the full rate.
pub(super) const PICTURE_BYTES: u64 = 40_000;
pub(super) const WITHIN: Duration = Duration::from_millis(500);
/// The shortest time before a step is restored, of the contract and of the oracle.
const HYSTERESIS: Duration = Duration::from_secs(5);
/// A warning is early if it precedes the reduction by this time.
const ANNOUNCED: Duration = Duration::from_millis(500);
/// It counts for this time after the expected reduction.
const HOLDS: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// What the subscriber of the camera was granted over time.
#[derive(Debug, Default)]
pub(super) struct Film {
    /// The times of changes, with the granted rate from then on; 0 while it is refused.
    grants: Vec<(Instant, f64)>,
    /// The largest reservation of a grant in bytes per second and hertz.
    bytes_per_picture: f64,
    /// Pictures that arrived, and those of them that were older than the delay bound.
    pub(super) pictures: usize,
    pub(super) late: usize,
    /// The times of reductions and refusals, with true if they were announced half a second before, and of restorations.
    reduced: Vec<(Instant, bool)>,
    restored: Vec<Instant>,
    warned: Vec<Warned>,
}

/// A forecast of a reduction.
#[derive(Clone, Copy, Debug)]
struct Warned {
    at: Instant,
    after: Duration,
    /// The rate that it names; 0 for no contract.
    hertz: f64,
}

impl Warned {
    /// Returns true if a reduction to `hertz` at a time was announced: to that rate or a lower one, early, and not long ago.
    fn announces(&self, hertz: f64, at: Instant) -> bool {
        let before = at.saturating_duration_since(self.at);
        self.hertz <= hertz && before >= ANNOUNCED && before <= self.after + HOLDS
    }
}

pub(super) fn declare(near: &Node, far: &Node) -> Result<(Publisher, Subscriber)> {
    let camera = near.publisher(CAMERA).hz(HZ).bytes_max(PICTURE_BYTES).declare()?;
    let wanted = far.subscriber(CAMERA).max_hz(HZ).min_hz(LEAST_HZ).within(WITHIN).loss(1, 5);
    Ok((camera, wanted.importance(IMPORTANCE).queue(1_024).declare()?))
}

/// Waits for the first answer to the camera's subscription.
pub(super) fn wait_for_grant(pictures: &mut Subscriber, film: &mut Film) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while film.grants.is_empty() {
        if Instant::now() > until {
            bail!("the camera had no answer within {} s", PATIENCE.as_secs());
        }
        interrupt::sleep(POLL)?;
        film.follow(pictures);
    }
    Ok(())
}

/// Publishes pictures until the run is over.
pub(super) fn film(mut camera: Publisher, is_over: &AtomicBool) -> Result<()> {
    let (begun, picture) = (Instant::now(), vec![0_u8; 40_000]);
    for index in 1.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        camera.put(picture.clone()).context("camera")?;
        let next = begun + Duration::from_secs(1).mul_f64(f64::from(index) / HZ);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Follows the contract of the camera until the run is over. Adds the bytes of its pictures to `carried`.
pub(super) fn watch(
    mut pictures: Subscriber,
    mut film: Film,
    (is_over, carried): (&AtomicBool, &AtomicU64),
) -> Film {
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(POLL);
        let before = film.bytes();
        film.follow(&mut pictures);
        carried.fetch_add(film.bytes() - before, Ordering::Relaxed);
    }
    film
}

impl Film {
    fn follow(&mut self, pictures: &mut Subscriber) {
        while let Some(picture) = pictures.try_recv() {
            self.pictures += 1;
            self.late += usize::from(picture.late);
        }
        while let Some(event) = pictures.try_event() {
            if let SubscriberEvent::Adapted { form, adaptation, .. } = &event {
                match adaptation.cause {
                    Cause::Room => self.restored.push(Instant::now()),
                    Cause::Refused(_) | Cause::MoreImportant { .. } => {
                        let (now, hertz) = (Instant::now(), form.rate.max_hz().unwrap_or(HZ));
                        let announced = self.warned.iter().any(|it| it.announces(hertz, now));
                        tracing::debug!("reduced to {hertz} Hz, announced: {announced}");
                        self.reduced.push((now, announced));
                    }
                }
            }
            if let SubscriberEvent::Granted(grant) = &event {
                let reserved = grant.hops.iter().map(|hop| hop.bytes_per_s).max();
                // An answer to a step can arrive after the next step is announced.
                let hertz = grant.form.rate.max_hz().unwrap_or(HZ);
                let each = float(reserved.unwrap_or(0)) / hertz;
                self.bytes_per_picture = self.bytes_per_picture.max(each);
                self.grants.push((Instant::now(), hertz));
            }
            if let SubscriberEvent::Warned(_, warning) = &event {
                let hertz = warning.form.map_or(0.0, |form| form.rate.max_hz().unwrap_or(HZ));
                tracing::debug!("warned: {warning}");
                self.warned.push(Warned { at: Instant::now(), after: warning.after.into(), hertz });
            }
            if let SubscriberEvent::Refused(..) = &event {
                let now = Instant::now();
                let announced = self.warned.iter().any(|it| it.announces(0.0, now));
                self.reduced.push((now, announced));
                self.grants.push((now, 0.0));
            }
        }
    }

    /// Forgets the steps and warnings before an instant.
    pub(super) fn begin_at(&mut self, begun: Instant) {
        self.reduced.retain(|(at, _)| *at >= begun);
        self.restored.retain(|at| *at >= begun);
        self.warned.retain(|warned| warned.at >= begun);
    }

    /// Returns the numbers of reductions and refusals, of those that were announced, of warnings and of restorations.
    pub(super) fn steps(&self) -> [usize; 4] {
        let announced = self.reduced.iter().filter(|(_, announced)| *announced).count();
        [self.reduced.len(), announced, self.warned.len(), self.restored.len()]
    }

    /// Returns the reservation of the granted rate at an instant, in bits per second.
    pub(super) fn granted_bits_per_s(&self, instant: Instant) -> f64 {
        self.at(instant) * self.bytes_per_picture * 8.0
    }

    /// Returns the payload that arrived.
    pub(super) const fn bytes(&self) -> u64 {
        self.pictures as u64 * PICTURE_BYTES
    }

    /// Returns the granted rate at an instant.
    fn at(&self, instant: Instant) -> f64 {
        let before = self.grants.iter().take_while(|(at, _)| *at <= instant);
        before.last().map_or(0.0, |(_, hertz)| *hertz)
    }

    /// Returns the sum of the granted rates, of the largest one possible for an oracle that knows the `rates` of the radio in
    /// advance, one per `tick` from `begun` on. It has the same steps and the same pause before it restores one, and `share`
    /// of the radio. While more is granted than the radio carries, nothing counts.
    pub(super) fn of_oracle(
        &self,
        begun: Instant,
        tick: Duration,
        rates: &[u64],
        share: f64,
    ) -> f64 {
        let room = |rate: &u64| float(*rate) / 8.0 * share / self.bytes_per_picture.max(1.0);
        let steps = steps();
        let fitting = |rate: &u64| steps.iter().position(|hertz| *hertz <= room(rate));
        let fits: Vec<Option<usize>> = rates.iter().map(fitting).collect();
        let granted = (0..).zip(&fits).map(|(index, fits)| {
            let most = fits.and_then(|step| steps.get(step)).copied().unwrap_or(0.0);
            Some(self.at(begun + tick * index)).filter(|hertz| *hertz <= most).unwrap_or(0.0)
        });
        let granted: f64 = granted.sum();
        let pause = usize::try_from(HYSTERESIS.as_nanos() / tick.as_nanos().max(1)).unwrap_or(1);
        let most = best(&steps, &fits, pause);
        if most > 0.0 { granted / most } else { 1.0 }
    }
}

/// Returns the largest sum of rates over time if at each tick the first step that `fits` is known in advance, and a higher
/// step follows `pause` ticks after the last change at the earliest.
fn best(steps: &[f64], fits: &[Option<usize>], pause: usize) -> f64 {
    // The last place stands for no contract.
    let none = steps.len();
    let hertz = |step: usize| steps.get(step).copied().unwrap_or(0.0);
    // The best sum by step and by the ticks since the last change, up to the pause.
    let mut sums = vec![vec![f64::NEG_INFINITY; pause + 1]; none + 1];
    sums.iter_mut().filter_map(|by_age| by_age.last_mut()).for_each(|sum| *sum = 0.0);
    for fits in fits {
        let highest = fits.unwrap_or(none);
        let mut next = vec![vec![f64::NEG_INFINITY; pause + 1]; none + 1];
        for (step, by_age) in sums.iter().enumerate() {
            for (age, sum) in by_age.iter().enumerate().filter(|(_, sum)| sum.is_finite()) {
                for (to, by_age) in next.iter_mut().enumerate().skip(highest) {
                    if to < step && age < pause {
                        continue;
                    }
                    let age = if to == step { (age + 1).min(pause) } else { 0 };
                    if let Some(known) = by_age.get_mut(age) {
                        *known = known.max(sum + hertz(to));
                    }
                }
            }
        }
        sums = next;
    }
    sums.into_iter().flatten().fold(0.0, f64::max)
}

/// Returns the steps of the ladder in hertz, from the highest one.
fn steps() -> Vec<f64> {
    let parts = [1.0, 2.0 / 3.0, 0.5, 1.0 / 3.0, 0.25, 1.0 / 6.0, 0.125, 1.0 / 12.0, 0.0625];
    parts
        .iter()
        .map(|part| HZ * part)
        .take_while(|hertz| *hertz > LEAST_HZ * 1.1)
        .chain([LEAST_HZ])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_waits_before_it_rises_and_plans_ahead() {
        let steps = [2.0, 1.0];
        let at = |text: &str| -> Vec<Option<usize>> {
            text.chars().map(|it| it.to_digit(10).map(|it| it as usize)).collect()
        };
        let most = |text: &str| best(&steps, &at(text), 3);
        let same = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(same(most("0000"), 8.0));
        assert!(
            same(most("0100"), 6.0),
            "low from the first tick on, because it may rise at the third"
        );
        assert!(same(most("0001"), 7.0), "down when it must");
        assert!(same(most("000100"), 9.0), "and not up before the pause is over");
        assert!(same(most("0-00"), 4.0), "nothing at first");
    }

    #[test]
    fn only_what_the_radio_carries_counts() {
        let begun = Instant::now();
        let film =
            Film { grants: vec![(begun, HZ)], bytes_per_picture: 50_000.0, ..Film::default() };
        let rates: Vec<u64> = [[20_000_000; 100], [2_000_000; 100]].concat();
        let share = film.of_oracle(begun, Duration::from_millis(50), &rates, 1.0);
        // 30 Hz in the first half, and 5 Hz that it should have been in the second one.
        assert!((share - 30.0 / 35.0).abs() < 1e-9, "{share}");
    }
}
