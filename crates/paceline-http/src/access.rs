//! Access from other hosts: TLS, and tokens that grant reading or changing.
//!
//! A token is one line of a file: `read TOKEN` or `change TOKEN`. A program sends it in `Authorization`. A browser
//! opens `/?token=TOKEN` once and gets a cookie.

use super::answer::{self, Answer};
use super::guard::Refused;
use crate::address::HttpFiles;
use anyhow::{Context as _, bail};
use hyper::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{Method, StatusCode};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

/// The shortest and the longest token, in bytes.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=256;
const TOKENS_MAX: usize = 1_024;
const COOKIE_NAME: &str = "paceline-token";

/// How a server encrypts its connections.
pub(super) struct Encryption {
    pub(super) config: Arc<ServerConfig>,
    /// The certificate that names the server.
    pub(super) certificate: CertificateDer<'static>,
}

/// The right of a token.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Grants {
    Read,
    Change,
}

/// The access rules of a server.
pub struct Access {
    pub(super) tls: Option<Encryption>,
    tokens: Vec<(Grants, String)>,
}

impl Access {
    /// Reads the files; `None` if none is given.
    pub fn read(files: &HttpFiles) -> anyhow::Result<Option<Self>> {
        if *files == HttpFiles::default() {
            return Ok(None);
        }
        let tls = match (&files.cert, &files.key) {
            (Some(cert), Some(key)) => Some(encryption(cert, key)?),
            (None, None) => None,
            (Some(_), None) => bail!("http_tls_key is missing: set it next to http_tls_cert"),
            (None, Some(_)) => bail!("http_tls_cert is missing: set it next to http_tls_key"),
        };
        let tokens = files.tokens.as_deref().map(tokens).transpose()?.unwrap_or_default();
        Ok(Some(Self { tls, tokens }))
    }

    /// Returns true if clients of other hosts can be served: everything is encrypted, and needs a token.
    pub fn is_complete(&self) -> bool {
        self.tls.is_some() && !self.tokens.is_empty()
    }

    /// Checks the token of a request, and returns its number; `None` if no tokens are needed.
    ///
    /// # Errors
    /// Returns the status and the reason if the token is missing, unknown or grants too little.
    pub(super) fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Option<usize>, Refused> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let given = bearer(headers).or_else(|| cookie(headers));
        let granted = given.and_then(|token| self.granted(token));
        match granted {
            None => {
                let error = "a token is needed: open /?token=TOKEN in a browser, or send Authorization: Bearer \
                             TOKEN";
                Err((StatusCode::UNAUTHORIZED, error.to_owned()))
            }
            Some((Grants::Read, _)) if ![Method::GET, Method::HEAD].contains(method) => {
                let error = "this token grants reading only: use a token of a line 'change'";
                Err((StatusCode::FORBIDDEN, error.to_owned()))
            }
            Some((Grants::Read | Grants::Change, number)) => Ok(Some(number)),
        }
    }

    /// Checks the token of a viewer, which may also be in the query: Foxglove opens an address and sends nothing else.
    /// Returns the number of the token; `None` if no tokens are needed.
    ///
    /// # Errors
    /// Returns the status and the reason if the token is missing or unknown.
    pub(super) fn check_with(
        &self,
        token: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<Option<usize>, Refused> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let granted = bearer(headers).or(token).and_then(|token| self.granted(token));
        let error = "a token is needed: open ws://ADDRESS/?token=TOKEN, or send Authorization: Bearer TOKEN";
        let refused = || (StatusCode::UNAUTHORIZED, error.to_owned());
        granted.map(|(_, number)| Some(number)).ok_or_else(refused)
    }

    /// Returns true if the token with this number grants changes.
    pub(super) fn may_change(&self, number: usize) -> bool {
        self.tokens.get(number).is_some_and(|(grants, _)| *grants == Grants::Change)
    }

    /// Returns a response that stores the token of the query `token=…` as a cookie, and the number of the token, if it
    /// is known.
    pub(super) fn sign_in(&self, path: &str, query: Option<&str>) -> Option<(Answer, usize)> {
        let token = query?.strip_prefix("token=").filter(|_| path == "/")?;
        let (_, number) = self.granted(token)?;
        let secure = if self.tls.is_some() { "; Secure" } else { "" };
        let cookie = format!("{COOKIE_NAME}={token}; HttpOnly; SameSite=Strict; Path=/{secure}");
        let mut answer = answer::nothing();
        *answer.status_mut() = StatusCode::SEE_OTHER;
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        answer.headers_mut().insert(SET_COOKIE, HeaderValue::try_from(cookie).ok()?);
        Some((answer, number))
    }

    /// Returns the right of a token, and its number. Takes the same time for every token of one length.
    fn granted(&self, token: &str) -> Option<(Grants, usize)> {
        let equal = |known: &str| {
            let same = known.len() == token.len();
            known.bytes().zip(token.bytes()).fold(!same, |differs, (a, b)| differs | (a != b))
        };
        let known = self.tokens.iter().enumerate().filter(|(_, (_, known))| !equal(known));
        known.map(|(number, (grants, _))| (*grants, number)).max()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
    let mut pairs = cookies.flat_map(|cookie| cookie.split("; "));
    pairs.find_map(|pair| pair.strip_prefix(COOKIE_NAME)?.strip_prefix('='))
}

fn tokens(file: &Path) -> anyhow::Result<Vec<(Grants, String)>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("http_tokens {shown}"))?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let mut tokens = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (grants, token) = match line.split_once(' ').map(|(word, token)| (word, token.trim())) {
            Some(("read", token)) => (Grants::Read, token),
            Some(("change", token)) => (Grants::Change, token),
            Some(_) | None => {
                bail!("http_tokens {shown}, line {number}: must be 'read TOKEN' or 'change TOKEN'")
            }
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !TOKEN_BYTES.contains(&token.len()) || !token.bytes().all(plain) {
            bail!(
                "http_tokens {shown}, line {number}: a token must be {} to {} letters, digits, '-', '_' or '.', \
                 such as openssl rand -hex 16 prints",
                TOKEN_BYTES.start(),
                TOKEN_BYTES.end()
            );
        }
        tokens.push((grants, token.to_owned()));
    }
    if tokens.is_empty() || tokens.len() > TOKENS_MAX {
        bail!("http_tokens {shown}: {} tokens; must be 1 to {TOKENS_MAX}", tokens.len());
    }
    Ok(tokens)
}

fn encryption(cert: &Path, key: &Path) -> anyhow::Result<Encryption> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("http_tls_cert {}", cert.display()))?;
    let certificate = chain.first().cloned();
    let certificate = certificate
        .with_context(|| format!("http_tls_cert {} contains no certificate", cert.display()))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("http_tls_key {}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("http_tls_key {} for {}", key.display(), cert.display()))?;
    Ok(Encryption { config: Arc::new(config), certificate })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "0123456789abcdef";
    const CHANGE: &str = "fedcba9876543210";

    fn access() -> Access {
        let tokens = vec![(Grants::Read, READ.to_owned()), (Grants::Change, CHANGE.to_owned())];
        Access { tls: None, tokens }
    }

    fn status(method: &Method, header: Option<(&'static str, String)>) -> u16 {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, value.parse().unwrap());
        }
        access().check(method, &headers).map_or_else(|(status, _)| status.as_u16(), |_| 200)
    }

    #[test]
    fn a_viewer_gives_its_token_in_the_address_or_in_a_header() {
        let check = |token: Option<&str>, header: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(token) = header {
                headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            }
            access().check_with(token, &headers).map_err(|(status, _)| status.as_u16())
        };
        assert_eq!(check(Some(READ), None), Ok(Some(0)));
        assert_eq!(check(None, Some(CHANGE)), Ok(Some(1)));
        // A cookie of the page is no token of a viewer: a browser sends it for pages of other sites too.
        for (token, header) in
            [(None, None), (Some("0123456789abcdeg"), None), (Some(READ), Some("wrong"))]
        {
            assert_eq!(check(token, header), Err(401), "{token:?} {header:?}");
        }
        let open = Access { tls: None, tokens: Vec::new() };
        assert_eq!(open.check_with(None, &HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn reading_and_changing_are_separate_rights() {
        let bearer = |token: &str| Some(("authorization", format!("Bearer {token}")));
        let cookie = |token: &str| Some(("cookie", format!("a=b; {COOKIE_NAME}={token}; c=d")));
        for (token, get, post) in
            [(READ, 200, 403), (CHANGE, 200, 200), ("0123456789abcdeg", 401, 401)]
        {
            for header in [bearer(token), cookie(token)] {
                assert_eq!(status(&Method::GET, header.clone()), get, "{header:?}");
                assert_eq!(status(&Method::POST, header.clone()), post, "{header:?}");
            }
        }
        for wrong in ["", "Bearer", "Bearer ", "Basic 0123456789abcdef", "Bearer 0123456789abcde"] {
            assert_eq!(status(&Method::GET, Some(("authorization", wrong.to_owned()))), 401);
        }
        assert_eq!(status(&Method::GET, None), 401);
        let open = Access { tls: None, tokens: Vec::new() };
        assert!(open.check(&Method::POST, &HeaderMap::new()).is_ok() && !open.is_complete());
    }

    #[test]
    fn a_known_token_becomes_a_cookie_that_scripts_cannot_read() {
        let (answer, number) = access().sign_in("/", Some(&format!("token={READ}"))).unwrap();
        assert_eq!(number, 0);
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let cookie = answer.headers()[SET_COOKIE].to_str().unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        for (path, query) in
            [("/", "token=wrong"), ("/", "x=1"), ("/metrics", "token=0123456789abcdef")]
        {
            assert!(access().sign_in(path, Some(query)).is_none(), "{path}?{query}");
        }
    }

    #[test]
    fn wrong_files_are_named_with_the_line_and_the_form() {
        let file = std::env::temp_dir().join(format!("pl-tokens-{}", std::process::id()));
        for (text, part) in [
            ("", "0 tokens"),
            ("# none\n\n", "0 tokens"),
            ("read short\n", "line 1: a token must be 16 to 256"),
            ("# a\nwrite 0123456789abcdef\n", "line 2: must be 'read TOKEN'"),
            ("read 0123456789abcdef;\n", "line 1: a token must be"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = tokens(&file).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        std::fs::remove_file(&file).unwrap();
        let half = HttpFiles { cert: Some("/nowhere".into()), ..HttpFiles::default() };
        assert!(Access::read(&half).err().unwrap().to_string().contains("http_tls_key is missing"));
        assert!(Access::read(&HttpFiles::default()).unwrap().is_none());
    }
}
