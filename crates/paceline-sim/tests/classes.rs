//! Classes of links in virtual time.

// A single module makes clippy treat the helpers as tests too.
#[cfg(test)]
#[path = "classes"]
mod classes {
    mod shares;
}
