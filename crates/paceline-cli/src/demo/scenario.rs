//! The demo's streams and subscriptions.

use paceline::Size;
use paceline::contract::{Form, Rate};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// The initial interval that is not checked, because streams start one after the other.
pub(crate) const WARM_UP: Duration = Duration::from_secs(2);
/// The tolerance for a requested rate.
pub(crate) const RATE_BAND_HZ: f64 = 0.5;
pub(crate) const CAMERA: &str = "robot/camera";
pub(crate) const STEER: &str = "robot/steer";
pub(crate) const CAMERA_SIZE: Size = Size { width: 640, height: 480 };
pub(crate) const CAMERA_HZ: u32 = 30;
pub(crate) const CAMERA_QUALITY: u8 = 80;
pub(crate) const STEER_PERIOD: Duration = Duration::from_millis(10);
pub(crate) const STEER_BYTES: usize = 64;
/// The tag of the best-effort overload: six times the thin link's capacity.
pub(crate) const BULK: &str = "robot/bulk";
pub(crate) const BULK_HZ: u32 = 100;
pub(crate) const BULK_BYTES: usize = 15_000;
/// The delay bound of the excessive request for every full picture over the thin link.
pub(crate) const GREED_WITHIN: Duration = Duration::from_millis(200);
pub(crate) const THIN_BITS_PER_S: u64 = 2_000_000;
/// The name of the link to the operator.
pub(crate) const THIN: &str = "thin";
/// The name of the link to the console.
pub(crate) const LAN: &str = "lan";

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Role {
    /// The publishing robot.
    Robot,
    /// A console next to the robot, on an unlimited link.
    Console,
    /// A remote operator behind the thin link.
    Operator,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Robot, Self::Console, Self::Operator];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Robot => "robot",
            Self::Console => "console",
            Self::Operator => "operator",
        }
    }

    /// Returns the name of the robot's link to this node.
    pub(crate) const fn link(self) -> &'static str {
        match self {
            Self::Operator => THIN,
            Self::Robot | Self::Console => LAN,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The request of one subscriber.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The subscriber's node.
    pub(crate) role: Role,
    /// The name for display.
    pub(crate) name: &'static str,
    /// The tag of the subscription.
    pub(crate) tag: &'static str,
    /// The required rate in Hz.
    pub(crate) hz: u32,
    /// True if the subscription limits the rate; false if it requests every sample.
    pub(crate) limits: bool,
    /// The number of published samples per received sample.
    pub(crate) step: u64,
    /// The required size; `None` unless the samples are pictures.
    pub(crate) size: Option<Size>,
    pub(crate) within: Option<Duration>,
    pub(crate) loss: Option<(u32, u32)>,
}

pub(crate) const ROWS: [Row; 4] = [
    Row {
        role: Role::Console,
        name: "console, all",
        tag: CAMERA,
        hz: CAMERA_HZ,
        limits: false,
        step: 1,
        size: Some(CAMERA_SIZE),
        within: None,
        loss: None,
    },
    Row {
        role: Role::Console,
        name: "console, some",
        tag: CAMERA,
        hz: 10,
        limits: true,
        step: 3,
        size: Some(CAMERA_SIZE),
        within: None,
        loss: None,
    },
    Row {
        role: Role::Operator,
        name: "operator",
        tag: CAMERA,
        hz: 5,
        limits: true,
        step: 6,
        size: Some(Size { width: 160, height: 120 }),
        within: Some(Duration::from_millis(200)),
        loss: Some((1, 10)),
    },
    Row {
        role: Role::Operator,
        name: "steering",
        tag: STEER,
        hz: 100,
        limits: false,
        step: 1,
        size: None,
        within: Some(Duration::from_millis(20)),
        loss: Some((5, 100)),
    },
];

impl Row {
    /// Returns the requested size if it is smaller than the camera's.
    pub(crate) fn scaled(&self) -> Option<Size> {
        self.size.filter(|size| *size != CAMERA_SIZE)
    }

    /// Returns the form of the subscriber's stream.
    pub(crate) fn form(&self) -> Form {
        let rate = match NonZeroU32::new(self.hz * 1_000) {
            Some(millihertz) if self.limits => Rate::max(millihertz),
            _ => Rate::ALL,
        };
        Form { rate, size: self.scaled(), ..Form::FULL }
    }

    /// Formats the request for display.
    pub(crate) fn request(&self) -> String {
        let mut text = if self.limits { String::new() } else { "all, ".to_owned() };
        text.push_str(&format!("{} Hz", self.hz));
        if let Some(size) = self.size {
            text.push_str(&format!(" {size}"));
        }
        if let Some(within) = self.within {
            text.push_str(&format!(" ≤{} ms", within.as_millis()));
        }
        if let Some((x, y)) = self.loss {
            text.push_str(&format!(" {x}/{y}"));
        }
        text
    }
}
