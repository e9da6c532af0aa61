//! Which threads Zenoh's tasks of this process run on.

use crate::config;
use std::path::PathBuf;

/// How an endpoint with TLS begins.
const TLS: &str = "tls/";

/// Where Zenoh reads it, once, when its first task starts.
pub(crate) const VARIABLE: &str = "ZENOH_RUNTIME";

/// Two threads for everything. As Zenoh has it by default the thread that waits at a socket belongs to one
/// pool and the task that reads it to another, and a third one writes: every frame that comes wakes one thread more,
/// every one that is answered two. No callback of ours waits on them.
pub(crate) const SHARED: &str = "(rx: (worker_threads: 2), tx: (handover: rx), net: (handover: rx), \
     acc: (handover: rx))";

/// One thread for everything, where a connection is encrypted: Zenoh may read and write a TLS connection from two threads at
/// the same time, which breaks it (eclipse-zenoh/zenoh issue 2557). A node refuses TLS without this.
const ONE: &str =
    "(rx: (worker_threads: 1), tx: (handover: rx), net: (handover: rx), acc: (handover: rx))";

/// What stands for Zenoh's own threads, for what is measured against it.
pub(crate) const ZENOH: &str = "()";

/// Sets [`SHARED`], or [`ONE`] for a process that uses TLS, unless the environment says something. To be called before there
/// is a second thread.
pub(crate) fn share() {
    if std::env::var_os(VARIABLE).is_none() {
        let threads = if uses_tls() { ONE } else { SHARED };
        #[expect(unsafe_code, reason = "Zenoh takes it from the environment alone")]
        // SAFETY: `main` calls it before it starts anything, so no other thread reads the environment.
        unsafe {
            std::env::set_var(VARIABLE, threads);
        }
    }
}

/// Whether an argument, or the text of the configuration that holds, names an endpoint with TLS.
fn uses_tls() -> bool {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let args = args.iter().map(|arg| arg.to_string_lossy());
    let named = args.clone().map(|arg| PathBuf::from(arg.trim_start_matches("--config=")));
    let configs = named.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let mut texts = configs.chain(config::find()).filter_map(|path| config::text(&path).ok());
    args.into_iter().any(|arg| arg.contains(TLS)) || texts.any(|text| text.contains(TLS))
}
