//! The one expansion of the worlds in `wit/`: a world with all imports and both exports, so that
//! every style shares one set of types. Nothing is written by hand here.
//!
//! `queues` and `budget` are linked by hand ([`super::queues`], [`super::budget`]), because they
//! need the `wasmtime::Store` itself; their generated traits stand unused.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "oncue:handler/host",
    imports: {
        default: trappable,
        "oncue:handler/unit-of-work": async | trappable,
    },
    exports: { default: async },
    with: {
        "oncue:handler/types.message": crate::interfaces::types::MessageHandle,
        "wasi:keyvalue/store.bucket": crate::interfaces::keyvalue::Bucket,
        "wasi:keyvalue/atomics.cas": crate::interfaces::keyvalue::Swap,
    },
});
