// Fails in the way that the body says: "panic", "oom", any body that is no UTF-8. A body that
// starts with "huge" is taken to pieces.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	if !utf8.Valid(body) {
		fmt.Fprintln(os.Stderr, "the body is no text")
		os.Exit(1)
	}
	switch text := string(body); {
	case text == "panic":
		panics()
	case text == "oom":
		hoards()
	case strings.HasPrefix(text, "huge"):
		weighs(text)
	}
}

func panics() {
	panic("boom from Go")
}

// hoarded keeps what hoards takes from being given back.
var hoarded [][]byte

func hoards() {
	for {
		piece := make([]byte, 1<<20)
		piece[0] = 1
		hoarded = append(hoarded, piece)
	}
}

// weighs looks at every character and every byte, one by one.
func weighs(text string) {
	sum := 0
	for i := 0; i < len(text); i++ {
		sum += int(text[i])
	}
	fmt.Printf("%d characters, sum %d", utf8.RuneCountInString(text), sum)
}
