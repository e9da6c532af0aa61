//! A source of a node's configuration, which the node itself publishes.

use super::args::PubArgs;
use crate::args::SourceSpec;
use clap::Parser as _;
use paceline::Node;
use paceline_tool::exit;
use paceline_tool::stop::Stop;

/// The command line after `paceline pub`.
#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    source: PubArgs,
}

/// A source whose options are valid.
pub(crate) struct ConfiguredSource(PubArgs);

impl ConfiguredSource {
    /// Checks the options of a source.
    ///
    /// # Errors
    /// A usage error that names the tag, the key and the reason.
    pub(crate) fn new(spec: &SourceSpec) -> anyhow::Result<Self> {
        let tag = spec.tag.as_str();
        let words = spec.options.iter().map(String::as_str).chain(["--", tag]);
        let args = Words::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            let line = line.strip_prefix("error: ").unwrap_or(line);
            exit::usage(format!("source {tag}: {}", as_keys(line)))
        })?;
        if super::telemetry::log_file(&args.source).is_some() {
            return Err(exit::usage(format!(
                "source {tag}: file: a .ulg file has many tags; publish it with paceline pub"
            )));
        }
        Ok(Self(PubArgs { quiet: true, ..args.source }))
    }

    /// Publishes the source at `node` until it ends, or until `stop`.
    ///
    /// # Errors
    /// Errors if the source cannot be opened or read, or its tag cannot be published.
    pub(crate) fn publish(&self, node: &Node, stop: &Stop) -> anyhow::Result<()> {
        match super::open::open(&self.0, stop)? {
            Some(opened) => super::publish(&self.0, node, opened, stop).map(drop),
            None => Ok(()),
        }
    }
}

/// Returns a message about options as one about the keys of the configuration.
fn as_keys(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.split_once("--") {
        Some((before, option)) => format!("{before}{}", option.replace('-', "_")),
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_keys() {
        let line = "invalid value '3x' for '--test-card <WxH@HZ>': no size";
        assert_eq!(as_keys(line), "invalid value '3x' for 'test_card <WxH@HZ>': no size");
        let spec = |options: &[&str]| SourceSpec {
            tag: "robot/camera".parse().unwrap(),
            options: options.iter().map(|&it| it.to_owned()).collect(),
        };
        let error = |options: &[&str]| ConfiguredSource::new(&spec(options)).err().unwrap();
        let text = error(&["--rtsp=rtsp://h/s", "--hz=fast"]).to_string();
        assert!(
            text.starts_with("source robot/camera: invalid value 'fast' for 'hz <HZ>'"),
            "{text}"
        );
        let text = error(&["--file=/data/flight.ulg"]).to_string();
        assert!(text.contains("publish it with paceline pub"), "{text}");
        assert!(ConfiguredSource::new(&spec(&["--rtsp=rtsp://h/s", "--rtsp-udp"])).is_ok());
    }
}
