//! Compares exact response times with the crate response-time-analysis (Brandenburg), whose
//! analyses are formally verified.

use paceline_admit::bounds::jobs::{Jobs, edf, static_priority};
use response_time_analysis as rta;
use rta::arrival::Sporadic;
use rta::demand::RBF;
use rta::time::{Duration, Service};
use rta::wcet::Scalar;

const LIMIT: u64 = 200_000;

struct Random(u64);

impl Random {
    fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) % (high - low + 1)
    }

    fn jobs(&mut self, count: u64) -> Vec<Jobs> {
        (0..count)
            .map(|_| {
                let period = self.within(20, 300);
                Jobs {
                    cost: self.within(1, 2 * period / count),
                    period,
                    jitter: if self.within(0, 1) == 0 { 0 } else { self.within(0, period) },
                    deadline: self.within(5, 400),
                }
            })
            .collect()
    }
}

fn arrivals(jobs: &Jobs) -> Sporadic {
    Sporadic::new(Duration::from(jobs.period), Duration::from(jobs.jitter))
}

fn cost(jobs: &Jobs) -> Scalar {
    Scalar::from(Service::from(jobs.cost))
}

#[test]
fn static_priority_has_the_response_times_of_the_verified_analysis() {
    let (mut random, mut bounded) = (Random(11), 0);
    for _ in 0..1_500 {
        let jobs = random.jobs(4);
        for (place, own) in jobs.iter().enumerate() {
            let (before, after) = (&jobs[..place], &jobs[place + 1..]);
            let lower = after.iter().map(|jobs| jobs.cost).max().unwrap_or(0);
            let theirs: Vec<_> =
                before.iter().map(|jobs| RBF::new(arrivals(jobs), cost(jobs))).collect();
            let own_arrivals = arrivals(own);
            let tua = rta::fixed_priority::fully_nonpreemptive::TaskUnderAnalysis {
                wcet: cost(own),
                arrivals: &own_arrivals,
                blocking_bound: Service::from(lower.saturating_sub(1)),
            };
            let told = rta::fixed_priority::fully_nonpreemptive::dedicated_uniproc_rta(
                &tua,
                &theirs,
                Duration::from(LIMIT),
            );
            let ours = static_priority(own, before, lower, LIMIT);
            assert_eq!(ours, told.ok().map(u64::from), "{own:?} among {jobs:?}");
            bounded += u64::from(ours.is_some());
        }
    }
    assert!(bounded > 2_500, "{bounded}");
}

#[test]
fn edf_has_the_response_times_of_the_verified_analysis() {
    let (mut random, mut bounded) = (Random(12), 0);
    for _ in 0..1_500 {
        let jobs = random.jobs(4);
        for (place, own) in jobs.iter().enumerate() {
            let others: Vec<Jobs> = jobs
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != place)
                .map(|(_, jobs)| *jobs)
                .collect();
            let arrival: Vec<_> = others.iter().map(arrivals).collect();
            let task = |jobs: &Jobs, arrivals| rta::edf::fully_nonpreemptive::Task {
                wcet: cost(jobs),
                arrivals,
                deadline: Duration::from(jobs.deadline),
            };
            let theirs: Vec<_> =
                others.iter().zip(&arrival).map(|(jobs, at)| task(jobs, at)).collect();
            let own_arrivals = arrivals(own);
            let told = rta::edf::fully_nonpreemptive::dedicated_uniproc_rta(
                &task(own, &own_arrivals),
                &theirs,
                Duration::from(LIMIT),
            );
            let ours = edf(own, &others, 0, LIMIT);
            assert_eq!(ours, told.ok().map(u64::from), "{own:?} among {others:?}");
            bounded += u64::from(ours.is_some());
        }
    }
    assert!(bounded > 2_500, "{bounded}");
}
