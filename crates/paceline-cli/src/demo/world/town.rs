//! The town: cars on a grid of streets.

use paceline::world::{FieldValue, Schema, SharedObject, SharedWorld};
use std::time::Duration;

/// The number of cars.
const CARS: usize = 200;
/// The distance of two streets, in metres.
const BLOCK: f64 = 100.0;
/// The number of streets in each direction.
const STREETS: u64 = 11;
const PAINTS: [&str; 4] = ["red", "blue", "white", "black"];

/// A car.
pub(super) struct Car {
    object: SharedObject,
    pub(super) position: [f64; 2],
    pub(super) velocity: [f64; 2],
    /// The distance to the next crossing.
    left: f64,
}

/// The cars of the town.
pub(super) struct Town {
    pub(super) cars: Vec<Car>,
    random: u64,
}

impl Town {
    /// The length of a side, in metres.
    pub(super) const SIDE: f64 = 1_000.0;

    pub(super) fn build(world: &SharedWorld) -> anyhow::Result<Self> {
        let schema =
            Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}")?;
        let mut town = Self { cars: Vec::with_capacity(CARS), random: 0x1234_5678_9abc_def1 };
        for number in 0..CARS {
            let position = [town.street(), town.street()];
            let paint = PAINTS.get(number % PAINTS.len()).copied().unwrap_or("grey");
            let fields = [("position", vector(position)), ("paint", FieldValue::from(paint))];
            let object = world.create(&format!("car/{number}"), &schema, &fields)?;
            let mut car = Car { object, position, velocity: [0.0; 2], left: 0.0 };
            town.turn(&mut car);
            town.cars.push(car);
        }
        Ok(town)
    }

    /// Moves all cars.
    pub(super) fn step(&mut self, time: Duration) -> anyhow::Result<()> {
        let seconds = time.as_secs_f64();
        let mut cars = std::mem::take(&mut self.cars);
        for car in &mut cars {
            let [x, y] = car.velocity;
            car.left -= (x.abs() + y.abs()) * seconds;
            if car.left > 0.0 {
                let [east, north] = car.position;
                car.position = [east + x * seconds, north + y * seconds];
            } else {
                car.position = car.position.map(|place| (place / BLOCK).round() * BLOCK);
                self.turn(car);
            }
            let fields = [("position", vector(car.position)), ("velocity", vector(car.velocity))];
            car.object.set(&fields)?;
        }
        self.cars = cars;
        Ok(())
    }

    /// Chooses a street that does not leave the town, and a speed of 8 to 20 m/s.
    fn turn(&mut self, car: &mut Car) {
        let speed = 8.0 + f64::from(self.draw(1_200)) / 100.0;
        let ways = [[speed, 0.0], [-speed, 0.0], [0.0, speed], [0.0, -speed]];
        let first = self.draw(4);
        let inside = |[x, y]: [f64; 2]| {
            let [east, north] = car.position;
            let next = [
                east + x.signum() * x.abs().min(1.0) * BLOCK,
                north + y.signum() * y.abs().min(1.0) * BLOCK,
            ];
            next.iter().all(|place| (-1.0..=Self::SIDE + 1.0).contains(place))
        };
        let turned =
            (0..4).filter_map(|turn| ways.get(usize::try_from((first + turn) % 4).unwrap_or(0)));
        car.velocity = turned.copied().find(|way| inside(*way)).unwrap_or_default();
        car.left = BLOCK;
    }

    fn street(&mut self) -> f64 {
        let street = self.draw(u32::try_from(STREETS).unwrap_or(1));
        f64::from(street) * BLOCK
    }

    fn draw(&mut self, limit: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        u32::try_from(self.random % u64::from(limit)).unwrap_or(0)
    }
}

fn vector([x, y]: [f64; 2]) -> FieldValue {
    FieldValue::Vector([x, y, 0.0])
}
