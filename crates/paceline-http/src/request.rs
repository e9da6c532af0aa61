//! The request of a viewer or player for samples, in its address.

use crate::change::wish_in;
use paceline::SubscriberBuilder;

/// The key of the query that contains the token of the client.
pub(crate) const TOKEN: &str = "token";

/// The options of a request in words, as of `paceline sub`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ViewerRequest(String);

impl ViewerRequest {
    /// Reads the query of an address: `max_hz=10&size=320x240`.
    ///
    /// # Errors
    /// Returns the reason if an option is unknown, or its value is wrong.
    pub(crate) fn from_query(query: &str) -> Result<Self, String> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let words = pairs.filter(|(name, _)| *name != TOKEN).map(|(name, value)| {
            // A slash may be encoded: loss=1%2F10.
            let value = value.replace("%2F", "/").replace("%2f", "/");
            format!("--{} {value}", name.replace('_', "-"))
        });
        Self::from_words(&words.collect::<Vec<_>>().join(" "))
    }

    /// Reads the options in words: `--max-hz 10 --size 320x240`.
    ///
    /// # Errors
    /// Returns the reason if an option is unknown, or its value is wrong.
    pub(crate) fn from_words(words: &str) -> Result<Self, String> {
        wish_in(words).map(|_| Self(words.to_owned())).map_err(|reason| {
            format!(
                "{reason}: the options are --max-hz, --every, --size, --audio, --bitrate, --quality, --within and --loss"
            )
        })
    }

    /// Returns the options in words.
    pub(crate) fn words(&self) -> &str {
        &self.0
    }

    /// Adds the options to a subscription.
    pub(crate) fn apply<'a>(&self, builder: SubscriberBuilder<'a>) -> SubscriberBuilder<'a> {
        match wish_in(&self.0) {
            Ok(wish) => wish.apply(builder),
            Err(_) => builder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_an_address_is_a_request() {
        let words = |query: &str| ViewerRequest::from_query(query).map(|it| it.words().to_owned());
        assert_eq!(words("").unwrap(), "");
        assert_eq!(words("token=0123456789abcdef").unwrap(), "");
        assert_eq!(
            words("max_hz=10&size=320x240&within=200ms&loss=1%2F10").unwrap(),
            "--max-hz 10 --size 320x240 --within 200ms --loss 1/10"
        );
        let error = words("max_hertz=10").unwrap_err();
        assert!(error.contains("--max-hertz") && error.contains("--max-hz,"), "{error}");
        let error = words("max_hz=-1").unwrap_err();
        assert!(error.contains("-1"), "{error}");
        assert!(words("size").is_err());
    }
}
