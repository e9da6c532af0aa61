//! The HTTP server of a node.

use crate::errors;
use crate::life::Held;
use paceline_http::{HttpAddress, HttpServer as Inner};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A running HTTP server; it ends when it is closed or no longer referenced.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct HttpServer {
    url: String,
    server: Held<Mutex<Option<Inner>>>,
}

impl HttpServer {
    /// Serves a node on an address of this host.
    pub(crate) fn start(py: Python<'_>, node: &paceline::Node, address: &str) -> PyResult<Self> {
        address.parse::<HttpAddress>().map_err(errors::value)?;
        let server = py.detach(|| paceline_http::serve(node, address));
        let server = server.map_err(|error| errors::serve(format!("{error:#}")))?;
        Ok(Self { url: server.url(), server: Held::new(Mutex::new(Some(server))) })
    }
}

#[pymethods]
impl HttpServer {
    /// The URL for a browser.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server. Has no effect on a closed server, or in a forked child.
    fn close(&self, py: Python<'_>) {
        if let Ok(server) = self.server.get() {
            py.detach(|| drop(server.lock().unwrap_or_else(PoisonError::into_inner).take()));
        }
    }

    const fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _error: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("HttpServer('{}')", self.url)
    }
}
