//! Frames of Python tracers: XLA's writes `$file.py:12 f`, Kineto's has a category of its own.

use super::Role;

pub(super) fn role(name: &str, category: &str) -> Option<Role> {
    (name.starts_with('$') || category == "python_function").then_some(Role::PythonFrame)
}
