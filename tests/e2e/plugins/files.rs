//! Every way in which a file gets into the directory, and out of it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;

use super::{
    MANIFEST, digest, handles, host_with_version_1, plugin_view, quarantined, serves, version,
};
use crate::host::Home;
use crate::wait::until;

#[test]
fn a60_copied_moved_and_overwritten_the_right_version_serves() {
    let (home, host) = host_with_version_1();
    let (outside, place) = (
        home.path().join("outside.wasm"),
        home.plugins().join("p.wasm"),
    );
    // cp: the file is there empty before it is there whole.
    fs::remove_file(&place).unwrap();
    until("the removal", || {
        plugin_view(&host, "p")["state"] != "ready"
    });
    fs::write(&outside, version(2)).unwrap();
    fs::copy(&outside, &place).unwrap();
    serves(&host, "p", &version(2));
    // mv: whole at once, with the time it had elsewhere.
    fs::write(&outside, version(3)).unwrap();
    fs::rename(&outside, &place).unwrap();
    serves(&host, "p", &version(3));
    // Overwritten in place: same name, same length.
    fs::write(&place, version(4)).unwrap();
    serves(&host, "p", &version(4));
    // Back to bytes that served before.
    fs::write(&place, version(2)).unwrap();
    serves(&host, "p", &version(2));
}

#[test]
fn a60_a_file_that_is_filled_slowly_is_not_loaded_before_it_is_whole() {
    let (home, host) = host_with_version_1();
    let (before, after) = (digest(&version(1)), version(2));
    let mut file = File::create(home.plugins().join("p.wasm")).unwrap();
    let (half, rest) = after.split_at(after.len() / 2);
    for piece in half.chunks(half.len() / 10 + 1) {
        file.write_all(piece).unwrap();
        assert_eq!(plugin_view(&host, "p")["digest"], before.as_str());
        handles(&host, "p", &version(1));
    }
    // Left lying, the half is looked at and refused; what served before goes on.
    let reason = quarantined(&host, "p");
    assert!(reason.contains("\"p.wasm\""), "{reason}");
    handles(&host, "p", &version(1));
    file.write_all(rest).unwrap();
    drop(file);
    serves(&host, "p", &after);
    let known = [before, digest(&after)];
    let records = host.records("p");
    assert!(
        records
            .iter()
            .all(|it| known.iter().any(|known| it["digest"] == known.as_str()))
    );
}

#[test]
fn a60_a_symlink_swap_as_a_configmap_does_it_brings_the_new_version() {
    let home = Home::new();
    let plugins = home.plugins();
    let turn = |name: &str, number: u8, attribute: &str| {
        fs::create_dir(plugins.join(name)).unwrap();
        fs::write(plugins.join(name).join("p.wasm"), version(number)).unwrap();
        let text = format!("{MANIFEST}{attribute}");
        fs::write(plugins.join(name).join("p.toml"), text).unwrap();
        symlink(name, plugins.join("..data_tmp")).unwrap();
        fs::rename(plugins.join("..data_tmp"), plugins.join("..data")).unwrap();
    };
    turn("..2026_1", 1, "max-tasks = 2\n");
    for file in ["p.wasm", "p.toml"] {
        symlink(format!("..data/{file}"), plugins.join(file)).unwrap();
    }
    let host = home.start();
    host.define_plain("echo.out");
    serves(&host, "p", &version(1));
    assert_eq!(host.queue("p")["attributes"]["max-tasks"], 2);
    turn("..2026_2", 2, "max-tasks = 3\n");
    fs::remove_dir_all(plugins.join("..2026_1")).unwrap();
    serves(&host, "p", &version(2));
    assert_eq!(host.queue("p")["attributes"]["max-tasks"], 3);
}

#[test]
fn a60_a_removed_plugin_takes_its_process_along_and_leaves_its_queue() {
    let (home, host) = host_with_version_1();
    home.remove("p.wasm");
    home.remove("p.toml");
    until("the plugin to be gone", || {
        plugin_view(&host, "p").is_null()
    });
    assert_eq!(host.get("/v1/processes/p").status, 404);
    let id = host.put("p", b"kept");
    until("the hold", || host.reason("p") == "no-process");
    assert_eq!(host.bodies("p"), ["kept"]);
    // Dropped again, it goes on with what waits, with no put.
    home.write("p.toml", MANIFEST);
    home.write("p.wasm", version(2));
    assert_eq!(
        host.record_of("p", &id)["digest"],
        digest(&version(2)).as_str()
    );
}

#[test]
fn a60_a_renamed_plugin_serves_under_its_new_name() {
    let home = Home::new();
    let host = home.start();
    host.define_plain("echo.out");
    let manifest = |queue: &str| MANIFEST.replace("queue.p", &format!("queue.{queue}"));
    home.write("old.toml", manifest("old"));
    home.write("old.wasm", version(1));
    serves(&host, "old", &version(1));
    fs::rename(
        home.plugins().join("old.wasm"),
        home.plugins().join("new.wasm"),
    )
    .unwrap();
    home.remove("old.toml");
    home.write("new.toml", manifest("new"));
    serves(&host, "new", &version(1));
    until("the old one to be gone", || {
        plugin_view(&host, "old").is_null()
    });
    assert_eq!(host.get("/v1/processes/old").status, 404);
    assert_eq!(host.depth("old"), 0);
}

#[test]
fn a60_manifest_and_component_may_come_in_either_order() {
    let home = Home::new();
    let host = home.start();
    host.define_plain("echo.out");
    home.write("p.toml", MANIFEST);
    host.wait_for_plugin("p", "missing");
    home.write("p.wasm", version(1));
    serves(&host, "p", &version(1));
    // The other way round, with a queue of its own in the manifest.
    home.write("late.wasm", version(2));
    host.wait_for_plugin("late", "ready");
    assert_eq!(host.queue("late")["attributes"]["max-tasks"], 1);
    home.write(
        "late.toml",
        MANIFEST.replace("queue.p", "queue.late") + "max-tasks = 5\n",
    );
    until("the manifest to hold", || {
        host.queue("late")["attributes"]["max-tasks"] == 5
    });
    serves(&host, "late", &version(2));
}
