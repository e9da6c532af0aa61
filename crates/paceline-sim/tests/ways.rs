//! Redundant paths between two nodes: the better one is used, and the other takes over after a failure.

#[cfg(test)]
#[path = "ways"]
mod ways {
    mod links;
    mod paths;
}
