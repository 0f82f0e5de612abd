//! The code shared by all views: from the command line to text, JSON or CSV.

use std::io::Write;

use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use stepscope_render::table;
use stepscope_results::Table;
use stepscope_results::views::{DEFAULT_GROUPING, Hosts, Make, VIEWS, View};
use stepscope_session::Problem;

use crate::exit::Exit;

use super::memory::MemoryOptions;
use super::whatif::WhatifOptions;
use crate::cli::ViewArgs;
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

/// The views with options of their own.
const MEMORY: &str = "memory";
const WHATIF: &str = "whatif";

/// A view with its options.
#[derive(Debug)]
pub(crate) struct ViewCommand {
    view: &'static View,
    table: Make,
    by: Option<String>,
    args: ViewArgs,
    /// Of the views that have options of their own.
    memory: Option<MemoryOptions>,
    whatif: Option<WhatifOptions>,
}

impl ViewCommand {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        let ViewCommand { view, table, by, args, memory, whatif } = self;
        if let Some(options) = whatif {
            return show(view, args, terminal, |hosts| options.table(hosts));
        }
        let wanted = args.source.clone().wanted();
        let Some(options) = memory.filter(|options| !options.is_plain(&wanted)) else {
            return show(view, args, terminal, table);
        };
        let made = options.table(view, &wanted, by.as_deref(), args.range.selection(), terminal)?;
        write(made, &args, terminal)
    }
}

/// Reads the profile, makes the table and writes it.
pub(crate) fn show(
    view: &View,
    args: ViewArgs,
    terminal: &Terminal,
    make: impl FnOnce(&dyn Hosts) -> Table,
) -> Result<Exit, Failure> {
    let (wanted, selection) = (args.source.clone().wanted(), args.range.selection());
    write(load::hosts(&wanted, selection, terminal, |hosts| hosts.table(view, make))?, &args, terminal)
}

/// Writes a table in the form that was asked for.
fn write(made: (Table, Vec<Problem>), args: &ViewArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let (table, problems) = made;
    let for_people = !args.json && !args.csv;
    let picked = table.pick(&args.select(), table.top.filter(|_| for_people))?;
    let mut out = terminal.stdout_as(args.json);
    if args.json {
        table::write_json(&table, &picked, &mut out)?;
    } else if args.csv {
        table::write_csv(&table, &picked, &mut out)?;
    } else {
        table::write_text(&table, &picked, terminal.out, &mut out)?;
    }
    out.flush()?;
    Ok(load::named(&problems, terminal))
}

/// Whether a view is a command of its own; `hlo_ops` is part of `hlo`.
fn is_command(view: &View) -> bool {
    !view.name.contains('_')
}

impl FromArgMatches for ViewCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let view = View::named(name);
        let view = view.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        let by = matches.try_get_one::<String>("by").ok().flatten().cloned();
        let table = by.as_ref().and_then(|by| view.grouped(by)).unwrap_or(view.table);
        let memory = (view.name == MEMORY).then(|| MemoryOptions::from_arg_matches(matches)).transpose()?;
        let whatif = (view.name == WHATIF).then(|| WhatifOptions::from_arg_matches(matches)).transpose()?;
        Ok(ViewCommand { view, table, by, args: ViewArgs::from_arg_matches(matches)?, memory, whatif })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ViewCommand {
    fn augment_subcommands(command: Command) -> Command {
        VIEWS.iter().filter(|view| is_command(view)).fold(command, |command, view| {
            // The shared options bring their own description, so the view's description is set after them.
            let new = ViewArgs::augment_args(Command::new(view.name));
            let new = match view.name {
                MEMORY => MemoryOptions::augment_args(new),
                WHATIF => WhatifOptions::augment_args(new),
                _ => new,
            };
            let new = new.about(view.about).long_about(None);
            command.subcommand(with_groupings(view, new.after_help(view.after_help)))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        View::named(name).is_some_and(is_command)
    }
}

/// Adds `--by` if there is a choice.
fn with_groupings(view: &View, command: Command) -> Command {
    let ways = view.ways();
    if ways.is_empty() {
        return command;
    }
    let by = Arg::new("by").long("by").value_name("WHAT").help("Group rows by this");
    command.arg(by.default_value(DEFAULT_GROUPING).value_parser(ways))
}
