//! Films of hand-made bytes.
