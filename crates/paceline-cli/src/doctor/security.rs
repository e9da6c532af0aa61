//! `paceline doctor --security`: the peers that a configuration lets in, and their rights.

use super::row::{Row, State, ok_if};
use super::running::{self, Running};
use crate::args::LinkSpec;
use crate::config::{self, Config};
use paceline::time::ClockConfig;
use paceline_http::HttpAddress;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The remaining life of a certificate below which it should be renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// Checks a configuration file, or this host's node: the running one in `runtime_dir`, else its configuration file.
pub(super) fn rows(
    file: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
) -> anyhow::Result<Vec<Row>> {
    let (first, config) = match (file, running::find(runtime_dir)) {
        (None, Some(Running { pid, config: Ok(config) })) => {
            (checked(&format!("the running node, process {pid}"), State::Ok, ""), config)
        }
        (None, Some(Running { pid, config: Err(why) })) => {
            let found = format!("not the running node, process {pid}: {why:#}");
            let fix = "check its settings yourself; paceline doctor --security --config FILE checks a file";
            (checked(&found, State::Lack, fix), from_file(config::find())?)
        }
        (None, None) => {
            let file = config::find();
            let shown =
                file.as_ref().map_or("the defaults".to_owned(), |it| it.display().to_string());
            let found = format!("{shown}; no node runs here");
            (checked(&found, State::Ok, ""), from_file(file)?)
        }
        (Some(file), _) => {
            (checked(&file.display().to_string(), State::Ok, ""), from_file(Some(file))?)
        }
    };
    let mut rows = vec![first, listeners(&config), encryption(&config)];
    rows.push(certificates(&config));
    rows.push(keys(&config));
    rows.extend(policy(&config));
    rows.push(plain(&config));
    rows.push(dashboard(&config));
    Ok(rows)
}

/// The subject of the other rows.
fn checked(found: &str, state: State, fix: &str) -> Row {
    Row::new("checked", found, "the running node, or a file", state, fix)
}

fn from_file(file: Option<PathBuf>) -> anyhow::Result<Config> {
    Ok(file.as_deref().map(config::load).transpose()?.unwrap_or_default())
}

/// Lists `found`, or says that there is nothing.
fn list(found: &[String], nothing: &str) -> String {
    if found.is_empty() { nothing.to_owned() } else { found.join(", ") }
}

fn named(number: usize, link: &LinkSpec) -> String {
    format!("'{}'", link.name(number))
}

fn listeners(config: &Config) -> Row {
    let open =
        (1..).zip(&config.links).filter(|(_, link)| link.insecure && !link.listen.is_empty());
    let open: Vec<String> = open.map(|(number, link)| named(number, link)).collect();
    let found = list(&open, "no link");
    Row::new(
        "open to anybody",
        &found,
        "no link",
        ok_if(open.is_empty()),
        "listen on quic/… with tls_cert, tls_key and tls_ca, and leave out insecure; paceline trust makes the files",
    )
}

fn encryption(config: &Config) -> Row {
    let open =
        (1..).zip(&config.links).filter(|(number, link)| !link.config(*number).is_encrypted());
    let open: Vec<String> = open.map(|(number, link)| named(number, link)).collect();
    Row::new(
        "not encrypted",
        &list(&open, "no link"),
        "no link",
        ok_if(open.is_empty()),
        "use quic/ endpoints between hosts; sub --require-encrypted refuses these links",
    )
}

fn certificates(config: &Config) -> Row {
    let mut found = Vec::new();
    let mut good = true;
    for cert in config.links.iter().filter_map(|link| link.tls.cert.as_ref()) {
        match paceline::certificate_end(cert) {
            Ok(end) => {
                let left = end.duration_since(SystemTime::now()).unwrap_or_default();
                good &= left > RENEW_BEFORE;
                found.push(format!("{} for {} days", cert.display(), left.as_secs() / 86_400));
            }
            Err(why) => {
                good = false;
                found.push(why);
            }
        }
    }
    found.sort();
    found.dedup();
    Row::new(
        "certificates",
        &list(&found, "none"),
        "valid for 30 days",
        ok_if(good),
        "paceline trust issue NAME --out DIR renews the certificate and keeps the key; no restart is needed",
    )
}

/// Returns true if only the owner can read a file.
fn is_private(file: &Path) -> Option<bool> {
    Some(std::fs::metadata(file).ok()?.permissions().mode() & 0o077 == 0)
}

fn keys(config: &Config) -> Row {
    let keys = config.links.iter().filter_map(|link| link.tls.key.as_deref());
    let clock = config.clock.as_ref().and_then(ClockConfig::key_file);
    let files: Vec<&Path> = keys.chain(config.token.as_deref()).chain(clock).collect();
    let open = files.iter().filter(|file| is_private(file) != Some(true));
    let mut open: Vec<String> = open.map(|file| file.display().to_string()).collect();
    open.sort();
    open.dedup();
    Row::new(
        "keys that others read",
        &list(&open, if files.is_empty() { "no key" } else { "none" }),
        "none",
        ok_if(open.is_empty()),
        &format!("chmod 600 {}", open.join(" ")),
    )
}

fn policy(config: &Config) -> Vec<Row> {
    let certified =
        config.links.iter().any(|link| link.tls.cert.is_some() && !link.listen.is_empty());
    let Some(file) = &config.policy else {
        let found = match certified {
            true => "none: peers that connect with a certificate have no rights",
            false => "none",
        };
        let open = config.links.iter().any(|link| link.insecure);
        return vec![Row::new(
            "policy",
            found,
            "a file, or no open link",
            ok_if(!open),
            "set policy = \"/etc/paceline/policy.toml\"; paceline trust init writes one",
        )];
    };
    let shown = file.display().to_string();
    let summary = match paceline::check_policy(file) {
        Ok(summary) => summary,
        Err(why) => {
            return vec![Row::new("policy", &shown, "valid", State::Lack, &why).needed()];
        }
    };
    let row = |what, good: bool, [wanted, other]: [&'static str; 2], fix: &str| {
        Row::new(what, if good { wanted } else { other }, wanted, ok_if(good), fix)
    };
    vec![
        Row::new("policy", &shown, "valid", State::Ok, ""),
        row(
            "every member publishes",
            !summary.members_publish_all,
            ["only on granted tags", "on every tag"],
            &format!("replace the rule for \"*\" in {shown} by rules for single names"),
        ),
        row(
            "peers without certificate",
            !summary.unknown_peers,
            ["have no rights", "have rights"],
            &format!("remove \"@unknown\" from {shown}"),
        ),
        row(
            "audit log",
            summary.audited,
            ["written", "none"],
            &format!("set audit = \"audit.jsonl\" at the beginning of {shown}"),
        ),
    ]
}

fn plain(config: &Config) -> Row {
    let open =
        config.plain.as_ref().is_some_and(|plain| plain.insecure && !plain.listen.is_empty());
    Row::new(
        "plain Zenoh programs",
        if open { "from anywhere, with the rights of the rules" } else { "none from other hosts" },
        "none from other hosts",
        ok_if(!open),
        "let [plain] listen on an address of this host, and leave out insecure",
    )
}

fn dashboard(config: &Config) -> Row {
    let found = match &config.http {
        None => "none".to_owned(),
        Some(HttpAddress::Unix(path)) => format!("unix:{}, for this user", path.display()),
        Some(address @ HttpAddress::Tcp(_)) if config.http_files.tokens.is_some() => {
            format!("{address}, with tokens")
        }
        Some(address @ HttpAddress::Tcp(_)) => format!("{address}, for every user of this host"),
    };
    // Tokens separate the users of this host as well.
    let shared =
        matches!(config.http, Some(HttpAddress::Tcp(_))) && config.http_files.tokens.is_none();
    Row::new(
        "dashboard",
        &found,
        "none, a unix socket, or tokens",
        ok_if(!shared),
        "on a host with several users, set http = \"unix:/run/paceline/http.sock\", or http_tokens",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(text: &str) -> Vec<(&'static str, State, Option<String>)> {
        let dir = std::env::temp_dir().join(format!("pl-security-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join(format!("{}.toml", text.len()));
        std::fs::write(&file, text.replace("DIR", &dir.display().to_string())).unwrap();
        let open = "[[rule]]\npeers = [\"*\", \"@unknown\"]\npublish = [\"**\"]\n";
        std::fs::write(dir.join("open.toml"), open).unwrap();
        let narrow = "audit = \"a.jsonl\"\n[[rule]]\npeers = [\"a\"]\npublish = [\"**\"]\n";
        std::fs::write(dir.join("narrow.toml"), narrow).unwrap();
        let rows = rows(Some(file), None).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        rows.into_iter().map(|row| (row.what, row.state, row.fix)).collect()
    }

    fn lacks(text: &str) -> Vec<&'static str> {
        let lacks = states(text).into_iter().filter(|(_, state, _)| *state == State::Lack);
        lacks.map(|(what, _, fix)| fix.map(|_| what).unwrap()).collect()
    }

    #[test]
    fn each_exposure_has_a_row_and_a_fix() {
        assert_eq!(lacks(""), Vec::<&str>::new());
        assert_eq!(lacks("[[link]]\nlisten = [\"tcp/127.0.0.1:1\"]\n"), Vec::<&str>::new());
        let open = "[[link]]\nlisten = [\"tcp/0.0.0.0:7600\"]\ninsecure = true\n";
        assert_eq!(lacks(open), ["open to anybody", "not encrypted", "policy"]);
        let open = format!("policy = \"DIR/open.toml\"\n{open}");
        assert_eq!(
            lacks(&open),
            [
                "open to anybody",
                "not encrypted",
                "every member publishes",
                "peers without certificate",
                "audit log"
            ]
        );
        let narrow = "policy = \"DIR/narrow.toml\"\nhttp = \"unix:/run/x.sock\"\n";
        assert_eq!(lacks(narrow), Vec::<&str>::new());
        assert_eq!(lacks("http = \"127.0.0.1:8470\"\n"), ["dashboard"]);
        let tls = "[[link]]\nlisten = [\"quic/0.0.0.0:7600\"]\ntls_cert = \"/no/a.pem\"\n\
                   tls_key = \"/no/a.key\"\ntls_ca = \"/no/ca.pem\"\n";
        assert_eq!(lacks(tls), ["certificates", "keys that others read"]);
        let plain = "[plain]\nlisten = [\"tcp/0.0.0.0:7447\"]\ninsecure = true\n";
        assert_eq!(lacks(plain), ["plain Zenoh programs"]);
    }
}
