//! The frame of a view: from the command line to text, JSON or CSV.

use std::io::Write;

use clap::error::{Error, ErrorKind};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use stepscope_render::{Style, Table, table};

use super::VIEWS;
use crate::cli::ViewArgs;
use crate::load::Profile;
use crate::output::Terminal;
use crate::problem::{Exit, Failure};

/// A command that shows one table.
#[derive(Debug)]
pub(crate) struct View {
    /// The command's name; the table's `view` is the same.
    pub(crate) name: &'static str,
    /// One line for the list of commands.
    pub(crate) about: &'static str,
    /// Examples and remarks below the options.
    pub(crate) after_help: &'static str,
    /// Computes and words the table. The style is for prose only; columns are dressed by the frame.
    pub(crate) table: fn(&Profile, Style) -> Table,
}

/// A view with its options.
#[derive(Debug)]
pub(crate) struct ViewCommand {
    view: &'static View,
    args: ViewArgs,
}

impl ViewCommand {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        let ViewCommand { view, args } = self;
        let (select, json, csv) = (args.select(), args.json, args.csv);
        let profile = Profile::load(&args.source.wanted(), terminal)?;
        let for_people = !json && !csv;
        let style = if for_people { terminal.out } else { Style::PLAIN };
        let table = (view.table)(&profile, style);
        let picked = table.pick(&select, table.top.filter(|_| for_people))?;
        let mut out = terminal.stdout();
        if json {
            table::write_json(&table, &picked, &mut out)?;
        } else if csv {
            table::write_csv(&table, &picked, &mut out)?;
        } else {
            table::write_text(&table, &picked, style, &mut out)?;
        }
        out.flush()?;
        Ok(profile.end(terminal))
    }
}

impl FromArgMatches for ViewCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let view = VIEWS.iter().find(|view| view.name == name);
        let view = view.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        Ok(ViewCommand { view, args: ViewArgs::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ViewCommand {
    fn augment_subcommands(command: Command) -> Command {
        VIEWS.iter().fold(command, |command, view| {
            // The shared options bring a description of their own, so the view's is set behind them.
            let new = ViewArgs::augment_args(Command::new(view.name)).about(view.about).long_about(None);
            command.subcommand(new.after_help(view.after_help))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        VIEWS.iter().any(|view| view.name == name)
    }
}
