#include "json.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How deep arrays and objects may lie in each other: the reader calls itself.
enum { MAX_DEPTH = 128 };

// What is left to read. It ends with a zero, which no JSON text holds outside of an escape.
struct reader {
    const char *at;
    const char *end;
    int depth;
};

static bool skip_value(struct reader *in);

static void *memory(size_t size) {
    void *got = malloc(size);
    if (got == NULL) {
        fprintf(stderr, "out of memory: %zu bytes\n", size);
        abort();
    }
    return got;
}

static void skip_space(struct reader *in) {
    while (*in->at == ' ' || *in->at == '\t' || *in->at == '\n' || *in->at == '\r') {
        in->at++;
    }
}

static bool skip(struct reader *in, char wanted) {
    skip_space(in);
    if (in->at == in->end || *in->at != wanted) {
        return false;
    }
    in->at++;
    return true;
}

// Four hexadecimal digits.
static bool read_unit(struct reader *in, uint32_t *unit) {
    *unit = 0;
    for (int digit = 0; digit < 4; digit++, in->at++) {
        const char c = *in->at;
        uint32_t value = 0;
        if (c >= '0' && c <= '9') {
            value = (uint32_t)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            value = (uint32_t)((c | 0x20) - 'a' + 10);
        } else {
            return false;
        }
        *unit = *unit << 4 | value;
    }
    return true;
}

// The rest of an escape `\u`: one character, written as UTF-8. Answers its bytes, none: wrong.
static size_t read_character(struct reader *in, char *out) {
    uint32_t code = 0;
    if (!read_unit(in, &code)) {
        return 0;
    }
    if (code >= 0xd800 && code < 0xe000) {
        // The first half of a pair; its other half follows.
        uint32_t low = 0;
        if (code >= 0xdc00 || in->at[0] != '\\' || in->at[1] != 'u') {
            return 0;
        }
        in->at += 2;
        if (!read_unit(in, &low) || low < 0xdc00 || low >= 0xe000) {
            return 0;
        }
        code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char FIRST[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(FIRST[more] | code >> (6 * more));
    for (size_t at = 1; at <= more; at++) {
        out[at] = (char)(0x80 | (code >> (6 * (more - at)) & 0x3f));
    }
    return more + 1;
}

// A text, from its first quote on. What is kept is to be freed; `text` none: it is passed over.
static bool read_text(struct reader *in, char **text, size_t *length) {
    if (!skip(in, '"')) {
        return false;
    }
    // No escape is shorter than what it stands for.
    char *out = memory((size_t)(in->end - in->at) + 1);
    size_t used = 0;
    while (*in->at != '"') {
        const char c = *in->at;
        if ((unsigned char)c < 0x20) {
            free(out); // A control character, or the end.
            return false;
        }
        in->at++;
        if (c != '\\') {
            out[used++] = c;
            continue;
        }
        static const char NAMES[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
        const char name = *in->at;
        const char *known = name == '\0' ? NULL : strchr(NAMES, name);
        size_t bytes = 1;
        if (known != NULL) {
            out[used] = MEANT[known - NAMES];
            in->at++;
        } else if (name == 'u') {
            in->at++;
            bytes = read_character(in, out + used);
        } else {
            bytes = 0;
        }
        if (bytes == 0) {
            free(out);
            return false;
        }
        used += bytes;
    }
    in->at++;
    out[used] = '\0';
    if (text == NULL) {
        free(out);
        return true;
    }
    *text = out;
    *length = used;
    return true;
}

static bool skip_digits(struct reader *in) {
    const char *from = in->at;
    while (*in->at >= '0' && *in->at <= '9') {
        in->at++;
    }
    return in->at > from;
}

static bool read_number(struct reader *in, double *number) {
    const char *from = in->at;
    in->at += *in->at == '-';
    const bool is_zero = *in->at == '0';
    const char *whole = in->at;
    if (!skip_digits(in) || (is_zero && in->at - whole > 1)) {
        return false;
    }
    if (*in->at == '.') {
        in->at++;
        if (!skip_digits(in)) {
            return false;
        }
    }
    if (*in->at == 'e' || *in->at == 'E') {
        in->at++;
        in->at += *in->at == '+' || *in->at == '-';
        if (!skip_digits(in)) {
            return false;
        }
    }
    *number = strtod(from, NULL);
    return isfinite(*number);
}

static bool skip_word(struct reader *in, const char *word) {
    const size_t length = strlen(word);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) {
        return false;
    }
    in->at += length;
    return true;
}

// Members of an array or an object, behind its opening bracket. Those of an object are read into
// `fields`, if there are any.
static bool read_members(struct reader *in, char close, struct field *fields, size_t count);

static bool skip_value(struct reader *in) {
    skip_space(in);
    double number = 0;
    switch (*in->at) {
    case '"':
        return read_text(in, NULL, NULL);
    case '{':
        in->at++;
        return read_members(in, '}', NULL, 0);
    case '[':
        in->at++;
        return read_members(in, ']', NULL, 0);
    case 't':
        return skip_word(in, "true");
    case 'f':
        return skip_word(in, "false");
    case 'n':
        return skip_word(in, "null");
    default:
        return read_number(in, &number);
    }
}

static bool read_field(struct reader *in, struct field *field) {
    skip_space(in);
    free(field->text);
    field->text = NULL;
    field->is = JSON_OTHER;
    if (*in->at == '"') {
        field->is = JSON_TEXT;
        return read_text(in, &field->text, &field->length);
    }
    if (*in->at == '-' || (*in->at >= '0' && *in->at <= '9')) {
        field->is = JSON_NUMBER;
        return read_number(in, &field->number);
    }
    return skip_value(in);
}

// A name and a value.
static bool read_member(struct reader *in, struct field *fields, size_t count) {
    skip_space(in);
    char *name = NULL;
    size_t length = 0;
    if (!read_text(in, &name, &length)) {
        return false;
    }
    struct field *field = NULL;
    for (size_t at = 0; at < count; at++) {
        if (strlen(fields[at].name) == length && memcmp(fields[at].name, name, length) == 0) {
            field = &fields[at];
        }
    }
    free(name);
    if (!skip(in, ':')) {
        return false;
    }
    return field == NULL ? skip_value(in) : read_field(in, field);
}

static bool read_members(struct reader *in, char close, struct field *fields, size_t count) {
    if (++in->depth > MAX_DEPTH) {
        return false;
    }
    bool good = true;
    if (!skip(in, close)) {
        do {
            good = close == '}' ? read_member(in, fields, count) : skip_value(in);
        } while (good && skip(in, ','));
        good = good && skip(in, close);
    }
    in->depth--;
    return good;
}

bool json_object(const char *text, size_t length, struct field *fields, size_t count) {
    // With a zero behind it, one character ahead can be looked at anywhere.
    char *copy = memory(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    struct reader in = {.at = copy, .end = copy + length, .depth = 0};
    bool good = skip(&in, '{') && read_members(&in, '}', fields, count);
    skip_space(&in);
    good = good && in.at == in.end;
    free(copy);
    return good;
}

char *json_quoted(const char *text, size_t length) {
    static const char NAMES[] = "\"\\bfnrt", MEANT[] = "\"\\\b\f\n\r\t";
    // The longest escape is \u001f.
    char *out = memory(6 * length + 3);
    char *to = out;
    *to++ = '"';
    for (size_t at = 0; at < length; at++) {
        const char c = text[at];
        const char *known = c == '\0' ? NULL : strchr(MEANT, c);
        if (known != NULL) {
            *to++ = '\\';
            *to++ = NAMES[known - MEANT];
        } else if ((unsigned char)c < 0x20) {
            to += sprintf(to, "\\u%04x", (unsigned)c);
        } else {
            *to++ = c;
        }
    }
    *to++ = '"';
    *to = '\0';
    return out;
}
