//! Words for whoever asks the server for something that it does not give: what; what was found; what to do.

use super::quoted;

/// What; what was found; what to do.
pub type Said = [String; 3];

fn said(what: &str, found: impl Into<String>, todo: &str) -> Said {
    [what.to_owned(), found.into(), todo.to_owned()]
}

/// A part of a query that cannot be read.
pub fn bad_query(part: &str, found: &str) -> Said {
    let found =
        if found.is_empty() { "found nothing".to_owned() } else { format!("found {}", quoted(found)) };
    said(
        &format!("The request's `{part}` cannot be read"),
        found,
        "Reload the page; if a script asked, see API.md.",
    )
}

/// A request that is too long.
pub fn too_long() -> Said {
    said("The request is too long", "found more than the server reads", "Ask for fewer tracks at a time.")
}

/// Another method than GET.
pub fn bad_method() -> Said {
    said("The server only shows", "found a method that changes things", "Ask with GET or HEAD.")
}

/// A `Host` header that is not ours: another site's name leads here, or a tunnel with another port.
pub fn foreign_host(found: &str) -> Said {
    said(
        "This address is not the server's own",
        if found.is_empty() { "found no Host header".to_owned() } else { format!("found {}", quoted(found)) },
        "Open the address that `stepscope serve` printed; a tunnel needs the same port at both ends.",
    )
}

/// A request that another site's page makes.
pub fn foreign_origin() -> Said {
    said(
        "Another site's page asked for this",
        "found a request across sites",
        "Open the address that `stepscope serve` printed.",
    )
}

/// A wrong or missing token.
pub fn no_token() -> Said {
    said(
        "The server wants its token",
        "found none, or another",
        "Open the whole address that `stepscope serve` printed, with what follows `?token=`.",
    )
}

/// There is no such session, view, track, event or page.
pub fn missing(what: &str) -> Said {
    said(&format!("There is no such {what}"), "found nothing of that name or number", "Reload the page.")
}

/// An error of ours.
pub fn broken() -> Said {
    said(
        "This part failed",
        "found an error in stepscope itself",
        "The other parts are not affected. Please report it with the file, if you may share it.",
    )
}
