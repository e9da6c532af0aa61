//! Classes of links in virtual time.

// One module, so that the helpers too are tests to the lints.
#[cfg(test)]
#[path = "classes"]
mod classes {
    mod shares;
}
