//! The true time lies inside of the bounds while a majority of the servers is honest, and the clock never runs backward.
#![cfg(test)]

mod delivery;
mod rig;

use paceline_time::ClockStatus;
use paceline_time::ntp::source::PollRange;
use rig::{MICRO, MILLI, Nature, Outcome, SECOND, Server, World};

const LAN: u64 = 50 * MICRO;

fn honest() -> Server {
    Server::new(Nature::Honest(5 * MICRO), LAN, LAN)
}

/// Runs for 10 min and checks every reading.
fn run(world: &mut World) -> Outcome {
    let mut outcome = Outcome::default();
    world.run(600 * SECOND, 20, &mut outcome);
    assert_eq!((outcome.outside, outcome.backward, outcome.accused), (0, 0, 0), "{outcome:?}");
    outcome
}

#[test]
fn one_server_on_a_short_path_gives_a_bound_of_its_delay() {
    let mut world = World::new(1, &[honest()], PollRange::OWN, 40_000_000);
    let outcome = run(&mut world);
    assert!(outcome.first.is_some_and(|first| first < 2 * SECOND), "{outcome:?}");
    let mut later = Outcome::default();
    world.run(60 * SECOND, 20, &mut later);
    assert!(later.widest < 500 * MICRO, "{later:?}");
    assert!(later.farthest < 200 * MICRO, "{later:?}");
}

#[test]
fn a_false_server_of_four_changes_nothing() {
    let natures = [
        Nature::Shifted(12_345 * 1_000_000),
        Nature::Shifted(-70_000),
        Nature::Shifted(40_000),
        Nature::Ramp(200_000_000),
        Nature::Random(500_000),
        Nature::Unsynchronised,
        Nature::NotReady,
        Nature::Zero,
        Nature::Huge,
        Nature::WrongOrigin,
        Nature::Replay,
        Nature::Garbage,
        Nature::Silent,
        Nature::Kiss(*b"DENY"),
        Nature::Kiss(*b"RATE"),
        Nature::Kiss(*b"\0\xff\n\""),
    ];
    for (seed, nature) in natures.into_iter().enumerate() {
        let mut servers = vec![honest(); 4];
        servers[seed % 4].nature = nature;
        let mut world = World::new(seed as u64, &servers, PollRange::OWN, -80_000_000);
        let outcome = run(&mut world);
        assert!(outcome.first.is_some_and(|first| first < 30 * SECOND), "{nature:?}: {outcome:?}");
        assert!(outcome.unknown < outcome.samples / 10, "{nature:?}: {outcome:?}");
        assert_eq!(outcome.epoch, 1, "{nature:?}");
    }
}

/// A server with an error of 4.3 ms on a path that shifts its offset by 0.11 ms.
fn distant() -> Server {
    let (there, back) = (4_300 * MICRO + 110 * MICRO, 4_300 * MICRO - 110 * MICRO);
    Server { jitter: 0, ..Server::new(Nature::Honest(MICRO), there, back) }
}

/// A server with an error of 10 µs.
fn close() -> Server {
    Server { jitter: 0, ..Server::new(Nature::Honest(MICRO), 9 * MICRO, 9 * MICRO) }
}

#[test]
fn honest_servers_of_unlike_quality_agree() {
    let liar = |off| Server::new(Nature::Shifted(off), LAN, LAN);
    for servers in [
        vec![close(), distant()],
        vec![close(), distant(), liar(9_000_000)],
        vec![close(), distant(), liar(-5_000_000_000)],
        vec![close(), distant(), distant(), liar(2_000_000)],
        vec![close(), close(), distant(), liar(2_000_000)],
    ] {
        let mut world = World::new(11, &servers, PollRange::OWN, 30_000_000);
        let outcome = run(&mut world);
        assert!(outcome.first.is_some_and(|first| first < 30 * SECOND), "{servers:?}: {outcome:?}");
        let mut later = Outcome::default();
        world.run(60 * SECOND, 20, &mut later);
        assert_eq!(later.unknown, 0, "{servers:?}: {later:?}");
        assert_eq!(world.service.page().status(), ClockStatus::Synchronised, "{servers:?}");
        assert!(later.farthest < 200 * MICRO, "{servers:?}: {later:?}");
    }
}

#[test]
fn servers_on_asymmetric_paths_agree_at_their_bounds() {
    // Each offset is off by nearly all of its error, in different directions.
    let one_way = |there, back| Server::new(Nature::Honest(MICRO), there, back);
    for servers in [
        vec![one_way(20 * MILLI, MICRO), one_way(MICRO, 20 * MILLI)],
        vec![one_way(20 * MILLI, MICRO), one_way(MICRO, 8 * MILLI), honest()],
        vec![one_way(30 * MILLI, MICRO), one_way(20 * MILLI, MICRO), one_way(MICRO, 5 * MILLI)],
    ] {
        let mut world = World::new(12, &servers, PollRange::OWN, -30_000_000);
        let outcome = run(&mut world);
        assert!(outcome.first.is_some_and(|first| first < 30 * SECOND), "{servers:?}: {outcome:?}");
        assert_eq!(world.service.page().status(), ClockStatus::Synchronised, "{servers:?}");
    }
}

#[test]
fn a_million_readings_with_random_networks_stay_inside() {
    let mut all = Outcome::default();
    let mut seed = 0;
    while all.samples < 1_000_000 {
        seed += 1;
        let mut world = rig::random(seed);
        world.run(900 * SECOND, 20, &mut all);
        assert_eq!((all.outside, all.backward, all.accused), (0, 0, 0), "seed {seed}: {all:?}");
    }
    let Outcome { samples, unknown, synchronised, .. } = all;
    println!(
        "{samples} readings of {seed} networks, {unknown} without a bound; {synchronised} s synchronised"
    );
    assert!(all.unknown < all.samples / 5, "{all:?}");
}

/// Run by `cargo xtask long`.
#[test]
#[ignore = "takes minutes"]
fn a_billion_readings_with_random_networks_stay_inside() {
    let mut all = Outcome::default();
    let mut seed = 1_000_000;
    while all.samples < 1_000_000_000 {
        seed += 1;
        let mut world = rig::random(seed);
        world.run(900 * SECOND, 2_000, &mut all);
        assert_eq!((all.outside, all.backward, all.accused), (0, 0, 0), "seed {seed}: {all:?}");
    }
    println!("{} readings, of which {} had no bound", all.samples, all.unknown);
}

#[test]
fn a_suspended_host_has_no_bound_until_the_servers_have_answered_again() {
    let mut world = World::new(7, &[honest(), honest(), honest()], PollRange::OWN, 0);
    run(&mut world);
    world.suspend(3_600 * SECOND);
    assert_eq!(
        world.service.page().read(world.raw.read(world.now), || 0).status,
        ClockStatus::Disrupted
    );
    let outcome = run(&mut world);
    assert!(outcome.unknown > 0);
    // It steps forward by the hour that it missed.
    assert_eq!(outcome.epoch, 2);
    assert!(world.service.page().read(world.raw.read(world.now), || 0).error() < MILLI);
}

#[test]
fn servers_that_stop_leave_a_bound_that_grows() {
    let mut world = World::new(8, &[honest(), honest()], PollRange::OWN, 25_000_000);
    run(&mut world);
    world.servers.iter_mut().for_each(|server| server.nature = Nature::Silent);
    run(&mut world);
    let reading = world.service.page().read(world.raw.read(world.now), || 0);
    assert_eq!(reading.status, ClockStatus::Holdover);
    assert!((8 * MILLI..100 * MILLI).contains(&reading.error()), "{reading:?}");
}

#[test]
fn a_snapshot_that_no_clock_shows_is_found_by_contradiction() {
    let mut world = World::new(9, &[honest(), honest(), honest()], PollRange::OWN, 0);
    run(&mut world);
    // All clocks of the host stand still for a minute.
    let raw = world.raw.read(world.now);
    world.now += 60 * SECOND;
    world.raw = rig::RawClock { at: world.now, raw, ..world.raw };
    world.wall_off = -60_000_000_000;
    let mut blind = Outcome::default();
    world.run(60 * SECOND, 20, &mut blind);
    assert_eq!(blind.backward, 0);
    let (_, cause) = world.service.disruptions();
    assert_eq!(cause.map(|cause| cause.name()), Some("contradiction"));
    run(&mut world);
}

#[test]
fn steps_of_the_system_clock_by_years_do_not_move_the_clock() {
    let mut world = World::new(10, &[honest(), honest(), honest()], PollRange::OWN, 0);
    run(&mut world);
    for off in [300_000_000 * 1_000_000_000_i64, -300_000_000 * 1_000_000_000, 5_000_000_000] {
        world.wall_off = off;
        world.observe();
        let outcome = run(&mut world);
        assert_eq!(outcome.epoch, 1);
        assert!(outcome.farthest < MILLI, "{outcome:?}");
    }
}

#[test]
fn the_rollover_of_2036_and_later_years_are_times_like_others() {
    // 2036-02-07T06:28:16 UTC minus 5 minutes, 2040, and 2100.
    for base in [2_085_978_496 - 300, 2_208_988_800, 4_102_444_800] {
        let servers = [honest(), honest(), honest()];
        let mut world = World::at(base * SECOND, base, &servers, PollRange::OWN, 0);
        let outcome = run(&mut world);
        assert_eq!(outcome.epoch, 1);
        assert!(outcome.first.is_some_and(|first| first < 5 * SECOND), "{base}: {outcome:?}");
    }
}

#[test]
fn an_announced_leap_second_has_no_bound_while_it_passes() {
    use paceline_time::ntp::packet::Leap;
    // 5 minutes before midnight.
    let midnight = (rig::BASE / SECOND / 86_400 + 1) * 86_400;
    let server = Server::new(Nature::Announces(Leap::Insert), LAN, LAN);
    let servers = [server, server, server];
    let mut world = World::at((midnight - 300) * SECOND, 3, &servers, PollRange::OWN, 0);
    let mut outcome = Outcome::default();
    world.run(300 * SECOND, 20, &mut outcome);
    assert_eq!((outcome.outside, outcome.backward), (0, 0), "{outcome:?}");
    world.leaps = 1;
    world.servers.iter_mut().for_each(|server| server.nature = Nature::Honest(MICRO));
    let outcome = run(&mut world);
    // It slews back over 1 s instead of running backward, and the bound says so.
    assert_eq!(outcome.epoch, 1, "{outcome:?}");
    assert!(outcome.widest > 500 * MILLI, "{outcome:?}");
}

#[test]
fn a_clock_that_was_ahead_slews_and_never_steps_back() {
    // The only server is 10 s ahead, and is then corrected.
    let mut world =
        World::new(4, &[Server::new(Nature::Shifted(10_000_000_000), LAN, LAN)], PollRange::OWN, 0);
    let mut lied = Outcome::default();
    world.run(60 * SECOND, 20, &mut lied);
    assert_eq!(lied.backward, 0);
    world.servers[0].nature = Nature::Honest(MICRO);
    world.run(30 * SECOND, 20, &mut lied);
    let outcome = run(&mut world);
    assert_eq!(outcome.epoch, 1);
    assert!(outcome.widest > 9 * SECOND, "{outcome:?}");
}
