//! tfprof's 21 options on the command line, spelt as tfprof spells them.

use std::ffi::OsString;

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use stepscope_tfprof::{OPTION_NAMES, OptionError, Options};

/// Help text of each option, in the order of [`OPTION_NAMES`], with the name of its value.
const HELP: [(&str, &str); 21] = [
    ("N", "Show rows down to this depth [default: 10]"),
    ("N", "Show rows with at least this much requested memory"),
    ("N", "Show rows with at least this much peak memory"),
    ("N", "Show rows with at least this much residual memory"),
    ("N", "Show rows with at least this much output memory"),
    ("N", "Show rows with at least this time, in µs"),
    ("N", "Show rows with at least this accelerator time, in µs"),
    ("N", "Show rows with at least this CPU time, in µs"),
    ("N", "Show rows with at least this many parameters"),
    ("N", "Show rows with at least this many float operations"),
    ("N", "Show rows that ran at least this often"),
    ("N", "Show this step; -1 shows averages over all steps [default: -1]"),
    ("COLUMN", "Sort by name, bytes, micros, params, float_ops, … [default: name]"),
    ("REGEXES", "Count nodes whose type matches [default: .*]"),
    ("REGEXES", "Start at nodes whose name matches [default: .*]"),
    ("REGEXES", "Show nothing below nodes whose name matches"),
    ("REGEXES", "Show nodes whose name matches [default: .*]"),
    ("REGEXES", "Hide nodes whose name matches"),
    ("BOOL", "Sum up only the rows that are shown"),
    ("COLUMNS", "Show these columns, separated by commas [default: micros]"),
    ("OUTPUT", "stdout, file:outfile=F, timeline:outfile=F, pprof:outfile=F or none [default: stdout]"),
];

/// The options that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    values: Vec<(&'static str, Vec<String>)>,
}

impl Given {
    /// Applies them on top of other options.
    pub(crate) fn on_top_of(&self, mut options: Options) -> Result<Options, OptionError> {
        for (name, values) in &self.values {
            options.set(name, values)?;
        }
        Ok(options)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let values = OPTION_NAMES.iter().filter_map(|name| {
            let given = matches.get_many::<String>(name)?;
            Some((*name, given.cloned().collect()))
        });
        Ok(Given { values: values.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        OPTION_NAMES.into_iter().zip(HELP).fold(command, |command, (name, (value, help))| {
            let arg = Arg::new(name)
                .long(name)
                .value_name(value)
                .help(help)
                .action(ArgAction::Append)
                .allow_hyphen_values(name != "account_displayed_op_only")
                .help_heading("tfprof options");
            command.arg(match name {
                "account_displayed_op_only" => arg.num_args(0..=1).default_missing_value("true"),
                _ => arg.num_args(1),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// File options, which tfprof also accepts with one dash or two.
const FILE_OPTIONS: [&str; 6] =
    ["profile_path", "graph_path", "run_meta_path", "op_log_path", "checkpoint_path", "preset"];

/// The command line with tfprof's options rewritten to two dashes, because tfprof accepts `-max_depth 3` too.
pub(crate) fn with_two_dashes(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args.get(1).is_none_or(|command| command != "tfprof") {
        return args;
    }
    for arg in args.iter_mut().skip(2) {
        let Some(text) = arg.to_str() else { continue };
        let name = text.strip_prefix('-').map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
        if name.is_some_and(|name| OPTION_NAMES.contains(&name) || FILE_OPTIONS.contains(&name)) {
            *arg = OsString::from(format!("-{text}"));
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dash_does_as_well_as_two() {
        let given = |args: &[&str]| with_two_dashes(args.iter().map(OsString::from));
        let all =
            given(&["stepscope", "tfprof", "op", "-max_depth", "3", "-step=-1", "--select", "micros", "-x"]);
        assert_eq!(
            all[3..],
            ["--max_depth", "3", "--step=-1", "--select", "micros", "-x"].map(OsString::from)
        );
        assert_eq!(given(&["stepscope", "ops", "-step"])[2], "-step");
    }
}
