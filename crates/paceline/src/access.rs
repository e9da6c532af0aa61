//! The rights of other nodes: the policy file, tokens, and the audit log.
//!
//! The file grants rights to the peers that it names ([`paceline_proto::rights`]). It may also name identity
//! providers, whose tokens grant further rights to single nodes, and an audit log.

mod audit;
mod rule;
mod token;

pub(crate) use audit::{Audit, Entry};
use paceline_proto::Tag;
use paceline_proto::rights::{AccessPolicy, AccessRule, PeerName, RESERVED_NAMES, Right, Rights};
use rule::{Fields, rule, texts};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
pub(crate) use token::Bearer;
use token::Issuer;

/// The largest policy file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

type Table = Map<String, Value>;

/// The content of a policy file.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) policy: AccessPolicy,
    issuers: Vec<Issuer>,
    pub(crate) audit: Option<PathBuf>,
}

impl Access {
    /// Reads a policy file, and the keys of the identity providers that it names.
    ///
    /// # Errors
    /// Returns a description with the file, the field, the value and a remedy.
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let text = read_text(file)?;
        let dir = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, dir).map_err(|what| format!("policy {}: {what}", file.display()))
    }

    fn parse(text: &str, dir: &Path) -> Result<Self, String> {
        let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let table = serde_json::to_value(table).map_err(|error| error.to_string())?;
        let Value::Object(mut table) = table else { return Err("must be a table".to_owned()) };
        let mut rules = Vec::new();
        for (number, fields) in tables(&mut table, "rule")? {
            let read = access_rule(Fields::new(fields));
            rules.push(read.map_err(|what| format!("rule {number}: {what}"))?);
        }
        let mut issuers = Vec::new();
        for (number, fields) in tables(&mut table, "issuer")? {
            let issuer = Issuer::read(Fields::new(fields), dir);
            issuers.push(issuer.map_err(|what| format!("issuer {number}: {what}"))?);
        }
        let audit = match table.remove("audit") {
            None => None,
            Some(Value::String(file)) if !file.is_empty() => Some(dir.join(file)),
            Some(other) => {
                return Err(format!("audit = {other}: must be a file, such as \"audit.jsonl\""));
            }
        };
        match table.keys().next() {
            Some(unknown) => {
                Err(format!("{unknown} is unknown; it has [[rule]], [[issuer]] and audit"))
            }
            None => Ok(Self { policy: AccessPolicy { rules }, issuers, audit }),
        }
    }

    /// Returns the rights that a token grants to the node `bearer`, and the time at which they end.
    ///
    /// # Errors
    /// Returns the reason for a refused token.
    pub(crate) fn verify(
        &self,
        token: &[u8],
        bearer: &Bearer<'_>,
    ) -> Result<(Rights, SystemTime), String> {
        token::verify(&self.issuers, token, bearer)
    }
}

/// The points of a policy that an operator should know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PolicySummary {
    /// Every member may publish on every tag.
    pub members_publish_all: bool,
    /// Peers without a certificate have rights.
    pub unknown_peers: bool,
    /// There is an audit log.
    pub audited: bool,
}

/// Checks a policy file.
///
/// # Errors
/// Returns a description with the file, the field, the value and a remedy.
pub fn check_policy(file: &Path) -> Result<PolicySummary, String> {
    let Access { policy, audit, .. } = Access::read(file)?;
    let any = Tag::new("a/tag/of/no/program").map_err(|error| error.to_string())?;
    let member = policy.rights_of_name("a member of no rule but *");
    Ok(PolicySummary {
        members_publish_all: member.grants(Right::Publish, &any),
        unknown_peers: !policy.rights_of(&PeerName::Unknown).is_empty(),
        audited: audit.is_some(),
    })
}

fn access_rule(mut fields: Fields) -> Result<AccessRule, String> {
    let peers = fields.take("peers", texts)?.unwrap_or_default();
    if peers.is_empty() {
        return Err("peers is missing: name the peers, such as peers = [\"robot-*\"]".to_owned());
    }
    // A name that ends with a colon is the beginning of names.
    let is_known = |peer: &str| {
        RESERVED_NAMES.iter().any(|name| match peer.strip_prefix(name) {
            Some(rest) => rest.is_empty() != name.ends_with(':'),
            None => false,
        })
    };
    if let Some(unknown) = peers.iter().find(|peer| peer.starts_with('@') && !is_known(peer)) {
        return Err(format!(
            "peers: {unknown} is unknown; it must be one of {}NAME",
            RESERVED_NAMES.join(", ")
        ));
    }
    Ok(AccessRule { peers, rights: Arc::new(rule(fields)?) })
}

fn read_text(file: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("policy {}: {error}", file.display());
    let size = std::fs::metadata(file).map_err(cannot)?.len();
    if size > FILE_BYTES_MAX {
        let file = file.display();
        return Err(format!("policy {file}: {size} bytes; must be at most {FILE_BYTES_MAX}"));
    }
    std::fs::read_to_string(file).map_err(cannot)
}

/// Takes the tables of a list, with their numbers from 1.
fn tables(table: &mut Table, name: &str) -> Result<Vec<(usize, Table)>, String> {
    let wrong = || format!("{name} must be written as [[{name}]]");
    let Some(list) = table.remove(name) else { return Ok(Vec::new()) };
    let Value::Array(list) = list else { return Err(wrong()) };
    let each = |(index, value)| match value {
        Value::Object(fields) => Ok((index + 1, fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(wrong())
        }
    };
    list.into_iter().enumerate().map(each).collect()
}

/// A policy file that is read again after a change.
#[derive(Debug)]
pub(crate) struct AccessFile {
    file: PathBuf,
    changed: Option<SystemTime>,
    failed: Option<String>,
    pub(crate) access: Access,
}

impl AccessFile {
    /// Reads the file.
    ///
    /// # Errors
    /// See [`Access::read`].
    pub(crate) fn open(file: &Path) -> Result<Self, String> {
        let changed = changed(file);
        let access = Access::read(file)?;
        Ok(Self { file: file.to_owned(), changed, failed: None, access })
    }

    /// Reads the file again if it has changed. Returns true if its content is new. After an error the previous
    /// content stays in force, and a warning is logged.
    pub(crate) fn reload(&mut self) -> bool {
        let now = changed(&self.file);
        if now == self.changed && self.failed.is_none() {
            return false;
        }
        match Access::read(&self.file) {
            Ok(access) => {
                (self.access, self.changed, self.failed) = (access, now, None);
                true
            }
            Err(why) => {
                if self.failed.as_ref() != Some(&why) {
                    tracing::warn!("{why}; the previous rules stay in force");
                    self.failed = Some(why);
                }
                false
            }
        }
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|it| it.modified()).ok()
}

#[cfg(test)]
#[path = "access/tests.rs"]
mod tests;
