//! Access control. The server shows what is on the user's disk, so a foreign page must not be able to reach it
//! through the user's browser: neither by cross-site requests (`Origin`, `Sec-Fetch-Site`), nor through its own
//! name that points to this machine (`Host`). If other machines or other users of this one can reach the server, it also
//! requires a token: in the address that it prints, and then in a cookie.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::Refusal;

/// The header in which the page sends the token.
pub(crate) const TOKEN_HEADER: &str = "x-stepscope-token";

/// The header that a request which changes something has to carry. A foreign page cannot send it without asking first,
/// and is refused.
pub(crate) const ACTION_HEADER: &str = "x-stepscope-action";

/// Headers that decide whether a request is answered; each may come once.
const DECIDING: [HeaderName; 7] = [
    HOST,
    ORIGIN,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("sec-fetch-mode"),
    HeaderName::from_static("sec-fetch-dest"),
    HeaderName::from_static(TOKEN_HEADER),
    HeaderName::from_static(ACTION_HEADER),
];

/// Shown in place of a host that came more than once, or that is no text.
const REPEATED: &str = "several hosts";

/// The server's own names and token.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Names under which the server may be addressed, without ports.
    names: Vec<String>,
    /// True if it listens on every address: any IP address is accepted, foreign names are not.
    any_number: bool,
    port: u16,
    token: Option<String>,
}

impl Guard {
    /// The guard of a server that listens on `address`, as the user named it.
    pub(crate) fn new(address: SocketAddr, told: &str, token: Option<String>) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let told = [host_text(address.ip()), told.to_ascii_lowercase()];
        Guard {
            names: own.into_iter().chain(told).collect(),
            any_number: address.ip().is_unspecified(),
            port: address.port(),
            token,
        }
    }

    /// Checks the headers of any request.
    pub(crate) fn admit(&self, headers: &HeaderMap, is_api: bool) -> Result<(), Refusal> {
        // A second one, or one that is no text: what another program on the way makes of it is unknown.
        let is_odd = |name: &HeaderName| {
            let mut all = headers.get_all(name).iter();
            all.next().is_some_and(|first| first.to_str().is_err()) || all.next().is_some()
        };
        if let Some(name) = DECIDING.iter().find(|name| is_odd(name)) {
            return Err(if *name == HOST { Refusal::Host(REPEATED.to_owned()) } else { Refusal::Origin });
        }
        let host = text(headers, HOST).unwrap_or("");
        if !self.is_ours(host) {
            return Err(Refusal::Host(host.chars().take(80).collect()));
        }
        if headers.contains_key(ORIGIN) {
            let origin = text(headers, ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|origin| self.is_ours(origin)) {
                return Err(Refusal::Origin);
            }
        }
        let fetch = |name: &'static str| text(headers, HeaderName::from_static(name)).unwrap_or("");
        let foreign = matches!(fetch("sec-fetch-site"), "cross-site" | "same-site");
        // Following a link to the page is fine. Data must not leak, and the page cannot be framed.
        let follows_link =
            !is_api && fetch("sec-fetch-mode") == "navigate" && fetch("sec-fetch-dest") == "document";
        if foreign && !follows_link { Err(Refusal::Origin) } else { Ok(()) }
    }

    /// Checks a request that changes something, on top of [`Guard::admit`]: it names the server's own page as its origin and
    /// carries the header of such requests. Browsers name the origin of every request of this kind.
    pub(crate) fn admit_writing(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let fetched = text(headers, HeaderName::from_static("sec-fetch-site"));
        let ours = headers.contains_key(ORIGIN)
            && headers.contains_key(ACTION_HEADER)
            && matches!(fetched, None | Some("same-origin"));
        // `admit` has compared the origin with the server's names; it must also be the address that was asked.
        let origin = text(headers, ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        let same =
            origin.zip(text(headers, HOST)).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host));
        if ours && same { Ok(()) } else { Err(Refusal::Origin) }
    }

    /// Checks the token of a request for data: in its header, its address or its cookie, and in this order.
    pub(crate) fn admit_token(&self, headers: &HeaderMap, in_query: Option<&str>) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = text(headers, HeaderName::from_static(TOKEN_HEADER)).or(in_query);
        let given = given.or_else(|| self.in_cookie(headers)).unwrap_or("");
        if equal(token.as_bytes(), given.as_bytes()) { Ok(()) } else { Err(Refusal::Token) }
    }

    /// The cookie that replaces the token from now on, for a visit with the right token in its address.
    pub(crate) fn cookie(&self, in_query: Option<&str>) -> Option<HeaderValue> {
        let (token, given) = (self.token.as_ref()?, in_query?);
        // Not readable by scripts, and never sent along by pages of other sites.
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name());
        HeaderValue::try_from(cookie).ok().filter(|_| equal(token.as_bytes(), given.as_bytes()))
    }

    /// Browsers share cookies between the ports of a machine, so the port is part of the name.
    fn cookie_name(&self) -> String {
        format!("stepscope-{}", self.port)
    }

    fn in_cookie<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let name = self.cookie_name();
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Whether this `name:port` is one of the server's own.
    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            // A colon inside brackets is part of the address.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        let name = name.to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let known = self.names.contains(&name) || (self.any_number && bare.parse::<IpAddr>().is_ok());
        known && port == Some(self.port)
    }
}

/// An address as written in a URL.
pub(crate) fn host_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => format!("[{six}]"),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok())
}

/// Compares in constant time, so that timing does not reveal how much of a guess was right.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

/// Sixteen random bytes from the system, in hexadecimal.
pub(crate) fn new_token() -> std::io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether processes of other people run on this machine. Where that is not known, none are assumed.
pub(crate) fn others_are_here() -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        /// The system's own users come before these, `nobody` behind them.
        const PEOPLE: std::ops::Range<u32> = 1_000..65_534;
        let user = |path: &std::path::Path| std::fs::metadata(path).ok().map(|data| data.uid());
        let own = user(std::path::Path::new("/proc/self"));
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_process =
            |name: &std::ffi::OsStr| name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let users = processes.filter(|entry| is_process(&entry.file_name())).map(|entry| user(&entry.path()));
        users.flatten().any(|user| Some(user) != own && PEOPLE.contains(&user))
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// Headers of every answer.
pub(crate) const HEADERS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn guard(address: &str, told: &str, token: Option<&str>) -> Guard {
        Guard::new(address.parse().unwrap(), told, token.map(str::to_owned))
    }

    #[test]
    fn only_our_own_names_and_port_are_served() {
        let guard = guard("127.0.0.1:6200", "127.0.0.1", None);
        for host in ["localhost:6200", "127.0.0.1:6200", "[::1]:6200", "LOCALHOST:6200"] {
            assert!(guard.admit(&headers(&[("host", host)]), true).is_ok(), "{host}");
        }
        for host in [
            "evil.example:6200",
            "localhost",
            "localhost:80",
            "127.0.0.1.evil.example:6200",
            "",
            "[::1]",
            "::1",
            "127.0.0.2:6200",
        ] {
            assert!(guard.admit(&headers(&[("host", host)]), true).is_err(), "{host}");
        }
        assert!(guard.admit(&headers(&[]), true).is_err(), "a request without a host");
    }

    #[test]
    fn pages_of_others_are_refused() {
        let guard = guard("127.0.0.1:6200", "127.0.0.1", None);
        let ask = |more: &[(&'static str, &str)], api| {
            guard.admit(&headers(&[&[("host", "localhost:6200")], more].concat()), api).is_ok()
        };
        assert!(ask(&[("origin", "http://localhost:6200"), ("sec-fetch-site", "same-origin")], true));
        for origin in ["http://evil.example", "null", "https://localhost:6200", "http://localhost:3000", "x"]
        {
            assert!(!ask(&[("origin", origin)], true), "{origin}");
        }
        assert!(!ask(&[("sec-fetch-site", "cross-site")], true));
        assert!(!ask(&[("sec-fetch-site", "cross-site")], false));
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert!(ask(&link, false), "a link to the page");
        assert!(!ask(&link, true), "a link to data");
    }

    #[test]
    fn what_decides_comes_once_and_is_text() {
        let guard = guard("127.0.0.1:6200", "127.0.0.1", None);
        let ours =
            [("host", "localhost:6200"), ("origin", "http://localhost:6200"), ("sec-fetch-site", "none")];
        assert!(guard.admit(&headers(&ours), true).is_ok());
        for (name, other) in [
            ("host", "evil.example:6200"),
            ("host", "localhost:6200"),
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            (TOKEN_HEADER, "x"),
        ] {
            let mut twice = headers(&ours);
            twice.append(HeaderName::from_static(name), "none".parse().unwrap());
            twice.append(HeaderName::from_static(name), other.parse().unwrap());
            assert!(guard.admit(&twice, true).is_err(), "{name}: {other}");
        }
        for name in ["host", "origin", "sec-fetch-site"] {
            let mut odd = headers(&ours);
            odd.insert(HeaderName::from_static(name), HeaderValue::from_bytes(b"cross-site\xff").unwrap());
            assert!(guard.admit(&odd, true).is_err(), "{name}");
        }
    }

    #[test]
    fn beyond_this_machine_a_token_is_wanted() {
        let guard = guard("0.0.0.0:6200", "0.0.0.0", Some("secret"));
        assert!(guard.admit(&headers(&[("host", "192.168.1.5:6200")]), true).is_ok());
        assert!(guard.admit(&headers(&[("host", "evil.example:6200")]), true).is_err());
        assert!(guard.admit_token(&headers(&[]), None).is_err());
        assert!(guard.admit_token(&headers(&[]), Some("secre")).is_err());
        assert!(guard.admit_token(&headers(&[]), Some("secret")).is_ok());
        assert!(guard.admit_token(&headers(&[(TOKEN_HEADER, "secret")]), None).is_ok());
        assert!(guard.admit_token(&headers(&[(TOKEN_HEADER, "wrong!")]), Some("secret")).is_err());
    }

    #[test]
    fn a_cookie_replaces_the_token_after_the_first_visit() {
        let guard = guard("127.0.0.1:6200", "127.0.0.1", Some("secret"));
        assert_eq!(guard.cookie(None), None);
        assert_eq!(guard.cookie(Some("wrong!")), None);
        let cookie = guard.cookie(Some("secret")).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let sent = format!("other=1; {}", cookie.split(';').next().unwrap());
        assert!(guard.admit_token(&headers(&[("cookie", &sent)]), None).is_ok());
        for wrong in ["stepscope-6200=wrong!", "stepscope-6201=secret", "secret", "stepscope-6200", ""] {
            assert!(guard.admit_token(&headers(&[("cookie", wrong)]), None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (new_token().unwrap(), new_token().unwrap());
        assert_eq!(a.len(), 32);
        assert_ne!(a, b);
    }
}
