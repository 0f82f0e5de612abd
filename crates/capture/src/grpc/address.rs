//! The address of a profiler server: `host:port`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The address of a profiler server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name or an IP address, without the brackets of IPv6.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What to call its file, such as the process' part in a job; the host otherwise.
    pub name: Option<String>,
}

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// There is no port.
    #[error("no port in `{0}`")]
    NoPort(String),
    /// The text in place of the port is not a port.
    #[error("`{0}` is not a port")]
    BadPort(String),
    /// The host is missing or contains invalid characters.
    #[error("no host in `{0}`")]
    NoHost(String),
}

impl FromStr for Address {
    type Err = AddressError;

    /// `host:port`, `[::1]:port`; a leading `grpc://`, as some tools write it, is removed.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let bare = text.strip_prefix("grpc://").unwrap_or(text);
        let (host, port) = bare.rsplit_once(':').ok_or_else(|| AddressError::NoPort(text.to_owned()))?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match inner {
            Some(inner) => inner,
            // Colons without brackets: an IPv6 address whose last group was taken for the port.
            None if host.contains(':') => return Err(AddressError::NoPort(text.to_owned())),
            None => host,
        };
        let named = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(named) {
            return Err(AddressError::NoHost(text.to_owned()));
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Address { host: host.to_owned(), port, name: None }),
            _ => Err(AddressError::BadPort(port.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Address {
    /// Whether both are the same process, whatever it is called.
    pub fn is_same_process(&self, other: &Address) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }

    /// The file name of this one among `all`: its own name, or its host, with the port if several share the host.
    pub fn file_stem(&self, all: &[Address]) -> String {
        let named = all.iter().filter(|other| other.name == self.name).count();
        if let Some(name) = self.name.as_ref().filter(|_| named <= 1) {
            return name.clone();
        }
        let host: String = self
            .host
            .chars()
            .map(|c| if c.is_alphanumeric() || "-.".contains(c) { c } else { '_' })
            .collect();
        let shared = all.iter().filter(|other| other.host == self.host).count() > 1;
        if shared { format!("{host}_{}", self.port) } else { host }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_usual_spelling() {
        let read = |text: &str| text.parse::<Address>().map(|address| (address.host, address.port));
        assert_eq!(read("localhost:6009"), Ok(("localhost".to_owned(), 6009)));
        assert_eq!(read("grpc://10.0.0.2:8466"), Ok(("10.0.0.2".to_owned(), 8466)));
        assert_eq!(read("[::1]:9999"), Ok(("::1".to_owned(), 9999)));
        assert_eq!(
            "[::1]:9999".parse::<Address>().map(|address| address.to_string()),
            Ok("[::1]:9999".to_owned())
        );
    }

    #[test]
    fn what_is_wrong_with_an_address_is_told() {
        let error = |text: &str| text.parse::<Address>().err();
        assert_eq!(error("localhost"), Some(AddressError::NoPort("localhost".to_owned())));
        assert_eq!(error("::1"), Some(AddressError::NoPort("::1".to_owned())));
        assert_eq!(error("localhost:http"), Some(AddressError::BadPort("http".to_owned())));
        assert_eq!(error("localhost:0"), Some(AddressError::BadPort("0".to_owned())));
        assert_eq!(error(":6009"), Some(AddressError::NoHost(":6009".to_owned())));
        assert_eq!(error("http://a:80"), Some(AddressError::NoPort("http://a:80".to_owned())));
        assert_eq!(error("../etc:80"), Some(AddressError::NoHost("../etc:80".to_owned())));
    }

    #[test]
    fn files_are_called_by_host_and_by_port_only_where_hosts_repeat() {
        let all: Vec<Address> =
            ["a:1", "b:1", "b:2", "[fe80::1]:3"].iter().filter_map(|text| text.parse().ok()).collect();
        let stems: Vec<String> = all.iter().map(|address| address.file_stem(&all)).collect();
        assert_eq!(stems, ["a", "b_1", "b_2", "fe80__1"]);
    }
}
