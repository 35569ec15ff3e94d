//! A program that ends in the way that the first word of its message names: each way once, with
//! its outcome beside it. What follows the first word is written to standard error before.

use std::hint::black_box;
use std::io::{Read, Write, stderr, stdin, stdout};
use std::process::{ExitCode, abort, exit};

/// A piece of output: 64 KiB.
static PIECE: [u8; 64 << 10] = [b'x'; 64 << 10];

fn main() -> ExitCode {
    let mut first = [0; 16];
    let read = stdin().read(&mut first).unwrap_or(0);
    let (way, words) = cut(&first[..read]);
    if way == "unread" {
        // The rest of the body stays where it is. `committed`.
        println!("done");
        return ExitCode::SUCCESS;
    }
    let mut words = words.to_vec();
    let _ = stdin().read_to_end(&mut words);
    println!("on standard output");
    let _ = stderr().write_all(&words);
    end(&way)
}

/// The first word, and what follows after one space.
fn cut(bytes: &[u8]) -> (String, &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b' ');
    let way = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    (way, parts.next().unwrap_or_default())
}

fn end(way: &str) -> ExitCode {
    match way {
        // `committed`
        "zero" => exit(0),
        // `retry`, or `rejected` by the last line
        "fails" => ExitCode::FAILURE,
        "three" => exit(3),
        // `trapped`, or `rejected`
        "panic" => panic!("the order is cursed"),
        "abort" => abort(),
        // `out-of-fuel`
        "spin" => loop {
            black_box(());
        },
        // `over-memory`
        "hoard" => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        // `past-deadline`
        "sleep" => {
            std::thread::sleep(std::time::Duration::from_secs(3600));
            ExitCode::SUCCESS
        }
        // `output-limit`
        "flood" => loop {
            let _ = stdout().write_all(&PIECE);
        },
        // `rejected`: the tail of a long last text is the reason.
        "long" => {
            let _ = stderr().write_all("é".repeat(100_000).as_bytes());
            ExitCode::FAILURE
        }
        // `committed`, with nothing put: what it wrote is empty.
        _ => ExitCode::SUCCESS,
    }
}
