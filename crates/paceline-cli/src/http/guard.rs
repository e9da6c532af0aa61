//! Access control: only programs and pages of this origin may send requests. In a DNS rebinding
//! attack the foreign site's name appears in `Host`. A cross-origin request has the foreign origin
//! in `Origin`.

use crate::args::HttpAddress;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};
use std::net::SocketAddr;

/// The status and the reason of a rejected request.
pub(super) type Refused = (StatusCode, String);

/// Checks the requests to one address.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// The accepted `Host` values. `None` accepts all: for a unix socket, which no page can reach, and for
    /// clients with tokens.
    hosts: Option<Vec<String>>,
}

impl Guard {
    /// Creates the guard for a server on `address`. If `signs_in`, requests carry a token that other sites do
    /// not have, so the server may have any name.
    pub(super) fn new(address: &HttpAddress, signs_in: bool) -> Self {
        let HttpAddress::Tcp(address) = address else { return Self { hosts: None } };
        if signs_in {
            return Self { hosts: None };
        }
        let port = address.port();
        let names =
            [ip(address), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == 80 {
            hosts.extend(names);
        }
        Self { hosts: Some(hosts) }
    }

    /// Checks a request.
    ///
    /// # Errors
    /// Returns the status and the reason if the request must be rejected.
    pub(super) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let mut named = headers.get_all(HOST).iter();
        let one = (named.next().and_then(|host| host.to_str().ok()), named.next());
        let (Some(host), None) = one else {
            let error = "exactly one Host header is needed".to_owned();
            return Err((StatusCode::BAD_REQUEST, error));
        };
        if !hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) {
            let error = format!(
                "Host is '{host}', which is not this server: use http://{}",
                hosts.first().map_or("127.0.0.1", String::as_str)
            );
            return Err((StatusCode::MISDIRECTED_REQUEST, error));
        }
        let own = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
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
        let guard = Guard::new(&"127.0.0.1:8470".parse().unwrap(), false);
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
    fn a_unix_socket_is_reached_by_no_page() {
        let guard = Guard::new(&"unix:/run/x.sock".parse().unwrap(), false);
        assert!(guard.check(&Method::GET, &HeaderMap::new()).is_ok());
    }
}
