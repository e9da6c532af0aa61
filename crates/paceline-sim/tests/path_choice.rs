//! Redundant paths between two nodes: the better one is used, and the other takes over after a failure.

#[cfg(test)]
#[path = "path_choice"]
mod path_choice {
    mod links;
    mod paths;
}
