//! Finds profiles below a path.
