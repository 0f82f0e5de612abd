//! The code shared by all views: from the command line to text, JSON or CSV.

use std::io::Write;

use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use stepscope_render::{Style, Table, table};
use stepscope_session::Hosts;
use stepscope_session::views::{DEFAULT_GROUPING, VIEWS, View};

use crate::exit::Exit;

use crate::cli::ViewArgs;
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

/// A view with its options.
#[derive(Debug)]
pub(crate) struct ViewCommand {
    view: &'static View,
    table: fn(&Hosts<'_>, Style) -> Table,
    args: ViewArgs,
}

impl ViewCommand {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        let ViewCommand { view, table, args } = self;
        let (select, json, csv) = (args.select(), args.json, args.csv);
        let selection = args.range.selection();
        let for_people = !json && !csv;
        let style = if for_people { terminal.out } else { Style::PLAIN };
        let wanted = args.source.wanted();
        let (table, problems) =
            load::hosts(&wanted, selection, terminal, |hosts| view.of(hosts, table, style))?;
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
        Ok(load::named(&problems, terminal))
    }
}

impl FromArgMatches for ViewCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let view = View::named(name);
        let view = view.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        let by = matches.try_get_one::<String>("by").ok().flatten();
        let table = by.and_then(|by| view.grouped(by)).unwrap_or(view.table);
        Ok(ViewCommand { view, table, args: ViewArgs::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ViewCommand {
    fn augment_subcommands(command: Command) -> Command {
        VIEWS.iter().fold(command, |command, view| {
            // The shared options bring their own description, so the view's description is set after them.
            let new = ViewArgs::augment_args(Command::new(view.name)).about(view.about).long_about(None);
            command.subcommand(with_groupings(view, new.after_help(view.after_help)))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        View::named(name).is_some()
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
