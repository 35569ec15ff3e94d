//! What the paths put and take.

use bytes::Bytes;
use oncue_core::message::{Header, Message};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Disposition, OwnerId, Put, RecordChange, RecordKind, Settle, Unit};
use oncue_store::{Select, Store, Take};

/// The present.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000);

/// Bytes of a body.
pub(crate) const LENGTH: usize = 1024;

pub(crate) fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue's name")
}

pub(crate) fn body() -> Bytes {
    Bytes::from(vec![b'x'; LENGTH])
}

/// Makes a queue known to a bare store.
pub(crate) fn define(store: &dyn Store, queue: &QueueName) {
    let record = RecordChange {
        kind: RecordKind::Queue,
        name: queue.as_str().to_owned(),
        value: Some(Bytes::new()),
    };
    let unit = Unit {
        records: vec![record],
        ..Unit::default()
    };
    store.commit(unit).wait().expect("the queue is defined");
}

/// A plain message for a queue.
pub(crate) fn put(store: &dyn Store, queue: &QueueName, body: &Bytes, persistent: bool) -> Put {
    Put {
        queue: queue.clone(),
        header: Header {
            id: store.next_id(),
            correlation_id: None,
            reply_to: None,
            group: None,
            group_sequence: None,
            priority: 4,
            persistent,
            content_type: Some("text/plain".to_owned()),
            properties: Vec::new(),
            put_time: NOW,
            expires: None,
            hop_count: 0,
            put_by: None,
            size: body.len() as u64,
        },
        body: body.clone(),
        due: None,
        dead_letter: None,
        key: None,
        max_depth: Some(1_000_000),
    }
}

/// Commits puts alone.
pub(crate) fn commit_puts(store: &dyn Store, puts: Vec<Put>) {
    let unit = Unit {
        puts,
        ..Unit::default()
    };
    store.commit(unit).wait().expect("the unit commits");
}

pub(crate) fn take(store: &dyn Store, owner: u64, queue: &QueueName, max: usize) -> Vec<Message> {
    let take = Take {
        queue: queue.clone(),
        owner: OwnerId(owner),
        select: Select::Next,
        max,
        fifo: false,
        skip_suspects: false,
        now: NOW,
    };
    store.take(&take).expect("the take is answered")
}

/// What a handler's unit of work is: the messages it got are gone, others are put.
pub(crate) fn handled(owner: u64, queue: &QueueName, messages: &[Message], puts: Vec<Put>) -> Unit {
    let settle = |message: &Message| Settle {
        queue: queue.clone(),
        sequence: message.header.id.sequence,
        disposition: Disposition::Remove,
    };
    Unit {
        owner: Some(OwnerId(owner)),
        settles: messages.iter().map(settle).collect(),
        puts,
        ..Unit::default()
    }
}

/// One message put, taken, handled into another queue, and taken from there for good.
pub(crate) fn whole_message(
    store: &dyn Store,
    owner: u64,
    [from, to]: [&QueueName; 2],
    body: &Bytes,
    persistent: bool,
) {
    commit_puts(store, vec![put(store, from, body, persistent)]);
    let got = take(store, owner, from, 1);
    let answer = put(store, to, body, persistent);
    let unit = handled(owner, from, &got, vec![answer]);
    store.commit(unit).wait().expect("the unit commits");
    let got = take(store, owner, to, 1);
    let unit = handled(owner, to, &got, Vec::new());
    store.commit(unit).wait().expect("the unit commits");
    assert_eq!(got.len(), 1, "the message came through");
}
