use super::*;
use crate::trigger::scene::{NOW, Scene, ago, held, later, queue, ready};
use crate::trigger::step::Step;

const LIMIT: u64 = 300_000;

/// A queue and its watch, looked at once when nothing was wrong.
struct Case {
    scene: Scene,
    watch: Watch,
    queue: QueueName,
    refused: bool,
    oldest: Option<Timestamp>,
    /// How far the clock was set: forward, or back.
    set: i64,
}

/// The running clock's time, `millis` after the first look.
fn ran(millis: u64) -> Millis {
    1 + millis
}

impl Case {
    fn new(trigger: TriggerType, counts: Counts) -> Self {
        let mut case = Self {
            scene: Scene::new(trigger, counts),
            watch: Watch::default(),
            queue: queue("q"),
            refused: false,
            oldest: Some(NOW),
            set: 0,
        };
        case.scene.attributes.max_depth = 10;
        assert_eq!(case.news(0), [""; 0]);
        case
    }

    /// What is new after `millis`: names, with a minus when cleared and a dot when told.
    fn news(&mut self, millis: u64) -> Vec<String> {
        let seen = Seen {
            queue: &self.queue,
            facts: self.scene.facts(),
            oldest: self.oldest,
            refused: std::mem::take(&mut self.refused),
        };
        let now = Now {
            time: Timestamp(later(millis).0.saturating_add_signed(self.set)),
            ran: ran(millis),
        };
        let changes = self.watch.judge(&seen, now);
        let named = changes.into_iter().map(|change| {
            let name = change.alarm.as_str();
            match change.news {
                News::Raised(text) => {
                    assert!(text.starts_with("queue \""), "{text}");
                    name.to_owned()
                }
                News::Cleared => format!("-{name}"),
                News::Told(_) => format!(".{name}"),
            }
        });
        named.collect()
    }

    fn depth(&mut self, depth: i64) -> Vec<String> {
        self.scene.counts = ready(0, depth);
        self.news(0)
    }
}

#[test]
fn names_are_permanent_and_every_alarm_says_what_to_do() {
    let names: Vec<&str> = Alarm::ALL.iter().map(|alarm| alarm.as_str()).collect();
    assert_eq!(
        names,
        [
            "oldest-waiting",
            "service-interval",
            "depth-high",
            "depth-low",
            "queue-full",
            "held-by-error",
            "parked-message",
            "dead-letter",
            "schedule-refused",
            "quarantined",
            "store-stopped",
        ]
    );
    for alarm in Alarm::ALL {
        let cure = alarm.cure("orders");
        assert!(cure.len() > 10 && !cure.contains('{'), "{cure}");
        let has_placeholder = cure
            .split(|c: char| !c.is_ascii_alphabetic())
            .any(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase()));
        assert!(!has_placeholder, "{cure}");
    }
    assert!(
        Alarm::HeldByError
            .cure("orders")
            .contains("oncue explain orders;")
    );
    assert!(
        Alarm::Quarantined
            .cure("echo")
            .contains("oncue plugin show echo ")
    );
}

#[test]
fn an_old_message_that_nothing_serves_rings_once_and_again_after_it_was_served() {
    let mut case = Case::new(TriggerType::First, ready(0, 1));
    assert_eq!(case.news(LIMIT), [""; 0]);
    assert_eq!(case.news(LIMIT + 1), ["oldest-waiting"]);
    assert_eq!(case.news(2 * LIMIT), [""; 0]);
    case.scene.running = 1;
    assert_eq!(case.news(2 * LIMIT), ["-oldest-waiting"]);
    case.scene.running = 0;
    let taken = Counts {
        in_unit: 1,
        ..Counts::NOTHING
    };
    case.watch
        .notice(&case.scene.counts, &taken, 0, ran(2 * LIMIT));
    assert_eq!(case.news(3 * LIMIT), [""; 0]);
    assert_eq!(case.news(3 * LIMIT + 1), ["oldest-waiting"]);
}

#[test]
fn what_waits_as_it_was_told_to_does_not_ring() {
    let mut gathers = Case::new(TriggerType::Depth, ready(0, 1));
    assert_eq!(gathers.news(2 * LIMIT), [""; 0]);
    let mut never = Case::new(TriggerType::None, ready(0, 1));
    assert_eq!(never.news(2 * LIMIT), [""; 0]);
    let mut consumer = Case::new(TriggerType::First, ready(0, 1));
    consumer.scene.waiting_inputs = 1;
    assert_eq!(consumer.news(2 * LIMIT), [""; 0]);
    let mut young = Case::new(TriggerType::First, ready(0, 1));
    young.oldest = Some(later(2 * LIMIT - 1));
    assert_eq!(young.news(2 * LIMIT), [""; 0]);
    let mut off = Case::new(TriggerType::First, ready(0, 1));
    off.scene.attributes.alarm_oldest = None;
    assert_eq!(off.news(2 * LIMIT), [""; 0]);
}

#[test]
fn a_forgotten_pause_rings() {
    let mut case = Case::new(TriggerType::First, ready(0, 1));
    case.scene.paused = Some(crate::trigger::hold::PausedBy::Host);
    assert_eq!(case.news(LIMIT + 1), ["oldest-waiting"]);
}

#[test]
fn a_message_of_before_the_start_gives_the_host_its_time() {
    let mut case = Case::new(TriggerType::First, ready(0, 1));
    case.oldest = Some(ago(900_000));
    assert_eq!(case.news(LIMIT), [""; 0]);
    assert_eq!(case.news(LIMIT + 1), ["oldest-waiting"]);
}

#[test]
fn nothing_got_for_the_service_interval_rings_while_messages_wait() {
    let mut case = Case::new(TriggerType::None, ready(0, 1));
    case.scene.attributes.service_interval = 5_000;
    assert_eq!(case.news(4_999), [""; 0]);
    assert_eq!(case.news(5_000), ["service-interval"]);
    assert_eq!(case.news(9_000), [""; 0]);
    // Somebody got one.
    case.watch
        .notice(&case.scene.counts, &Counts::NOTHING, 1, ran(9_000));
    assert_eq!(case.news(9_000), ["-service-interval"]);
    // The queue was empty for long: the time begins with the message.
    case.watch
        .notice(&Counts::NOTHING, &ready(0, 1), 1, ran(60_000));
    assert_eq!(case.news(64_999), [""; 0]);
    assert_eq!(case.news(65_000), ["service-interval"]);
}

#[test]
fn depth_rings_at_high_and_not_again_before_low() {
    let mut case = Case::new(TriggerType::None, ready(0, 7));
    assert_eq!(case.depth(8), ["depth-high"]);
    for depth in [7, 9, 3, 10] {
        assert_eq!(case.depth(depth), [""; 0], "{depth}");
    }
    assert_eq!(case.depth(2), ["-depth-high", ".depth-low"]);
    assert_eq!(case.depth(7), [""; 0]);
    assert_eq!(case.depth(9), ["depth-high"]);
    case.scene.attributes.alarm_depth_low = None;
    assert_eq!(case.depth(7), ["-depth-high"]);
    case.scene.attributes.alarm_depth_high = None;
    assert_eq!(case.depth(10), [""; 0]);
}

#[test]
fn depth_that_is_not_low_is_not_told_low_when_its_level_is_taken_away_or_raised() {
    let mut case = Case::new(TriggerType::None, ready(0, 1));
    assert_eq!(case.depth(9), ["depth-high"]);
    case.scene.attributes.alarm_depth_high = None;
    assert_eq!(case.news(0), ["-depth-high"]);
    case.scene.attributes.alarm_depth_high = Some(80);
    assert_eq!(case.news(0), ["depth-high"]);
    case.scene.attributes.alarm_depth_low = Some(30);
    case.scene.attributes.max_depth = 20;
    assert_eq!(case.news(0), [""; 0], "45 % is neither high nor low");
    assert_eq!(case.depth(6), ["-depth-high", ".depth-low"]);
}

#[test]
fn a_queue_that_is_full_at_the_start_rings_at_once() {
    let mut case = Case::new(TriggerType::None, ready(0, 1));
    case.scene.counts = ready(0, 10);
    case.watch = Watch::default();
    assert_eq!(case.news(0), ["depth-high", "queue-full"]);
    assert_eq!(case.news(1), [""; 0]);
    assert_eq!(case.depth(2), ["-depth-high", "-queue-full", ".depth-low"]);
    assert_eq!(case.depth(10), ["depth-high"], "nobody was refused yet");
}

#[test]
fn a_clock_that_is_set_neither_rings_nor_silences() {
    const DAY: i64 = 86_400_000;
    for set in [DAY, -DAY] {
        let mut case = Case::new(TriggerType::First, ready(0, 1));
        case.scene.attributes.service_interval = LIMIT;
        case.set = set;
        assert_eq!(case.news(1_000), [""; 0], "{set}");
        assert_eq!(case.news(LIMIT - 1), [""; 0], "{set}");
        assert_eq!(case.news(LIMIT), ["service-interval"], "{set}");
        assert_eq!(case.news(LIMIT + 1), ["oldest-waiting"], "{set}");
        case.set = 0;
        assert_eq!(case.news(LIMIT + 2), [""; 0], "{set}");
    }
    // Of a hold that began later than now, nobody knows how long it has lasted.
    let mut case = Case::new(TriggerType::First, ready(0, 1));
    case.scene.held = Some(held(Step::S60, HoldReason::NoProcess(None), NOW));
    case.set = -DAY;
    assert_eq!(case.news(0), ["held-by-error"]);
}

#[test]
fn a_refused_put_rings_until_there_is_room() {
    let mut case = Case::new(TriggerType::None, ready(0, 1));
    assert_eq!(case.depth(10), ["depth-high"]);
    case.refused = true;
    assert_eq!(case.news(0), ["queue-full"]);
    case.refused = true;
    assert_eq!(case.news(0), [""; 0]);
    assert_eq!(case.depth(9), [""; 0]);
    assert_eq!(case.depth(8), ["-queue-full"]);
}

#[test]
fn a_start_held_by_an_error_rings_after_its_grace() {
    let mut case = Case::new(TriggerType::First, ready(0, 1));
    case.scene.held = Some(held(Step::S60, HoldReason::NoProcess(None), NOW));
    assert_eq!(case.news(ERROR_GRACE - 1), [""; 0]);
    assert_eq!(case.news(ERROR_GRACE), ["held-by-error"]);
    case.scene.held = None;
    assert_eq!(case.news(ERROR_GRACE), ["-held-by-error"]);
    let compiling = HoldReason::ComponentCompiling("x.wasm".to_owned());
    case.scene.held = Some(held(Step::S62, compiling, NOW));
    assert_eq!(case.news(9 * ERROR_GRACE), [""; 0]);
}

#[test]
fn parked_messages_and_dead_letters_ring_while_they_are_there() {
    let mut case = Case::new(TriggerType::None, Counts::default());
    case.scene.counts.parked = 1;
    assert_eq!(case.news(0), ["parked-message"]);
    case.scene.counts.parked = 0;
    assert_eq!(case.news(0), ["-parked-message"]);
    case.queue = QueueName::dead_letter();
    assert_eq!(case.depth(1), ["dead-letter"]);
    assert_eq!(case.depth(2), [""; 0]);
    assert_eq!(case.depth(0), ["-dead-letter"]);
}

#[test]
fn a_change_that_nothing_rings_for_is_not_heeded() {
    let mut case = Case::new(TriggerType::First, ready(0, 1));
    let heeds = |case: &Case| {
        let Scene {
            attributes, counts, ..
        } = &case.scene;
        case.watch.heeds(&case.queue, attributes, counts)
    };
    assert!(!heeds(&case));
    assert_eq!(case.depth(9), ["depth-high"]);
    assert!(heeds(&case));
    assert_eq!(case.depth(0).len(), 2);
    assert!(!heeds(&case));
    assert_eq!(case.watch.take_raised(), []);
}
