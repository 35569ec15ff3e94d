// Content-based routing: each order goes to a queue chosen by what its body says. The same work as
// ../../../polite/route-orders, which is in Rust.
//
// Two kinds of failure. What can never succeed (a body that is no order) is rejected with a reason
// and goes straight to the backout queue, where a person reads it. What may succeed later (a full
// queue) is retried.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/message_handler.h"
#include "json.h"

typedef exports_oncue_handler_on_message_failure_t failure_t;
typedef message_handler_string_t text_t;

// Longest kind, which becomes part of a queue's name, in bytes.
enum { MAX_KIND = 64 };

static bool reject(failure_t *failure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Never try again, for this reason.
static bool reject(failure_t *failure, const char *format, ...) {
    va_list facts;
    va_start(facts, format);
    char *reason = NULL;
    const int length = vasprintf(&reason, format, facts);
    va_end(facts);
    if (length < 0) {
        abort();
    }
    failure->tag = ONCUE_HANDLER_TYPES_FAILURE_REJECT;
    failure->val.reject.ptr = (uint8_t *)reason;
    failure->val.reject.len = (size_t)length;
    return false;
}

// Try the whole message again later, with the refusal as the reason.
static bool retry(failure_t *failure, const oncue_handler_types_error_t *refused) {
    failure->tag = ONCUE_HANDLER_TYPES_FAILURE_RETRY;
    failure->val.retry.after.is_some = false;
    if (refused->tag == ONCUE_HANDLER_TYPES_ERROR_NOT_TEXT) {
        message_handler_string_dup(&failure->val.retry.reason, "the body is not UTF-8");
    } else {
        // Every other case holds a text, in the same place.
        failure->val.retry.reason = refused->val.other;
    }
    return false;
}

static bool is_queue_name(const struct field *kind) {
    static const char ALLOWED[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    // A text may hold a zero; strspn would stop there, short of its length.
    return kind->length > 0 && kind->length <= MAX_KIND &&
           strspn(kind->text, ALLOWED) == kind->length;
}

// Checks an order: `{"order":"o-1","kind":"invoice","amount":12.5}`. False: the failure says why.
static bool is_order(const struct field *order, const struct field *kind,
                     const struct field *amount, failure_t *failure) {
    static const char MISSING[] = "not an order: \"%s\" is missing or no %s";
    if (order->is != JSON_TEXT) {
        return reject(failure, MISSING, "order", "text");
    }
    if (order->length == 0) {
        return reject(failure, "not an order: \"order\" is empty");
    }
    if (kind->is != JSON_TEXT) {
        return reject(failure, MISSING, "kind", "text");
    }
    if (amount->is != JSON_NUMBER) {
        return reject(failure, MISSING, "amount", "number");
    }
    char *name = json_quoted(order->text, order->length);
    bool good = true;
    if (amount->number < 0) {
        good = reject(failure, "order %s: \"amount\" is below 0", name);
    } else if (!is_queue_name(kind)) {
        char *shown = json_quoted(kind->text, kind->length);
        good = reject(failure, "order %s: kind %s is no queue name", name, shown);
        free(shown);
    }
    free(name);
    return good;
}

bool exports_oncue_handler_on_message_handle(
    exports_oncue_handler_on_message_borrow_message_t message, failure_t *failure) {
    static const char NO_OBJECT[] = "not an order: the body is no JSON object";
    text_t body;
    oncue_handler_types_error_t refused;
    // Not UTF-8 or no JSON: the same to whoever sent it.
    if (!oncue_handler_types_method_message_text(message, &body, &refused)) {
        return reject(failure, NO_OBJECT);
    }
    struct field fields[] = {{.name = "order"}, {.name = "kind"}, {.name = "amount"}};
    const bool is_object = json_object((const char *)body.ptr, body.len, fields, 3);
    message_handler_string_free(&body);
    const struct field *order = &fields[0], *kind = &fields[1], *amount = &fields[2];
    bool done = is_object ? is_order(order, kind, amount, failure) : reject(failure, NO_OBJECT);
    if (done) {
        // Every kind but invoice has an audit queue of its own; the grant covers `audit.*`.
        char target[sizeof "audit." + MAX_KIND] = "invoices";
        if (strcmp(kind->text, "invoice") != 0) {
            snprintf(target, sizeof target, "audit.%s", kind->text);
        }
        text_t queue, id;
        message_handler_string_set(&queue, target);
        // The manager puts the message on as it is: the body is not copied back out of here.
        if (oncue_handler_queues_forward(message, &queue, &id, &refused)) {
            message_handler_string_free(&id);
        } else {
            done = retry(failure, &refused);
        }
    }
    free(order->text);
    free(kind->text);
    free(amount->text);
    return done;
}
