//! What is said of a request that brought no answer of the host's: nobody is there, its certificate
//! is not believed, or the connection ended while the answer was awaited.

use std::io;

use oncue_core::code::Code;
use tokio_rustls::rustls::{self, CertificateError};
use ureq::Timeout;

use crate::exit::Failure;

/// Whom a request was for.
pub(super) struct Asked<'a> {
    /// The host's address.
    pub(super) base: &'a str,
    /// The file whose certificates alone vouch for the host.
    pub(super) ca_file: Option<&'a str>,
    /// What to say when it is not known whether the request was done.
    pub(super) when_unknown: Option<&'a str>,
}

impl Asked<'_> {
    /// The failure: no answer came, because of `error`.
    pub(super) fn failure(&self, error: &ureq::Error) -> Failure {
        let base = self.base;
        if let Some(distrust) = distrusted(error) {
            let message = format!("host \"{base}\" {}", self.distrust(distrust));
            return Failure::coded(Code::Unreachable, message);
        }
        let fact = match error {
            _ if !may_have_arrived(error) => {
                let message = format!(
                    "host \"{base}\" does not answer ({error}); start it with \"oncue serve\", or \
                     name another with --url"
                );
                return Failure::coded(Code::Unreachable, message);
            }
            ureq::Error::Timeout(_) => "did not answer in time".to_owned(),
            _ => format!("ended the connection before its answer was whole ({error})"),
        };
        match self.when_unknown {
            Some(unknown) => Failure::coded(
                Code::CommitUnknown,
                format!("host \"{base}\" {fact}: {unknown}"),
            ),
            None => {
                let message = format!("host \"{base}\" {fact}; see whether it is busy or gone");
                Failure::coded(Code::Unreachable, message)
            }
        }
    }

    fn distrust(&self, why: &CertificateError) -> String {
        use CertificateError as Why;
        match (why, self.ca_file) {
            (Why::UnknownIssuer, None) => "has a certificate that this machine does not know; if \
                it is self-signed or of your own authority, name the file that vouches for it with \
                --ca-file"
                .to_owned(),
            (Why::UnknownIssuer | Why::BadSignature, Some(file)) => format!(
                "has a certificate for which \"{file}\" does not vouch; name the right file with \
                 --ca-file, or leave it out to trust what this machine does"
            ),
            (Why::NotValidForName | Why::NotValidForNameContext { .. }, _) => {
                format!("has a certificate for another name ({why}); name it so with --url")
            }
            (Why::Expired | Why::ExpiredContext { .. }, _) => {
                "has a certificate that has expired; renew it on the host".to_owned()
            }
            _ => format!("has a certificate that cannot be believed ({why})"),
        }
    }
}

/// Why the host's certificate was not believed, if that is what happened.
fn distrusted(error: &ureq::Error) -> Option<&CertificateError> {
    let inner = match error {
        ureq::Error::Rustls(inner) => inner,
        ureq::Error::Io(error) => tls_error(error)?,
        _ => return None,
    };
    match inner {
        rustls::Error::InvalidCertificate(why) => Some(why),
        _ => None,
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner
        .downcast_ref()
        .or_else(|| inner.source()?.downcast_ref())
}

/// Whether the host may have read the request: the connection had come about.
fn may_have_arrived(error: &ureq::Error) -> bool {
    use io::ErrorKind as Kind;
    match error {
        ureq::Error::Timeout(phase) => !matches!(phase, Timeout::Resolve | Timeout::Connect),
        ureq::Error::Io(error) => {
            tls_error(error).is_none()
                && !matches!(
                    error.kind(),
                    Kind::ConnectionRefused
                        | Kind::HostUnreachable
                        | Kind::NetworkUnreachable
                        | Kind::AddrNotAvailable
                )
        }
        ureq::Error::Protocol(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::super::{Client, Request};
    use crate::exit::Exit;

    /// Somebody who reads a request, writes these bytes and hangs up.
    fn cut_off(answer: &'static [u8]) -> (String, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let host = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a client");
            let mut byte = [0];
            // To the end of the body, which is an exclamation mark.
            while byte != *b"!" {
                connection.read_exact(&mut byte).expect("a request");
            }
            connection.write_all(answer).expect("written");
        });
        (url, host)
    }

    #[test]
    fn a_request_that_was_cut_off_may_have_been_done() {
        for answer in [
            &b""[..],
            b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{",
        ] {
            let ask = |request: Request| {
                let (url, host) = cut_off(answer);
                let client = Client::new(&url, Duration::from_secs(60)).expect("a client");
                let failure = client.send(request).err().expect("cut off");
                host.join().expect("it ends");
                failure
            };
            let post = || Request::post(&["queues", "q", "messages"]).body(b"!".to_vec());
            let failure = ask(post().when_unknown("nobody knows"));
            assert_eq!(failure.exit, Exit::Failed, "{failure}");
            assert!(
                failure.message.contains("ended the connection")
                    && failure.message.ends_with(": nobody knows [commit-unknown]"),
                "{failure}"
            );
            let failure = ask(post());
            assert_eq!(failure.exit, Exit::Unreachable, "{failure}");
            assert!(
                failure.message.contains("ended the connection"),
                "{failure}"
            );
        }
    }

    #[test]
    fn where_nobody_listens_nothing_was_done() {
        // The port was free a moment ago; nobody listens on it.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let client = Client::new(&address.to_string(), Duration::from_secs(5)).expect("a client");
        let request = Request::get(&["status"]).when_unknown("nobody knows");
        let failure = client.send(request).err().expect("nobody answers");
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(failure.message.contains("does not answer"), "{failure}");
        assert!(failure.message.ends_with("[unreachable]"), "{failure}");
    }
}
