//! The address of a camera, and the login that it requests.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use url::Url;

/// The scheme of RTSP over TCP without TLS.
const SCHEME: &str = "rtsp";
/// Longest address in bytes.
const ADDRESS_MAX: usize = 2_048;
/// Longest name or password in bytes.
const LOGIN_MAX: usize = 256;
/// Parts of a path that often stand next to a password, in lower case. A login with a slash is read as a path with `@`.
const SECRETS: [&str; 5] = ["pass", "pwd", "token", "auth", "@"];

/// The address of a camera: `rtsp://HOST[:PORT]/PATH`. Its printed form shows neither a query nor a path that may contain a
/// password.
///
/// ```
/// use paceline_edge::CameraAddress;
///
/// let camera: CameraAddress = "rtsp://192.168.1.20/stream?channel=1&password=s3cret".parse()?;
/// assert_eq!(camera.to_string(), "rtsp://192.168.1.20/stream?…");
/// assert!("rtsp://admin:s3cret@192.168.1.20/stream".parse::<CameraAddress>().is_err());
/// # Ok::<(), paceline_edge::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CameraAddress(Url);

/// The reason why a text is no address of a camera. It never contains the text, which may contain a password.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AddressError {
    /// It contains a name or a password.
    #[error(
        "the address contains a login, which other users of this host see in the list of processes; write USER:PASSWORD into a \
         file and give --rtsp-login FILE, or set PACELINE_RTSP_LOGIN=USER:PASSWORD, and give rtsp://HOST/PATH"
    )]
    Login,
    /// It has another scheme.
    #[error("the address begins with {0}://, must begin with rtsp://; give rtsp://HOST/PATH")]
    Scheme(String),
    /// It is no address with a host.
    #[error(
        "the address has no host, or is no address: {0}; give rtsp://HOST/PATH, such as rtsp://192.168.1.20/stream"
    )]
    Host(&'static str),
}

impl FromStr for CameraAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_MAX {
            return Err(AddressError::Host("it has more than 2048 bytes"));
        }
        let url = Url::parse(text).map_err(|error| AddressError::Host(reason(error)))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::Login);
        }
        match url.scheme() {
            SCHEME => {}
            // A name without a scheme, such as localhost:8554/x, parses as one.
            other if text.get(other.len()..).is_some_and(|rest| rest.starts_with("://")) => {
                return Err(AddressError::Scheme(other.chars().take(16).collect()));
            }
            _ => return Err(AddressError::Host("rtsp:// is missing")),
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(AddressError::Host("the host is empty"));
        }
        Ok(Self(url))
    }
}

/// Returns the reason of an error, which does not contain the text.
fn reason(error: url::ParseError) -> &'static str {
    use url::ParseError;
    let known = [
        (ParseError::EmptyHost, "the host is empty"),
        (ParseError::InvalidPort, "the port is no number from 0 to 65535"),
        (ParseError::RelativeUrlWithoutBase, "rtsp:// is missing"),
        (ParseError::InvalidIpv6Address, "the host is no valid IP address"),
    ];
    let found = known.into_iter().find(|(known, _)| *known == error);
    found.map_or("it cannot be parsed", |(_, reason)| reason)
}

impl CameraAddress {
    /// Returns the whole address, for the request. It may contain a password in its query: print the address instead.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Returns `text` without the parts of this address that are not printed.
    ///
    /// Errors of libraries may repeat the address.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.replace(self.0.as_str(), &self.to_string());
        if let Some(query) = self.0.query().filter(|query| !query.is_empty()) {
            text = text.replace(query, "…");
        }
        if self.hides_path() {
            text = text.replace(self.0.path(), "/…");
        }
        text
    }

    fn hides_path(&self) -> bool {
        let path = self.0.path().to_ascii_lowercase();
        SECRETS.iter().any(|secret| path.contains(secret))
    }
}

impl fmt::Display for CameraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}://{}", self.0.host_str().unwrap_or_default())?;
        if let Some(port) = self.0.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(if self.hides_path() { "/…" } else { self.0.path() })?;
        if self.0.query().is_some() { f.write_str("?…") } else { Ok(()) }
    }
}

impl fmt::Debug for CameraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name and password for a camera. It has no printed form.
///
/// ```
/// use paceline_edge::Login;
///
/// let login: Login = "admin:s3:cret\n".parse()?;
/// assert_eq!((login.user(), login.password()), ("admin", "s3:cret"));
/// assert_eq!(format!("{login:?}"), "Login(…)");
/// # Ok::<(), paceline_edge::LoginError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: String,
    password: String,
}

/// The reason why a text is no login. It never contains the text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoginError {
    /// It has no colon.
    #[error("has no colon, must be USER:PASSWORD on one line")]
    Colon,
    /// It has no name.
    #[error("has no user before the colon, must be USER:PASSWORD on one line")]
    User,
    /// It has several lines, or control characters.
    #[error("has several lines or control characters, must be USER:PASSWORD on one line")]
    Control,
    /// It is too long.
    #[error("has more than {LOGIN_MAX} bytes in its user or password, must have at most that")]
    Long,
}

impl FromStr for Login {
    type Err = LoginError;

    /// Parses `USER:PASSWORD`. The password may contain colons; one line break at the end is ignored.
    fn from_str(text: &str) -> Result<Self, LoginError> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.chars().any(char::is_control) {
            return Err(LoginError::Control);
        }
        let (user, password) = line.split_once(':').ok_or(LoginError::Colon)?;
        if user.is_empty() {
            return Err(LoginError::User);
        }
        if user.len() > LOGIN_MAX || password.len() > LOGIN_MAX {
            return Err(LoginError::Long);
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }
}

impl Login {
    /// Returns the name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_print_no_secret() {
        let shown = |text: &str| text.parse::<CameraAddress>().unwrap().to_string();
        assert_eq!(shown("rtsp://h:8554/a/b"), "rtsp://h:8554/a/b");
        assert_eq!(shown("rtsp://[::1]/"), "rtsp://[::1]/");
        assert_eq!(shown("rtsp://h/user=x_Password=y_1.sdp"), "rtsp://h/…");
        assert_eq!(shown("rtsp://admin:12/34@h/x"), "rtsp://admin:12/…");
        let camera: CameraAddress = "rtsp://h/x?key=y".parse().unwrap();
        assert_eq!(
            camera.redact("404 for rtsp://h/x?key=y, or key=y"),
            "404 for rtsp://h/x?…, or …"
        );
        assert_eq!(format!("{camera:?}"), "rtsp://h/x?…");
    }

    #[test]
    fn errors_name_the_fix_and_no_secret() {
        let error = |text: &str| text.parse::<CameraAddress>().unwrap_err().to_string();
        let login = error("rtsp://admin:s3cret@h/x");
        assert!(login.contains("--rtsp-login FILE") && !login.contains("s3cret"), "{login}");
        assert!(error("http://h/x").contains("begins with http://, must begin with rtsp://"));
        assert!(error("rtsp://").contains("host is empty"));
        assert!(error("h/x").contains("rtsp:// is missing"));
        assert!(error("localhost:8554/x").contains("rtsp:// is missing"));
        assert!(error("rtsp://h:99999/x").contains("port"));
    }

    #[test]
    fn logins_are_one_line() {
        let error = |text: &str| text.parse::<Login>().unwrap_err();
        assert_eq!(error("admin"), LoginError::Colon);
        assert_eq!(error(":x"), LoginError::User);
        assert_eq!(error("a:b\nc:d\n"), LoginError::Control);
        assert_eq!(error(&format!("a:{}", "b".repeat(257))), LoginError::Long);
        assert_eq!("a:\r\n".parse::<Login>().unwrap().password(), "");
    }

    proptest! {
        #[test]
        fn no_printed_form_contains_the_secret(
            host in "[a-z]{1,8}", path in "[a-z]{0,8}", secret in "S[0-9]{8}K"
        ) {
            let login = format!("rtsp://{path}u:{secret}@{host}/{path}");
            let error = login.parse::<CameraAddress>().unwrap_err();
            let printed = format!("{error} {error:?}");
            prop_assert!(!printed.contains(&secret));
            let query: CameraAddress =
                format!("rtsp://{host}/{path}?password={secret}").parse().unwrap();
            let printed = format!("{query} {query:?}");
            prop_assert!(!printed.contains(&secret));
            let message = query.redact(&format!("bad {}", query.url()));
            prop_assert!(!message.contains(&secret));
        }
    }
}
