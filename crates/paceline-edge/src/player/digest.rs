//! Digest authentication (RFC 2617), with MD5: the only one that players of cameras have in common.

use super::message::PlayerRequest;
use crate::address::Login;
use md5::{Digest as _, Md5};
use std::fmt::Write as _;

/// The name of the server in the challenge.
const REALM: &str = "Paceline";

/// The challenge of a connection: its password is checked without being sent.
///
/// The nonce is used for one connection, so a login that somebody recorded does not open another one.
#[derive(Clone)]
pub struct Challenge {
    login: Login,
    nonce: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginCheck {
    /// The login is right.
    Right,
    /// The request has none, or one for another challenge.
    Missing,
    /// The name or the password is wrong.
    Wrong,
}

impl Challenge {
    /// Returns the challenge of a connection. `nonce` are random bytes.
    #[must_use]
    pub fn new(login: Login, nonce: [u8; 16]) -> Self {
        Self { login, nonce: hex(&nonce) }
    }

    /// Returns the value of `WWW-Authenticate`.
    pub(super) fn header(&self) -> String {
        format!("Digest realm=\"{REALM}\", nonce=\"{}\", algorithm=MD5", self.nonce)
    }

    /// Checks the login of a request.
    #[must_use]
    pub fn check(&self, request: &PlayerRequest) -> LoginCheck {
        let Some(header) = &request.authorization else { return LoginCheck::Missing };
        let Some(fields) = fields(header) else { return LoginCheck::Wrong };
        let field = |name: &str| {
            let mut named = fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.next().map(|(_, value)| value.as_str())
        };
        if field("nonce") != Some(&self.nonce) {
            return LoginCheck::Missing;
        }
        let (Some(user), Some(uri), Some(response)) =
            (field("username"), field("uri"), field("response"))
        else {
            return LoginCheck::Wrong;
        };
        let secret = hash(&[self.login.user(), REALM, self.login.password()]);
        let request = hash(&[&request.word, uri]);
        let wanted = match (field("qop"), field("nc"), field("cnonce")) {
            (Some(qop @ "auth"), Some(count), Some(own)) => {
                hash(&[&secret, &self.nonce, count, own, qop, &request])
            }
            _ => hash(&[&secret, &self.nonce, &request]),
        };
        let same = is_same(wanted.as_bytes(), response.to_ascii_lowercase().as_bytes());
        // The name is part of the hash; a wrong one is wrong in any case.
        if same && user == self.login.user() { LoginCheck::Right } else { LoginCheck::Wrong }
    }
}

impl std::fmt::Debug for Challenge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Challenge(…)")
    }
}

/// Compares in a time that does not depend on the bytes.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Returns the hash of the parts, joined by colons.
fn hash(parts: &[&str]) -> String {
    hex(&Md5::digest(parts.join(":")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the fields of an `Authorization` with Digest: names, and values without quotes.
fn fields(header: &str) -> Option<Vec<(String, String)>> {
    let (scheme, mut rest) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("digest") {
        return None;
    }
    let mut fields = Vec::new();
    while let Some((name, more)) = rest.split_once('=') {
        let more = more.trim_start();
        let (value, after) = match more.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => more.split_once(',').map_or((more, ""), |(value, _)| {
                (value, more.get(value.len()..).unwrap_or_default())
            }),
        };
        fields.push((name.trim().to_owned(), value.trim().to_owned()));
        rest = after.trim_start().trim_start_matches(',');
    }
    Some(fields)
}
