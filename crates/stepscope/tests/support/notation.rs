//! JSON Schema from a short notation, one member per line:
//!
//! ```text
//! What `stepscope fruit --json` writes.
//!
//! name: string -- Its name.
//! weight_g?: number? -- May be missing, may be null.
//! sort: 'apple' | 'pear' -- One of these.
//! seeds: [seed] -- A list of what is described below.
//!
//! @seed
//! length_mm: number -- Its length.
//! ```
//!
//! The types are those of JSON, `any`, lists `[T]`, objects with any keys `{T}`, and names that begin with `@` below. A line
//! `= T` says that the whole document is one of several; `@name: T` names a type that is no object with known members.

/// JSON in the order in which it was written, unlike that of `serde_json`.
pub enum Json {
    Text(String),
    Null,
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn text(text: &str) -> Json {
        Json::Text(text.to_owned())
    }

    fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Indented by one space per level.
    pub fn pretty(&self, depth: usize) -> String {
        let (open, close, items): (char, char, Vec<String>) = match self {
            Json::Text(text) => return serde_json::to_string(text).unwrap(),
            Json::Null => return "null".to_owned(),
            Json::List(items) => ('[', ']', items.iter().map(|item| item.pretty(depth + 1)).collect()),
            Json::Object(members) => {
                let one = |(key, value): &(String, Json)| format!("\"{key}\": {}", value.pretty(depth + 1));
                ('{', '}', members.iter().map(one).collect())
            }
        };
        let (inner, outer) = (" ".repeat(depth + 1), " ".repeat(depth));
        format!("{open}\n{inner}{}\n{outer}{close}", items.join(&format!(",\n{inner}")))
    }
}

/// A whole schema: its name and what it describes.
pub fn document(name: &str, text: &str) -> String {
    let (about, rest) = text.split_once('\n').unwrap();
    let title = format!("stepscope.{name}.v1");
    let mut members = vec![
        ("$schema".to_owned(), Json::text("https://json-schema.org/draft/2020-12/schema")),
        ("title".to_owned(), Json::text(&title)),
        ("description".to_owned(), Json::text(about)),
    ];
    let mut parts = parts(rest).into_iter();
    let (_, own) = parts.next().unwrap();
    let Json::Object(own) = own.schema(Some(&title)) else { unreachable!("a part is an object") };
    members.extend(own);
    let defs: Vec<(String, Json)> = parts.map(|(name, part)| (name, part.schema(None))).collect();
    if !defs.is_empty() {
        members.push(("$defs".to_owned(), Json::Object(defs)));
    }
    Json::Object(members).pretty(0) + "\n"
}

/// One object, or a type with a name.
#[derive(Default)]
struct Part<'t> {
    about: Option<&'t str>,
    is: Option<&'t str>,
    members: Vec<&'t str>,
}

/// The document and what its types refer to, in order.
fn parts(text: &str) -> Vec<(String, Part<'_>)> {
    let mut parts = vec![(String::new(), Part::default())];
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix('@') {
            let (name, about) = rest.split_once(" -- ").map_or((rest, None), |(name, it)| (name, Some(it)));
            let (name, is) = name.split_once(": ").map_or((name, None), |(name, is)| (name, Some(is)));
            parts.push((name.to_owned(), Part { about, is, members: Vec::new() }));
        } else if let Some((_, part)) = parts.last_mut() {
            match line.strip_prefix("= ") {
                Some(is) => part.is = Some(is),
                None => part.members.push(line),
            }
        }
    }
    parts
}

impl Part<'_> {
    fn schema(&self, title: Option<&str>) -> Json {
        let mut schema: Vec<(String, Json)> =
            self.about.map(|about| ("description".to_owned(), Json::text(about))).into_iter().collect();
        if let Some(is) = self.is {
            schema.extend(of(is));
            return Json::Object(schema);
        }
        let (mut members, mut required) = (Vec::new(), Vec::new());
        if let Some(title) = title {
            let about = ("description", Json::text("The name of this schema."));
            members.push(("schema".to_owned(), Json::object([about, ("const", Json::text(title))])));
            required.push(Json::text("schema"));
        }
        for line in &self.members {
            let (head, about) = line.split_once(" -- ").map_or((*line, None), |(head, it)| (head, Some(it)));
            let (key, kind) = head.split_once(": ").unwrap_or_else(|| panic!("no type in {line}"));
            let known = key.trim_end_matches('?');
            if known == key {
                required.push(Json::text(known));
            }
            let mut member: Vec<(String, Json)> =
                about.map(|about| ("description".to_owned(), Json::text(about))).into_iter().collect();
            member.extend(of(kind));
            members.push((known.to_owned(), Json::Object(member)));
        }
        schema.push(("type".to_owned(), Json::text("object")));
        schema.push(("properties".to_owned(), Json::Object(members)));
        if !required.is_empty() {
            schema.push(("required".to_owned(), Json::List(required)));
        }
        Json::Object(schema)
    }
}

/// The members of a schema that say what a value is.
fn of(kind: &str) -> Vec<(String, Json)> {
    let one = |key: &str, value: Json| vec![(key.to_owned(), value)];
    let kind = kind.trim();
    let choices: Vec<&str> = kind.split('|').map(str::trim).collect();
    if choices[0].starts_with('\'') {
        let word = |choice: &str| match choice {
            "null" => Json::Null,
            word => Json::text(word.trim_matches('\'')),
        };
        return one("enum", Json::List(choices.into_iter().map(word).collect()));
    }
    let list = kind.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(items) = list {
        let mut schema = one("type", Json::text("array"));
        schema.push(("items".to_owned(), Json::Object(of(items))));
        return schema;
    }
    if choices.len() > 1 {
        let is_plain = |choice: &&str| PLAIN.contains(choice);
        if choices.iter().all(is_plain) {
            return one("type", Json::List(choices.into_iter().map(Json::text).collect()));
        }
        return one(
            "anyOf",
            Json::List(choices.into_iter().map(|choice| Json::Object(of(choice))).collect()),
        );
    }
    if let Some(kind) = kind.strip_suffix('?') {
        return nullable(of(kind));
    }
    if let Some(values) = kind.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let mut schema = one("type", Json::text("object"));
        schema.push(("additionalProperties".to_owned(), Json::Object(of(values))));
        return schema;
    }
    match kind {
        "any" => Vec::new(),
        kind if PLAIN.contains(&kind) => one("type", Json::text(kind)),
        file if file.ends_with(".json") => one("$ref", Json::text(file)),
        name => one("$ref", Json::text(&format!("#/$defs/{name}"))),
    }
}

/// The types that JSON has by itself.
const PLAIN: [&str; 6] = ["string", "integer", "number", "boolean", "object", "null"];

/// The same, or null.
fn nullable(schema: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let null = || Json::text("null");
    if schema.iter().any(|(key, _)| key == "type") {
        let or_null = |(key, value): (String, Json)| match value {
            Json::Text(kind) if key == "type" => (key, Json::List(vec![Json::Text(kind), null()])),
            value => (key, value),
        };
        return schema.into_iter().map(or_null).collect();
    }
    let choices = vec![Json::Object(schema), Json::object([("type", null())])];
    vec![("anyOf".to_owned(), Json::List(choices))]
}
