//! Authorities, certificates, policies and tokens on the command line.

use crate::host::{Ended, Host, LIMIT, Running, free_port};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// A folder with an authority and the files of two nodes.
pub(crate) struct Network {
    host: Host,
    dir: PathBuf,
}

impl Network {
    pub(crate) fn new() -> Self {
        let host = Host::new();
        let dir = host.path("trust");
        let network = Self { host, dir };
        assert_eq!(network.trust(&["init"]).code, Some(0));
        for name in ["robot", "operator"] {
            let out = network.dir.join(name).display().to_string();
            let issued = network.trust(&["issue", name, "--out", &out]);
            assert!(issued.text().contains("policy = "), "{issued:?}");
        }
        network
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn trust(&self, args: &[&str]) -> Ended {
        let dir = self.dir.display().to_string();
        self.host.run(&[&["trust"], args, &["--dir", &dir]].concat())
    }

    fn link(&self, name: &str, end: &str) -> String {
        let file = |end: &str| self.dir.join(name).join(end).display().to_string();
        format!(
            "name=radio,{end},capacity=20mbit,tls_cert={},tls_key={},tls_ca={}",
            file(&format!("{name}.pem")),
            file(&format!("{name}.key")),
            file("ca.pem")
        )
    }

    /// Returns the links with which the robot listens and the operator connects.
    fn links(&self) -> [String; 2] {
        let port = free_port();
        [("robot", "listen"), ("operator", "connect")]
            .map(|(name, end)| self.link(name, &format!("{end}=quic/127.0.0.1:{port}")))
    }

    fn policy(&self, name: &str) -> String {
        self.dir.join(name).join("policy.toml").display().to_string()
    }
}

fn write(file: impl AsRef<Path>, text: &str) {
    std::fs::write(file, text).unwrap();
}

#[test]
fn members_meet_with_the_files_of_trust_and_a_narrow_policy_names_the_missing_right() {
    let network = Network::new();
    let (robot, operator) = (Host::new(), Host::new());
    let [listen, connect] = network.links();
    let policy = network.policy("robot");
    let camera =
        ["pub", "cam", "--test-card", "160x120@20", "--link", &listen, "--policy", &policy];
    let _camera = robot.start(&camera);
    let sub = ["sub", "cam", "--link", &connect, "--count", "3", "--timeout", "20s", "--json"];
    let seen = operator.run(&sub);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    write(&policy, "[[rule]]\npeers = [\"operator\"]\nsubscribe = [\"map\"]\nobserve = true\n");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let refused =
        operator.run(&["sub", "cam", "--link", &connect, "--count", "1", "--timeout", "4s"]);
    println!("{}", refused.stderr);
    refused.said(3, "the policy of 'robot' does not allow it: the right 'subscribe' is missing");
    // The text stands once, and names stand instead of ids.
    let all = format!("{}{}", refused.text(), refused.stderr);
    assert_eq!(all.matches("the right 'subscribe' is missing").count(), 1, "{all}");
    assert!(!all.contains("4294967295") && all.contains("robot refused"), "{all}");
    for json in [&[][..], &["--json"]] {
        let ask = ["sub", "cam", "--link", &connect, "--within", "200ms", "--dry-run"];
        let asked = operator.run(&[&ask[..], json].concat());
        assert_eq!(asked.code, Some(3), "{asked:?}");
        let text = asked.text();
        assert!(text.contains("the right 'subscribe' is missing for 'operator'"), "{asked:?}");
        assert!(!text.contains("4294967295") && !text.contains("no publisher"), "{asked:?}");
    }
    let watch = ["watch", "cam", "--hz", "--link", &connect, "--duration", "6s"];
    operator.run(&watch).said(3, "refused: the policy of 'robot' does not allow it");
}

#[test]
fn commands_next_to_a_daemon_have_its_rights() {
    let network = Network::new();
    let (robot, operator) = (Host::new(), Host::new());
    let [listen, connect] = network.links();
    let (at_robot, at_operator) = (network.policy("robot"), network.policy("operator"));
    write(&at_robot, "[[rule]]\npeers = [\"operator\"]\nsubscribe = [\"cam\"]\nobserve = true\n");
    write(&at_operator, "[[rule]]\npeers = [\"robot\"]\npublish = [\"**\"]\nobserve = true\n");
    let _robot = robot.start(&["node", "--link", &listen, "--policy", &at_robot]);
    let _operator = operator.start(&["node", "--link", &connect, "--policy", &at_operator]);
    for host in [&robot, &operator] {
        let until = std::time::Instant::now() + LIMIT;
        while !host.path("node.sock").exists() {
            assert!(std::time::Instant::now() < until, "the node listens");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    let _camera = robot.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let _other = robot.start(&["pub", "secret", "--test-card", "160x120@20"]);
    let seen = operator.run(&["sub", "cam", "--count", "3", "--timeout", "20s", "--json"]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let refused = operator.run(&["sub", "secret", "--count", "1", "--timeout", "3s"]);
    refused.said(3, "the right 'subscribe' is missing for 'operator'");
}

#[test]
fn a_member_without_a_policy_at_the_other_end_is_refused_and_notified() {
    let network = Network::new();
    let (robot, operator) = (Host::new(), Host::new());
    let [listen, connect] = network.links();
    let _camera = robot.start(&["pub", "cam", "--test-card", "160x120@20", "--link", &listen]);
    let refused =
        operator.run(&["sub", "cam", "--link", &connect, "--count", "1", "--timeout", "4s"]);
    println!("{}", refused.stderr);
    refused.said(3, "the policy of 'robot' does not allow it");
}

#[test]
fn silent_strangers_do_not_delay_the_machine_that_has_the_code() {
    let network = Network::new();
    let (dir, port) = (network.dir.display().to_string(), free_port());
    let listen = format!("127.0.0.1:{port}");
    let invite = ["trust", "invite", "arm", "--dir", &dir, "--listen", &listen];
    let mut inviting = Running::unread(network.host.command(&invite).spawn().unwrap());
    // The printed command is used as it is.
    let printed = inviting.first_line();
    let (_, command) = printed.trim().split_once(": paceline ").unwrap();
    let command: Vec<&str> = command.split(' ').collect();
    let ["trust", "join", address, code] = command[..] else { panic!("{printed}") };
    assert_eq!(address, listen);
    let _strangers: Vec<_> = (0..100).map(|_| TcpStream::connect(&listen).unwrap()).collect();
    let arm = Host::new();
    let wrong = code.replace(|letter: char| letter != '-', "a");
    arm.run(&["trust", "join", &listen, &wrong]).said(1, "its key is not in the code");
    let begun = std::time::Instant::now();
    let joined = arm.run(&command);
    assert!(joined.code == Some(0) && begun.elapsed() < LIMIT / 8, "{joined:?}");
    starts_with_printed_settings(&arm, &joined);
    assert!(inviting.status().success() && arm.path("arm/arm.pem").exists());
    // The next one does not find it.
    arm.run(&command).said(1, "does paceline trust invite wait there?");
}

/// Starts a node with the settings that a command has printed after its first line.
fn starts_with_printed_settings(host: &Host, printed: &Ended) {
    let text = printed.text();
    let (_, settings) = text.split_once('\n').unwrap();
    let port = format!("127.0.0.1:{}", free_port());
    let file = host.path("printed.toml");
    write(&file, &settings.replace("0.0.0.0:7600", &port));
    let node = host.start(&["node", "--config", &file.display().to_string()]);
    let until = std::time::Instant::now() + LIMIT;
    while !host.path("node.sock").exists() && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let list = host.run(&["ls"]).text();
    assert!(list.contains("NODES"), "{settings}\n{list}");
    node.signal(rustix::process::Signal::TERM);
    let ended = node.ended();
    assert_eq!(ended.code, Some(0), "{settings}\n{ended:?}");
}

#[test]
fn the_printed_settings_of_an_issued_certificate_start_a_node() {
    let network = Network::new();
    // The folder is relative, as by default.
    let issued = network.trust(&["issue", "gate"]);
    assert_eq!(issued.code, Some(0), "{issued:?}");
    starts_with_printed_settings(&network.host, &issued);
}

#[test]
fn wrong_policies_and_names_are_usage_errors() {
    let network = Network::new();
    let policy = network.policy("robot");
    write(&policy, "[[rule]]\npeers = [\"operator\"]\nsubscribe = [\"a/b*\"]\n");
    let host = Host::new();
    host.run(&["node", "--policy", &policy]).said(2, "rule 1: subscribe: ");
    host.run(&["node", "--policy", "/nowhere.toml"]).said(2, "policy /nowhere.toml: No such file");
    host.run(&["node", "--token", "/nowhere"]).said(2, "token /nowhere: No such file");
    let link = network.link("robot", "listen=quic/127.0.0.1:1");
    let named = host.run(&["node", "--name", "gate", "--link", &link]);
    named.said(1, "the certificate of its links is for 'robot'");
}
