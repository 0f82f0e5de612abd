//! A table for Python: columns through Arrow's C stream interface, or one by one as lists.

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use stepscope_frame::stream::{ArrowArrayStream, ArrowSchema};
use stepscope_frame::{Column, Values};
use stepscope_render::Style;
use stepscope_render::table::write_text;
use stepscope_results::{Select, Table};

/// Columns of equal length.
#[pyclass(frozen, module = "stepscope._stepscope")]
pub(crate) struct Frame {
    pub(crate) columns: Arc<stepscope_frame::Frame>,
    /// The table behind it, for text; events have none.
    pub(crate) table: Option<Table>,
}

impl Frame {
    /// A view's table.
    pub(crate) fn of(table: Table) -> Self {
        Frame { columns: Arc::new(stepscope_frame::table::frame(&table)), table: Some(table) }
    }
}

#[pymethods]
impl Frame {
    /// The columns as an Arrow stream. The capsule keeps the memory alive; nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish for other types is optional to follow, and consumers cast by themselves.
        drop(requested_schema);
        let stream = ArrowArrayStream::of(Arc::clone(&self.columns));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The names and types of the columns, as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, ArrowSchema::of(&self.columns), c"arrow_schema")
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.columns.columns().iter().map(|column| column.name.as_str()).collect()
    }

    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// The answer in one line; `None` if the view has none.
    #[getter]
    fn headline(&self) -> Option<&str> {
        self.table.as_ref()?.headline.as_deref()
    }

    /// The first `most` values of a column as a list, or all; unknown is `None`.
    #[pyo3(signature = (name, most=None))]
    fn column<'py>(&self, py: Python<'py>, name: &str, most: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let column = self.columns.columns().iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| {
            PyKeyError::new_err(format!("no column `{name}`; the columns are {}", self.names().join(", ")))
        })?;
        let rows = self.columns.rows().min(most.unwrap_or(usize::MAX));
        let values: PyResult<Vec<Bound<'py, PyAny>>> =
            (0..rows).map(|place| value(py, column, place)).collect();
        PyList::new(py, values?)
    }

    /// The table as the command line prints it; empty for events.
    #[pyo3(signature = (top=None, width=None))]
    fn text(&self, top: Option<usize>, width: Option<usize>) -> PyResult<String> {
        let Some(table) = &self.table else { return Ok(String::new()) };
        let select = Select { top, ..Select::default() };
        let picked =
            table.pick(&select, table.top).map_err(|error| crate::Error::new_err(error.to_string()))?;
        let mut out = Vec::new();
        write_text(table, &picked, Style { color: false, width }, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

fn value<'py>(py: Python<'py>, column: &Column, place: usize) -> PyResult<Bound<'py, PyAny>> {
    if !column.is_known(place) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match &column.values {
        Values::Int(values) => values.get(place).into_pyobject(py)?.into_any(),
        Values::Float(values) => values.get(place).into_pyobject(py)?.into_any(),
        Values::Bool { .. } => column.values.truth(place).into_pyobject(py)?.into_any(),
        Values::Text(words) => words.get(place).into_pyobject(py)?.into_any(),
        Values::Code { codes, words } => {
            words.get(codes.get(place).unwrap_or(usize::MAX)).into_pyobject(py)?.into_any()
        }
    })
}
