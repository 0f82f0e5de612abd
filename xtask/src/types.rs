//! The page's types of what `--json` promises, written from `docs/schema/`: a schema that changes changes what the page's
//! own checks accept.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::Outcome;

const FILE: &str = "ui/src/server/schema.ts";
/// The schemas whose documents the page reads.
const READ: &[&str] =
    &["report", "info", "compare", "devices", "memory", "fleet", "fleet-page", "fleet-steps"];

const HEAD: &str = "/** What `--json` promises, as the page reads it. Written from docs/schema/ by `cargo xtask types`; do not edit. */\n";

/// Writes the file.
pub(crate) fn write() -> Outcome {
    fs::write(FILE, text()?).map_err(|error| format!("{FILE}: {error}"))
}

/// Fails unless the file is what the schemas say.
pub(crate) fn check() -> Outcome {
    if fs::read_to_string(FILE).unwrap_or_default() != text()? {
        return Err(format!("{FILE} is not what docs/schema/ says; run cargo xtask types"));
    }
    println!("==> types\n    types: the page's are those of the schemas");
    Ok(())
}

fn text() -> Result<String, String> {
    let mut text = HEAD.to_owned();
    for name in READ {
        let path = Path::new("docs/schema").join(format!("{name}.v1.json"));
        let schema = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let schema: Value =
            serde_json::from_str(&schema).map_err(|error| format!("{}: {error}", path.display()))?;
        let root = capitalised(name);
        interface(&mut text, &root, &schema, &root);
        for (part, schema) in schema["$defs"].as_object().into_iter().flatten() {
            interface(&mut text, &format!("{root}{}", capitalised(part)), schema, &root);
        }
    }
    Ok(text)
}

/// One object of a schema.
fn interface(text: &mut String, name: &str, schema: &Value, root: &str) {
    let _ = writeln!(text);
    if let Some(about) = schema["description"].as_str() {
        let _ = writeln!(text, "/** {about} */");
    }
    let Some(members) = schema["properties"].as_object() else {
        let _ = writeln!(text, "export type {name} = {};", of(schema, root));
        return;
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let _ = writeln!(text, "export interface {name} {{");
    for (key, member) in members {
        if let Some(about) = member["description"].as_str() {
            let _ = writeln!(text, "  /** {about} */");
        }
        let optional = if required.contains(&key.as_str()) { "" } else { "?" };
        let _ = writeln!(text, "  {key}{optional}: {};", of(member, root));
    }
    let _ = writeln!(text, "}}");
}

/// The type of one value.
fn of(schema: &Value, root: &str) -> String {
    if let Some(part) = schema["$ref"].as_str().and_then(|part| part.strip_prefix("#/$defs/")) {
        return format!("{root}{}", capitalised(part));
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(variants) = schema["anyOf"].as_array() {
        return variants.iter().map(|variant| of(variant, root)).collect::<Vec<_>>().join(" | ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return "unknown".to_owned(),
    };
    let named = names.iter().map(|name| match *name {
        "integer" => "number".to_owned(),
        "array" => {
            let item = of(&schema["items"], root);
            if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
        }
        "object" => format!("Record<string, {}>", of(&schema["additionalProperties"], root)),
        other => other.to_owned(),
    });
    named.collect::<Vec<_>>().join(" | ")
}

/// `fleet-page` and `job_cause` as `FleetPage` and `JobCause`.
fn capitalised(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    name.split(['-', '_']).map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_become_types() {
        let of = |schema| of(&schema, "Report");
        assert_eq!(of(json!({"type": ["integer", "null"]})), "number | null");
        assert_eq!(of(json!({"type": "array", "items": {"type": ["string", "null"]}})), "(string | null)[]");
        assert_eq!(of(json!({"anyOf": [{"$ref": "#/$defs/op"}, {"type": "null"}]})), "ReportOp | null");
        assert_eq!(of(json!({"enum": ["a", null]})), "\"a\" | null");
        assert_eq!(capitalised("fleet-page"), "FleetPage");
        let numbers = json!({"type": "object", "additionalProperties": {"type": "number"}});
        assert_eq!(of(numbers), "Record<string, number>");
    }
}
