//! Bodies of requests, and messages' own bodies in answers.

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AnyOfBuilder, SchemaType};
use utoipa::openapi::{Content, ObjectBuilder, RefOr, Required, Schema};

/// The media type of our own JSON, and of messages whose putters said so.
const JSON: &str = "application/json";

/// The media type of an answer that is a message's own body.
const ANY: &str = "*/*";

/// A body that may be left out is not `null` when it is there.
pub(super) fn plain(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else {
        return;
    };
    for content in body.content.values_mut() {
        if let RefOr::T(content) = content
            && let Some(schema) = without_null(content)
        {
            content.schema = Some(schema);
            body.required = Some(Required::False);
        }
    }
}

/// Where an answer is a message's own body, JSON may be that body, of any shape.
pub(super) fn own(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else {
            continue;
        };
        if !response.content.contains_key(ANY) {
            continue;
        }
        if let Some(RefOr::T(content)) = response.content.get_mut(JSON)
            && let Some(ours) = content.schema.take()
        {
            let body = ObjectBuilder::new()
                .schema_type(SchemaType::AnyValue)
                .description(Some(
                    "The body of a message whose content type is JSON, where the accept header \
                     does not name JSON",
                ));
            let either = AnyOfBuilder::new().item(ours).item(body).build();
            content.schema = Some(RefOr::T(Schema::AnyOf(either)));
        }
    }
}

/// What a content is beside `null`, if it may be that.
fn without_null(content: &Content) -> Option<RefOr<Schema>> {
    let Some(RefOr::T(Schema::OneOf(choices))) = &content.schema else {
        return None;
    };
    let mut named = choices
        .items
        .iter()
        .filter(|it| matches!(it, RefOr::Ref(_)));
    let schema = named.next()?;
    (choices.items.len() == 2).then(|| schema.clone())
}
