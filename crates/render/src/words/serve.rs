//! Words for whoever asks the server for something that it does not give: what; what was found; what to do.

use stepscope_text::quoted;

use crate::format::{bytes, duration_ms};

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

/// As many queries run as may run at once.
pub fn busy() -> Said {
    said("The server is busy", "found two queries that still run", "Try again in a few seconds.")
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

/// The report on the fleet cannot be made.
pub fn no_fleet(why: &str) -> Said {
    said("There is no report on the fleet", why, "Check the path and the permissions, then try again.")
}

/// An address that names nothing here.
pub fn not_an_address(address: &str) -> Said {
    said(
        &format!("{} is not an address of this machine", quoted(address)),
        "found nothing of that name",
        "give 127.0.0.1, 0.0.0.0 or the machine's own address after --listen",
    )
}

/// Ports that cannot be had; `why` is the system's word where they are not simply taken.
pub fn cannot_listen(address: &str, first: u16, last: u16, why: Option<&str>) -> Said {
    let ports = if first == last { format!("port {first}") } else { format!("ports {first} to {last}") };
    said(
        &format!("cannot listen on {address}, {ports}"),
        why.unwrap_or("another program listens there"),
        "give another port after --port; 0 takes any that is free",
    )
}

/// The system gave no random bytes.
pub fn no_random(why: &str) -> Said {
    said("no token could be made", why, "listen on 127.0.0.1, which needs none")
}

/// The system does not let the server run.
pub fn cannot_run(why: &str) -> Said {
    said("the server cannot run", why, "check the limits of open files and threads, and try again")
}

/// A session that takes longer to load than it may.
pub fn too_slow(seconds: f64) -> Said {
    said(
        "Loading this session took too long",
        format!("stopped after {}", duration_ms(seconds * 1e3)),
        "Try `stepscope report` on its files, or raise the limit with `stepscope serve --load-time`.",
    )
}

/// A session that needs more memory than it may.
pub fn too_large(limit: u64) -> Said {
    said(
        "This session needs too much memory",
        format!("stopped at {}", bytes(limit as f64)),
        "Try `stepscope report` on its files, or raise the limit with `stepscope serve --memory`.",
    )
}

/// An answer that takes longer than it may.
pub fn overran(seconds: f64) -> Said {
    said(
        "This part took too long",
        format!("stopped waiting after {}", duration_ms(seconds * 1e3)),
        "The other parts are not affected. Ask for less, such as a shorter part of the timeline.",
    )
}

/// A token that cannot be left out.
pub fn token_needed(address: &str) -> Said {
    said(
        &format!("the page cannot do without a token on {}", quoted(address)),
        "other machines can reach this address",
        "leave out --token=never, or listen on 127.0.0.1",
    )
}

/// An error of ours.
pub fn broken() -> Said {
    said(
        "This part failed",
        "found an error in stepscope itself",
        "The other parts are not affected. Please report it with the file, if you may share it.",
    )
}
