//! A real directory, looked at by hand: scripted trials, a scripted manager, no thread and no
//! clock.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use oncue_core::admission::Demand;
use oncue_core::definition::Style;
use tempfile::TempDir;

use super::super::catalog::State;
use super::*;

/// Between looks.
const SETTLE: Duration = Duration::from_millis(200);

type Updates = Rc<RefCell<Vec<(String, String)>>>;

struct Host<T> {
    folder: TempDir,
    keeper: Keeper<T>,
    now: Moment,
    updates: Updates,
    unloaded: Arc<parking_lot::Mutex<Vec<Digest>>>,
}

fn word(state: &State) -> String {
    match state {
        State::Compiling => "compiling".to_owned(),
        State::Ready(version) => format!("ready {}", version.component.short()),
        State::Quarantined { reason, .. } => format!("quarantined: {reason}"),
        State::Missing => "missing".to_owned(),
        State::Removed => "removed".to_owned(),
    }
}

fn ready(text: &str) -> String {
    format!("ready {}", Digest::of(text.as_bytes()).short())
}

fn host() -> Host<impl AsyncFnMut(Update) -> Result<(), String>> {
    host_in(tempfile::tempdir().expect("a folder"))
}

fn host_in(folder: TempDir) -> Host<impl AsyncFnMut(Update) -> Result<(), String>> {
    let updates = Updates::default();
    let told = Rc::clone(&updates);
    let tell = async move |update: Update| {
        told.borrow_mut()
            .push((update.plugin.to_string(), word(&update.state)));
        Ok(())
    };
    let unloaded = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let gone = Arc::clone(&unloaded);
    let unload = Box::new(move |digest: &Digest| gone.lock().push(digest.clone()));
    let total = Demand {
        memory: 1 << 30,
        fuel: 20_000_000_000,
    };
    let capacity = Capacity {
        total,
        table_elements: 100_000,
    };
    let (plugins, kept) = (folder.path().join("plugins"), folder.path().join("kept"));
    fs::create_dir_all(&plugins).expect("a folder");
    let keeper = Keeper::new(plugins, kept, SETTLE, capacity, tell, unload);
    Host {
        folder,
        keeper,
        now: Moment::ZERO,
        updates,
        unloaded,
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(future)
}

impl<T: AsyncFnMut(Update) -> Result<(), String>> Host<T> {
    fn path(&self, file: &str) -> PathBuf {
        self.keeper.directory.join(file)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).expect("written");
    }

    /// One look, a while after the last.
    fn look(&mut self) {
        self.now += SETTLE;
        wait(self.keeper.look(self.now));
    }

    /// Looks until everything has settled, and does all trials; what is read as `bad` is refused.
    fn settle(&mut self) {
        for _ in 0..6 {
            self.look();
            self.work();
        }
        assert!(self.keeper.is_quiet());
    }

    fn work(&mut self) {
        while let Some((trial, source)) = self.keeper.next_trial() {
            let bytes = source.read(&trial.key.component);
            let result = match bytes.as_deref() {
                Ok(b"bad") => Err(NotPassed::Refused(format!("\"{}\" is bad", trial.file))),
                Ok(b"half") => panic!("half a file was loaded"),
                Ok(_) => Ok(Passed {
                    style: Style::Message,
                    facts: Vec::new(),
                }),
                Err(error) => Err(NotPassed::Host(error.to_string())),
            };
            assert!(self.keeper.catalog.awaits(&trial.plugin, &trial.key));
            wait(self.keeper.checked(trial, result, self.now));
        }
    }

    /// Demands the last update of a plugin.
    fn check(&self, plugin: &str, wanted: &str) {
        let updates = self.updates.borrow();
        let last = updates.iter().rev().find(|(name, _)| name == plugin);
        let got = last.map_or("none", |(_, word)| word.as_str());
        assert_eq!(got, wanted, "plugin {plugin}: {updates:#?}");
    }
}

#[test]
fn a60_each_way_of_dropping_a_file_ends_with_the_right_version() {
    let mut host = host();
    host.write("orders.wasm", "one");
    host.look();
    host.check("orders", "compiling");
    host.settle();
    host.check("orders", &ready("one"));
    // mv over it.
    host.write(".upload", "two");
    fs::rename(host.path(".upload"), host.path("orders.wasm")).expect("renamed");
    host.settle();
    host.check("orders", &ready("two"));
    // Overwritten in place.
    host.write("orders.wasm", "three");
    host.settle();
    host.check("orders", &ready("three"));
    // The same size and the same time as before.
    let time = fs::metadata(host.path("orders.wasm"))
        .and_then(|it| it.modified())
        .expect("a time");
    host.write("orders.wasm", "THREE");
    let file = fs::File::options()
        .write(true)
        .open(host.path("orders.wasm"))
        .expect("opened");
    file.set_modified(time).expect("set");
    host.settle();
    host.check("orders", &ready("THREE"));
    // Renamed, then deleted.
    fs::rename(host.path("orders.wasm"), host.path("sales.wasm")).expect("renamed");
    host.settle();
    host.check("orders", "removed");
    host.check("sales", &ready("THREE"));
    fs::remove_file(host.path("sales.wasm")).expect("removed");
    host.settle();
    host.check("sales", "removed");
    assert!(host.unloaded.lock().contains(&Digest::of(b"THREE")));
}

#[test]
fn a60_a_file_filled_slowly_is_loaded_once_and_whole() {
    let mut host = host();
    host.write("orders.wasm", "one");
    host.settle();
    host.write("orders.wasm", "");
    for text in [
        "h",
        "ha",
        "hal",
        "half",
        "half of",
        "half of it, and the rest",
    ] {
        host.look();
        host.work();
        host.write("orders.wasm", text);
        host.check("orders", &ready("one"));
    }
    host.settle();
    host.check("orders", &ready("half of it, and the rest"));
    let updates = host.updates.borrow().len();
    // It comes, compiling, ready; the news that another is being found out, and that one, once.
    assert_eq!(updates, 5, "{:#?}", host.updates.borrow());
}

#[test]
fn a60_a_swapped_link_is_followed() {
    let mut host = host();
    let link = |from: &str, to: PathBuf| std::os::unix::fs::symlink(from, to).expect("a link");
    for (folder, text) in [("..v1", "one"), ("..v2", "two")] {
        fs::create_dir(host.path(folder)).expect("a folder");
        fs::write(host.path(folder).join("orders.wasm"), text).expect("written");
    }
    link("..v1", host.path("..data"));
    link("..data/orders.wasm", host.path("orders.wasm"));
    host.settle();
    host.check("orders", &ready("one"));
    link("..v2", host.path("..new"));
    fs::rename(host.path("..new"), host.path("..data")).expect("renamed");
    host.settle();
    host.check("orders", &ready("two"));
}

#[test]
fn a61_the_reason_names_the_file_and_the_good_version_serves() {
    let mut host = host();
    host.write("orders.wasm", "one");
    host.settle();
    host.write("orders.wasm", "bad");
    host.settle();
    host.check("orders", "quarantined: \"orders.wasm\" is bad");
    assert!(host.unloaded.lock().is_empty());
    host.write("orders.toml", "[process]\nmemory = 1\n");
    host.settle();
    let updates = host.updates.borrow();
    let (_, last) = updates.last().expect("an update");
    assert!(
        last.starts_with("quarantined: orders.toml:2:1: \"process.memory\""),
        "{last}"
    );
}

#[test]
fn a61_kept_versions_serve_after_a_restart() {
    let mut before = host();
    before.write("orders.wasm", "one");
    before.settle();
    before.write("orders.wasm", "bad");
    before.settle();
    let mut after = host_in(before.folder);
    after.settle();
    after.check("orders", "quarantined: \"orders.wasm\" is bad");
    // Its bytes come from what was kept: the directory has them no more.
    let one = Digest::of(b"one");
    assert!(after.keeper.catalog.loaded().contains(&one));
}

#[test]
fn a_directory_that_cannot_be_read_removes_nothing() {
    let mut host = host();
    host.write("orders.wasm", "one");
    host.settle();
    let away = host.folder.path().join("away");
    fs::rename(&host.keeper.directory, &away).expect("renamed");
    host.settle();
    host.check("orders", &ready("one"));
    fs::rename(&away, &host.keeper.directory).expect("renamed back");
    host.settle();
    host.check("orders", &ready("one"));
    assert_eq!(host.updates.borrow().len(), 3);
}

#[test]
fn a_damaged_kept_copy_is_read_again_from_the_directory() {
    let mut host = host();
    host.write("orders.wasm", "one");
    host.look();
    host.look();
    // Between the read and the trial.
    let kept = host
        .folder
        .path()
        .join("kept")
        .join(format!("{}.wasm", Digest::of(b"one")));
    fs::write(kept, "wrong").expect("damaged");
    host.settle();
    wait(host.keeper.retry(host.now));
    host.settle();
    host.check("orders", &ready("one"));
}

#[test]
fn a_rollback_is_answered_and_survives_a_restart() {
    let mut host = host();
    for text in ["one", "two"] {
        host.write("orders.wasm", text);
        host.settle();
    }
    let orders = PluginName::new("orders").expect("a name");
    let (say, heard) = std::sync::mpsc::sync_channel(1);
    let answer = Box::new(move |result| say.send(result).expect("heard"));
    wait(host.keeper.roll_back(&orders, answer));
    host.work();
    assert_eq!(heard.try_recv().expect("answered"), Ok(Digest::of(b"one")));
    host.check("orders", &ready("one"));
    let mut host = host_in(host.folder);
    host.settle();
    host.check("orders", &ready("one"));
    host.write("orders.wasm", "three");
    host.settle();
    host.check("orders", &ready("three"));
}
