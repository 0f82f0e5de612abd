//! One line per event, following RFC 4180. Times are nanoseconds, exact to the picosecond, from the earliest
//! origin.

use std::io::{self, Write};

use super::ExportSource;
use super::args::push_args;
use super::time::{Origins, push_decimal};
use stepscope_text::csv_field as quoted;

/// Writes all events of all hosts, track by track, in time order.
pub fn write_csv(sources: &[ExportSource<'_>], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"host,process,track,name,category,start_ns,duration_ns,depth,args\r\n")?;
    let origins = Origins::of(sources);
    let (mut line, mut args) = (String::new(), String::new());
    for (number, source) in sources.iter().enumerate() {
        let trace = source.trace;
        for track in trace.tracks() {
            let process = trace.process(track.process);
            let place = [source.host, trace.str(process.name), trace.str(track.name)].map(quoted).join(",");
            let nesting = track.nesting();
            for index in 0..track.len() {
                let kind = trace.kind(track.kind_of(index));
                line.clear();
                line.push_str(&place);
                for text in [trace.str(kind.name), trace.str(kind.category)] {
                    line.push(',');
                    line.push_str(&quoted(text));
                }
                line.push(',');
                push_decimal(&mut line, origins.ps(number, track.start(index)), 3);
                line.push(',');
                push_decimal(&mut line, i128::from(track.dur(index).ps()), 3);
                line.push_str(&format!(",{},", nesting.depth(index)));
                args.clear();
                push_args(&mut args, trace, trace.args_at(track, index));
                line.push_str(&quoted(&args));
                line.push_str("\r\n");
                out.write_all(line.as_bytes())?;
            }
        }
    }
    Ok(())
}
