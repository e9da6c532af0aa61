//! Links with frame loss: repairs, their time limits, and permanent losses.

// A single module makes clippy treat the helpers as tests too.
#[cfg(test)]
#[path = "lossy"]
mod lossy {
    mod choices;
    mod far;
    mod network;
    mod path;
    mod promised;
    mod steering;
}
