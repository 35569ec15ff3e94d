// Content-based routing, as a program: an order on standard input, the same order on standard
// output, which goes to the queue that the manifest names as output. The same work as
// ../../../polite/route-orders, as far as one output queue allows.
//
// What can never succeed (a body that is no order) is rejected with a reason and goes straight to
// the backout queue, where a person reads it. Any other failure is retried.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"unicode/utf8"
)

// kindName is what may be part of a queue's name.
var kindName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// errNoObject is the reason for whatever is no order from the start.
var errNoObject = errors.New("not an order: the body is no JSON object")

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		retry(err)
	}
	if err := check(body); err != nil {
		reject(err)
	}
	if _, err := os.Stdout.Write(body); err != nil {
		retry(err)
	}
}

// check answers why an order is none that goes to the output queue; nil: it is.
func check(body []byte) error {
	fields, err := object(body)
	if err != nil {
		return err
	}
	order, isText := fields["order"].(string)
	if !isText {
		return errors.New(`not an order: "order" is missing or no text`)
	}
	if order == "" {
		return errors.New(`not an order: "order" is empty`)
	}
	kind, isText := fields["kind"].(string)
	if !isText {
		return errors.New(`not an order: "kind" is missing or no text`)
	}
	amount, isNumber := fields["amount"].(float64)
	if !isNumber {
		return errors.New(`not an order: "amount" is missing or no number`)
	}
	if amount < 0 {
		return fmt.Errorf(`order %s: "amount" is below 0`, quoted(order))
	}
	if !kindName.MatchString(kind) {
		return fmt.Errorf("order %s: kind %s is no queue name", quoted(order), quoted(kind))
	}
	// A command has one output queue. The other samples put these to audit.KIND.
	if kind != "invoice" {
		return fmt.Errorf("order %s: kind %s has no queue here", quoted(order), quoted(kind))
	}
	return nil
}

// object reads the body as one JSON object in UTF-8. encoding/json alone would replace wrong bytes.
func object(body []byte) (map[string]any, error) {
	var fields map[string]any
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, errNoObject
	}
	return fields, nil
}

// quoted writes a text as in JSON, for people: "<" stays "<".
func quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return text
	}
	return string(bytes.TrimSpace(out.Bytes()))
}

// reject ends the program so that the message is not tried again.
func reject(reason error) {
	fmt.Fprintf(os.Stderr, "oncue-reject: %v\n", reason)
	os.Exit(1)
}

// retry ends the program so that the message is tried again later.
func retry(reason error) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(1)
}
