//! Logged values as Parquet, one row per point: the columns of `stepscope scalars --points`.

use std::io::{self, Write};

use stepscope_trace::series::RunLog;

use super::ROWS;
use super::column::{Dictionary, Values};
use super::sheet::{Named, Sheet};

#[derive(Default)]
struct Points {
    run: Dictionary,
    tag: Dictionary,
    step: Vec<u8>,
    wall_time: Vec<u8>,
    value: Vec<u8>,
    rows: i32,
}

impl Points {
    fn listed(self) -> [Named<'static>; 5] {
        [
            ("run", Values::Names(self.run)),
            ("tag", Values::Names(self.tag)),
            ("step", Values::Int64(self.step)),
            ("wall_time", Values::Double(self.wall_time)),
            ("value", Values::Double(self.value)),
        ]
    }
}

/// Writes all points of all runs; what is not a number stays what it is.
pub fn write_points_parquet(runs: &[RunLog], out: &mut dyn Write) -> io::Result<()> {
    let (mut sheet, mut points) = (Sheet::new(out)?, Points::default());
    for run in runs {
        for series in &run.series {
            for ((step, wall), value) in series.steps.iter().zip(&series.wall_s).zip(&series.values) {
                points.run.push(&run.name);
                points.tag.push(&series.tag);
                points.step.extend_from_slice(&step.to_le_bytes());
                points.wall_time.extend_from_slice(&wall.to_le_bytes());
                points.value.extend_from_slice(&value.to_le_bytes());
                points.rows += 1;
                if points.rows >= ROWS {
                    let rows = points.rows;
                    sheet.row_group(std::mem::take(&mut points).listed(), rows)?;
                }
            }
        }
    }
    if points.rows > 0 {
        let rows = points.rows;
        sheet.row_group(std::mem::take(&mut points).listed(), rows)?;
    }
    sheet.finish("point", &Points::default().listed())
}
