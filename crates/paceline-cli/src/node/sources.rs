//! What the node publishes itself: the cameras, files and test cards of its configuration.

use crate::args::SourceSpec;
use crate::publish::ConfiguredSource;
use paceline::Node;
use paceline_tool::stop::Stop;
use std::thread::JoinHandle;

/// The running sources. Dropping them ends them.
#[derive(Default)]
pub(super) struct Sources(Vec<Running>);

struct Running {
    spec: SourceSpec,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

/// Checks the options of all sources.
///
/// # Errors
/// A usage error that names the tag, the key and the reason.
pub(super) fn check(specs: &[SourceSpec]) -> anyhow::Result<()> {
    specs.iter().try_for_each(|spec| ConfiguredSource::new(spec).map(drop))
}

impl Sources {
    /// Starts the sources of `specs` that do not run, also those that have ended, and ends all others.
    pub(super) fn set(&mut self, node: &Node, specs: &[SourceSpec]) {
        self.0.retain(|running| specs.contains(&running.spec) && !running.has_ended());
        for spec in specs {
            if !self.0.iter().any(|running| running.spec == *spec) {
                match start(node, spec) {
                    Ok(running) => self.0.push(running),
                    Err(error) => tracing::error!("source {}: {error:#}", spec.tag.as_str()),
                }
            }
        }
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        // All end at the same time: a camera takes up to a second.
        self.0.iter().for_each(|running| running.stop.request());
    }
}

fn start(node: &Node, spec: &SourceSpec) -> anyhow::Result<Running> {
    let (source, stop) = (ConfiguredSource::new(spec)?, Stop::default());
    let (node, until, tag) = (node.clone(), stop.clone(), spec.tag.clone());
    let run = move || match source.publish(&node, &until) {
        Ok(()) if until.requested() => {}
        Ok(()) => tracing::info!("source {}: it has ended", tag.as_str()),
        Err(error) => tracing::error!(
            "source {}: {error:#}; it is started again when the configuration is reloaded",
            tag.as_str()
        ),
    };
    let thread = std::thread::Builder::new().name("paceline-source".to_owned()).spawn(run)?;
    Ok(Running { spec: spec.clone(), stop, thread: Some(thread) })
}

impl Running {
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
