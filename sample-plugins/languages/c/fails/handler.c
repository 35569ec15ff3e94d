// Fails in the way that the body says: "panic", "oom", any body that is no UTF-8. A body that
// starts with "huge" is taken to pieces. C says nothing by itself when it fails: what an operator
// shall read has to be written to standard error.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/message_handler.h"

typedef message_handler_string_t text_t;

// Not inlined, so that the backtrace names it.
__attribute__((noinline)) static void panics(const char *why) {
    fprintf(stderr, "%s\n", why);
    abort();
}

// Seen from elsewhere, so that the compiler cannot leave the memory out.
char *volatile hoarded;

static void hoards(void) {
    const size_t piece = 1 << 20;
    for (size_t had = 0;; had += piece) {
        char *more = malloc(piece);
        if (more == NULL) {
            fprintf(stderr, "out of memory after %zu bytes\n", had);
            abort();
        }
        memset(more, 1, piece);
        hoarded = more;
    }
}

// Every character and every byte, one by one.
static void weighs(const text_t *text) {
    unsigned long characters = 0, sum = 0;
    for (size_t at = 0; at < text->len; at++) {
        characters += (text->ptr[at] & 0xc0) != 0x80;
        sum += text->ptr[at];
    }
    char told[64];
    snprintf(told, sizeof told, "%lu characters, sum %lu", characters, sum);
    oncue_handler_types_content_t content = {.tag = ONCUE_HANDLER_TYPES_CONTENT_TEXT};
    message_handler_string_set(&content.val.text, told);
    text_t queue, id;
    message_handler_string_set(&queue, "fails.out");
    oncue_handler_types_put_options_t options = {0};
    oncue_handler_types_error_t refused;
    if (!oncue_handler_queues_put(&queue, &content, &options, &id, &refused)) {
        panics("the put was refused");
    }
}

static bool is(const text_t *text, const char *word) {
    return text->len == strlen(word) && memcmp(text->ptr, word, text->len) == 0;
}

bool exports_oncue_handler_on_message_handle(
    exports_oncue_handler_on_message_borrow_message_t message,
    exports_oncue_handler_on_message_failure_t *failure) {
    (void)failure;
    text_t text;
    oncue_handler_types_error_t refused;
    if (!oncue_handler_types_method_message_text(message, &text, &refused)) {
        panics("the body is no text");
    }
    if (is(&text, "panic")) {
        panics("boom from C");
    } else if (is(&text, "oom")) {
        hoards();
    } else if (text.len > 4 && memcmp(text.ptr, "huge", 4) == 0) {
        weighs(&text);
    }
    return true;
}
