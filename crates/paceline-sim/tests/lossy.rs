//! Links whose frames may be lost: what is mended, by when, and what is not.

// One module, so that the helpers too are tests to the lints.
#[cfg(test)]
#[path = "lossy"]
mod lossy {
    mod choices;
    mod network;
    mod promised;
    mod steering;
    mod way;
}
