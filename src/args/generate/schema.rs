//! The JSON schema of the records, from their declarations.

use pmdb::command::RECORDS;
use pmdb::report::{FieldDescription, Form, Shape};
use serde_json::{Map, Value, json};

/// The schema of a line of `--json`, and of `--serve`.
pub fn text() -> String {
    let records = RECORDS.iter().flat_map(|shape| records("type", shape));
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A record of pmdb --json",
        "anyOf": records.collect::<Vec<_>>(),
    });
    format!("{schema:#}\n")
}

/// The schemas of a shape, which the field `tag` names: one, or one for each of its own shapes.
fn records(tag: &str, shape: &Shape) -> Vec<Value> {
    let mut schemas = match shape.form {
        Form::OneOf { tag, shapes } => shapes.iter().flat_map(|one| records(tag, one)).collect(),
        form => vec![object(&form.fields())],
    };
    for schema in &mut schemas {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.insert(tag.to_owned(), json!({ "const": shape.name }));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.push(tag.into());
        }
        if let Value::Object(schema) = schema {
            schema.insert("description".to_owned(), sentence(shape.about));
        }
    }
    schemas
}

fn object(fields: &[FieldDescription]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let mut schema = of(field.form);
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), sentence(field.about));
        }
        properties.insert(field.name.to_owned(), schema);
        if !field.is_optional {
            required.push(field.name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn of(form: Form) -> Value {
    match form {
        Form::Bool => json!({ "type": "boolean" }),
        Form::Number => json!({ "type": "number" }),
        Form::Hex => json!({ "type": "string", "pattern": "^0x[0-9a-f]+$" }),
        Form::Text => json!({ "type": "string" }),
        Form::List(items) => json!({ "type": "array", "items": of(*items) }),
        Form::Map(values) => json!({ "type": "object", "additionalProperties": of(*values) }),
        Form::Either(one, other) => json!({ "anyOf": [of(*one), of(*other)] }),
        Form::OrNull(form) => json!({ "anyOf": [of(*form), { "type": "null" }] }),
        Form::OneOf { tag, shapes } => {
            let shapes = shapes.iter().flat_map(|shape| records(tag, shape));
            json!({ "anyOf": shapes.collect::<Vec<_>>() })
        }
        Form::Object(_) => object(&form.fields()),
        // `fields` lists flags as two fields. An unknown form allows everything.
        _ => json!({}),
    }
}

/// Without the line ends of the source.
fn sentence(about: &str) -> Value {
    let words: Vec<&str> = about.split_whitespace().collect();
    Value::from(words.join(" "))
}
