//! Connections through an HTTP proxy, by the method CONNECT (RFC 9110, section 9.3.6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use paceline_proto::address::Address;
use paceline_proto::text::escape;

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    address: Address,
    /// User and password, as `USER:PASSWORD`.
    user: Option<String>,
}

impl std::fmt::Debug for Proxy {
    /// Shows no password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Proxy").field(&self.address).finish()
    }
}

impl Proxy {
    /// Reads `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`.
    ///
    /// # Errors
    /// Returns the spelling to use.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = "must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT";
        let rest = text.strip_prefix("http://").ok_or(wrong)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, rest),
        };
        if text.contains(char::is_whitespace) {
            return Err(wrong.to_owned());
        }
        let address = Address::parse(place).map_err(|_| wrong)?;
        Ok(Self { address, user })
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the request for a connection to `to`, host and port.
    pub(crate) fn request(&self, to: &str) -> String {
        let user = self.user.as_ref().map(|user| STANDARD.encode(user));
        let user = user.map(|user| format!("Proxy-Authorization: Basic {user}\r\n"));
        format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{}\r\n", user.unwrap_or_default())
    }

    /// Reads the answer to a request.
    ///
    /// # Errors
    /// Returns why there is no connection.
    pub(crate) fn read(&self, answer: &str, to: &str) -> Result<(), String> {
        let line = answer.lines().next().filter(|_| answer.ends_with("\r\n\r\n"));
        let line = line.unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let code = words.next().filter(|http| http.starts_with("HTTP/1.")).and(words.next());
        match code.and_then(|code| code.parse::<u16>().ok()) {
            Some(200..300) => Ok(()),
            Some(407) => Err(format!(
                "the proxy at {} asks for a user; set proxy to http://USER:PASSWORD@HOST:PORT",
                self.address
            )),
            Some(_) => {
                let line: String = line.chars().take(100).collect();
                let line = escape(&line);
                Err(format!("the proxy at {} refuses a connection to {to}: {line}", self.address))
            }
            None => Err(format!("the proxy at {} is no HTTP proxy", self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_and_passwords_are_not_shown() {
        let plain = Proxy::parse("http://proxy.example:3128/").unwrap();
        assert_eq!(
            (plain.address().to_string().as_str(), &plain.user),
            ("proxy.example:3128", &None)
        );
        let user = Proxy::parse("http://me:p@ss@[::1]:3128").unwrap();
        assert_eq!(user.address().to_string(), "[::1]:3128");
        assert_eq!(user.user.as_deref(), Some("me:p@ss"));
        assert!(!format!("{user:?}").contains("p@ss"));
        for wrong in
            ["", "proxy:3128", "https://proxy:3128", "http://proxy", "http://:1", "http://a b:1"]
        {
            assert!(Proxy::parse(wrong).unwrap_err().starts_with("must be http://HOST"), "{wrong}");
        }
    }

    #[test]
    fn answers_are_passed_or_explained() {
        let proxy = Proxy::parse("http://p:1").unwrap();
        let read = |answer| proxy.read(answer, "robot:7600");
        assert_eq!(read("HTTP/1.1 200 Connection established\r\n\r\n"), Ok(()));
        assert_eq!(read("HTTP/1.0 200\r\n\r\n"), Ok(()));
        for (answer, part) in [
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "asks for a user"),
            ("HTTP/1.1 403 Forbidden\r\n\r\n", "refuses a connection to robot:7600: HTTP/1.1 403"),
            ("HTTP/2 200\r\n\r\n", "is no HTTP proxy"),
            ("\r\n\r\n", "is no HTTP proxy"),
            ("HTTP/1.1 200 OK\r\nEndless: ", "is no HTTP proxy"),
            ("HTTP/1.1 403 \u{202e}\r\n\r\n", "403 \\u{202e}"),
        ] {
            assert!(read(answer).unwrap_err().contains(part), "{answer}");
        }
    }
}
