//! A program that keeps state, reads its configuration and writes log lines through every version
//! of those interfaces that is in use, and tells what each call answered.

use std::fmt::Debug;

wit_bindgen::generate!({ path: "wit", generate_all });

/// Writes what a call answered, a line each.
fn tell(call: &str, answer: impl Debug) {
    println!("{call} {answer:?}");
}

/// The second draft: cursors are texts, counters have a sign, and there is compare-and-swap.
mod second {
    use super::tell;
    use super::wasi::keyvalue0_2_0_draft2::{atomics, batch, store};

    pub fn speak() {
        tell("open", store::open("another").err());
        let bucket = store::open("").expect("the bucket");
        tell("get", bucket.get("color"));
        tell("set", bucket.set("color", b"red"));
        tell("get", bucket.get("color"));
        tell("exists", bucket.exists("color"));
        tell("delete", bucket.delete("color"));
        tell("exists", bucket.exists("color"));
        tell("increment", atomics::increment(&bucket, "count", 5));
        tell("increment", atomics::increment(&bucket, "count", -7));
        tell("set", bucket.set("word", b"no number"));
        tell("increment", atomics::increment(&bucket, "word", 1));
        swap(&bucket);
        let pairs = [
            ("m1".to_owned(), b"1".to_vec()),
            ("m2".to_owned(), b"2".to_vec()),
        ];
        tell("set-many", batch::set_many(&bucket, &pairs));
        let keys = ["m1", "gone", "m2"].map(str::to_owned);
        tell("get-many", batch::get_many(&bucket, &keys));
        tell("delete-many", batch::delete_many(&bucket, &keys[..2]));
        let page = bucket.list_keys(None).expect("a page");
        tell("list-keys", (page.keys, page.cursor));
        let page = bucket.list_keys(Some("count")).expect("a page");
        tell("list-keys", (page.keys, page.cursor));
    }

    fn swap(bucket: &store::Bucket) {
        let cas = atomics::Cas::new(bucket, "swapped").expect("a swap");
        tell("current", cas.current());
        tell("swap", atomics::swap(cas, b"one").is_ok());
        let late = atomics::Cas::new(bucket, "swapped").expect("a swap");
        tell("set", bucket.set("swapped", b"two"));
        // It was written since: the swap fails and gives another chance.
        let again = match atomics::swap(late, b"three") {
            Err(atomics::CasError::CasFailed(again)) => again,
            other => panic!("{other:?}"),
        };
        tell("current", again.current());
        tell("swap", atomics::swap(again, b"three").is_ok());
        tell("get", bucket.get("swapped"));
    }
}

/// The first draft: cursors are numbers, counters have no sign.
mod first {
    use super::tell;
    use super::wasi::keyvalue0_2_0_draft::{atomics, batch, store};

    /// More keys than one page has.
    const MANY: usize = 1500;

    pub fn speak() {
        tell("open", store::open("another").err());
        let bucket = store::open("default").expect("the bucket");
        // The state is one, whichever version looks at it.
        tell("get", bucket.get("swapped"));
        tell("set", bucket.set("color", b"blue"));
        tell("exists", bucket.exists("color"));
        tell("delete", bucket.delete("color"));
        tell("exists", bucket.exists("color"));
        // The second draft left -2 in it.
        tell("increment", atomics::increment(&bucket, "count", 1));
        tell("get", bucket.get("count"));
        tell("increment", atomics::increment(&bucket, "count", 10));
        tell("increment", atomics::increment(&bucket, "count", u64::MAX));
        let pairs = [("n1".to_owned(), b"1".to_vec())];
        tell("set-many", batch::set_many(&bucket, &pairs));
        let keys = ["n1", "gone"].map(str::to_owned);
        tell("get-many", batch::get_many(&bucket, &keys));
        tell("delete-many", batch::delete_many(&bucket, &keys));
        tell("list-keys", bucket.list_keys(Some(99)).err());
        many(&bucket);
    }

    /// Keys that are there from the message before, page by page.
    fn many(bucket: &store::Bucket) {
        let (mut found, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let page = bucket.list_keys(cursor).expect("a page");
            found.extend(page.keys);
            pages += 1;
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        found.dedup();
        tell("all keys", (found.len(), pages));
        let more: Vec<_> = (0..MANY)
            .map(|number| (format!("z{number:04}"), b"z".to_vec()))
            .collect();
        tell("set-many", batch::set_many(bucket, &more));
    }
}

fn main() {
    second::speak();
    first::speak();
    use wasi::config0_2_0_draft as draft;
    use wasi::{config0_2_0_draft_2024_09_27 as spin, config0_2_0_rc_1 as candidate};
    tell("config", candidate::store::get("region"));
    tell("config", candidate::store::get("nothing"));
    tell("config", draft::store::get("region"));
    tell("config", spin::store::get("region"));
    tell("config", draft::runtime::get("tier"));
    tell("all config", candidate::store::get_all());
    tell("all config", draft::store::get_all());
    tell("all config", spin::store::get_all());
    tell("all config", draft::runtime::get_all());
    use wasi::{logging as plain, logging0_1_0_draft as drafted};
    plain::logging::log(plain::logging::Level::Warn, "plain", "no version");
    drafted::logging::log(drafted::logging::Level::Critical, "", "a version");
}
