// Greets: each message is a name on standard input; the greeting on standard output becomes a
// message on the queue `{{name}}.out`, which the manifest names as output.
package main

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// Ending with 0 commits: the message leaves its queue and the greeting is there. Ending otherwise,
// or a panic, undoes all of it; the message is tried again, and what stands on standard error is
// the reason.
func main() {
	name, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !utf8.Valid(name) {
		reject("the name is not UTF-8")
	}
	if len(name) == 0 {
		reject("the name is empty")
	}
	fmt.Printf("hello %s", name)
}

// reject ends the program for what can never succeed: the message is not tried again, an operator
// reads the reason. It is the last line of standard error.
func reject(reason string) {
	fmt.Fprintf(os.Stderr, "oncue-reject: %s\n", reason)
	os.Exit(1)
}
