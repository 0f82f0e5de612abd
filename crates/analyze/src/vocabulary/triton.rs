//! Names of Triton's trace: what a model does for a request.

use super::{CopyDirection, Role};

pub(super) fn role(name: &str, category: &str) -> Option<Role> {
    match (category, name) {
        ("triton", "compute") => Some(Role::Op),
        ("triton", "compute input") => Some(Role::HostCopy(CopyDirection::In)),
        ("triton", "compute output") => Some(Role::HostCopy(CopyDirection::Out)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_within_their_category_only() {
        assert_eq!(role("compute", "triton"), Some(Role::Op));
        assert_eq!(role("compute", ""), None);
    }
}
