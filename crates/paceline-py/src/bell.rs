//! How an event loop hears of samples, and of room for them: a socket that can be read once something has come. No
//! thread of a node calls into Python for it, and no thread waits.

use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use paceline::Arrival;
use pyo3::prelude::*;
use std::future::Future as _;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// A socket that becomes readable.
#[pyclass(frozen, module = "paceline._native")]
pub(crate) struct Bell {
    clapper: Arc<Clapper>,
    read: UnixStream,
    armed: Mutex<Option<Arrival>>,
}

/// What rings it, on whichever thread.
struct Clapper {
    write: UnixStream,
    rung: AtomicBool,
}

impl Clapper {
    fn ring(&self) {
        // One byte at most is on its way, so the socket always has room.
        if !self.rung.swap(true, Ordering::AcqRel) {
            let _ = (&self.write).write(&[1]);
        }
    }
}

impl Wake for Clapper {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

impl Bell {
    fn await_one(&self, mut arrival: Arrival) {
        let waker = Waker::from(self.clapper.clone());
        if Pin::new(&mut arrival).poll(&mut Context::from_waker(&waker)).is_ready() {
            self.clapper.ring();
        }
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(arrival);
    }
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        let clapper = Arc::new(Clapper { write, rung: AtomicBool::new(false) });
        Ok(Self { clapper, read, armed: Mutex::new(None) })
    }

    /// The socket to be watched.
    fn fileno(&self) -> i32 {
        self.read.as_raw_fd()
    }

    /// Rings with whatever comes to the subscriber from now on; to be called before looking whether something waits.
    fn arm(&self, subscriber: &Bound<'_, Subscriber>) -> PyResult<()> {
        self.await_one(subscriber.get().arrival()?);
        Ok(())
    }

    /// Rings once a stream of the publisher that has no room now has some; false if every stream has room.
    fn arm_room(&self, py: Python<'_>, publisher: &Bound<'_, Publisher>) -> PyResult<bool> {
        let Some(arrival) = publisher.get().room(py)? else { return Ok(false) };
        self.await_one(arrival);
        Ok(true)
    }

    /// Silent again.
    fn disarm(&self) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = (&self.read).read(&mut [0; 8]);
        self.clapper.rung.store(false, Ordering::Release);
    }
}
