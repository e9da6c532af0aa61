//! The settings of a node's clock.

use paceline_proto::address::Address;
use paceline_time::ntp::keys::{NtpKey, NtpKeys};
use paceline_time::ntp::source::PollRange;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The settings of a node's clock: the servers that it follows, and the address at which it serves.
///
/// ```
/// use paceline::time::ClockConfig;
/// use std::time::Duration;
///
/// let own = ClockConfig::new().server("192.0.2.1:123").poll(Duration::from_secs(1), Duration::from_secs(16));
/// assert!(own.check().is_ok());
/// assert!(ClockConfig::new().server("192.0.2.1").check().is_err_and(|error| error.contains("HOST:PORT")));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClockConfig {
    pub(crate) servers: Vec<String>,
    keys: Option<PathBuf>,
    pub(crate) serve: Option<String>,
    pub(crate) poll_min: Option<Duration>,
    pub(crate) poll_max: Option<Duration>,
    pub(crate) system_error: Option<Duration>,
    pub(crate) neighbours: Option<bool>,
}

/// The shortest and the longest interval of requests, in nanoseconds.
const POLL_NANOS: (u128, u128) = (62_500_000, 131_072_000_000_000);

impl ClockConfig {
    /// The largest number of servers.
    pub const SERVERS_MAX: usize = 16;

    /// Creates settings without servers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an NTP server, `HOST:PORT`, or `HOST:PORT key ID` for one whose answers must have an authentication code by
    /// that key of [`Self::keys`]. Of `2 n + 1` servers, `n` may be wrong; 4 are a good number.
    #[must_use]
    pub fn server(mut self, server: &str) -> Self {
        self.servers.push(server.to_owned());
        self
    }

    /// Reads symmetric keys from a file in the format of chrony: one per line, as number, `AES128` or `AES256`, and key.
    /// [`Self::serve`] also answers requests that are authenticated by one of them, with the same key.
    #[must_use]
    pub fn keys(mut self, file: impl AsRef<Path>) -> Self {
        self.keys = Some(file.as_ref().to_owned());
        self
    }

    /// Serves time to NTP clients at a UDP address of this host, such as `192.0.2.7:123`.
    #[must_use]
    pub fn serve(mut self, address: &str) -> Self {
        self.serve = Some(address.to_owned());
        self
    }

    /// Sets the shortest and the longest interval of requests to each server, from 62.5 ms to 36 h; both are rounded down
    /// to powers of two. Defaults to 16 s and 1,024 s. The error bound grows between requests by at least 15 µs per
    /// second. Use less than 16 s only with servers of your own.
    #[must_use]
    pub const fn poll(mut self, min: Duration, max: Duration) -> Self {
        (self.poll_min, self.poll_max) = (Some(min), Some(max));
        self
    }

    /// Uses the system clock as one more server, because another program such as chrony or PTP keeps its error below
    /// `error`, from 1 µs to 1 s.
    #[must_use]
    pub const fn system(mut self, error: Duration) -> Self {
        self.system_error = Some(error);
        self
    }

    /// Follows the clocks of all neighbours, or of none. By default, a node without servers and system clock follows the
    /// neighbours to which it connects. The processes of a host follow the clock of the host's node anyway.
    #[must_use]
    pub const fn neighbours(mut self, follow: bool) -> Self {
        self.neighbours = Some(follow);
        self
    }

    /// Returns true if the clock has a reference of its own.
    pub(crate) const fn has_source(&self) -> bool {
        !self.servers.is_empty() || self.system_error.is_some()
    }

    /// Checks the settings without opening anything.
    ///
    /// # Errors
    /// Returns a message that names the first wrong value, its range and a fix.
    pub fn check(&self) -> Result<(), String> {
        let max = Self::SERVERS_MAX;
        if self.servers.len() > max {
            let given = self.servers.len();
            return Err(format!("clock: {given} servers: must be at most {max}; remove some"));
        }
        for server in &self.servers {
            let named = |what| format!("clock: server '{server}': {what}");
            check_address(address_of(server)).map_err(named)?;
            if key_of(server).map_err(named)?.is_some() && self.keys.is_none() {
                return Err(named(NO_KEYS.to_owned()));
            }
        }
        if let Some((at, twice)) = self.servers.iter().enumerate().find(|(at, server)| {
            let mut before = self.servers.iter().take(*at);
            before.any(|before| address_of(before) == address_of(server))
        }) {
            let number = at + 1;
            return Err(format!(
                "clock: server {number} '{twice}' is named twice: each server has one vote; remove one"
            ));
        }
        if let Some(serve) = &self.serve {
            check_address(serve).map_err(|what| format!("clock: serve '{serve}': {what}"))?;
        }
        let has_key = self.servers.iter().any(|server| address_of(server) != server);
        if self.keys.is_some() && !has_key && self.serve.is_none() {
            return Err(KEYS_UNUSED.to_owned());
        }
        if self.serve.is_some() && !self.has_source() && self.neighbours != Some(true) {
            let what = "clock: serve needs a reference: add servers, system or neighbours = true";
            return Err(what.to_owned());
        }
        self.range()?;
        match self.system_error {
            Some(error) if !(1_000..=1_000_000_000).contains(&error.as_nanos()) => {
                Err(format!("clock: system {error:?}: must be from 1us to 1s, such as 1ms"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the file of [`Self::keys`].
    #[must_use]
    pub fn key_file(&self) -> Option<&Path> {
        self.keys.as_deref()
    }

    /// Reads the key file and checks that it has the keys of all servers.
    ///
    /// # Errors
    /// Returns a message that names the file, the line, the field, the permitted values and a fix.
    pub fn check_keys(&self) -> Result<(), String> {
        self.read_keys().map(drop)
    }

    /// Reads the key file. Returns its keys, and those of the servers that have one, by their number in the list.
    ///
    /// # Errors
    /// Returns a message that names the file, the line, the field, the permitted values and a fix.
    pub(crate) fn read_keys(&self) -> Result<(NtpKeys, Vec<(usize, NtpKey)>), String> {
        let Some(file) = &self.keys else { return Ok((NtpKeys::default(), Vec::new())) };
        let named = |what: String| format!("clock: keys '{}': {what}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| {
            named(format!(
                "{error}; must be a file with one key per line, such as `1 AES128 HEX:...`"
            ))
        })?;
        let keys = NtpKeys::parse(&text).map_err(named)?;
        let ids = self.servers.iter().enumerate();
        let ids = ids.filter_map(|(at, server)| Some((at, key_of(server).ok().flatten()?)));
        let used = ids.map(|(at, id)| Ok((at, keys.find(id).map_err(named)?.clone())));
        let used = used.collect::<Result<_, String>>()?;
        Ok((keys, used))
    }

    /// Returns the range of poll intervals.
    pub(crate) fn range(&self) -> Result<PollRange, String> {
        let log = |name: &str, value: Option<Duration>, default: i8| {
            let Some(value) = value else { return Ok(default) };
            let (low, high) = POLL_NANOS;
            if !(low..=high).contains(&value.as_nanos()) {
                let range = "must be from 62.5ms to 36h, such as 16s";
                return Err(format!("clock: {name} {value:?}: {range}"));
            }
            let steps = (value.as_nanos() / low).ilog2();
            Ok(i8::try_from(steps).unwrap_or(i8::MAX) - 4)
        };
        let min = log("poll", self.poll_min, PollRange::PUBLIC.min)?;
        let max = log("poll_max", self.poll_max, PollRange::PUBLIC.max.max(min))?;
        if max < min {
            return Err("clock: poll_max is below poll: make it at least as long".to_owned());
        }
        Ok(PollRange { min, max })
    }
}

const NO_KEYS: &str = "its key needs a file: set keys, such as keys = \"/etc/paceline/ntp.keys\"";
const KEYS_UNUSED: &str =
    "clock: keys is used by no server: write \"HOST:PORT key ID\" for one in servers, or set serve";

/// Returns the address of a server without its key.
pub(crate) fn address_of(server: &str) -> &str {
    server.split_once(' ').map_or(server, |(address, _)| address)
}

/// Returns the number of the key of a server, if it has one.
pub(crate) fn key_of(server: &str) -> Result<Option<u32>, String> {
    let Some((_, rest)) = server.split_once(' ') else { return Ok(None) };
    let id = rest.strip_prefix("key ").and_then(|id| id.parse().ok()).filter(|id| *id > 0);
    id.map(Some).ok_or_else(|| format!("must be HOST:PORT key ID, ID from 1 to {}", u32::MAX))
}

/// Checks the form `HOST:PORT`.
fn check_address(address: &str) -> Result<(), String> {
    match Address::parse(address)?.port() {
        0 => {
            Err("must be HOST:PORT with a port from 1 to 65535, such as ntp.example:123".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_name_the_value_and_the_range() {
        let server = |text: &str| ClockConfig::new().server(text);
        for wrong in ["", "a", "a:", ":1", "a:0", "a:65536", "a b:1", "2001:db8::1:123", "a/b:1"] {
            let error = server(wrong).check().unwrap_err();
            assert!(error.contains("must be HOST:PORT"), "{wrong}: {error}");
        }
        for right in ["a:1", "192.0.2.1:123", "[2001:db8::1]:123", "ntp.example:65535"] {
            assert_eq!(server(right).check(), Ok(()), "{right}");
        }
        let ms = Duration::from_millis;
        for (config, what) in [
            (server("a:1").server("a:1"), "named twice"),
            (server("a:1").server("a:1 key 5").keys("k"), "named twice"),
            (server("a:1 key 5"), "server 'a:1 key 5': its key needs a file"),
            (server("a:1 key 0").keys("k"), "ID from 1 to 4294967295"),
            (server("a:1 key").keys("k"), "must be HOST:PORT key ID"),
            (server("a:1 iburst").keys("k"), "must be HOST:PORT key ID"),
            (server("a:1").keys("k"), "keys is used by no server"),
            (server("a:1").poll(ms(1), ms(1)), "62.5ms to 36h"),
            (server("a:1").poll(ms(2_000), ms(1_000)), "poll_max"),
            (server("a:1").system(ms(1_001)), "1us to 1s"),
            (server("a:1").serve("nowhere"), "serve 'nowhere'"),
        ] {
            assert!(config.check().is_err_and(|error| error.contains(what)), "{what}");
        }
        let many =
            (0..17).fold(ClockConfig::new(), |config, at| config.server(&format!("a{at}:1")));
        assert!(many.check().is_err_and(|error| error.contains("at most 16")));
    }

    #[test]
    fn a_wrong_key_file_is_named_with_its_line() {
        let file = std::env::temp_dir().join(format!("paceline-keys-{}", std::process::id()));
        let config = ClockConfig::new().server("a:1").server("b:1 key 5").keys(&file);
        assert_eq!(config.check(), Ok(()));
        let name = file.display().to_string();
        let missing = config.read_keys().unwrap_err();
        assert!(missing.contains(&name) && missing.contains("AES128"), "{missing}");
        for (text, part) in
            [("4 AES128 0123456789abcdef", "key 5 is missing"), ("5 AES128 x", "line 1: key 5")]
        {
            std::fs::write(&file, text).unwrap();
            let error = config.read_keys().unwrap_err();
            assert!(
                error.contains(&format!("clock: keys '{name}'")) && error.contains(part),
                "{error}"
            );
        }
        std::fs::write(&file, "5 AES128 0123456789abcdef").unwrap();
        let (_, used) = config.read_keys().unwrap();
        assert_eq!(used.iter().map(|(at, key)| (*at, key.id())).collect::<Vec<_>>(), [(1, 5)]);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn intervals_are_powers_of_two() {
        let range = |min, max| {
            let (min, max) = (Duration::from_millis(min), Duration::from_millis(max));
            ClockConfig::new().poll(min, max).range()
        };
        assert_eq!(range(1_000, 16_000), Ok(PollRange { min: 0, max: 4 }));
        assert_eq!(range(63, 999), Ok(PollRange { min: -4, max: -1 }));
        assert_eq!(ClockConfig::new().range(), Ok(PollRange::PUBLIC));
    }
}
