//! A system-wide node that serves several users of its host, each with the rights of its account.

use crate::host::{Ended, Running};
use std::fs::{Permissions, create_dir, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Accounts that every Debian has.
const SERVICE: u32 = 1;
const OPERATOR: u32 = 2;
const GUEST: u32 = 65_534;

/// A folder of root with the command, and the folder of the node in it.
struct System {
    dir: PathBuf,
}

impl System {
    /// Returns `None` if this process may not act as other users.
    fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: {test} (needs root)");
            return None;
        }
        let dir = PathBuf::from(format!("/run/plu-{}-{test:.8}", std::process::id()));
        let system = Self { dir };
        for folder in [&system.dir, &system.node()] {
            create_dir(folder).unwrap();
            set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        chown(system.node(), Some(SERVICE), Some(SERVICE)).unwrap();
        // The build folder may be closed to other users. Another process copies the file: a
        // descriptor of this process that writes it could pass to the child of another test,
        // and the file cannot be executed until that child has closed it.
        let copied =
            Command::new("cp").arg(crate::BINARY).arg(system.dir.join("paceline")).status();
        assert!(copied.unwrap().success());
        Some(system)
    }

    fn node(&self) -> PathBuf {
        self.dir.join("node")
    }

    fn start(&self, user: u32, args: &[&str]) -> Running {
        let mut command = Command::new(self.dir.join("paceline"));
        command.args(args).uid(user).gid(user).current_dir("/").env_clear();
        command.env("PACELINE_RUNTIME_DIR", self.node()).env("HOME", "/nonexistent");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::gathered(command.spawn().unwrap())
    }

    /// Starts the node, with this policy if there is one.
    fn serve(&self, policy: Option<&str>) -> Running {
        let file = self.node().join("policy.toml");
        let file = file.to_str().unwrap();
        let mut args = vec!["node"];
        if let Some(policy) = policy {
            std::fs::write(file, policy).unwrap();
            args.extend(["--policy", file]);
        }
        let node = self.start(SERVICE, &args);
        crate::plain::wait_for("the node listens", || {
            self.node().join("node.sock").exists().then_some(())
        });
        node
    }

    fn run(&self, user: u32, args: &[&str]) -> Ended {
        self.start(user, args).ended()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn users_of_a_host_have_the_rights_of_their_accounts() {
    let Some(system) = System::new("users_of_a_host_have_the_rights_of_their_accounts") else {
        return;
    };
    let policy = "audit = 'audit.jsonl'\n\
         [[rule]]\npeers = ['@user:bin']\npublish = ['cmd']\nsubscribe = ['cam']\nobserve = true\n\
         [[rule]]\npeers = ['@user:*']\nsubscribe = ['cmd']\npublish = ['cam']\n";
    let _node = system.serve(Some(policy));
    let _camera = system.start(GUEST, &["pub", "cam", "--test-card", "160x120@20"]);
    let seen = system.run(OPERATOR, &["sub", "cam", "--count", "3", "--timeout", "20s", "--json"]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let refused = system.run(GUEST, &["sub", "cam", "--count", "1", "--timeout", "4s"]);
    refused.said(3, "the right 'subscribe' is missing for");
    let audit = std::fs::read_to_string(system.node().join("audit.jsonl")).unwrap();
    for part in ["\"user\":\"bin\"", "\"user\":\"nobody\"", "\"denied\""] {
        assert!(audit.contains(part), "{part}: {audit}");
    }
}

#[test]
fn without_a_policy_other_users_are_refused_with_a_reason() {
    let Some(system) = System::new("without_a_policy_other_users_are_refused_with_a_reason") else {
        return;
    };
    let mut node = system.serve(None);
    let refused = system.run(GUEST, &["sub", "cam", "--count", "1", "--timeout", "4s"]);
    refused
        .said(3, "it gives user nobody no rights: it has no policy, which could name @user:nobody");
    let own = system.run(SERVICE, &["ls"]);
    assert_eq!(own.code, Some(0), "{own:?}");
    node.signal(rustix::process::Signal::TERM);
    let node = node.child().wait().unwrap();
    assert!(node.success());
    assert!(!system.node().join("node.sock").exists(), "the socket is removed");
}

#[test]
fn a_loopback_port_serves_the_users_that_the_policy_names() {
    let Some(system) = System::new("loopback_a_port_serves_the_users_that_the_policy_names") else {
        return;
    };
    let port = crate::host::free_port();
    let listen = format!("name=port,listen=tcp/127.0.0.1:{port}");
    let connect = format!("name=port,connect=tcp/127.0.0.1:{port}");
    let file = system.node().join("policy.toml");
    std::fs::write(&file, "[[rule]]\npeers = ['@user:bin']\nsubscribe = ['cam']\n").unwrap();
    let file = file.to_str().unwrap();
    let _camera = system.start(
        SERVICE,
        &["pub", "cam", "--test-card", "160x120@20", "--link", &listen, "--policy", file],
    );
    let sub = |user| {
        let dir = system.dir.join(format!("user{user}"));
        create_dir(&dir).unwrap();
        chown(&dir, Some(user), Some(user)).unwrap();
        let dir = dir.to_str().unwrap();
        let args = ["sub", "cam", "--count", "1", "--timeout", "6s", "--link", &connect];
        system.run(user, &[&args[..], &["--runtime-dir", dir]].concat())
    };
    assert_eq!(sub(OPERATOR).code, Some(0));
    sub(GUEST).said(3, "the right 'subscribe' is missing for");
}
