//! Text in headers: [`oncue_core::escape`] as values of the HTTP library.

use axum::http::HeaderValue;

pub(crate) use oncue_core::escape::{decode, encode_name};

/// Writes a text as a header value.
pub(crate) fn encode(text: &str) -> HeaderValue {
    let value = oncue_core::escape::encode(text);
    HeaderValue::try_from(value).expect("only visible ASCII and inner spaces are written")
}
