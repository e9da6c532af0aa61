//! The errors of a camera, and whether another attempt may succeed.

use anyhow::anyhow;
use paceline_edge::CameraAddress;

/// The end of a session.
pub(super) enum Ended {
    /// Nobody receives.
    Unwanted,
    /// Another attempt may succeed.
    Again(String),
    /// No other attempt can succeed.
    Final(anyhow::Error),
}

/// Returns the end for an error of the protocol. `played` if the camera sent pictures before, `login` if one was given.
pub(super) fn ended(
    error: &retina::Error,
    address: &CameraAddress,
    (played, login): (bool, bool),
) -> Ended {
    let text = error.to_string();
    // Other lines name the connection and the position in it.
    let reason = address.redact(text.lines().next().unwrap_or_default());
    let reason = reason.replace("Unable to connect to RTSP server", "it cannot be reached");
    let status = error.status_code();
    let refused = |fix: &str| Ended::Final(anyhow!("{address}: {fix}"));
    match status {
        Some(401) if text.contains("understand") => refused(
            "the camera requests a login of an unknown kind, must be Basic or Digest; change it in its settings",
        ),
        Some(401) if login => refused(
            "the camera rejects the user or the password (401); check the line USER:PASSWORD",
        ),
        Some(401) => refused(
            "the camera requests a login (401); write USER:PASSWORD into a file and give --rtsp-login FILE, or set \
             PACELINE_RTSP_LOGIN=USER:PASSWORD",
        ),
        Some(403) => refused("the camera forbids this stream (403); check the rights of the user"),
        Some(404) if !played => refused(
            "the camera has no stream at this path (404); look for the path in its manual or settings",
        ),
        Some(461) => {
            refused("the camera does not send this way (461); add --rtsp-udp, or leave it out")
        }
        Some(_) | None => Ended::Again(reason),
    }
}
