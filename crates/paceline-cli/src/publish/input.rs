//! The input of a stream: a file, standard input, a FIFO or a socket.

use anyhow::anyhow;
use paceline_tool::exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The beginning of the address of a TCP server, in place of a file name.
const TCP: &str = "tcp/";

/// The place of an input.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// Standard input.
    Stdin,
    /// A file, a FIFO or a unix socket.
    Path(PathBuf),
    /// A TCP server.
    Tcp(String),
}

/// An opened input.
pub(super) struct Input {
    file: File,
    /// The place at which reading began, if the input can be read again.
    begin: Option<u64>,
}

impl Place {
    /// Returns the place that the command line names; standard input for `None`.
    pub(super) fn of(path: Option<&Path>) -> Self {
        let Some(path) = path else { return Self::Stdin };
        match path.to_str().and_then(|text| text.strip_prefix(TCP)) {
            Some(address) if !path.exists() => Self::Tcp(address.to_owned()),
            _ => Self::Path(path.to_owned()),
        }
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::Path(path) => path.display().to_string(),
            Self::Tcp(address) => format!("{TCP}{address}"),
        }
    }

    /// Returns true for a regular file, also as standard input: all of it is there already.
    pub(super) fn is_file(&self) -> bool {
        let metadata = match self {
            Self::Stdin => stdin().and_then(|file| file.metadata()),
            Self::Path(path) => path.metadata(),
            Self::Tcp(_) => return false,
        };
        metadata.is_ok_and(|metadata| metadata.is_file())
    }

    /// Returns true for a file that was changed within this time.
    pub(super) fn changed_within(&self, time: Duration) -> bool {
        let Self::Path(path) = self else { return false };
        let changed = path.metadata().and_then(|metadata| metadata.modified());
        changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age < time))
    }

    /// Opens the input. Blocks until a FIFO has a writer.
    pub(super) fn open(&self) -> anyhow::Result<Input> {
        let opened = match self {
            Self::Stdin => stdin(),
            Self::Tcp(address) => {
                let found = paceline::resolve_address(address);
                let found =
                    found.map_err(|error| anyhow!("cannot read {}: {error}", self.name()))?;
                TcpStream::connect(&*found).map(|stream| File::from(OwnedFd::from(stream)))
            }
            Self::Path(path) if is_socket(path) => {
                UnixStream::connect(path).map(|stream| File::from(OwnedFd::from(stream)))
            }
            Self::Path(path) => File::open(path),
        };
        let mut file = opened.map_err(|error| self.cannot(&error))?;
        let begin = if self.is_file() { file.stream_position().ok() } else { None };
        Ok(Input { file, begin })
    }

    /// Returns the error of opening or reading.
    pub(super) fn cannot(&self, error: &io::Error) -> anyhow::Error {
        let fix = match self {
            Self::Tcp(_) => {
                format!("{error}; a program must listen there, such as ffmpeg with ?listen=1")
            }
            Self::Stdin | Self::Path(_) => exit::file_error(error),
        };
        anyhow!("cannot read {}: {fix}", self.name())
    }
}

fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_socket())
}

impl Input {
    /// Starts again at the place where reading began. Returns false if the input cannot be read again.
    pub(super) fn rewind(&mut self) -> io::Result<bool> {
        let Some(begin) = self.begin else { return Ok(false) };
        self.file.seek(SeekFrom::Start(begin)).map(|_| true)
    }

    /// Continues at this offset from the place where reading began.
    pub(super) fn seek(&mut self, offset: u64) -> io::Result<()> {
        let begin = self.begin.unwrap_or(0);
        self.file.seek(SeekFrom::Start(begin.saturating_add(offset))).map(drop)
    }

    /// Waits for bytes or the end, at most `timeout`; returns false if there are none then.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Input {
    /// Reads the next bytes; waits for them also if another program made the input non-blocking.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(None).map(drop)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    #[test]
    fn files_and_servers_are_told_apart() {
        assert_eq!(Place::of(None), Place::Stdin);
        assert_eq!(Place::of(Some(Path::new("a/tcp/b"))).name(), "a/tcp/b");
        assert_eq!(Place::of(Some(Path::new("tcp/[::1]:9"))), Place::Tcp("[::1]:9".to_owned()));
        assert!(Place::Path("Cargo.toml".into()).is_file() && !Place::Path("src".into()).is_file());
        let error = Place::Path("none".into()).open().err().unwrap().to_string();
        assert!(
            error.starts_with("cannot read none: ") && error.contains("check the path"),
            "{error}"
        );
    }

    #[test]
    fn a_tcp_server_is_read_to_its_end_and_cannot_be_read_again() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut input = Place::Tcp(server.local_addr().unwrap().to_string()).open().unwrap();
        assert!(!input.wait(Some(Duration::ZERO)).unwrap());
        server.accept().unwrap().0.write_all(b"abc").unwrap();
        let mut read = Vec::new();
        input.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"abc");
        assert!(!input.rewind().unwrap());
    }
}
