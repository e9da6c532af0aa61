//! Wakes an event loop when a sample or room arrives, by a socket that becomes readable. No thread
//! of a node calls into Python, and no thread blocks.

use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::world::World;
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

/// A socket that becomes readable when a sample or room arrives, for event loops.
#[pyclass(frozen, module = "paceline._native")]
pub(crate) struct Bell {
    clapper: Arc<Clapper>,
    read: UnixStream,
    armed: Mutex<Option<Arrival>>,
}

/// The waker. Any thread may call it.
struct Clapper {
    write: UnixStream,
    rung: AtomicBool,
}

impl Clapper {
    fn ring(&self) {
        // At most one unread byte is in the socket, so a write never blocks.
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

    /// Returns the file descriptor to watch for reading.
    fn fileno(&self) -> i32 {
        self.read.as_raw_fd()
    }

    /// Rings on the next sample, event or end of the subscriber. Call it before checking the queue,
    /// or a sample in between is missed.
    fn arm(&self, subscriber: &Bound<'_, Subscriber>) -> PyResult<()> {
        self.await_one(subscriber.get().arrival()?);
        Ok(())
    }

    /// Rings on the next event of the world. Call it before checking for events, as [`Self::arm`].
    fn arm_world(&self, world: &Bound<'_, World>) -> PyResult<()> {
        self.await_one(world.get().arrival()?);
        Ok(())
    }

    /// Rings once a full stream of the publisher has room again. Returns false if no stream is
    /// full.
    fn arm_room(&self, py: Python<'_>, publisher: &Bound<'_, Publisher>) -> PyResult<bool> {
        let Some(arrival) = publisher.get().room(py)? else { return Ok(false) };
        self.await_one(arrival);
        Ok(true)
    }

    /// Stops ringing and empties the socket.
    fn disarm(&self) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = (&self.read).read(&mut [0; 8]);
        self.clapper.rung.store(false, Ordering::Release);
    }
}
