//! What is written is read back, and layers behave as maps, whatever the values.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::definition::*;
use crate::names::{ProcessName, QueueName};
use crate::schedule::{Missed, Schedule};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ -~äöü\\n\"\\\\]{0,20}"]
}

fn queue_name() -> impl Strategy<Value = Option<QueueName>> {
    proptest::option::of("[A-Za-z][A-Za-z0-9._-]{0,12}")
        .prop_map(|name| name.map(|name| QueueName::new(&name).expect("a valid name")))
}

fn queue_attributes() -> impl Strategy<Value = QueueAttributes> {
    let words = (
        prop::sample::select(TriggerType::ALL),
        prop::sample::select(Rearm::ALL),
        prop::sample::select(Delivery::ALL),
    );
    let numbers = (
        1..=999_999_999_u64,
        0..=9_u8,
        1..=1000_u32,
        1..=1_000_000_u32,
        1..=255_u8,
    );
    let times = (
        1..=3_600_000_u64,
        1..=3_600_000_u64,
        0..=604_800_000_u64,
        0..=100_u8,
    );
    let names = (queue_name(), queue_name(), text(), text());
    let maybe = (
        proptest::option::of(1..=1_000_000_000_u64),
        any::<bool>(),
        any::<bool>(),
    );
    (words, numbers, times, names, maybe).prop_map(|(words, numbers, times, names, maybe)| {
        // Every field stands here, so that one that the list lacks makes the round trip fail.
        QueueAttributes {
            process: names.0.map(process_name),
            description: names.2,
            trigger: words.0,
            trigger_control: maybe.1,
            trigger_depth: numbers.0,
            trigger_max_wait: maybe.0,
            trigger_priority: numbers.1,
            trigger_data: names.3,
            rearm: words.1,
            max_tasks: numbers.2,
            refire_interval: times.0,
            backoff: backoff(times.0, times.1),
            retry: Retry {
                initial: times.2,
                max: times.1,
                jitter: times.3,
            },
            backout_threshold: numbers.3,
            backout_queue: names.1,
            max_depth: numbers.0 / 2 + 1,
            max_message_length: times.1,
            delivery: words.2,
            hop_limit: numbers.4,
            idempotency_window: times.2,
            defer_max_age: times.1,
            input_linger: times.0,
            schedule: maybe.2.then(|| Box::new(schedule("text", maybe.1))),
            service_interval: times.1,
            alarm_oldest: maybe.0,
            alarm_depth_high: maybe.1.then_some(numbers.1),
            alarm_depth_low: maybe.2.then_some(numbers.4.min(100)),
            get: maybe.2,
            put: !maybe.1,
            usage: Usage::Normal,
            default_priority: 9 - numbers.1,
            default_persistent: !maybe.2,
            default_expiry: maybe.0.map(|millis| millis + 1),
        }
    })
}

fn backoff(initial: u64, max: u64) -> Backoff {
    Backoff { initial, max }
}

fn process_name(queue: QueueName) -> ProcessName {
    ProcessName::new(queue.as_str()).expect("one rule")
}

fn schedule(text: &str, plain: bool) -> Schedule {
    let schedule = Schedule::parse("*/5 * * * MON Europe/Berlin").expect("a schedule");
    if plain {
        return schedule;
    }
    Schedule {
        missed: Missed::Skip,
        body: text.to_owned(),
        content_type: Some("text/plain".to_owned()),
        properties: BTreeMap::from([("a".to_owned(), text.to_owned())]),
        ..schedule
    }
}

fn table() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("[A-Za-z.ä]{1,8}", text(), 0..4)
}

fn patterns() -> impl Strategy<Value = Vec<Pattern>> {
    let pattern = "[a-z.*]{1,8}".prop_map(|text| Pattern::new(&text).expect("a valid pattern"));
    proptest::collection::vec(pattern, 0..4)
}

fn origins() -> impl Strategy<Value = Vec<WebOrigin>> {
    let origin = "(http|https)://(\\*\\.)?[a-z0-9]{1,8}(-[a-z])?\\.[a-z]{2,3}(:[1-9][0-9]{0,3})?"
        .prop_map(|text| WebOrigin::new(&text).expect("a valid origin"));
    proptest::collection::vec(origin, 0..4)
}

fn process_attributes() -> impl Strategy<Value = ProcessAttributes> {
    let style = prop::sample::select(&[Style::Auto, Style::Message, Style::Trigger][..]);
    let large = (
        1..=1_000_000_000_000_000_u64,
        65_536..=(4_u64 << 30),
        1..=10_000_000_u64,
    );
    let times = (1..=3_600_000_u64, 1..=86_400_000_u64, 0..=(16_u64 << 20));
    let counts = (0..=1_000_000_u32, 1..=1_000_000_u32, 1..=1_000_u32);
    let texts = (text(), text(), text(), "[a-z ä.]{3,12}");
    let grants = (
        patterns(),
        patterns(),
        patterns(),
        table(),
        table(),
        origins(),
    );
    (style, large, times, counts, texts, grants).prop_map(
        |(style, large, times, counts, texts, grants)| ProcessAttributes {
            component: texts.3,
            description: texts.0,
            style,
            fuel: large.0,
            memory: large.1,
            table_elements: large.2,
            deadline: times.0,
            task_deadline: times.1,
            log_limit: times.2,
            max_puts: counts.0,
            max_handles: counts.1,
            max_unit: 1_000_001 - counts.1,
            reuse: counts.1,
            batch: counts.2,
            output: None,
            environment_data: texts.1,
            user_data: texts.2,
            grants: Grants {
                put: grants.0,
                get: grants.1,
                browse: grants.2,
                http: grants.5,
                environment: grants.3,
                secrets: Vec::new(),
            },
            config: grants.4,
        },
    )
}

/// Some of the entries, some of them as resets.
fn some(entries: Vec<(&'static str, Raw)>, choices: &[u8]) -> Raw {
    let chosen = entries
        .into_iter()
        .zip(choices)
        .filter_map(|((name, value), choice)| {
            let value = match choice % 3 {
                0 => return None,
                1 => Raw::Null,
                _ => value,
            };
            Some((name.to_owned(), value))
        });
    Raw::Table(chosen.collect())
}

/// One choice for each attribute of a queue or of a process.
fn choices() -> impl Strategy<Value = Vec<u8>> {
    let longest = QUEUE_ATTRIBUTES.len().max(PROCESS_ATTRIBUTES.len());
    proptest::collection::vec(any::<u8>(), longest)
}

/// JSON and back.
fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    let json = serde_json::to_string(value).expect("serialises");
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

proptest! {
    #[test]
    fn resolved_attributes_come_back(queue in queue_attributes(), process in process_attributes()) {
        prop_assert_eq!(&through_json(&queue), &queue);
        prop_assert_eq!(&through_json(&process), &process);
        prop_assert_eq!(QueueAttributes::parse(&queue.to_raw()), Ok(queue));
        prop_assert_eq!(ProcessAttributes::parse(&process.to_raw()), Ok(process));
    }

    #[test]
    fn patches_and_definitions_come_back(
        queue in queue_attributes(), process in process_attributes(), choices in choices(),
        others in choices(),
    ) {
        let patch = |choices| QueuePatch::parse(&some(queue.entries(), choices));
        let (first, second) = (patch(&choices).expect("valid"), patch(&others).expect("valid"));
        prop_assert_eq!(&through_json(&first), &first);
        let definition = QueueDefinition { base: first.into(), overlay: second.into() };
        prop_assert_eq!(&through_json(&definition), &definition);

        let patch = |choices| ProcessPatch::parse(&some(process.entries(), choices));
        let (first, second) = (patch(&choices).expect("valid"), patch(&others).expect("valid"));
        prop_assert_eq!(&through_json(&first), &first);
        let definition = ProcessDefinition { base: first.into(), overlay: second.into() };
        prop_assert_eq!(&through_json(&definition), &definition);
    }

    /// Layers behave as maps laid over each other, whatever is set and reset in what order.
    #[test]
    fn layers_are_maps_over_maps(
        values in proptest::collection::vec((queue_attributes(), choices()), 1..5),
    ) {
        let mut definition = QueueDefinition::default();
        let (mut base, mut overlay) = (BTreeMap::new(), BTreeMap::new());
        for (index, (attributes, choices)) in values.iter().enumerate() {
            let changes = some(attributes.entries(), choices);
            let patch = QueuePatch::parse(&changes).expect("valid");
            let Raw::Table(entries) = changes else { panic!("a table") };
            if index == 0 {
                definition.base = patch.into();
                base = entries.into_iter().filter(|(_, value)| *value != Raw::Null).collect();
                continue;
            }
            definition.alter(&patch);
            for (name, value) in entries {
                match value {
                    Raw::Null => overlay.remove(&name),
                    value => overlay.insert(name, value),
                };
            }
        }
        let defaults = QueueAttributes::default().entries();
        let resolved = definition.resolve().entries();
        for ((name, default), (_, value)) in defaults.into_iter().zip(resolved) {
            let (wanted, origin) = match (overlay.get(name), base.get(name)) {
                (Some(value), _) => (value.clone(), Origin::Operator),
                (None, Some(value)) => (value.clone(), Origin::Manifest),
                (None, None) => (default, Origin::Default),
            };
            prop_assert_eq!(&value, &wanted, "{}", name);
            prop_assert_eq!(definition.origin(name), origin, "{}", name);
        }
    }
}
