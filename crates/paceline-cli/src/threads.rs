//! Which threads Zenoh's tasks of this process run on.

/// Where Zenoh reads it, once, when its first task starts.
pub(crate) const VARIABLE: &str = "ZENOH_RUNTIME";

/// Two threads for everything. As Zenoh has it by default the thread that waits at a socket belongs to one
/// pool and the task that reads it to another, and a third one writes: every frame that comes wakes one thread more,
/// every one that is answered two. No callback of ours waits on them.
pub(crate) const SHARED: &str = "(rx: (worker_threads: 2), tx: (handover: rx), net: (handover: rx), \
     acc: (handover: rx))";

/// What stands for Zenoh's own threads, for what is measured against it.
pub(crate) const ZENOH: &str = "()";

/// Chooses [`SHARED`] unless the environment says something. To be called before there is a second thread.
pub(crate) fn share() {
    if std::env::var_os(VARIABLE).is_none() {
        #[expect(unsafe_code, reason = "Zenoh takes it from the environment alone")]
        // SAFETY: `main` calls it before it starts anything, so no other thread reads the environment.
        unsafe {
            std::env::set_var(VARIABLE, SHARED);
        }
    }
}
