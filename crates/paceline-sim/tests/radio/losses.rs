//! The share that is reserved for repairs follows the loss of a measured link.

use super::stage::Stage;
use super::traces;
use paceline_proto::Carrier;
use paceline_sim::impair::Loss;

#[test]
fn it_is_small_without_loss_and_a_tenth_with_much() {
    let mut last = 0;
    for loss in [0, 5, 20, 60] {
        let mut stage = Stage::new(3, Carrier::Datagrams, 20_000, 60);
        stage.loss = Loss::Random { ppm: loss * 1_000 };
        stage.drive(&traces::steady(20_000, 30));
        let (share, steered) = (stage.repair_share(), stage.world.counted(stage.steered));
        println!(
            "loss {loss} ‰: {share} ‰ for repairs, {} of {} late",
            steered.late, steered.samples
        );
        let least = 60 + u64::from(loss) * 5 / 2;
        let most = 70 + u64::from(loss) * 6;
        assert!((least.min(100)..=most.min(100)).contains(&share), "{share}");
        assert!(share >= last, "{share} after {last}");
        last = share;
    }
}

#[test]
fn it_returns_with_the_loss() {
    let mut stage = Stage::new(5, Carrier::Datagrams, 20_000, 120);
    stage.drive(&traces::steady(20_000, 20));
    let quiet = stage.repair_share();
    stage.loss = Loss::Random { ppm: 50_000 };
    stage.drive(&traces::steady(20_000, 5));
    let lossy = stage.repair_share();
    stage.loss = Loss::None;
    stage.drive(&traces::steady(20_000, 25));
    let again = stage.repair_share();
    println!("{quiet}, {lossy}, {again}");
    assert!(quiet <= 70 && lossy == 100 && again <= 70, "{quiet}, {lossy}, {again}");
}

#[test]
fn a_carrier_that_keeps_order_has_none() {
    let mut stage = Stage::new(1, Carrier::Ordered, 20_000, 30);
    stage.drive(&traces::steady(20_000, 15));
    assert_eq!(stage.repair_share(), 0);
}
