//! Style, script, icon and the vendored libraries: in the binary, under addresses that change with
//! their content, so that a browser may keep them for good.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

/// Hexadecimal digits of a file's hash in its address.
const HASH_DIGITS: usize = 16;

/// A file of the console.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/", $name)),
        }
    };
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All of them.
const ASSETS: [Asset; 6] = [
    asset!("console.css", CSS),
    asset!("console.js", SCRIPT),
    asset!("htmx-4.0.1.min.js", SCRIPT),
    asset!("uplot-1.6.32.min.css", CSS),
    asset!("uplot-1.6.32.min.js", SCRIPT),
    asset!("icon.svg", "image/svg+xml"),
];

/// The address of each.
static ADDRESSES: LazyLock<[String; ASSETS.len()]> = LazyLock::new(|| {
    ASSETS.each_ref().map(|asset| {
        let digest = Sha256::digest(asset.bytes);
        let mut hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        hash.truncate(HASH_DIGITS);
        format!("/assets/{hash}/{}", asset.name)
    })
});

/// The address of a file; nothing for one that is not there, which a test would see.
pub(super) fn address(name: &str) -> &'static str {
    let place = ASSETS.iter().position(|asset| asset.name == name);
    place
        .and_then(|place| ADDRESSES.get(place))
        .map_or("", String::as_str)
}

/// Sends a file. One of an earlier version of the program is not there any more.
pub(super) async fn send(Path((hash, name)): Path<(String, String)>) -> Response {
    let wanted = format!("/assets/{hash}/{name}");
    let found = ASSETS
        .iter()
        .zip(ADDRESSES.iter())
        .find(|(_, address)| **address == wanted);
    let Some((asset, _)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_an_address_of_its_own() {
        for asset in &ASSETS {
            let address = address(asset.name);
            assert!(address.ends_with(asset.name), "{address}");
        }
        assert_eq!(address("other.js"), "");
    }

    #[test]
    fn vendored_files_are_those_that_were_checked() {
        let sums = include_str!("../../assets/SHA256SUMS");
        let vendored = ASSETS.iter().filter(|asset| asset.name.contains(".min."));
        let mut checked = 0;
        for asset in vendored {
            let digest = Sha256::digest(asset.bytes);
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = format!("{digest}  {}", asset.name);
            assert!(sums.lines().any(|sum| sum == line), "{line}");
            checked += 1;
        }
        assert_eq!(checked, sums.lines().count());
    }
}
