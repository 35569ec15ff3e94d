// Greets: each message is a name, and the greeting goes to the queue `{{name}}.out`.

#include <stdlib.h>
#include <string.h>

#include "bindings/message_handler.h"

// Where the greetings go. The manifest grants the put.
static const char OUTPUT[] = "{{name}}.out";

typedef exports_oncue_handler_on_message_failure_t failure_t;
typedef message_handler_string_t text_t;

// What can never succeed: not tried again, an operator reads the reason.
static bool reject(failure_t *failure, const char *reason) {
    failure->tag = ONCUE_HANDLER_TYPES_FAILURE_REJECT;
    message_handler_string_dup(&failure->val.reject, reason);
    return false;
}

// A call was refused, such as a put to a full queue: try again later, with the refusal as the
// reason.
static bool later(failure_t *failure, oncue_handler_types_error_t *refused) {
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

// Handles one message. True commits: the message leaves its queue and the greeting is there.
// False undoes all of it, and the failure says what becomes of the message.
bool exports_oncue_handler_on_message_handle(
    exports_oncue_handler_on_message_borrow_message_t message, failure_t *failure) {
    text_t name;
    oncue_handler_types_error_t refused;
    if (!oncue_handler_types_method_message_text(message, &name, &refused)) {
        return reject(failure, "the name is not UTF-8");
    }
    if (name.len == 0) {
        return reject(failure, "the name is empty");
    }

    static const char HELLO[] = "hello ";
    const size_t hello = strlen(HELLO);
    oncue_handler_types_content_t greeting = {.tag = ONCUE_HANDLER_TYPES_CONTENT_TEXT};
    greeting.val.text.len = hello + name.len;
    greeting.val.text.ptr = malloc(greeting.val.text.len);
    if (greeting.val.text.ptr == NULL) {
        abort();
    }
    memcpy(greeting.val.text.ptr, HELLO, hello);
    memcpy(greeting.val.text.ptr + hello, name.ptr, name.len);
    message_handler_string_free(&name);

    text_t queue;
    message_handler_string_set(&queue, OUTPUT);
    // All zero: nothing is said, and the queue's own defaults hold.
    oncue_handler_types_put_options_t options = {0};
    text_t id;
    const bool done = oncue_handler_queues_put(&queue, &greeting, &options, &id, &refused);
    message_handler_string_free(&greeting.val.text);
    if (!done) {
        return later(failure, &refused);
    }
    message_handler_string_free(&id);
    return true;
}
