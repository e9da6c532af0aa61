//! `paceline trust`: a private authority for the nodes of a network, and their certificates.

mod authority;
mod code;
mod exchange;
mod invite;
mod join;

use crate::args;
use anyhow::Context as _;
use authority::{Authority, write_key};
use code::Code;
use invite::Invitation;
use join::join;
use paceline_tool::exit;
use paceline_tool::host::this_host;
use paceline_tool::show;
use paceline_tool::stop::Stop;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr as _;

const AFTER: &str = "\
Examples:
  paceline trust init
  paceline trust issue robot --out robot-files
  paceline trust invite robot --listen 0.0.0.0:7601
  paceline trust revoke robot
  paceline node --policy robot-files/policy.toml --link name=radio,listen=quic/0.0.0.0:7600,\\
tls_cert=robot-files/robot.pem,tls_key=robot-files/robot.key,tls_ca=robot-files/ca.pem,capacity=20mbit

The authority's folder contains its key. Whoever has that key can add nodes to the network: keep it on one machine, and \
copy only the files of `issue` to the others. The file policy.toml of each node grants rights to the other nodes; at \
first it grants everything to all members.";

/// Options of `paceline trust`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Creates the authority of a network
    Init {
        /// The folder of the authority; default: ~/.config/paceline/trust
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Issues a certificate to a node
    Issue {
        /// The name of the node
        name: String,
        /// The folder of the authority; default: ~/.config/paceline/trust
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// The folder for the files of the node; default: the node's name
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// The days for which the certificate is valid
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = args::days)]
        days: u32,
    },
    /// Waits for another machine, and issues a certificate to it by a one-time code
    Invite {
        /// The name of the node
        name: String,
        /// The folder of the authority; default: ~/.config/paceline/trust
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// The address at which it waits, for up to 10 min
        #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:7601")]
        listen: String,
        /// The days for which the certificate is valid
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = args::days)]
        days: u32,
    },
    /// Creates a key on this machine and gets its certificate by the code of an invitation
    Join {
        /// The address of the inviting machine, HOST:PORT
        address: String,
        /// The code that it has printed
        #[arg(value_parser = Code::from_str)]
        code: Code,
        /// The folder for the files of the node; default: the node's name
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Revokes the certificates of a node
    Revoke {
        /// The name of the node
        name: String,
        /// The folder of the authority; default: ~/.config/paceline/trust
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Runs one action.
pub(crate) fn run(args: TrustArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Init { dir } => {
            let dir = folder(dir)?;
            Authority::create(&dir)?;
            show::line(&format!(
                "created an authority in {}; next: paceline trust issue NAME",
                dir.display()
            ))?;
        }
        Action::Issue { name, dir, out, days } => {
            check_name(&name)?;
            let authority = Authority::open(&folder(dir)?)?;
            let out = out.unwrap_or_else(|| PathBuf::from(&name));
            authority.issue(&name, days, &out)?;
            let out = absolute(&out)?;
            let shown = out.display();
            show::line(&format!(
                "issued to {name} for {days} days; copy the folder {shown} to the same path on its machine, and set in the \
                 configuration there:\n{}",
                settings(&name, &out)
            ))?;
        }
        Action::Invite { name, dir, listen, days } => {
            check_name(&name)?;
            let authority = Authority::open(&folder(dir)?)?;
            let invitation = Invitation::open(&listen, &name, days)?;
            show::line(&format!(
                "on the other machine, within {} minutes: paceline trust join {} {}",
                invite::WAIT.as_secs() / 60,
                reachable(&listen, invitation.port()?, this_host().as_deref()),
                invitation.code()
            ))?;
            let stop = Stop::on_signals()?;
            invitation.wait(&authority, || stop.requested())?;
            show::line(&format!("issued to {name} for {days} days"))?;
        }
        Action::Join { address, code, out } => {
            let (key, issued) = join(&address, &code)?;
            check_name(&issued.name)?;
            let out = out.unwrap_or_else(|| PathBuf::from(&issued.name));
            write_key(&out, &issued.name, &key)?;
            issued.write(&out)?;
            show::line(&format!(
                "joined as {}; set in the configuration of this node:\n{}",
                issued.name,
                settings(&issued.name, &absolute(&out)?)
            ))?;
        }
        Action::Revoke { name, dir } => {
            let file = Authority::open(&folder(dir)?)?.revoke(&name)?;
            show::line(&format!(
                "revoked {name}; copy {} over the tls_ca of every other node, which then closes its links within seconds",
                file.display()
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns an absolute path: the configuration accepts no others, because a service has another current folder.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("no absolute path of {}", path.display()))
}

/// Returns the address at which another machine reaches an invitation: the host of `listen`, or the name of this host if
/// that is no address of one host.
fn reachable(listen: &str, port: u16, this_host: Option<&str>) -> String {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let everywhere = host.is_empty() || ip.is_ok_and(|ip| ip.is_unspecified());
    let host = if everywhere { this_host.unwrap_or("HOST") } else { host };
    format!("{host}:{port}")
}

/// Returns the settings for the files of a node.
fn settings(name: &str, out: &Path) -> String {
    // The strings of TOML escape quotation marks and backslashes.
    let file = |end: &str| toml::Value::from(out.join(end).display().to_string()).to_string();
    format!(
        "policy = {}\n[[link]]\nlisten = [\"quic/0.0.0.0:7600\"] # or connect = [\"quic/HOST:7600\"]\n\
         tls_cert = {}\ntls_key = {}\ntls_ca = {}",
        file("policy.toml"),
        file(&format!("{name}.pem")),
        file(&format!("{name}.key")),
        file("ca.pem"),
    )
}

/// Returns the folder of the authority.
fn folder(dir: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = || named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")));
    dir.or_else(|| config().map(|config| config.join("paceline/trust")))
        .context("no folder for the authority: HOME is not set; give --dir DIR")
}

/// Refuses names that cannot be the name of a file.
fn check_name(name: &str) -> anyhow::Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let good = (1..=63).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('.')
        && Path::new(name).file_name().is_some();
    if good {
        return Ok(());
    }
    Err(exit::usage(format!(
        "name '{}': must be 1 to 63 letters, digits, '-', '_' or '.', such as robot",
        name.escape_debug()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_names_the_address_at_which_it_listens() {
        for (listen, shown) in [
            ("0.0.0.0:7601", "laptop:9"),
            ("[::]:0", "laptop:9"),
            (":7601", "laptop:9"),
            ("192.168.1.5:7601", "192.168.1.5:9"),
            ("[fe80::1]:0", "[fe80::1]:9"),
            ("robot.example:7601", "robot.example:9"),
        ] {
            assert_eq!(reachable(listen, 9, Some("laptop")), shown, "{listen}");
        }
        assert_eq!(reachable("0.0.0.0:1", 9, None), "HOST:9");
    }

    #[test]
    fn settings_are_valid_for_any_folder() {
        for folder in ["/etc/paceline/robot", "/a \"quoted\" \\ folder"] {
            let table: toml::Table = toml::from_str(&settings("robot", Path::new(folder))).unwrap();
            let policy = table["policy"].as_str().unwrap();
            assert_eq!(policy, format!("{folder}/policy.toml"));
        }
    }
}
