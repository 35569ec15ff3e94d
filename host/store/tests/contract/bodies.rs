//! Bodies: whole or by range, of any length.

use bytes::Bytes;

use crate::rig::{Rig, requeue};

/// Longer than any store hands out whole.
const LARGE: usize = 5 * 1024 * 1024;

fn pattern(length: usize) -> Bytes {
    (0..length).map(|n| (n % 251) as u8).collect()
}

pub fn a_body_is_read_by_range(rig: &mut Rig) {
    let q = rig.define("q");
    for length in [0, 1, 1000, LARGE] {
        let body = pattern(length);
        rig.draft(&q).body(body.clone()).send();
        let (owner, message) = rig.take_one(&q);
        assert_eq!(
            (message.body.len(), message.header.size),
            (length as u64, length as u64)
        );
        let read = |offset, length| {
            rig.store()
                .read_body(&message.body, offset, length)
                .unwrap()
        };
        assert_eq!(read(0, u64::MAX), body, "whole, {length} bytes");
        let middle = length / 2;
        assert_eq!(
            read(middle as u64, 10),
            body.slice(middle..length.min(middle + 10))
        );
        assert_eq!(read(length as u64, 10), Bytes::new());
        assert_eq!(read(u64::MAX, u64::MAX), Bytes::new());
        assert_eq!(read(0, 0), Bytes::new());
        rig.settle(
            owner,
            &q,
            message.header.id,
            oncue_core::unit_of_work::Disposition::Remove,
        )
        .unwrap();
    }
}

pub fn a_large_body_is_read_in_parts(rig: &mut Rig) {
    let q = rig.define("q");
    let body = pattern(LARGE);
    rig.draft(&q).body(body.clone()).send();
    assert_eq!(rig.counts(&q).bytes, LARGE as i64);
    rig.take_and(&q, requeue());
    let (_, message) = rig.take_one(&q);
    let mut read = Vec::new();
    loop {
        let part = rig
            .store()
            .read_body(&message.body, read.len() as u64, 700_001)
            .unwrap();
        if part.is_empty() {
            break;
        }
        read.extend_from_slice(&part);
    }
    assert_eq!(read.len(), LARGE);
    assert_eq!(read, body);
}

pub fn a_browsed_body_can_be_read(rig: &mut Rig) {
    let q = rig.define("q");
    let id = rig.draft(&q).body(pattern(LARGE)).send();
    let found = rig.store().find(&q, id).unwrap().expect("it is there");
    let part = rig
        .store()
        .read_body(&found.message.body, 1_000_000, 3)
        .unwrap();
    assert_eq!(part, pattern(LARGE).slice(1_000_000..1_000_003));
}
