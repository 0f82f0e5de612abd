//! What the server answers when it cannot give what was asked for: what happened; what was found; what to do.

use stepscope_render::format::{bytes, duration_ms, quoted};

/// What happened; what was found; what to do.
pub(crate) type Explained = [String; 3];

fn explained(what: &str, found: impl Into<String>, todo: &str) -> Explained {
    [what.to_owned(), found.into(), todo.to_owned()]
}

/// A part of a query that cannot be read.
pub(crate) fn bad_query(part: &str, found: &str) -> Explained {
    let found =
        if found.is_empty() { "found nothing".to_owned() } else { format!("found {}", quoted(found)) };
    explained(
        &format!("The request's `{part}` cannot be read"),
        found,
        "Reload the page; if a script asked, see API.md.",
    )
}

/// A request that is too long.
pub(crate) fn too_long() -> Explained {
    explained(
        "The request is too long",
        "found more than the server reads",
        "Ask for fewer tracks at a time.",
    )
}

/// As many queries run as may run at once.
pub(crate) fn busy() -> Explained {
    explained("The server is busy", "found two queries that still run", "Try again in a few seconds.")
}

/// The server was started without a folder to record into.
pub(crate) fn recording_off() -> Explained {
    explained(
        "This server does not record",
        "found no folder to write to",
        "Start it with `stepscope serve PATH --record-into DIR`.",
    )
}

/// Another capture is running.
pub(crate) fn recording() -> Explained {
    explained(
        "A recording is already running",
        "found one that has not ended",
        "Wait for it, or cancel it, then start the next one.",
    )
}

/// Recording needs a token.
pub(crate) fn recording_needs_token() -> Explained {
    explained(
        "--record-into cannot be used with --token=never",
        "found a page that may write to the disk, without a token",
        "Remove --token=never, and open the printed address with its token.",
    )
}

/// Another method than GET.
pub(crate) fn bad_method() -> Explained {
    explained("The server only shows", "found a method that changes things", "Ask with GET or HEAD.")
}

/// A `Host` header that is not ours: another site's name leads here, or a tunnel with another port.
pub(crate) fn foreign_host(found: &str) -> Explained {
    explained(
        "This address is not the server's own",
        if found.is_empty() { "found no Host header".to_owned() } else { format!("found {}", quoted(found)) },
        "Open the address that `stepscope serve` printed; a tunnel needs the same port at both ends.",
    )
}

/// A request that another site's page makes.
pub(crate) fn foreign_origin() -> Explained {
    explained(
        "Another site's page asked for this",
        "found a request across sites",
        "Open the address that `stepscope serve` printed.",
    )
}

/// A wrong or missing token.
pub(crate) fn no_token() -> Explained {
    explained(
        "The server wants its token",
        "found none, or another",
        "Open the whole address that `stepscope serve` printed, with what follows `?token=`.",
    )
}

/// There is no such session, view, track, event or page.
pub(crate) fn missing(what: &str) -> Explained {
    explained(&format!("There is no such {what}"), "found nothing of that name or number", "Reload the page.")
}

/// The report on the fleet cannot be made.
pub(crate) fn no_fleet(why: &str) -> Explained {
    explained("There is no report on the fleet", why, "Check the path and the permissions, then try again.")
}

/// An address that names nothing here.
pub(crate) fn not_an_address(address: &str) -> Explained {
    explained(
        &format!("{} is not an address of this machine", quoted(address)),
        "found nothing of that name",
        "give 127.0.0.1, 0.0.0.0 or the machine's own address after --listen",
    )
}

/// Ports that cannot be had; `why` is the system's word where they are not simply taken.
pub(crate) fn cannot_listen(address: &str, first: u16, last: u16, why: Option<&str>) -> Explained {
    let ports = if first == last { format!("port {first}") } else { format!("ports {first} to {last}") };
    explained(
        &format!("cannot listen on {address}, {ports}"),
        why.unwrap_or("another program listens there"),
        "give another port after --port; 0 takes any that is free",
    )
}

/// The system gave no random bytes.
pub(crate) fn no_random(why: &str) -> Explained {
    explained("no token could be made", why, "listen on 127.0.0.1, which needs none")
}

/// The system does not let the server run.
pub(crate) fn cannot_run(why: &str) -> Explained {
    explained("the server cannot run", why, "check the limits of open files and threads, and try again")
}

/// A session that takes longer to load than it may.
pub(crate) fn too_slow(seconds: f64) -> Explained {
    explained(
        "Loading this session took too long",
        format!("stopped after {}", duration_ms(seconds * 1e3)),
        "Try `stepscope report` on its files, or raise the limit with `stepscope serve --load-time`.",
    )
}

/// A session that needs more memory than it may.
pub(crate) fn too_large(limit: u64) -> Explained {
    explained(
        "This session needs too much memory",
        format!("stopped at {}", bytes(limit as f64)),
        "Try `stepscope report` on its files, or raise the limit with `stepscope serve --memory`.",
    )
}

/// An answer that takes longer than it may.
pub(crate) fn overran(seconds: f64) -> Explained {
    explained(
        "This part took too long",
        format!("stopped waiting after {}", duration_ms(seconds * 1e3)),
        "The other parts are not affected. Ask for less, such as a shorter part of the timeline.",
    )
}

/// A token that cannot be left out.
pub(crate) fn token_needed(address: &str) -> Explained {
    explained(
        &format!("the page cannot do without a token on {}", quoted(address)),
        "other machines can reach this address",
        "leave out --token=never, or listen on 127.0.0.1",
    )
}

/// An error of ours.
pub(crate) fn broken() -> Explained {
    explained(
        "This part failed",
        "found an error in stepscope itself",
        "The other parts are not affected. Please report it with the file, if you may share it.",
    )
}
