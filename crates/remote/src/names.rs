//! Names of folders that a store allows and a path does not: an empty one, as in `logs//run`, and `.` and `..`.
//!
//! Scripts that join names with one slash too many leave keys with `//` behind. The stores' library refuses a whole list
//! for one of them, and a path of the file system takes `a//b` for `a/b`. So an empty name has a sign of its own in URLs,
//! from the list until the request.

use object_store::path::{Path, PathPart};

/// The sign of an empty name.
pub(crate) const EMPTY: &str = "∅";
/// Elements of lists that hold keys, of S3 and Google, and of Azure.
const KEYS: [&str; 3] = ["<Key>", "<Prefix>", "<Name>"];

/// A key with signs for names that a path cannot hold. A slash at its end stays what it is.
pub(crate) fn signed(key: &str) -> String {
    if key.is_empty() {
        return String::new();
    }
    let (key, end) = key.strip_suffix('/').map_or((key, ""), |key| (key, "/"));
    let names = key.split('/').map(|name| match name {
        "" => EMPTY.to_owned(),
        // No request can name them: a URL resolves them. A request for the sign says that there is no such object.
        "." | ".." => format!("{EMPTY}{name}"),
        name => name.to_owned(),
    });
    names.collect::<Vec<_>>().join("/") + end
}

/// The key as the store knows it.
pub(crate) fn unsigned(key: &str) -> String {
    let names = key.split('/').map(|name| if name == EMPTY { "" } else { name });
    names.collect::<Vec<_>>().join("/")
}

/// The same as the stores' library takes it. A key that begins with a slash cannot be written, and keeps its sign: no other
/// object may be read in its place.
pub(crate) fn path(key: &str) -> Path {
    let mut path = Path::ROOT;
    for name in key.split('/').filter(|name| !name.is_empty()) {
        let empty = name == EMPTY && !path.is_root();
        path = path.join(if empty { PathPart::default() } else { PathPart::parse(name).unwrap_or_default() });
    }
    path
}

/// A list with signs in its keys; `None` if it needs none.
pub(crate) fn signed_list(list: &str) -> Option<String> {
    let (mut out, mut rest, mut changed) = (String::new(), list, false);
    while let Some(at) = rest.find('<') {
        let Some((before, tag)) = rest.split_at_checked(at) else { break };
        out.push_str(before);
        let Some(start) = KEYS.iter().find(|start| tag.starts_with(*start)) else {
            out.push('<');
            rest = tag.get(1..).unwrap_or_default();
            continue;
        };
        let text = tag.get(start.len()..).unwrap_or_default();
        let (key, after) = text.split_at_checked(text.find('<').unwrap_or(text.len())).unwrap_or((text, ""));
        let named = signed(key);
        changed |= named != key;
        out.push_str(start);
        out.push_str(&named);
        rest = after;
    }
    out.push_str(rest);
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_has_a_sign_and_returns_to_the_store_as_it_was() {
        for (key, sign) in [
            ("logs//run/x.pb", "logs/∅/run/x.pb"),
            ("a///b", "a/∅/∅/b"),
            ("logs//", "logs/∅/"),
            ("/x", "∅/x"),
        ] {
            assert_eq!(signed(key), sign);
            assert_eq!(unsigned(sign), key);
        }
        assert_eq!(signed("a/../b"), "a/∅../b");
        assert_eq!(path("logs/∅/run 1/50%.pb").as_ref(), "logs//run 1/50%.pb");
        assert_eq!(path("∅/x").as_ref(), "∅/x", "not the object `x`");
        assert_eq!(path(""), Path::ROOT);
    }

    #[test]
    fn only_the_keys_of_a_list_get_signs() {
        let list = "<L xmlns=\"http://s3\"><Prefix></Prefix><Contents><Key>a//b</Key><ETag>\"x//y\"</ETag></Contents>\
                    <CommonPrefixes><Prefix>a//</Prefix></CommonPrefixes></L>";
        let signed = signed_list(list).unwrap();
        assert_eq!(signed, list.replace("a//b", "a/∅/b").replace("a//<", "a/∅/<"));
        assert_eq!(signed_list(&signed), None);
        for damaged in ["", "<", "<Key>", "<Key>a/b", "<Name>x</Name", "ä<Key>ü"] {
            assert_eq!(signed_list(damaged), None, "{damaged}");
        }
    }
}
