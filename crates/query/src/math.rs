//! Functions for numbers that SQLite includes only on request: powers, logarithms, rounding, and the statistics that
//! people ask of durations.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result, ffi};

/// The most values of which a median is taken: what they hold is not counted by SQLite.
const MOST_VALUES: usize = 16_000_000;

/// Makes the functions known to a connection.
pub(crate) fn register(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    type OfOne = fn(f64) -> f64;
    let of_one: [(&str, OfOne); 8] = [
        ("sqrt", f64::sqrt),
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("log", f64::log10),
        ("log10", f64::log10),
        ("log2", f64::log2),
        ("radians", f64::to_radians),
        ("degrees", f64::to_degrees),
    ];
    for (name, of) in of_one {
        let call = move |context: &Context<'_>| Ok(number(context.get_raw(0)).and_then(|it| known(of(it))));
        connection.create_scalar_function(name, 1, flags, call)?;
    }
    for name in ["pow", "power"] {
        connection.create_scalar_function(name, 2, flags, |context| Ok(of_two(context, f64::powf)))?;
    }
    connection.create_scalar_function("mod", 2, flags, |context| Ok(of_two(context, |a, b| a % b)))?;
    // The base comes first.
    connection.create_scalar_function("log", 2, flags, |context| {
        Ok(of_two(context, |base, value| value.ln() / base.ln()))
    })?;
    for (name, of) in
        [("floor", f64::floor as OfOne), ("ceil", f64::ceil), ("ceiling", f64::ceil), ("trunc", f64::trunc)]
    {
        // A whole number stays one.
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(match context.get_raw(0) {
                ValueRef::Integer(value) => rusqlite::types::Value::Integer(value),
                other => number(other).map_or(rusqlite::types::Value::Null, |it| of(it).into()),
            })
        })?;
    }
    for name in ["stddev", "stddev_samp"] {
        connection.create_aggregate_function(name, 1, flags, Spread { root: true })?;
    }
    for name in ["variance", "var_samp"] {
        connection.create_aggregate_function(name, 1, flags, Spread { root: false })?;
    }
    connection.create_aggregate_function("median", 1, flags, Quantile { of: Some(0.5) })?;
    connection.create_aggregate_function("percentile", 2, flags, Quantile { of: None })
}

fn of_two(context: &Context<'_>, of: impl Fn(f64, f64) -> f64) -> Option<f64> {
    known(of(number(context.get_raw(0))?, number(context.get_raw(1))?))
}

/// NULL where there is no number, as SQLite's own functions have it.
fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

fn number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Real(value) => Some(value),
        _ => None,
    }
}

/// The standard deviation of a sample, or its square, by Welford's method.
struct Spread {
    root: bool,
}

#[derive(Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Aggregate<Moments, Option<f64>> for Spread {
    fn init(&self, _: &mut Context<'_>) -> Result<Moments> {
        Ok(Moments::default())
    }

    fn step(&self, context: &mut Context<'_>, so_far: &mut Moments) -> Result<()> {
        if let Some(value) = number(context.get_raw(0)) {
            so_far.count += 1.0;
            let off = value - so_far.mean;
            so_far.mean += off / so_far.count;
            so_far.squares += off * (value - so_far.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<Moments>) -> Result<Option<f64>> {
        let variance = all.filter(|all| all.count >= 2.0).map(|all| all.squares / (all.count - 1.0));
        Ok(variance.map(|variance| if self.root { variance.sqrt() } else { variance }))
    }
}

/// A quantile: the middle one, or the percentile that the second argument names, from 0 to 100. Between two values it is
/// interpolated, as SQLite's own `percentile` does.
struct Quantile {
    of: Option<f64>,
}

#[derive(Default)]
struct Sample {
    values: Vec<f64>,
    of: Option<f64>,
}

impl Aggregate<Sample, Option<f64>> for Quantile {
    fn init(&self, _: &mut Context<'_>) -> Result<Sample> {
        Ok(Sample { values: Vec::new(), of: self.of })
    }

    fn step(&self, context: &mut Context<'_>, so_far: &mut Sample) -> Result<()> {
        if self.of.is_none() {
            let wanted = number(context.get_raw(1)).filter(|percent| (0.0..=100.0).contains(percent));
            let wrong = "the second argument of percentile is a number from 0 to 100";
            so_far.of = Some(wanted.ok_or_else(|| Error::UserFunctionError(wrong.into()))? / 100.0);
        }
        if let Some(value) = number(context.get_raw(0)) {
            if so_far.values.len() >= MOST_VALUES {
                return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None));
            }
            so_far.values.push(value);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<Sample>) -> Result<Option<f64>> {
        let Some(Sample { mut values, of: Some(of) }) = all else { return Ok(None) };
        let Some(last) = values.len().checked_sub(1) else { return Ok(None) };
        let place = of * last as f64;
        let (at, part) = (place.floor() as usize, place.fract());
        let (_, lower, above) = values.select_nth_unstable_by(at.min(last), f64::total_cmp);
        let lower = *lower;
        let upper = above.iter().copied().min_by(f64::total_cmp).filter(|_| part > 0.0).unwrap_or(lower);
        Ok(Some(lower + (upper - lower) * part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_a_pocket_calculator() {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection, FunctionFlags::SQLITE_UTF8).unwrap();
        let numbers = "(VALUES (1), (2), (3), (4), (NULL), ('x')) AS t(x)";
        let numbers = format!("(SELECT column1 AS x FROM {})", numbers.replace(" AS t(x)", ""));
        for (call, wanted) in [
            ("sqrt(9)", Some(3.0)),
            ("sqrt(-1)", None),
            ("pow(2, 10)", Some(1024.0)),
            ("power(2, 0.5)", Some(2_f64.sqrt())),
            ("exp(0)", Some(1.0)),
            ("ln(exp(2))", Some(2.0)),
            ("log(1000)", Some(3.0)),
            ("log(2, 8)", Some(3.0)),
            ("log2(8)", Some(3.0)),
            ("floor(2.7) + floor(7)", Some(9.0)),
            ("ceil(2.1) + ceiling(-0.5)", Some(3.0)),
            ("mod(7, 4)", Some(3.0)),
            ("sqrt(NULL)", None),
            ("sqrt('x')", None),
            ("median(x)", Some(2.5)),
            ("percentile(x, 0)", Some(1.0)),
            ("percentile(x, 100)", Some(4.0)),
            ("percentile(x, 90)", Some(3.7)),
            ("stddev(x)", Some((5_f64 / 3.0).sqrt())),
            ("variance(x)", Some(5.0 / 3.0)),
        ] {
            let query = format!("SELECT {call} FROM {numbers}");
            let got: Option<f64> = connection.query_row(&query, [], |row| row.get(0)).unwrap();
            let near = match (got, wanted) {
                (Some(got), Some(wanted)) => (got - wanted).abs() < 1e-9,
                (got, wanted) => got == wanted,
            };
            assert!(near, "{call}: {got:?}, not {wanted:?}");
        }
        let none: Option<f64> =
            connection.query_row("SELECT median(1) FROM (SELECT 1 WHERE 0)", [], |row| row.get(0)).unwrap();
        assert_eq!(none, None);
        let whole: i64 =
            connection.query_row("SELECT floor(9007199254740993)", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, 9_007_199_254_740_993);
        assert!(connection.query_row("SELECT percentile(1, 101)", [], |row| row.get::<_, f64>(0)).is_err());
    }
}
