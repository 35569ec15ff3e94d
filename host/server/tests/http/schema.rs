//! Holds answers to the OpenAPI document: status, content type, and the shape of JSON.

use axum::http::Method;
use serde_json::Value;

use crate::harness::Answered;

/// Schemas inside schemas that are followed; ours are not recursive.
const MAX_DEPTH: usize = 32;

/// The OpenAPI document.
pub(crate) struct Document(pub(crate) Value);

impl Document {
    pub(crate) fn new() -> Self {
        Self(serde_json::to_value(oncue_server::openapi()).expect("serialises"))
    }

    /// The template that a path fits, literal segments before parameters.
    pub(crate) fn template_of(&self, path: &str) -> Option<String> {
        let paths = self.0["paths"].as_object().expect("paths");
        let given: Vec<&str> = path.split('/').collect();
        let fitting = paths.keys().filter(|template| {
            let wanted: Vec<&str> = template.split('/').collect();
            wanted.len() == given.len()
                && wanted
                    .iter()
                    .zip(&given)
                    .all(|(w, g)| w == g || w.starts_with('{'))
        });
        fitting
            .min_by_key(|template| template.matches('{').count())
            .cloned()
    }

    /// Panics when the answer is not one that the document names.
    #[track_caller]
    pub(crate) fn check(&self, method: &Method, path: &str, answered: &Answered) {
        let here = format!("{method} {path} -> {}", answered.status);
        let Some(template) = self.template_of(path) else {
            // Pages of the console are not in it, and who may not ask is not told what is there.
            let is_known = [401, 403, 404].contains(&answered.status.as_u16());
            let is_page = !path.starts_with("/v1");
            assert!(is_known || is_page, "{here}: no such path");
            return;
        };
        let operation = &self.0["paths"][&template][method.as_str().to_ascii_lowercase()];
        if operation.is_null() {
            assert_eq!(answered.status, 405, "{here}: no such method");
            return;
        }
        let response = &operation["responses"][answered.status.as_str()];
        assert!(
            !response.is_null(),
            "{here} is not in the document: {:?}",
            answered.body
        );
        assert!(answered.headers.contains_key("oncue-request-id"), "{here}");
        let Some(content) = response["content"].as_object() else {
            assert!(
                answered.body.is_empty(),
                "{here} has a body that the document has not"
            );
            return;
        };
        let given = answered
            .headers
            .get("content-type")
            .map(|v| v.to_str().expect("ASCII"));
        let given = given.unwrap_or("application/octet-stream");
        // Parameters, such as a character set, are not in the document.
        let essence = given.split(';').next().unwrap_or_default();
        let media = content.get(given).or_else(|| content.get(essence));
        let media = media.or_else(|| content.get("*/*"));
        let media = media.unwrap_or_else(|| panic!("{here}: {given} is not in the document"));
        // A message's own body may be JSON of any shape; its id is then in a header.
        let is_body = answered.headers.contains_key("oncue-put-time");
        if content.contains_key(given) && given.ends_with("json") && !is_body {
            let value = answered.json();
            self.check_value(&media["schema"], &value, &here, MAX_DEPTH)
                .unwrap_or_else(|fault| panic!("{fault} in {value:#}"));
        }
    }

    fn check_value(
        &self,
        schema: &Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        if depth == 0 {
            return Err(format!("{at}: schemas are nested too deep"));
        }
        if let Some(name) = schema["$ref"].as_str() {
            let pointer = name.trim_start_matches('#');
            let target = self
                .0
                .pointer(pointer)
                .ok_or_else(|| format!("{at}: no {name}"))?;
            return self.check_value(target, value, at, depth - 1);
        }
        // A message's own body, which may be anything, is not held to the document.
        if let Some(ours) = schema["anyOf"].as_array().and_then(|all| all.first()) {
            return self.check_value(ours, value, at, depth - 1);
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let faults: Vec<String> = choices
                .iter()
                .filter_map(|choice| self.check_value(choice, value, at, depth - 1).err())
                .collect();
            let fits = faults.len() + 1 == choices.len();
            return if fits {
                Ok(())
            } else {
                Err(format!("{at}: oneOf {faults:?}"))
            };
        }
        check_type(&schema["type"], value).map_err(|fault| format!("{at}: {fault}"))?;
        match value {
            Value::Object(_) => self.check_object(schema, value, at, depth),
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                self.check_value(&schema["items"], item, &format!("{at}.{index}"), depth - 1)
            }),
            _ => Ok(()),
        }
    }

    fn check_object(
        &self,
        schema: &Value,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let object = value.as_object().expect("an object");
        for name in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(name.as_str().unwrap_or_default()) {
                return Err(format!("{at}: {name} is missing"));
            }
        }
        let properties = schema["properties"].as_object();
        for (name, inner) in object {
            let at = format!("{at}.{name}");
            let known = properties.and_then(|properties| properties.get(name));
            let other = &schema["additionalProperties"];
            match known {
                Some(known) => self.check_value(known, inner, &at, depth - 1)?,
                None if other.is_object() => self.check_value(other, inner, &at, depth - 1)?,
                // An object that names no property may have any.
                None if properties.is_none() => {}
                None => return Err(format!("{at} is not in the document")),
            }
        }
        Ok(())
    }
}

fn check_type(wanted: &Value, value: &Value) -> Result<(), String> {
    let fits = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    let fit = match wanted {
        Value::String(name) => fits(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    };
    if fit {
        Ok(())
    } else {
        Err(format!("{value} is not {wanted}"))
    }
}
