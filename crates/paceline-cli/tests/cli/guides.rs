//! The first commands of the guides "Connect two machines" and "Size a link", with two nodes on this host.

use crate::ffmpeg::shell;
use crate::host::{Host, LIMIT, Running, free_port};
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

fn guide(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the only line of the guide that begins with `begin` and contains `part`.
fn line<'a>(guide: &'a str, begin: &str, part: &str) -> &'a str {
    let mut lines = guide.lines().filter(|line| line.starts_with(begin) && line.contains(part));
    let found = lines.next().unwrap_or_else(|| panic!("the guide has no '{begin}' with {part}"));
    assert_eq!(lines.next(), None, "{found} is not the only one");
    found
}

#[test]
fn two_nodes_meet_and_a_request_is_sized_as_in_the_guides() {
    let host = Host::new();
    let (robot, operator) = (host.path("robot"), host.path("operator"));
    let (robot, operator) = (robot.display().to_string(), operator.display().to_string());
    let port = free_port().to_string();
    let here = |line: &str| {
        let line = line.replace("/tmp/robot", &robot).replace("/tmp/operator", &operator);
        line.replace(":7600", &format!(":{port}"))
    };
    // The program replaces the shell, so that it ends with the test.
    let replaced = format!("exec '{}' ", crate::BINARY);
    let start = |line: &str| {
        let line = here(line).replacen("paceline ", &replaced, 1);
        Running::gathered(shell(&host, &line).spawn().unwrap())
    };
    let done = |line: &str| {
        let output = shell(&host, &here(line)).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let connect = guide("connect-two-machines.md");
    let _robot = start(line(&connect, "paceline node --name robot", "--runtime-dir /tmp/robot"));
    let _operator =
        start(line(&connect, "paceline node --name operator", "--runtime-dir /tmp/operator"));
    let _camera = start(line(&connect, "paceline pub robot/camera", "--runtime-dir /tmp/robot"));
    let sub = line(&connect, "paceline sub robot/camera", "--runtime-dir /tmp/operator");
    done(&format!("{sub} --count 5 --timeout 20s"));
    let size = guide("size-a-link.md");
    let ask = line(&size, "paceline sub robot/camera", "--dry-run");
    // The rate of the camera is known a moment later.
    let until = Instant::now() + LIMIT;
    loop {
        let output =
            shell(&host, &here(&format!("{ask} --runtime-dir /tmp/operator"))).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("robot/camera of pub-camera: yes: within ") {
            assert!(text.contains(" over radio of robot (2 Mbit/s)\n"), "{text}");
            break;
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(PAUSE);
    }
    let _sub = start(&format!("{} --runtime-dir /tmp/operator", ask.replace(" --dry-run", "")));
    loop {
        let list = line(&size, "paceline ls --reservations", "");
        let table = done(&format!("{list} --runtime-dir /tmp/operator"));
        if table.contains("robot/camera")
            && table.contains("sub-camera")
            && table.contains(" 2 Mbit/s ")
        {
            break;
        }
        assert!(Instant::now() < until, "{table}");
        std::thread::sleep(PAUSE);
    }
}
