//! Shared by the command-line programs of this workspace. It is no stable interface: it changes with
//! the programs.

/// Parsers of command-line values.
pub mod args {
    pub use crate::args::{bytes_in, capacity, rate, seconds, some_duration, whole};
}

/// Parsers of JSON descriptions, with errors that name the field.
pub mod describe {
    pub use crate::describe::{curves, fields, json};
}

/// Exit codes, and errors with an exit code.
pub mod exit {
    pub use crate::exit::{FAILED, INTERRUPTED, refused, report, usage};
}

/// Logging to standard error.
pub mod log {
    pub use crate::log::{argument, for_child, start};
}

/// Temporary folders that are removed on drop.
pub mod scratch {
    pub use crate::scratch::{Scratch, is_gone, make};
}

/// Terminal output.
pub mod show {
    pub use crate::show::{StdoutClosed, note, written};
}

/// Scenario files.
pub mod simulate {
    pub use crate::simulate::source;
}

/// Errors for flags that an earlier version spelled in another way.
pub mod spelling {
    pub use crate::spelling::report;
}

/// Statistics with bounded memory.
pub mod stats {
    pub use crate::stats::Histogram;
}

/// Ending on signals.
pub mod stop {
    pub use crate::stop::{STOP_SLICE, Stop};
}

/// Text tables.
pub mod table {
    pub use crate::table::{Align, Table, WIDTH};
}

/// The thread pools of Zenoh's tasks.
pub mod threads {
    pub use crate::threads::{SHARED, VARIABLE, setting};
}
