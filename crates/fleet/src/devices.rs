//! The side table: how many devices a job had and for how long. A profile covers seconds; what a loss costs needs this.
//!
//! A text table with a header line, separated by commas, semicolons, bars or tabs, as `sacct` and dashboards write it.

use std::collections::BTreeMap;

use crate::error::FleetError;

/// Device hours by job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceHours(BTreeMap<String, f64>);

impl DeviceHours {
    /// Reads the table. It needs a column `job`, and either `device_hours`, or `devices` and `hours`. Rows of one job add
    /// up.
    pub fn parse(text: &str) -> Result<Self, FleetError> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let header = lines.next().unwrap_or_default();
        let separator = [',', ';', '|', '\t'].into_iter().find(|it| header.contains(*it)).unwrap_or(',');
        let cells = |line: &str| -> Vec<String> {
            line.split(separator).map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
        };
        let names: Vec<String> =
            cells(header).iter().map(|name| name.to_lowercase().replace([' ', '-'], "_")).collect();
        let column = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
        let job = column(&["job", "job_name", "jobname", "name"]);
        let both = column(&["device_hours", "gpu_hours", "tpu_hours", "accelerator_hours"]);
        let devices = column(&["devices", "gpus", "tpus", "accelerators"]);
        let hours = column(&["hours", "elapsed_hours"]);
        let (Some(job), true) = (job, both.is_some() || devices.is_some() && hours.is_some()) else {
            return Err(FleetError::Usage(format!(
                "the table of devices has no column `job` with `device_hours`, or with `devices` and `hours`; found {}; \
                 name the columns in the first line",
                names.join(", ")
            )));
        };
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for line in lines {
            let row = cells(line);
            let number = |at: Option<usize>| at.and_then(|at| row.get(at)?.parse::<f64>().ok());
            let amount = number(both).or_else(|| Some(number(devices)? * number(hours)?));
            let (Some(name), Some(amount)) = (row.get(job), amount.filter(|it| it.is_finite() && *it >= 0.0))
            else {
                return Err(FleetError::Usage(format!(
                    "the table of devices has a row without numbers; found `{line}`; correct or remove it"
                )));
            };
            *sums.entry(name.clone()).or_default() += amount;
        }
        Ok(DeviceHours(sums))
    }

    /// Those of a job; `None` if it is not listed.
    pub fn of(&self, job: &str) -> Option<f64> {
        self.0.get(job).copied()
    }

    /// Jobs in it.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_schedulers_are_read() {
        let comma = DeviceHours::parse("job,devices,hours\na,8,10\nb,1,2.5\na,8,1\n").unwrap();
        assert_eq!((comma.of("a"), comma.of("b"), comma.of("c")), (Some(88.0), Some(2.5), None));
        let bars = DeviceHours::parse("JobName|GPU hours\nx|\"7\"\n").unwrap();
        assert_eq!(bars.of("x"), Some(7.0));
        for wrong in ["", "a,b\n1,2", "job,devices\na,1", "job,device_hours\na,many"] {
            assert!(DeviceHours::parse(wrong).is_err(), "{wrong}");
        }
    }
}
