//! What goes to the log, and how often.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use oncue_manager::reload::PluginState;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::rig::Rig;
use crate::values::update;

/// Keeps the messages of all events, in order.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                match field.name() {
                    "message" => self.0.insert_str(0, &format!("{value:?}")),
                    "reason" => self.0.push_str(&format!(": {value:?}")),
                    _ => {}
                }
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_held_start_is_logged_when_its_reason_is_new_and_not_each_time_it_is_tried() {
    let lines = Lines::default();
    let held = || {
        let lines = lines.0.lock().expect("no panic");
        let held = lines
            .iter()
            .filter(|line| line.starts_with("a start is held"));
        held.cloned().collect::<Vec<_>>()
    };
    // With one subscriber alone, a thread without one decides for every event it meets first that
    // nobody wants it. With two, both are asked, whichever thread meets it.
    let _second = tracing::Dispatch::new(Lines::default());
    tracing::subscriber::with_default(lines.clone(), || {
        let mut rig = Rig::new();
        let missing = || update("echo", PluginState::Missing, &[], &[("echo", &[])]);
        rig.update(missing()).expect("taken");
        rig.put("echo", "one");
        assert_eq!(held().len(), 1, "{:?}", held());
        for _ in 0..10 {
            rig.advance(1_000);
        }
        assert_eq!(rig.reason("echo"), Some("component-missing"));
        assert_eq!(held().len(), 1, "{:?}", held());
        let bad = PluginState::Quarantined {
            reason: "echo.wasm is truncated".to_owned(),
            serving: None,
        };
        rig.update(update("echo", bad, &[], &[("echo", &[])]))
            .expect("taken");
        rig.advance(5_000);
        assert_eq!(held().len(), 2, "{:?}", held());
        assert!(held()[1].contains("quarantined"), "{:?}", held());
    });
}
