//! `paceline node --print-unit`: a systemd unit that runs the node as a service.

use crate::again;
use paceline_tool::show;
use std::ffi::OsString;
use std::process::ExitCode;

/// Install path that every user can execute.
const INSTALLED: &str = "/usr/local/bin/paceline";
/// Folders that the unit hides from the service.
const HIDDEN: [&str; 5] = ["/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"];

/// Prints the unit for the current executable.
pub(super) fn print() -> anyhow::Result<ExitCode> {
    let words = again::words().unwrap_or_else(|_| vec![INSTALLED.into()]);
    let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if HIDDEN.iter().any(|folder| program.starts_with(folder)) {
        show::text(&unit(&quoted(&[INSTALLED.into()])))?;
        show::note(&format!(
            "the service cannot run {program}, in a home folder: sudo install {program} {INSTALLED}"
        ));
    } else {
        show::text(&unit(&quoted(&words)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the unit. It grants access to sockets, but to no devices and no other folders.
fn unit(program: &str) -> String {
    format!(
        "\
[Unit]
Description=Paceline node
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={program} node
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
TimeoutStopSec=10

# A link must wake up at its deadlines, whatever the load of the host. If other programs use every core, enable
# the two lines below for earlier wake-ups. Picture scaling then also runs before other programs.
Nice=-10
#CPUSchedulingPolicy=rr
#CPUSchedulingPriority=10

# Processes join this node with PACELINE_RUNTIME_DIR=/run/paceline: those of this user with all rights, those of
# other users with the rights that the policy grants to @user:NAME.
DynamicUser=yes
User=paceline
RuntimeDirectory=paceline
RuntimeDirectoryMode=0755
Environment=PACELINE_RUNTIME_DIR=%t/paceline
LimitNOFILE=65536

NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
UMask=0077

[Install]
WantedBy=multi-user.target
"
    )
}

/// Returns the words as systemd reads them, each in quotation marks.
fn quoted(words: &[OsString]) -> String {
    let quoted: Vec<String> =
        words.iter().map(|word| format!("\"{}\"", word.to_string_lossy())).collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_runs_the_node() {
        let unit = unit(&quoted(&["/opt/paceline".into()]));
        for line in [
            "Type=notify",
            "ExecStart=\"/opt/paceline\" node",
            "ExecReload=/bin/kill -HUP $MAINPID",
            "Nice=-10",
            "RuntimeDirectory=paceline",
            "Environment=PACELINE_RUNTIME_DIR=%t/paceline",
        ] {
            assert!(unit.lines().any(|has| has == line), "{line}");
        }
    }
}
