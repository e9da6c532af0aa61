//! The contract of each observer for its most relevant cars, sized by the admission test of the link.

use super::budget::SHARE_PERCENT;
use super::link::{LARGEST, MESSAGE_BYTES, PROPAGATION, RATE};
use super::world::{CARS, OBSERVERS};
use paceline_admit::link::{Admission, AdmissionTest, Holder, LinkParameters, Trunk};
use paceline_admit::{AdmissionResult, StreamDemand, Traffic};
use paceline_objects::ObjectContract;
use paceline_objects::contract::{ContractTraffic, DelayParts, PromisedService, UpdateSizes};
use paceline_objects::exchange::ExchangeSettings;
use paceline_sched::police::Dual;
use paceline_sched::{Capacity, Duration};

/// The bytes of the only group of a car: its motion.
pub(super) const MOTION_BYTES: u32 = 24;

/// A contract of each observer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    /// The service of each car.
    pub(super) each: ObjectContract,
    /// The number of cars.
    pub(super) cars: usize,
}

impl Promise {
    /// Returns a contract of at most `updates` per second and of at least one in `refresh`, for no car.
    pub(super) fn none(updates: u32, refresh: Duration, delay: Duration) -> Self {
        let each = ObjectContract::per_second(updates, MOTION_BYTES, delay);
        Self { each: ObjectContract { refresh, ..each }, cars: 0 }
    }

    /// Returns the contract for the most cars that the admission test grants to all observers.
    pub(super) fn most(self) -> Self {
        let (mut granted, mut refused) = (0, CARS + 1);
        while granted + 1 < refused {
            let cars = usize::midpoint(granted, refused);
            if (Self { cars, ..self }).is_admitted() {
                granted = cars;
            } else {
                refused = cars;
            }
        }
        Self { cars: granted, ..self }
    }

    pub(super) fn service(&self) -> PromisedService {
        let fragment_bytes = u32::try_from(LARGEST).unwrap_or(u32::MAX);
        let sizes = UpdateSizes { groups: 1, largest_group: MOTION_BYTES, fragment_bytes };
        PromisedService::new(self.each, self.cars, &sizes, &settings().headers())
    }

    /// Returns the reserved traffic of all observers in bytes per second.
    pub(super) fn reserved(&self) -> u64 {
        let each = if self.cars == 0 { 0 } else { self.service().traffic.bytes_per_s };
        u64::try_from(OBSERVERS).unwrap_or(u64::MAX) * each
    }

    /// Reserves the traffic of all observers on an empty link, as a node does. Returns whether all are granted.
    fn is_admitted(&self) -> bool {
        let capacity = Capacity::from_bits_per_s(RATE * 8 * SHARE_PERCENT / 100);
        let left = DelayParts::default().network(&self.each);
        let within = left.filter(|left| *left > PROPAGATION);
        let within = within.map(|left| left.saturating_sub(PROPAGATION));
        let demand = within.and_then(|within| demand(&self.service().traffic, within));
        let (Ok(capacity), Some(demand)) = (capacity, demand) else { return false };
        let rule = AdmissionTest::Vds { coincide: false };
        let mut link = Admission::new(LinkParameters::new(capacity, rule, LARGEST));
        (0..OBSERVERS).all(|observer| {
            let number = u64::try_from(observer).unwrap_or(u64::MAX);
            let holder = Holder { origin: 1, number };
            let granted = link.hold(Trunk(number.into()), holder, &demand);
            matches!(granted, AdmissionResult::Granted(_))
        })
    }
}

/// Returns the demand of promised updates: the bytes of messages contain all headers.
fn demand(traffic: &ContractTraffic, within: Duration) -> Option<StreamDemand> {
    let peak = Traffic::periodic(traffic.largest, traffic.spacing, Duration::ZERO, LARGEST).ok()?;
    let (peak_burst, peak_rate) = (peak.burst(), peak.rate());
    let rate = traffic.bytes_per_s.checked_mul(8)?;
    let dual = Dual { peak_burst, peak_rate, burst: traffic.burst, rate };
    let traffic = if rate < peak_rate {
        Traffic::new(dual, peak.packet(), peak.packets_per_s()).ok()?.varying(true)
    } else {
        peak
    };
    StreamDemand::new(traffic, within).ok()
}

pub(super) fn settings() -> ExchangeSettings {
    ExchangeSettings {
        message_header_bytes: usize::try_from(MESSAGE_BYTES).unwrap_or_default(),
        ..ExchangeSettings::default()
    }
}
