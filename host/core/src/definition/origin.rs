//! Origins on the web, for grants: scheme, host and port, and nothing below them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use super::raw::shown_text;

/// Longest host name, bytes: what DNS takes.
const MAX_HOST: usize = 253;
/// Longest label of a host name, bytes.
const MAX_LABEL: usize = 63;
/// The port of `http` where none is named.
const HTTP_PORT: u16 = 80;
/// The port of `https` where none is named.
const HTTPS_PORT: u16 = 443;

/// What can be named.
const FORM: &str = "name a scheme, a host and, if it is not the usual one, a port, such as \
                    \"https://api.example.com\" or \"http://127.0.0.1:8080\"";

/// The hosts of an origin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Hosts {
    /// This one, in lower case: a name or an address, an IPv6 address in brackets.
    One(String),
    /// Every name that ends so, at any depth: `.example.com`. The domain itself is not one of them.
    Under(String),
}

/// Where requests may go: `https://api.example.com`, `http://127.0.0.1:8080`,
/// `https://*.example.com`.
///
/// Compared by name: what a name stands for is for DNS to say at the time of the request. A
/// wildcard stands for one label or more in front of a domain of two labels or more, and never for
/// that domain itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebOrigin {
    https: bool,
    hosts: Hosts,
    port: u16,
}

impl WebOrigin {
    /// Reads an origin.
    ///
    /// # Errors
    /// What is wrong and what to do, without the object.
    pub fn new(text: &str) -> Result<Self, String> {
        let is = || format!("is {}", shown_text(text));
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("{}, which has no scheme; {FORM}", is()));
        };
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => {
                let scheme = shown_text(scheme);
                return Err(format!(
                    "{}, whose scheme {scheme} is unknown; use https or http",
                    is()
                ));
            }
        };
        if rest.contains(['/', '?', '#']) {
            return Err(format!(
                "{}, which goes past the origin; end it after the host or the port: a grant is for \
                 all paths",
                is()
            ));
        }
        if rest.contains('@') {
            return Err(format!(
                "{}, which names a user; remove it, the handler sends its own headers",
                is()
            ));
        }
        let (host, port) = split_port(rest)
            .ok_or_else(|| format!("{}, whose port is not 1 to 65535; {FORM}", is()))?;
        let hosts = hosts(host).map_err(|fact| format!("{}, {fact}", is()))?;
        Ok(Self {
            https,
            hosts,
            port: port.unwrap_or(if https { HTTPS_PORT } else { HTTP_PORT }),
        })
    }

    /// Whether a request there is covered: the scheme, the host as a URI has it (an IPv6 address in
    /// brackets), the port or none for the scheme's own.
    #[must_use]
    pub fn covers(&self, https: bool, host: &str, port: Option<u16>) -> bool {
        let usual = if https { HTTPS_PORT } else { HTTP_PORT };
        let host = host.to_ascii_lowercase();
        let is_named = match &self.hosts {
            Hosts::One(one) => match (address(one), address(&host)) {
                // An address has more than one form.
                (Some(one), Some(other)) => one == other,
                _ => *one == host,
            },
            Hosts::Under(domain) => host.strip_suffix(domain.as_str()).is_some_and(is_name),
        };
        is_named && self.https == https && self.port == port.unwrap_or(usual)
    }
}

/// A host and the port behind it; none when that is no port.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let end = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some(colon) = text[end..].rfind(':').map(|at| end + at) else {
        return Some((text, None));
    };
    let (host, port) = (&text[..colon], &text[colon + 1..]);
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| *port != 0 && digits)?;
    Some((host, Some(port)))
}

/// An address, in brackets if it is of IPv6.
fn address(host: &str) -> Option<IpAddr> {
    match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(Into::into),
        None => host.parse::<Ipv4Addr>().ok().map(Into::into),
    }
}

/// Labels of letters, digits and hyphens between dots.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_HOST && text.split('.').all(is_label)
}

fn hosts(text: &str) -> Result<Hosts, String> {
    let host = text.to_ascii_lowercase();
    if let Some(domain) = host.strip_prefix("*.") {
        if !is_name(domain) || address(domain).is_some() {
            return Err("whose host is none behind the *; write *.example.com".to_owned());
        }
        if !domain.contains('.') {
            return Err(format!(
                "which covers all of \"{domain}\"; name at least two labels behind the *"
            ));
        }
        return Ok(Hosts::Under(format!(".{domain}")));
    }
    if host.contains('*') {
        return Err(
            "whose * does not stand alone in front; write *.example.com, or name each host"
                .to_owned(),
        );
    }
    if host.starts_with('[') {
        return match address(&host) {
            Some(_) => Ok(Hosts::One(host)),
            None => Err("whose host is no IPv6 address; write such as [::1]".to_owned()),
        };
    }
    if !host.is_ascii() {
        return Err("whose host is not ASCII; write its xn-- form".to_owned());
    }
    if !is_name(&host) {
        return Err(format!("whose host is no name and no address; {FORM}"));
    }
    // What ends in a number is an address to every resolver, in forms that hide what they mean.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if is_number && address(&host).is_none() {
        return Err("whose host is no IPv4 address; write four numbers from 0 to 255".to_owned());
    }
    Ok(Hosts::One(host))
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = if self.https {
            ("https", HTTPS_PORT)
        } else {
            ("http", HTTP_PORT)
        };
        let (star, host) = match &self.hosts {
            Hosts::One(host) => ("", host),
            Hosts::Under(domain) => ("*", domain),
        };
        write!(formatter, "{scheme}://{star}{host}")?;
        if self.port == usual {
            return Ok(());
        }
        write!(formatter, ":{}", self.port)
    }
}

impl fmt::Debug for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the origin is written as, and whether it covers a request.
    fn check(origin: &str, written: &str, (https, host, port): (bool, &str, u16), wanted: bool) {
        let origin = WebOrigin::new(origin).unwrap_or_else(|fact| panic!("{origin} {fact}"));
        assert_eq!(origin.to_string(), written);
        let again = WebOrigin::new(written).expect("its own form");
        assert_eq!(again, origin);
        let covers = origin.covers(https, host, Some(port));
        assert_eq!(covers, wanted, "{origin} on {host}:{port}");
    }

    #[test]
    fn an_origin_covers_itself_alone() {
        let api = ("https://api.example.com", "https://api.example.com");
        check(api.0, api.1, (true, "api.example.com", 443), true);
        check(api.0, api.1, (true, "API.example.COM", 443), true);
        check(api.0, api.1, (false, "api.example.com", 443), false);
        check(api.0, api.1, (true, "api.example.com", 8443), false);
        check(api.0, api.1, (true, "api.example.com.", 443), false);
        check(api.0, api.1, (true, "v2.api.example.com", 443), false);
        check(api.0, api.1, (true, "api.example.com.evil.org", 443), false);
        let usual = WebOrigin::new("http://a.b").expect("an origin");
        assert!(usual.covers(false, "a.b", None) && !usual.covers(true, "a.b", None));
        check("HTTP://A.B:80", "http://a.b", (false, "a.b", 80), true);
        let local = "http://127.0.0.1:8080";
        check(local, local, (false, "127.0.0.1", 8080), true);
        check(local, local, (false, "127.0.0.1", 80), false);
        check(local, local, (false, "localhost", 8080), false);
        check(
            "http://[::1]:8080",
            "http://[::1]:8080",
            (false, "[0:0::1]", 8080),
            true,
        );
    }

    #[test]
    fn a_wildcard_covers_what_is_below_a_domain() {
        let all = "https://*.example.com";
        for (host, wanted) in [
            ("api.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            (".example.com", false),
            ("badexample.com", false),
            ("api.example.com.evil.org", false),
            ("x@api.example.com", false),
        ] {
            check(all, all, (true, host, 443), wanted);
        }
    }

    #[test]
    fn a_malformed_origin_is_refused_in_words() {
        for (text, words) in [
            ("api.example.com", "has no scheme"),
            ("ftp://a.b", "whose scheme \"ftp\" is unknown"),
            ("https://a.b/", "goes past the origin"),
            ("https://a.b?x", "goes past the origin"),
            ("https://u:p@a.b", "names a user"),
            ("https://a.b:0", "port is not 1 to 65535"),
            ("https://a.b:", "port is not 1 to 65535"),
            ("https://a.b:65536", "port is not 1 to 65535"),
            ("https://a.b:+1", "port is not 1 to 65535"),
            ("https://", "no name and no address"),
            ("https://a..b", "no name and no address"),
            ("https://a b", "no name and no address"),
            ("https://-a.b", "no name and no address"),
            ("https://*", "does not stand alone"),
            ("https://a.*.com", "does not stand alone"),
            ("https://*.com", "covers all of \"com\""),
            ("https://*.", "none behind the *"),
            ("https://*.1.2.3.4", "none behind the *"),
            ("https://größe.de", "xn--"),
            ("http://127.1", "no IPv4 address"),
            ("http://2130706433", "no IPv4 address"),
            ("http://0x7f.0.0.0x1", "no IPv4 address"),
            ("http://[::1", "no IPv6 address"),
            ("http://[127.0.0.1]", "no IPv6 address"),
        ] {
            let fact = WebOrigin::new(text).expect_err(text);
            assert!(fact.starts_with("is \"") && fact.contains(words), "{fact}");
        }
    }
}
