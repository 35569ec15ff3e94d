//! What a run may do, and how such steps are drawn.

use proptest::collection::vec;
use proptest::prelude::*;

/// Picks one of the things that there are at the time.
pub(super) type Pick = prop::sample::Index;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Commit {
        owner: u64,
        settles: Vec<(Pick, Fate)>,
        puts: Vec<Draft>,
        state: Option<State>,
        handler: bool,
    },
    Take {
        owner: u64,
        queue: usize,
        which: Which,
        max: usize,
        fifo: bool,
        skip_suspects: bool,
    },
    TakeAny {
        owner: u64,
        queue: usize,
        pick: Pick,
    },
    TakeLeased {
        owner: u64,
        token: u8,
    },
    Release {
        owner: u64,
        pick: Pick,
    },
    ReleaseAll {
        owner: u64,
    },
    Claim {
        owner: u64,
    },
    Pass {
        millis: u64,
    },
    Delete {
        queue: usize,
    },
    Define {
        queue: usize,
    },
    Restart {
        ending: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Fate {
    Remove,
    Requeue {
        interrupted: u32,
    },
    Later {
        wait: usize,
        millis: u64,
    },
    Lease {
        millis: u64,
        token: u8,
        selective: bool,
    },
    Move {
        queue: usize,
    },
    Park,
}

#[derive(Clone, Debug)]
pub(super) enum Which {
    Next,
    Id(Pick),
    Correlation(u8),
}

#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) queue: usize,
    pub(super) group: Option<u8>,
    pub(super) correlation: Option<u8>,
    pub(super) priority: u8,
    pub(super) delay: Option<u64>,
    pub(super) life: Option<u64>,
    pub(super) key: Option<(u8, Option<u8>, u64)>,
    pub(super) max_depth: Option<u64>,
    pub(super) persistent: bool,
    pub(super) size: usize,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) key: u8,
    pub(super) stale: bool,
    pub(super) value: Option<u8>,
}

fn millis() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..20u64, 20..200u64]
}

fn draft() -> impl Strategy<Value = Draft> {
    let place = (
        0..2usize,
        prop::option::weighted(0.6, 0..2u8),
        prop::option::of(0..2u8),
    );
    let times = (
        prop::option::weighted(0.2, millis()),
        prop::option::weighted(0.2, millis()),
    );
    let key = prop::option::weighted(0.3, (0..3u8, prop::option::of(0..2u8), millis()));
    let rest = (
        prop::sample::select(vec![0, 4, 9u8]),
        prop::option::weighted(0.2, 0..9u64),
        any::<bool>(),
        0..50usize,
    );
    (place, times, key, rest).prop_map(|(place, times, key, rest)| Draft {
        queue: place.0,
        group: place.1,
        correlation: place.2,
        priority: rest.0,
        delay: times.0,
        life: times.1,
        max_depth: rest.1,
        // Whether the key of a volatile message outlives a restart is not settled.
        persistent: rest.2 || key.is_some(),
        key,
        size: rest.3,
    })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Remove),
        2 => (0..2u32).prop_map(|interrupted| Fate::Requeue { interrupted }),
        2 => (0..3usize, millis()).prop_map(|(wait, millis)| Fate::Later { wait, millis }),
        2 => (millis(), 0..3u8, any::<bool>())
            .prop_map(|(millis, token, selective)| Fate::Lease { millis, token, selective }),
        1 => (0..2usize).prop_map(|queue| Fate::Move { queue }),
        1 => Just(Fate::Park),
    ]
}

pub(super) fn step(restarts: bool) -> impl Strategy<Value = Step> {
    let state = (0..2u8, prop::bool::weighted(0.2), prop::option::of(0..9u8))
        .prop_map(|(key, stale, value)| State { key, stale, value });
    let commit = (
        0..3u64,
        vec((any::<Pick>(), fate()), 0..3),
        vec(draft(), 0..4),
        prop::option::weighted(0.2, state),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(owner, settles, puts, state, handler)| Step::Commit {
            owner,
            settles,
            puts,
            state,
            handler,
        });
    let which = prop_oneof![
        4 => Just(Which::Next),
        1 => any::<Pick>().prop_map(Which::Id),
        1 => (0..2u8).prop_map(Which::Correlation),
    ];
    let take = (
        0..3u64,
        0..2usize,
        which,
        0..4usize,
        any::<bool>(),
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(owner, queue, which, max, fifo, skip_suspects)| Step::Take {
                owner,
                queue,
                which,
                max,
                fifo,
                skip_suspects,
            },
        );
    prop_oneof![
        8 => commit,
        8 => take,
        1 => (0..3u64, 0..2usize, any::<Pick>())
            .prop_map(|(owner, queue, pick)| Step::TakeAny { owner, queue, pick }),
        2 => (0..3u64, 0..3u8).prop_map(|(owner, token)| Step::TakeLeased { owner, token }),
        2 => (0..3u64, any::<Pick>()).prop_map(|(owner, pick)| Step::Release { owner, pick }),
        1 => (0..3u64).prop_map(|owner| Step::ReleaseAll { owner }),
        2 => (0..3u64).prop_map(|owner| Step::Claim { owner }),
        3 => millis().prop_map(|millis| Step::Pass { millis }),
        1 => (0..2usize).prop_map(|queue| Step::Delete { queue }),
        1 => (0..2usize).prop_map(|queue| Step::Define { queue }),
        2 => (0..2usize).prop_map(move |ending| {
            if restarts { Step::Restart { ending } } else { Step::Pass { millis: 1 } }
        }),
    ]
}
