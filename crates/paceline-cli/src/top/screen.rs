//! The terminal in raw mode on the alternate screen. It is restored on drop and on a panic.

use anyhow::Context as _;
use paceline::text::escape;
use paceline_tool::show::written;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Switches to the alternate screen and hides the cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Default size of a terminal that does not report one.
const SIZE: (usize, usize) = (80, 24);

/// The saved terminal state while the screen is open.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
static HOOK: Once = Once::new();

struct Before {
    /// Modes of standard input, if it is a terminal.
    modes: Option<Termios>,
}

/// The open screen.
pub(super) struct Screen {
    keys: bool,
}

impl Screen {
    /// Saves the terminal state and opens the screen.
    pub(super) fn open() -> anyhow::Result<Self> {
        let keys = io::stdin().is_terminal();
        let modes = keys.then(|| tcgetattr(io::stdin())).transpose();
        let modes = modes.context("cannot read the terminal's modes; try --batch")?;
        HOOK.call_once(|| {
            let hook = std::panic::take_hook();
            // Restores the terminal first, so that the panic message is visible.
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                hook(panic);
            }));
        });
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Before { modes: modes.clone() });
        let screen = Self { keys };
        if let Some(mut modes) = modes {
            // Reads keys one by one without echo. Ctrl-C arrives as a byte, so it cannot end the command
            // before the terminal is restored.
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(io::stdin(), OptionalActions::Now, &modes)
                .context("cannot set the terminal's modes; try --batch")?;
        }
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(ENTER.as_bytes()).and_then(|()| stdout.flush()))?;
        Ok(screen)
    }

    /// Returns the bytes typed within `timeout`.
    pub(super) fn typed(&mut self, timeout: Duration) -> anyhow::Result<Vec<u8>> {
        if !self.keys {
            std::thread::sleep(timeout);
            return Ok(Vec::new());
        }
        let stdin = io::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        let limit = Timespec::try_from(timeout).context("no such time")?;
        match poll(&mut ready, Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error).context("cannot wait for keys"),
        }
        let mut bytes = [0; 64];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) => self.keys = false,
            Ok(read) => return Ok(bytes.get(..read).unwrap_or_default().to_vec()),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            // The terminal was closed; a signal will follow.
            Err(_) => self.keys = false,
        }
        Ok(Vec::new())
    }

    /// Returns the current columns and lines.
    #[expect(clippy::unused_self, reason = "only the owner of the screen reads its size")]
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => SIZE,
        }
    }

    /// Draws these lines; they must fit on the screen.
    #[expect(clippy::unused_self, reason = "only the owner of the screen draws")]
    pub(super) fn draw(&self, lines: &[String]) -> anyhow::Result<()> {
        // Overwriting each line and clearing its rest avoids flicker.
        let mut out = "\x1b[H".to_owned();
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                out.push_str("\r\n");
            }
            out.push_str(&escape(line));
            out.push_str("\x1b[K");
        }
        out.push_str("\x1b[J");
        let mut stdout = io::stdout().lock();
        written(stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal once.
fn give_back() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(before) = before else { return };
    let mut stdout = io::stdout();
    // A closed terminal is no error here.
    let _ = stdout.write_all(LEAVE.as_bytes()).and_then(|()| stdout.flush());
    if let Some(modes) = before.modes {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;
    use std::process::Command;

    /// Set in the child process of this test, which runs in its own terminal.
    const INSIDE: &str = "PACELINE_TEST_TERMINAL";

    #[test]
    fn a_panic_restores_the_terminal_before_its_message() {
        if std::env::var_os(INSIDE).is_some() {
            // The screen is never dropped: only the panic hook restores the terminal.
            let _screen = ManuallyDrop::new(Screen::open().unwrap());
            panic!("on the screen");
        }
        let this = std::env::current_exe().unwrap();
        let line = format!(
            "stty cols 80 rows 24; {} --exact --nocapture \
             top::screen::tests::a_panic_restores_the_terminal_before_its_message; stty -a",
            this.display()
        );
        let Ok(script) =
            Command::new("script").args(["-qec", &line, "/dev/null"]).env(INSIDE, "1").output()
        else {
            println!("skipped: script(1) is missing");
            return;
        };
        let text = String::from_utf8_lossy(&script.stdout).into_owned();
        let at = |part: &str| text.rfind(part).unwrap_or_else(|| panic!("no {part:?}: {text:?}"));
        assert!(at(ENTER) < at(LEAVE) && at(LEAVE) < at("on the screen"), "{text:?}");
        let modes: Vec<&str> = text[at("speed")..].split_whitespace().collect();
        for mode in ["icanon", "echo", "isig"] {
            assert!(modes.contains(&mode), "{text:?}");
        }
    }
}
