//! The JSON schema of the records, made from their declarations.

use pmdb::command::RECORDS;
use pmdb::report::{FieldDescription, JsonForm, Shape};
use serde_json::{Map, Value, json};

/// Returns the schema of a line of `--json`, and of `--serve`.
pub fn text() -> String {
    let mut definitions = Map::new();
    let mut lines = Vec::new();
    for shape in RECORDS.iter() {
        for (title, mut schema) in records("type", shape, &mut definitions) {
            if let Value::Object(schema) = &mut schema {
                schema.insert("title".to_owned(), title.as_str().into());
            }
            // Two commands may have records of the same type.
            let name = if definitions.contains_key(&title) { format!("{title}-2") } else { title };
            lines.push(reference(&name));
            definitions.insert(name, schema);
        }
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A record of pmdb --json",
        "anyOf": lines,
        "$defs": definitions,
    });
    // Not indented, which would double its size: mostly programs read it.
    format!("{schema}\n")
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a record with its title, or one for each shape of the record. The field `tag` has the name of
/// the shape.
fn records(tag: &str, shape: &Shape, definitions: &mut Map<String, Value>) -> Vec<(String, Value)> {
    let mut schemas = match shape.form {
        JsonForm::OneOf { tag, shapes } => {
            let mut all = Vec::new();
            for one in shapes {
                let inner = records(tag, one, definitions).into_iter();
                all.extend(inner.map(|(title, schema)| (format!("{}-{title}", shape.name), schema)));
            }
            all
        }
        form => vec![(shape.name.to_owned(), object(&form.fields(), shape.name, definitions))],
    };
    for (_, schema) in &mut schemas {
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

fn object(fields: &[FieldDescription], name: &str, definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let mut schema = of(field.form, &format!("{name}-{}", field.name), definitions);
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

/// The schema of a form. `name` is that of its record and field, for a part that others share.
fn of(form: JsonForm, name: &str, definitions: &mut Map<String, Value>) -> Value {
    match form {
        JsonForm::Bool => json!({ "type": "boolean" }),
        JsonForm::Integer => json!({ "type": "integer" }),
        JsonForm::Number => json!({ "type": "number" }),
        JsonForm::Hex => {
            let hex = || json!({ "title": "hex", "type": "string", "pattern": "^0x[0-9a-f]+$" });
            definitions.entry("hex").or_insert_with(hex);
            reference("hex")
        }
        JsonForm::Word(words) => {
            let word = || json!({ "title": words.name, "type": "string", "enum": (words.all)() });
            let name = format!("word-{}", words.name);
            definitions.entry(name.as_str()).or_insert_with(word);
            reference(&name)
        }
        JsonForm::Text => json!({ "type": "string" }),
        JsonForm::List(items) => json!({ "type": "array", "items": of(*items, name, definitions) }),
        JsonForm::Map(values) => {
            let values = of(*values, name, definitions);
            shared(json!({ "type": "object", "additionalProperties": values }), name, definitions)
        }
        JsonForm::Either(one, other) => {
            json!({ "anyOf": [of(*one, name, definitions), of(*other, name, definitions)] })
        }
        JsonForm::OrNull(form) => {
            let mut schema = of(*form, name, definitions);
            match &schema["type"] {
                Value::String(one) => {
                    schema["type"] = json!([one, "null"]);
                    schema
                }
                _ => json!({ "anyOf": [schema, { "type": "null" }] }),
            }
        }
        JsonForm::OneOf { tag, shapes } => {
            let mut all = Vec::new();
            for shape in shapes {
                all.extend(records(tag, shape, definitions).into_iter().map(|(_, schema)| schema));
            }
            shared(json!({ "anyOf": all }), name, definitions)
        }
        JsonForm::Object(_) => {
            let part = object(&form.fields(), name, definitions);
            shared(part, name, definitions)
        }
        // Flags were expanded by `fields`. Any other form allows every value.
        _ => json!({}),
    }
}

/// Returns a reference to the schema of a part. Parts that several records share are written once, which makes the file
/// a sixth shorter.
fn shared(mut part: Value, name: &str, definitions: &mut Map<String, Value>) -> Value {
    let mut is_known = |(name, known): &(&String, &Value)| {
        part["title"] = name.as_str().into();
        **known == part
    };
    if let Some((name, _)) = definitions.iter().find(&mut is_known) {
        return reference(name);
    }
    // A field of a record and one of its parts may be called alike.
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let Some(name) = names.find(|name| !definitions.contains_key(name)) else { return part };
    part["title"] = name.as_str().into();
    definitions.insert(name.clone(), part);
    reference(&name)
}

/// Returns the description without the line breaks of the source.
fn sentence(about: &str) -> Value {
    let words: Vec<&str> = about.split_whitespace().collect();
    Value::from(words.join(" "))
}
