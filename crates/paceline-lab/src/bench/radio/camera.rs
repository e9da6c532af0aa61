//! The elastic camera of a run, and the oracle that its grants are compared with.

use crate::bench::interrupt;
use crate::bench::stats::float;
use anyhow::{Context as _, Result, bail};
use paceline::contract::Cause;
use paceline::{Node, Publisher, Subscriber, SubscriberEvent};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CAMERA: &str = "camera";
const HZ: f64 = 30.0;
const LEAST_HZ: f64 = 1.5;
const IMPORTANCE: u8 = 20;
/// 9.6 Mbit/s of payload at the full rate.
const PICTURE_BYTES: u64 = 40_000;
const WITHIN: Duration = Duration::from_millis(500);
/// The shortest time before a step is restored, of the contract and of the oracle.
const HYSTERESIS: Duration = Duration::from_secs(5);
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
    /// Reductions, restorations and refusals.
    pub(super) reduced: usize,
    pub(super) restored: usize,
    pub(super) refused: usize,
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

/// Follows the contract of the camera until the run is over.
pub(super) fn watch(mut pictures: Subscriber, mut film: Film, is_over: &AtomicBool) -> Film {
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(POLL);
        film.follow(&mut pictures);
    }
    film
}

impl Film {
    fn follow(&mut self, pictures: &mut Subscriber) {
        while let Some(picture) = pictures.try_recv() {
            self.pictures += 1;
            self.late += usize::from(picture.late);
        }
        let mut hertz = self.grants.last().map_or(HZ, |(_, hertz)| *hertz);
        while let Some(event) = pictures.try_event() {
            if let SubscriberEvent::Adapted { form, adaptation, .. } = &event {
                hertz = form.rate.max_hz().unwrap_or(HZ);
                match adaptation.cause {
                    Cause::Room => self.restored += 1,
                    Cause::Refused(_) | Cause::MoreImportant { .. } => self.reduced += 1,
                }
            }
            if let SubscriberEvent::Granted(grant) = &event {
                let reserved = grant.hops.iter().map(|hop| hop.bytes_per_s).max();
                let hertz = if hertz > 0.0 { hertz } else { LEAST_HZ };
                let each = float(reserved.unwrap_or(0)) / hertz;
                self.bytes_per_picture = self.bytes_per_picture.max(each);
                self.grants.push((Instant::now(), hertz));
            }
            if let SubscriberEvent::Refused(..) = &event {
                self.refused += 1;
                self.grants.push((Instant::now(), 0.0));
            }
        }
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

    /// Returns the sum of the granted rates, of that of an oracle that knows the `rates` of the radio, one per `tick` from
    /// `begun` on. It has the same steps and the same pause before it restores one, and `share` of the radio.
    pub(super) fn of_oracle(
        &self,
        begun: Instant,
        tick: Duration,
        rates: &[u64],
        share: f64,
    ) -> f64 {
        let (mut granted, mut oracle) = (0.0, 0.0);
        let (mut step, mut changed) = (0.0, None::<Duration>);
        for (index, rate) in (0..).zip(rates) {
            let now = tick * index;
            let room = float(*rate) / 8.0 * share / self.bytes_per_picture.max(1.0);
            let fits = steps().into_iter().find(|hertz| *hertz <= room).unwrap_or(0.0);
            let may_rise = changed.is_none_or(|changed| now >= changed + HYSTERESIS);
            if fits < step || fits > step && may_rise {
                (step, changed) = (fits, Some(now));
            }
            granted += self.at(begun + now).min(fits);
            oracle += step;
        }
        if oracle > 0.0 { granted / oracle } else { 1.0 }
    }
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
    fn the_oracle_falls_at_once_and_rises_after_the_pause() {
        let begun = Instant::now();
        let grants = vec![(begun, HZ)];
        let film = Film { grants, bytes_per_picture: 50_000.0, ..Film::default() };
        let tick = Duration::from_millis(50);
        let share = |rates: &[u64]| film.of_oracle(begun, tick, rates, 1.0);
        let full = vec![20_000_000; 100];
        assert!((share(&full) - 1.0).abs() < 1e-9, "all of it");
        // What is granted beyond the radio does not count.
        let fallen: Vec<u64> = full.iter().chain(&[2_000_000; 100]).copied().collect();
        assert!((share(&fallen) - 1.0).abs() < 1e-9, "{}", share(&fallen));
        // The oracle stays low for five seconds after the fall.
        let dip: Vec<u64> =
            [vec![20_000_000; 20], vec![2_000_000; 1], vec![20_000_000; 99]].concat();
        assert!(share(&dip) > 1.5, "{}", share(&dip));
    }
}
