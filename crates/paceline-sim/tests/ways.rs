//! More than one way between two nodes: the better one is used, the other takes over.

#[cfg(test)]
#[path = "ways"]
mod ways {
    mod links;
    mod paths;
}
