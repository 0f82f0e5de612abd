//! Identifies what is listening on a port that does not speak gRPC, by the first line it sends.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::address::Address;

/// A server that has not sent a line by then will not.
const PATIENCE: Duration = Duration::from_secs(1);
/// No known protocol has a longer first line.
const LONGEST: usize = 200;

/// The first line that a server sends to a plain HTTP request; `None` if there is none that can be shown.
pub(super) async fn first_line(address: &Address) -> Option<String> {
    timeout(PATIENCE, ask(address)).await.ok().flatten()
}

async fn ask(address: &Address) -> Option<String> {
    let mut stream = TcpStream::connect((address.host.as_str(), address.port)).await.ok()?;
    let request = format!("HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut said = Vec::new();
    let mut chunk = [0; LONGEST];
    while said.len() < LONGEST && !said.contains(&b'\n') {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => said.extend_from_slice(chunk.get(..read)?),
        }
    }
    let line = said.split(|&byte| byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim();
    let shown = !line.is_empty() && line.len() <= LONGEST && line.chars().all(|c| !c.is_control());
    shown.then(|| line.to_owned())
}
