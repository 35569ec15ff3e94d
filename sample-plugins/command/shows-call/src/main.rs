//! Writes the arguments, the environment and the length of the body to standard output, a line
//! each: what a program is told of its message.

use std::io::{Read, stdin};

fn main() {
    for argument in std::env::args() {
        println!("argument {argument:?}");
    }
    for (name, value) in std::env::vars() {
        println!("{name}={value}");
    }
    let mut length = 0;
    let mut piece = [0; 64 * 1024];
    while let Ok(read @ 1..) = stdin().read(&mut piece) {
        length += read;
    }
    println!("body {length}");
    eprintln!("told");
}
