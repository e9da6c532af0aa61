//! Who asks for what.

use paceline::{Form, Rate, Size};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// What is delivered in the first seconds is not judged: streams begin one after the other.
pub(crate) const WARM_UP: Duration = Duration::from_secs(2);
/// A rate is what was asked for if it is as near as this.
pub(crate) const RATE_BAND_HZ: f64 = 0.5;
/// The tag of the pictures.
pub(crate) const CAMERA: &str = "robot/camera";
/// The tag of the steering messages.
pub(crate) const STEER: &str = "robot/steer";
/// The size of the pictures.
pub(crate) const CAMERA_SIZE: Size = Size { width: 640, height: 480 };
/// The pictures' rate.
pub(crate) const CAMERA_HZ: u32 = 30;
/// The pictures' quality.
pub(crate) const CAMERA_QUALITY: u8 = 80;
/// The steering messages' period.
pub(crate) const STEER_PERIOD: Duration = Duration::from_millis(10);
/// The steering messages' size.
pub(crate) const STEER_BYTES: usize = 64;
/// What floods the thin link when the page says so: six times what it carries.
pub(crate) const BULK: &str = "robot/bulk";
/// Its rate.
pub(crate) const BULK_HZ: u32 = 100;
/// Its samples' size.
pub(crate) const BULK_BYTES: usize = 15_000;
/// The delay bound of what asks for every full picture over the thin link.
pub(crate) const GREED_WITHIN: Duration = Duration::from_millis(200);
/// What the thin link carries.
pub(crate) const THIN_BITS_PER_S: u64 = 2_000_000;
/// The link to the operator.
pub(crate) const THIN: &str = "thin";
/// The link to the console.
pub(crate) const LAN: &str = "lan";

/// A node of the demo.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Publishes.
    Robot,
    /// Beside it, on a link without a limit.
    Console,
    /// Far away, behind the thin link.
    Operator,
}

impl Role {
    /// Every role.
    pub(crate) const ALL: [Self; 3] = [Self::Robot, Self::Console, Self::Operator];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Robot => "robot",
            Self::Console => "console",
            Self::Operator => "operator",
        }
    }

    /// The robot's link to it.
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

/// What one subscriber asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Where it is.
    pub(crate) role: Role,
    /// What to call it.
    pub(crate) name: &'static str,
    /// The tag it subscribes to.
    pub(crate) tag: &'static str,
    /// The rate that it must get.
    pub(crate) hz: u32,
    /// True if it asks for that rate, false if it takes every sample.
    pub(crate) limits: bool,
    /// How many of the publisher's samples make one of its own.
    pub(crate) step: u64,
    /// The size it must get; `None` for what is no picture.
    pub(crate) size: Option<Size>,
    /// The delay bound.
    pub(crate) within: Option<Duration>,
    /// The loss tolerance.
    pub(crate) loss: Option<(u32, u32)>,
}

/// All subscribers.
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
    /// True if it asks for pictures smaller than the camera's.
    pub(crate) fn scaled(&self) -> Option<Size> {
        self.size.filter(|size| *size != CAMERA_SIZE)
    }

    /// The form of its stream.
    pub(crate) fn form(&self) -> Form {
        let rate = match NonZeroU32::new(self.hz * 1_000) {
            Some(millihertz) if self.limits => Rate::Max(millihertz),
            _ => Rate::All,
        };
        Form { rate, size: self.scaled(), audio: None }
    }

    /// What it asks for, in words.
    pub(crate) fn asked(&self) -> String {
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
