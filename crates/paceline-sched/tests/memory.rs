//! The memory of a stream, and a check that decisions do not allocate.

use allocation_counter::measure;
use paceline_sched::discipline::{
    Discipline, Eligibility, Policy, Scheduler as _, ServiceClass, StreamIndex, Terms,
};
use paceline_sched::hfsc::Curves;
use paceline_sched::load::Workload;
use paceline_sched::{Contract, Curve, Duration, LossTolerance};

const STREAMS: u32 = 100_000;
const ELIGIBILITIES: [Eligibility; 2] = [Eligibility::WorkConserving, Eligibility::OncePerPeriod];

/// Returns the upper limit of a stream's memory in bytes, without its queue of samples.
fn bytes_max(policy: Policy) -> u64 {
    match policy {
        Policy::Edf | Policy::DelayEdd | Policy::Dwcs { .. } | Policy::Vds => 128,
        Policy::Rcsp | Policy::StopAndGo | Policy::Rpq => 192,
        Policy::Fifo | Policy::StaticPriority | Policy::Drr | Policy::Wf2qPlus | Policy::Hfsc => {
            512
        }
    }
}

/// Bytes per stream that remain allocated by joining `STREAMS` streams.
fn bytes_each(policy: Policy, reserve: bool) -> u64 {
    bytes_each_with(policy, reserve, contract())
}

fn contract() -> Terms {
    let contract = Contract {
        period: Duration::from_millis(10),
        deadline: Duration::from_millis(10),
        loss: LossTolerance::new(1, 4).expect("a tolerance"),
        late: paceline_sched::Late::Drop,
        jitter: Duration::ZERO,
    };
    Terms::new(ServiceClass::Contracted(contract))
}

fn bytes_each_with(policy: Policy, reserve: bool, terms: Terms) -> u64 {
    let mut discipline = Discipline::new(policy, Eligibility::default());
    let taken = measure(|| {
        if reserve {
            discipline.reserve(STREAMS as usize);
        }
        for index in 0..STREAMS {
            discipline.join(StreamIndex(index), terms);
        }
    });
    assert!(taken.bytes_current > 0, "{policy}: {taken:?}");
    u64::try_from(taken.bytes_current).unwrap_or_default() / u64::from(STREAMS)
}

#[test]
fn memory_per_stream_stays_within_the_policy_limit() {
    for policy in Policy::ALL {
        for reserve in [true, false] {
            let (bytes, most) = (bytes_each(policy, reserve), bytes_max(policy));
            println!("{policy}, reserved {reserve}: {bytes} bytes a stream");
            assert!(bytes <= most, "{policy}, reserved {reserve}: {bytes} bytes, at most {most}");
        }
    }
}

#[test]
fn memory_of_a_class_with_three_curves_stays_within_the_limit() {
    let curve = Some(Curve::linear(1_000_000).expect("a curve"));
    let curves = Curves { real_time: curve, link_share: curve, upper_limit: curve };
    for reserve in [true, false] {
        let bytes = bytes_each_with(Policy::Hfsc, reserve, contract().with_curves(curves));
        println!("hfsc, three curves, reserved {reserve}: {bytes} bytes a stream");
        assert!(bytes <= bytes_max(Policy::Hfsc), "reserved {reserve}: {bytes} bytes");
    }
}

#[test]
fn no_decision_allocates() {
    for policy in Policy::ALL {
        for eligibility in ELIGIBILITIES {
            let mut load = Workload::new(policy, eligibility, 300);
            let taken = measure(|| (0..20_000).for_each(|_| load.decide()));
            assert_eq!(taken.count_total, 0, "{policy}, {eligibility:?}: {taken:?}");
            assert!(load.missed() > 0 && load.served() >= 20_000, "{policy}: {load:?}");
        }
    }
}

#[test]
fn recovery_from_a_stall_allocates_nothing() {
    for policy in Policy::ALL {
        let mut load = Workload::new(policy, Eligibility::default(), 300);
        (0..3_000).for_each(|_| load.decide());
        let missed = load.missed();
        load.stall(Duration::from_secs(30));
        let taken = measure(|| while load.handle_miss() {});
        assert_eq!(taken.count_total, 0, "{policy}: {taken:?}");
        assert!(load.missed() > missed, "{policy} missed nothing in 30 s");
        (0..3_000).for_each(|_| load.decide());
    }
}
