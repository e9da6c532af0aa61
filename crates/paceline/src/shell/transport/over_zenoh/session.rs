//! Opens Zenoh sessions.

use zenoh::{Config, Session, Wait as _};

/// Opens a session on a thread of its own: Zenoh panics if it blocks a thread of a current-thread
/// tokio runtime, and the caller may be on one.
///
/// Use this instead of `zenoh::open`, which is generic: each crate that calls it compiles Zenoh's
/// whole start again.
///
/// # Errors
/// Those of `zenoh::open`, for example an address in use.
pub fn open_session(config: Config) -> zenoh::Result<Session> {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("paceline-open".to_owned());
        let opening = named.spawn_scoped(scope, || zenoh::open(config).wait())?;
        opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
