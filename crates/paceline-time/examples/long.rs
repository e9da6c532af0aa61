//! Reads clocks in random networks in virtual time until a number of readings is reached, and stops at the first reading
//! whose bounds do not contain the true time, or that is smaller than one before: `long READINGS [SEED]`.

#[path = "../tests/truth/rig.rs"]
mod rig;

use rig::{Outcome, SECOND};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let readings = arguments.next().and_then(Result::ok);
    let Some(readings) = readings.filter(|readings| *readings > 0) else {
        eprintln!("READINGS must be a whole number above 0, such as 1000000000");
        return ExitCode::from(2);
    };
    let mut seed = arguments.next().and_then(Result::ok).unwrap_or(1);
    let mut all = Outcome::default();
    while all.samples < readings {
        let mut world = rig::random(seed);
        world.run(900 * SECOND, 2_000, &mut all);
        if all.outside + all.backward > 0 {
            println!("seed {seed}: {} outside, {} backward", all.outside, all.backward);
            return ExitCode::FAILURE;
        }
        seed += 1;
    }
    let Outcome { samples, unknown, .. } = all;
    println!("{samples} readings inside their bounds, none backward; {unknown} of them unknown");
    ExitCode::SUCCESS
}
