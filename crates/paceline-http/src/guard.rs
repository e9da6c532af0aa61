//! Access control: only programs and pages of this origin may send requests. In a DNS rebinding
//! attack the foreign site's name appears in `Host`. A cross-origin request has the foreign origin
//! in `Origin`. Tokens do not replace these checks, because a browser adds a cookie to requests by
//! itself.

use crate::address::HttpAddress;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};
use paceline_tool::host::this_host;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The origins of Foxglove: its page, and its application.
const VIEWERS: [&str; 2] = ["https://app.foxglove.dev", "file://"];
/// The hosts of pages of this host.
const OWN_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The status and the reason of a rejected request.
pub(super) type Refused = (StatusCode, String);

/// Checks the requests to one address.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    names: Names,
}

/// The accepted `Host` values.
#[derive(Clone, Debug)]
enum Names {
    /// All: no page reaches a unix socket.
    All,
    /// These, with the port.
    Listed(Vec<String>),
    /// The names of a certificate, those of this host, and all IP addresses, with any port. A rebinding attack needs a
    /// name.
    Certified { certificate: CertificateDer<'static>, own: Vec<String> },
}

impl Guard {
    /// Creates the guard for a server on `address`, with the certificate of an encrypted server.
    pub(super) fn new(
        address: &HttpAddress,
        certificate: Option<&CertificateDer<'static>>,
    ) -> Self {
        let HttpAddress::Tcp(address) = address else { return Self { names: Names::All } };
        if let Some(certificate) = certificate {
            let host = this_host().into_iter().flat_map(|name| [format!("{name}.local"), name]);
            let own = host.chain(["localhost".to_owned()]).collect();
            return Self { names: Names::Certified { certificate: certificate.clone(), own } };
        }
        let port = address.port();
        let names =
            [ip(address), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == 80 {
            hosts.extend(names);
        }
        Self { names: Names::Listed(hosts) }
    }

    /// Checks a request.
    ///
    /// # Errors
    /// Returns the status and the reason if the request must be rejected.
    pub(super) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        let scheme = match &self.names {
            Names::All => return Ok(()),
            Names::Listed(_) => "http://",
            Names::Certified { .. } => "https://",
        };
        let mut named = headers.get_all(HOST).iter();
        let one = (named.next().and_then(|host| host.to_str().ok()), named.next());
        let (Some(host), None) = one else {
            let error = "exactly one Host header is needed".to_owned();
            return Err((StatusCode::BAD_REQUEST, error));
        };
        self.check_host(host)?;
        let own = |origin: &str| {
            origin.strip_prefix(scheme).is_some_and(|origin| origin.eq_ignore_ascii_case(host))
        };
        let mut origins = headers.get_all(ORIGIN).iter();
        if !origins.all(|origin| origin.to_str().is_ok_and(own)) {
            return Err(foreign("Origin"));
        }
        // Requests for a picture or script from another site's page have no `Origin`.
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        let navigates = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
        match site {
            Some("cross-site" | "same-site") if !(navigates && method == Method::GET) => {
                Err(foreign("Sec-Fetch-Site"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the request of a viewer of Foxglove without a token: programs, the application, its page, and pages of this
    /// host may connect. The page of another site must not read samples through the browser of somebody here.
    ///
    /// # Errors
    /// Returns the status and the reason if the request must be rejected.
    pub(super) fn check_viewer(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) {
            self.check_host(host)?;
        }
        let known = |origin: &str| {
            let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            let host = site.map(without_port);
            VIEWERS.contains(&origin) || host.is_some_and(|host| OWN_HOSTS.contains(&host))
        };
        let mut origins = headers.get_all(ORIGIN).iter();
        if origins.all(|origin| origin.to_str().is_ok_and(known)) {
            return Ok(());
        }
        let error = "Origin shows a page of another site: open it from this host or in Foxglove, or give a token of \
                     http_tokens in the address, ?token=TOKEN";
        Err((StatusCode::FORBIDDEN, error.to_owned()))
    }

    fn check_host(&self, host: &str) -> Result<(), Refused> {
        let (known, fix) = match &self.names {
            Names::All => return Ok(()),
            Names::Listed(hosts) => {
                let first = hosts.first().map_or("127.0.0.1", String::as_str);
                let known = hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
                (known, format!("use http://{first}"))
            }
            Names::Certified { certificate, own } => {
                let fix = "use its IP address, or a name of http_tls_cert".to_owned();
                (is_certified(without_port(host), certificate, own), fix)
            }
        };
        if known {
            return Ok(());
        }
        let error = format!("Host is '{host}', which is not this server: {fix}");
        Err((StatusCode::MISDIRECTED_REQUEST, error))
    }
}

/// Returns a `Host` value without the port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns true if `name` is an IP address, one of the `own` names, or a name of the certificate.
fn is_certified(name: &str, certificate: &CertificateDer<'_>, own: &[String]) -> bool {
    let bracketed = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_ip = match bracketed {
        Some(ip) => ip.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()),
    };
    let certified = || {
        let certificate = ParsedCertificate::try_from(certificate).ok()?;
        verify_server_name(&certificate, &ServerName::try_from(name).ok()?).ok()
    };
    is_ip || own.iter().any(|own| own.eq_ignore_ascii_case(name)) || certified().is_some()
}

fn foreign(header: &str) -> Refused {
    let error = format!(
        "{header} shows a request from another site: only pages of this server are allowed"
    );
    (StatusCode::FORBIDDEN, error)
}

fn ip(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;

    fn code(headers: &[(&str, &str)]) -> u16 {
        let guard = Guard::new(&"127.0.0.1:8470".parse().unwrap(), None);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        guard.check(&Method::GET, &map).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn only_this_server_is_meant() {
        for host in ["127.0.0.1:8470", "localhost:8470", "LOCALHOST:8470", "[::1]:8470"] {
            assert_eq!(code(&[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example:8470", "127.0.0.1", "127.0.0.1:80", "localhost.evil:8470", ""] {
            assert_eq!(code(&[("host", host)]), 421, "{host}");
        }
        assert_eq!(code(&[]), 400);
        assert_eq!(code(&[("host", "localhost:8470"), ("host", "localhost:8470")]), 400);
    }

    #[test]
    fn only_pages_of_this_server_may_ask() {
        let host = ("host", "localhost:8470");
        assert_eq!(code(&[host, ("origin", "http://localhost:8470")]), 200);
        for origin in
            ["http://evil.example", "null", "https://localhost:8470", "http://localhost:8471"]
        {
            assert_eq!(code(&[host, ("origin", origin)]), 403, "{origin}");
        }
        let two = [host, ("origin", "http://localhost:8470"), ("origin", "http://evil.example")];
        assert_eq!(code(&two), 403);
        assert_eq!(code(&[host, ("sec-fetch-site", "cross-site")]), 403);
        assert_eq!(code(&[host, ("sec-fetch-site", "same-origin")]), 200);
        let link = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(code(&link), 200, "a link from another site");
    }

    #[test]
    fn viewers_are_programs_foxglove_and_pages_of_this_host() {
        let guard = Guard::new(&"127.0.0.1:8765".parse().unwrap(), None);
        let code = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            guard.check_viewer(&headers).map_or_else(|(status, _)| status.as_u16(), |()| 200)
        };
        let own = "127.0.0.1:8765";
        assert_eq!(code(own, None), 200);
        for origin in
            ["https://app.foxglove.dev", "file://", "http://localhost:8080", "https://[::1]"]
        {
            assert_eq!(code(own, Some(origin)), 200, "{origin}");
        }
        for origin in [
            "https://example.com",
            "https://app.foxglove.dev.example.com",
            "http://localhost.example.com:80",
            "null",
        ] {
            assert_eq!(code(own, Some(origin)), 403, "{origin}");
        }
        // A name that leads here by the DNS of another site.
        assert_eq!(code("example.com:8765", None), 421);
    }

    #[test]
    fn names_without_a_port_are_found() {
        for (host, name) in
            [("a", "a"), ("a:1", "a"), ("[::1]:1", "[::1]"), ("[::1]", "[::1]"), ("a:b", "a:b")]
        {
            assert_eq!(without_port(host), name);
        }
    }

    #[test]
    fn a_unix_socket_is_reached_by_no_page() {
        let guard = Guard::new(&"unix:/run/x.sock".parse().unwrap(), None);
        assert!(guard.check(&Method::GET, &HeaderMap::new()).is_ok());
    }
}
