//! Holds JSON against the schemas in `docs/schema/`, strictly: what a schema does not list must not be there, although
//! schemas leave room for new members. Knows the part of JSON Schema that these files use; another word in them is an
//! error, too. A whole validator would be the largest dependency of the project.

use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// The folder with all schemas.
pub fn folder() -> PathBuf {
    super::root().join("docs/schema")
}

/// A schema by its file's name.
pub fn read(file: &str) -> Value {
    let path = folder().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails unless a document is what the schema that it names says.
pub fn fits(document: &Value) {
    let name = document["schema"].as_str().unwrap_or_else(|| panic!("no member `schema` in {document:.200}"));
    let name = name.strip_prefix("stepscope.").unwrap_or_else(|| panic!("{name} is none of ours"));
    let wrong = wrong(&read(&format!("{name}.json")), document);
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

/// What is wrong with a document, with the place of each.
pub fn wrong(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema }.value(schema, document, "", &mut found);
    found
}

struct Check<'s> {
    /// The file that `#/…` is about.
    root: &'s Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let Some(words) = schema.as_object() else {
            found.push(format!("{at}: the schema is no object: {schema}"));
            return;
        };
        for (word, says) in words {
            match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "required" | "additionalProperties" => {}
                "$ref" => self.referred(says, value, at, found),
                "type" if !has_type(says, value) => found.push(format!("{at}: {value:.60} is not {says}")),
                "const" if says != value => found.push(format!("{at}: {value:.60} is not {says}")),
                "enum" if !says.as_array().is_some_and(|all| all.contains(value)) => {
                    found.push(format!("{at}: {value:.60} is none of {says}"));
                }
                "type" | "const" | "enum" => {}
                "properties" => self.members(words, value, at, found),
                "items" => {
                    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(says, item, &format!("{at}[{place}]"), found);
                    }
                }
                "anyOf" => found.extend(self.nearest(says, value, at)),
                other => found.push(format!("{at}: the schema says {other:?}, which nothing checks")),
            }
        }
        if !words.contains_key("properties") && words.contains_key("additionalProperties") {
            self.members(words, value, at, found);
        }
    }

    fn members(&self, words: &Map<String, Value>, value: &Value, at: &str, found: &mut Vec<String>) {
        let Some(members) = value.as_object() else { return };
        let nothing = Map::new();
        let known = words.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
        let required = words.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str).filter(|key| !members.contains_key(*key)) {
            found.push(format!("{at}: {key} is missing"));
        }
        for (key, member) in members {
            match known.get(key).or(words.get("additionalProperties")) {
                Some(schema) => self.value(schema, member, &format!("{at}.{key}"), found),
                None => found.push(format!("{at}: {key} is not in the schema")),
            }
        }
    }

    fn referred(&self, says: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let name = says.as_str().unwrap_or("");
        match name.strip_prefix('#') {
            Some(place) => match self.root.pointer(place) {
                Some(schema) => self.value(schema, value, at, found),
                None => found.push(format!("{at}: the schema refers to {name}, which is not there")),
            },
            None => {
                let other = read(name);
                Check { root: &other }.value(&other, value, at, found);
            }
        }
    }

    /// What is wrong by the variant that fits best.
    fn nearest(&self, variants: &Value, value: &Value, at: &str) -> Vec<String> {
        let tried = variants.as_array().into_iter().flatten().map(|schema| {
            let mut found = Vec::new();
            self.value(schema, value, at, &mut found);
            found
        });
        tried.min_by_key(Vec::len).unwrap_or_default()
    }
}

fn has_type(says: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    };
    says.as_array().map_or_else(|| is(says), |all| all.iter().any(is))
}
