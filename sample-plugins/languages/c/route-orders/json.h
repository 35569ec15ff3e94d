// Reads some fields of a JSON object. As much of JSON as an order needs: the whole text is checked,
// the values of the fields that are asked for are kept, all others are passed over.

#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

// What a field is. Null, Booleans, objects and arrays are all JSON_OTHER.
enum json { JSON_ABSENT, JSON_TEXT, JSON_NUMBER, JSON_OTHER };

// A field of the object: asked for by name, filled in by json_object.
struct field {
    const char *name;
    enum json is;
    char *text;    // JSON_TEXT: in UTF-8, ended by a zero that is not counted; to be freed.
    size_t length; // Of the text, in bytes. The text itself may hold zeros.
    double number; // JSON_NUMBER.
};

// Reads an object. The text is valid UTF-8. False: it is no JSON object; the fields then hold
// whatever was read before the fault. A field that comes twice has its last value.
bool json_object(const char *text, size_t length, struct field *fields, size_t count);

// The text in quotes, escaped as in JSON; to be freed.
char *json_quoted(const char *text, size_t length);

#endif
