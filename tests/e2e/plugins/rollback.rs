//! Back to the version before, until the file changes.

use super::{digest, handles, host_with_version_1, plugin_view, serves, version};
use crate::host::oncue;
use crate::wait::until;

#[test]
fn a_rollback_pins_the_version_before_until_the_file_changes() {
    let (home, host) = host_with_version_1();
    let (code, _, error) = oncue(&host, &["plugin", "rollback", "p"]);
    assert_ne!(code, 0);
    assert!(error.contains("no good version before"), "{error}");
    home.write("p.wasm", version(2));
    serves(&host, "p", &version(2));
    let (code, said, error) = oncue(&host, &["plugin", "rollback", "p"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains(&digest(&version(1))[..12]), "{said}{error}");
    assert_eq!(
        plugin_view(&host, "p")["digest"],
        digest(&version(1)).as_str()
    );
    handles(&host, "p", &version(1));
    // It is durable, and a file of the same content is no change.
    assert_eq!(host.stop(), 0);
    let host = home.start();
    serves(&host, "p", &version(1));
    home.write("p.wasm", version(2));
    home.write("other.wasm", version(3));
    // Looks come in order: when this one is there, the rewritten file was seen too.
    host.wait_for_plugin("other", "ready");
    handles(&host, "p", &version(1));
    home.write("p.wasm", version(4));
    serves(&host, "p", &version(4));
    until("the version before to be listed", || {
        plugin_view(&host, "p")["previous"][0] == digest(&version(1)).as_str()
    });
}

#[test]
fn a_rollback_of_no_plugin_is_not_found() {
    let (_home, host) = host_with_version_1();
    let (code, _, error) = oncue(&host, &["plugin", "rollback", "nobody"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("\"nobody\""), "{error}");
}
