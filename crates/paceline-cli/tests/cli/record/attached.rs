//! Attachments of plain programs: recorded with their samples, and replayed with them.

use crate::host::arg;
use crate::plain::{Pair, listen, put, wait_for};
use crate::record::support::messages;
use rustix::process::Signal;

#[test]
fn attachments_are_replayed_with_their_samples() {
    let pair = Pair::new();
    let rules = "[[import]]\nkey = \"robot/**\"\n[[export]]\ntag = \"again/**\"\n";
    let _robot = pair.start(&pair.robot, rules);
    let here = pair.session_at(1);
    let again = listen(&here, "again/**");
    let out = pair.robot.path("run.mcap");
    let record = pair.robot.start(&["record", "robot/**", "-o", arg(&out), "--json"]);
    let recorded = || {
        let bytes = std::fs::read(&out).unwrap_or_default();
        let all = if bytes.is_empty() { Vec::new() } else { messages(&bytes).0 };
        all.iter().filter(|message| message.channel.topic == "robot/imu").count()
    };
    let mut n = 0;
    wait_for("samples are recorded", || {
        put(&here, "robot/imu", n);
        n += 1;
        std::thread::sleep(std::time::Duration::from_millis(10));
        (recorded() >= 5).then_some(())
    });
    record.signal(Signal::INT);
    let record = record.ended();
    assert_eq!(record.code, Some(0), "{record:?}");
    let (all, _) = messages(&std::fs::read(&out).unwrap());
    let on = |topic: &str| all.iter().filter(|m| m.channel.topic == topic).collect::<Vec<_>>();
    let (samples, beside) = (on("robot/imu"), on("robot/imu/@attachment"));
    assert_eq!(samples.len(), beside.len());
    for (sample, attached) in samples.iter().zip(beside) {
        assert_eq!(attached.data, [7; 33]);
        assert_eq!(
            (attached.sequence, attached.log_time, attached.publish_time),
            (sample.sequence, sample.log_time, sample.publish_time)
        );
    }
    let judged = pair.robot.run(&["judge", arg(&out), "--json"]).json();
    assert_eq!(judged[0]["samples"], samples.len());
    let replay = ["replay", arg(&out), "--remap", "robot=again", "--speed", "max"];
    let replay = pair.robot.run(&replay);
    assert_eq!(replay.code, Some(0), "{replay:?}");
    for sample in &samples {
        let came = wait_for("it comes again", || again.try_recv().ok());
        assert_eq!(came.key_expr().as_str(), "again/imu");
        assert_eq!(came.payload().to_bytes().as_ref(), sample.data);
        assert_eq!(came.attachment().unwrap().to_bytes().as_ref(), [7; 33]);
    }
}
