//! The address that a player opens: a tag, its options, and a track.

use crate::address::AddressError;
use thiserror::Error;
use url::Url;

/// Most tracks of an address: the samples of its tag, and of `sound`.
pub const TRACKS_MAX: u8 = 2;
/// The part of an address that names a track.
const TRACK: &str = "/trackID=";
/// The option that names the tag of the sound.
const SOUND: &str = "sound";
/// The options that apply to sound, too.
const SOUND_OPTIONS: [&str; 3] = ["audio", "within", "loss"];

/// The samples that a player requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerTarget {
    /// The tag.
    pub tag: String,
    /// The options of the request for it, such as `max_hz=10&size=320x240`.
    pub query: String,
    /// The tag of the sound, and the options for it.
    pub sound: Option<(String, String)>,
    /// The number of the track, if the address names one.
    pub track: Option<u8>,
    /// The address without a track.
    url: Url,
}

/// The reason why an address names no samples.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    /// It has no tag.
    #[error(
        "the address names no tag; give rtsp://HOST:PORT/TAG, such as rtsp://HOST:PORT/robot/camera"
    )]
    NoTag,
    /// It has a track that does not exist.
    #[error("the address has no such track")]
    Track,
    /// A part of it is no text.
    #[error("'{0}' in the address is no text")]
    Text(&'static str),
    /// It contains a login.
    #[error(transparent)]
    Login(#[from] AddressError),
}

impl PlayerTarget {
    /// Reads an address.
    ///
    /// ```
    /// use paceline_edge::PlayerTarget;
    ///
    /// let url = "rtsp://127.0.0.1:8554/robot/camera/trackID=1?max_hz=10&sound=robot/microphone";
    /// let target = PlayerTarget::parse(&url.parse().unwrap())?;
    /// assert_eq!((target.tag.as_str(), target.query.as_str()), ("robot/camera", "max_hz=10"));
    /// assert_eq!((target.sound.unwrap().0.as_str(), target.track), ("robot/microphone", Some(1)));
    /// # Ok::<(), paceline_edge::TargetError>(())
    /// ```
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn parse(url: &Url) -> Result<Self, TargetError> {
        if url.password().is_some() {
            return Err(AddressError::Login.into());
        }
        let (path, in_path) = without_track(url.path());
        // Players append the name of a track behind the options.
        let (query, in_query) = without_track(url.query().unwrap_or_default());
        let track = match in_path.or(in_query) {
            Some(number) => {
                let number = number.trim_end_matches('/').parse().ok();
                Some(number.filter(|number| *number < TRACKS_MAX).ok_or(TargetError::Track)?)
            }
            None => None,
        };
        let tag = decoded(path).ok_or(TargetError::Text("path"))?;
        let tag = tag.trim_matches('/').to_owned();
        if tag.is_empty() {
            return Err(TargetError::NoTag);
        }
        let (mut own, mut of_sound, mut sound) = (Vec::new(), Vec::new(), None);
        for pair in query.trim_end_matches('/').split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name == SOUND {
                sound = Some(decoded(value).ok_or(TargetError::Text("sound"))?);
                continue;
            }
            own.push(pair);
            if SOUND_OPTIONS.contains(&name) {
                of_sound.push(pair);
            }
        }
        if sound.is_some() {
            own.retain(|pair| pair.split('=').next() != Some("audio"));
        }
        let mut base = url.clone();
        base.set_path(path);
        base.set_query((!query.is_empty()).then_some(query));
        base.set_fragment(None);
        // A login is sent in a header. Addresses without a host have none.
        let _ = base.set_username("");
        let sound = sound.map(|tag| (tag, of_sound.join("&")));
        Ok(Self { tag, query: own.join("&"), sound, track, url: base })
    }

    /// Returns the address without a track.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the address of a track.
    #[must_use]
    pub fn track_url(&self, track: u8) -> String {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{TRACK}{track}", self.url.path().trim_end_matches('/')));
        url.to_string()
    }

    /// Returns the number of tracks.
    #[must_use]
    pub const fn tracks(&self) -> u8 {
        if self.sound.is_some() { 2 } else { 1 }
    }

    /// Returns the address with other options, given as flags such as `--size 160x120 --max-hz 5`.
    #[must_use]
    pub fn with_flags(&self, flags: &str) -> String {
        let mut words = flags.split_whitespace();
        let mut pairs: Vec<String> =
            self.url.query().unwrap_or_default().split('&').map(str::to_owned).collect();
        pairs.retain(|pair| !pair.is_empty());
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            let name = name.trim_start_matches('-').replace('-', "_");
            pairs.retain(|pair| {
                pair.split('=').next().map(|known| known.replace('-', "_")) != Some(name.clone())
            });
            pairs.push(format!("{name}={value}"));
        }
        let mut url = self.url.clone();
        url.set_query((!pairs.is_empty()).then_some(&pairs.join("&")));
        url.to_string()
    }
}

/// Returns a part of an address without the name of a track, and the number of the track.
fn without_track(text: &str) -> (&str, Option<&str>) {
    text.rsplit_once(TRACK).map_or((text, None), |(before, number)| (before, Some(number)))
}

/// Returns text without percent-encoding; `None` if it is no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).filter(|_| *first == b'%');
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
