//! The limit of the time for planning.

/// Returns the time that remains for planning. Zero ends the search with the best plan so far.
pub type Remaining<'a> = dyn FnMut() -> core::time::Duration + 'a;
