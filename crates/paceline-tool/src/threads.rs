//! The thread pools of Zenoh's tasks in a process.

/// Environment variable that Zenoh reads once, when its first task starts.
pub const VARIABLE: &str = "ZENOH_RUNTIME";

/// Two threads for all tasks. By default Zenoh polls a socket, reads it and writes it in three different
/// pools. Each received frame then wakes one more thread, and each answered frame two more. No Paceline
/// callback blocks these threads.
pub const SHARED: &str = "(rx: (worker_threads: 2), tx: (handover: rx), net: (handover: rx), \
     acc: (handover: rx))";

/// One thread for all tasks, for imports and exports over TLS. Zenoh may read and write a TLS connection from two
/// threads at once, which breaks it (eclipse-zenoh/zenoh issue 2557).
pub const ONE: &str =
    "(rx: (worker_threads: 1), tx: (handover: rx), net: (handover: rx), acc: (handover: rx))";
