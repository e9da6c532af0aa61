//! Shares objects: a driver owns cars, and a pilot has replicas of the near ones.

use paceline::Node;
use paceline::world::{Interest, Schema};
use std::error::Error;
use std::time::{Duration, Instant};

const SCHEMA: &str = "car/1 motion{position:vector velocity:vector} look{paint:text}";
const FAST: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let node = Node::builder().isolated().open()?;
    let driver = node.world("town").name("driver").join()?;
    let pilot = node.world("town").name("pilot").join()?;

    let schema = Schema::parse(SCHEMA)?;
    let mut cars = Vec::new();
    for (name, east) in [("car/near", 10.0), ("car/far", 2_000.0)] {
        let car = driver.create(name, &schema, &[("paint", "red".into())])?;
        car.set(&[("position", [east, 0.0, 0.0].into())])?;
        cars.push(car);
    }

    // Objects up to 50 units away at most every 50 ms, and those up to 500 at most every second.
    let interest = Interest::by_distance(&[(50.0, FAST), (500.0, Duration::from_secs(1))]);
    pilot.look([0.0; 3], [0.0; 3], None);
    pilot.observe(Some(interest))?;

    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let north = began.elapsed().as_secs_f64();
        for (car, east) in cars.iter().zip([10.0, 2_000.0]) {
            car.set(&[("position", [east, north, 0.0].into())])?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for object in pilot.objects() {
        let (path, owner) = (&object.path, &object.owner);
        println!("{path} of {owner}: {:?}, {} updates", object.value("position"), object.updates);
    }
    Ok(())
}
