//! The core modules: dropped as a compiler made them, adapted by the host.

use crate::host::Home;
use crate::work::sample;

pub(super) fn upper_core() {
    let home = Home::new();
    home.drop_sample(sample("upper-core"));
    let host = home.start();
    host.define_plain("upper-core.out");
    let plugin = host.wait_for_plugin("upper-core", "ready");
    assert_eq!(plugin["style"], "command", "{plugin}");
    host.put("upper-core", "grüße".as_bytes());
    host.wait_for_depth("upper-core.out", 1);
    assert_eq!(host.bodies("upper-core.out"), ["GRÜSSE from upper-core"]);
    let wrong = host.put("upper-core", b"\xff");
    let letter = host.dead_letter(&wrong);
    assert_eq!(letter["reason"], "rejected", "{letter}");
    assert_eq!(letter["detail"], "the body is not UTF-8", "{letter}");
}
