//! Definitions of common messages of ROS 2, which viewers need to display CDR.
//!
//! From the packages common_interfaces, geometry2 and rcl_interfaces of ROS 2 Jazzy (Apache 2.0 and BSD), without
//! comments.

/// The encoding of these schemas in a file.
pub(crate) const ROS_SCHEMA: &str = "ros2msg";
/// The line between the definitions of a schema.
const SEPARATOR: [u8; 80] = [b'='; 80];

/// Returns the name of the type in a media type such as `application/cdr;std_msgs/msg/String`.
pub(crate) fn type_of(encoding: &str) -> Option<&str> {
    encoding.strip_prefix("application/cdr;")
}

/// Returns the definition of a type with those of all types that it contains, as in a ROS 2 bag; `None` for a type
/// that is not known here.
pub(crate) fn schema(name: &str) -> Option<Vec<u8>> {
    let mut names = vec![name.to_owned()];
    let mut schema = definition(name)?.as_bytes().to_vec();
    let mut at = 0;
    while let Some(name) = names.get(at).cloned() {
        for part in parts(definition(&name)?) {
            if names.contains(&part) {
                continue;
            }
            schema.push(b'\n');
            schema.extend(SEPARATOR);
            schema.extend(format!("\nMSG: {}\n", part.replace("/msg/", "/")).as_bytes());
            schema.extend(definition(&part)?.as_bytes());
            names.push(part);
        }
        at += 1;
    }
    schema.push(b'\n');
    Some(schema)
}

fn definition(name: &str) -> Option<&'static str> {
    DEFINITIONS.iter().find(|(known, _)| *known == name).map(|(_, definition)| *definition)
}

/// Returns the types of the fields of a definition that are messages.
fn parts(definition: &str) -> impl Iterator<Item = String> {
    let field = |line: &str| {
        let (package, name) = line.split(['[', ' ']).next()?.split_once('/')?;
        Some(format!("{package}/msg/{name}"))
    };
    definition.lines().filter_map(field)
}

/// The definitions by name.
const DEFINITIONS: &[(&str, &str)] = &[
    (
        "builtin_interfaces/msg/Time",
        "int32 sec\n\
         uint32 nanosec",
    ),
    (
        "geometry_msgs/msg/Point",
        "float64 x\n\
         float64 y\n\
         float64 z",
    ),
    (
        "geometry_msgs/msg/Pose",
        "geometry_msgs/Point position\n\
         geometry_msgs/Quaternion orientation",
    ),
    (
        "geometry_msgs/msg/PoseStamped",
        "std_msgs/Header header\n\
         geometry_msgs/Pose pose",
    ),
    (
        "geometry_msgs/msg/PoseWithCovariance",
        "geometry_msgs/Pose pose\n\
         float64[36] covariance",
    ),
    (
        "geometry_msgs/msg/Quaternion",
        "float64 x\n\
         float64 y\n\
         float64 z\n\
         float64 w",
    ),
    (
        "geometry_msgs/msg/Transform",
        "geometry_msgs/Vector3 translation\n\
         geometry_msgs/Quaternion rotation",
    ),
    (
        "geometry_msgs/msg/TransformStamped",
        "std_msgs/Header header\n\
         string child_frame_id\n\
         geometry_msgs/Transform transform",
    ),
    (
        "geometry_msgs/msg/Twist",
        "geometry_msgs/Vector3 linear\n\
         geometry_msgs/Vector3 angular",
    ),
    (
        "geometry_msgs/msg/TwistStamped",
        "std_msgs/Header header\n\
         geometry_msgs/Twist twist",
    ),
    (
        "geometry_msgs/msg/TwistWithCovariance",
        "geometry_msgs/Twist twist\n\
         float64[36] covariance",
    ),
    (
        "geometry_msgs/msg/Vector3",
        "float64 x\n\
         float64 y\n\
         float64 z",
    ),
    (
        "nav_msgs/msg/MapMetaData",
        "builtin_interfaces/Time map_load_time\n\
         float32 resolution\n\
         uint32 width\n\
         uint32 height\n\
         geometry_msgs/Pose origin",
    ),
    (
        "nav_msgs/msg/OccupancyGrid",
        "std_msgs/Header header\n\
         nav_msgs/MapMetaData info\n\
         int8[] data",
    ),
    (
        "nav_msgs/msg/Odometry",
        "std_msgs/Header header\n\
         string child_frame_id\n\
         geometry_msgs/PoseWithCovariance pose\n\
         geometry_msgs/TwistWithCovariance twist",
    ),
    (
        "nav_msgs/msg/Path",
        "std_msgs/Header header\n\
         geometry_msgs/PoseStamped[] poses",
    ),
    (
        "rcl_interfaces/msg/Log",
        "uint8 DEBUG=10\n\
         uint8 INFO=20\n\
         uint8 WARN=30\n\
         uint8 ERROR=40\n\
         uint8 FATAL=50\n\
         builtin_interfaces/Time stamp\n\
         uint8 level\n\
         string name\n\
         string msg\n\
         string file\n\
         string function\n\
         uint32 line",
    ),
    (
        "sensor_msgs/msg/CameraInfo",
        "std_msgs/Header header\n\
         uint32 height\n\
         uint32 width\n\
         string distortion_model\n\
         float64[] d\n\
         float64[9] k\n\
         float64[9] r\n\
         float64[12] p\n\
         uint32 binning_x\n\
         uint32 binning_y\n\
         sensor_msgs/RegionOfInterest roi",
    ),
    (
        "sensor_msgs/msg/CompressedImage",
        "std_msgs/Header header\n\
         string format\n\
         uint8[] data",
    ),
    (
        "sensor_msgs/msg/Image",
        "std_msgs/Header header\n\
         uint32 height\n\
         uint32 width\n\
         string encoding\n\
         uint8 is_bigendian\n\
         uint32 step\n\
         uint8[] data",
    ),
    (
        "sensor_msgs/msg/Imu",
        "std_msgs/Header header\n\
         geometry_msgs/Quaternion orientation\n\
         float64[9] orientation_covariance\n\
         geometry_msgs/Vector3 angular_velocity\n\
         float64[9] angular_velocity_covariance\n\
         geometry_msgs/Vector3 linear_acceleration\n\
         float64[9] linear_acceleration_covariance",
    ),
    (
        "sensor_msgs/msg/JointState",
        "std_msgs/Header header\n\
         string[] name\n\
         float64[] position\n\
         float64[] velocity\n\
         float64[] effort",
    ),
    (
        "sensor_msgs/msg/LaserScan",
        "std_msgs/Header header\n\
         float32 angle_min\n\
         float32 angle_max\n\
         float32 angle_increment\n\
         float32 time_increment\n\
         float32 scan_time\n\
         float32 range_min\n\
         float32 range_max\n\
         float32[] ranges\n\
         float32[] intensities",
    ),
    (
        "sensor_msgs/msg/NavSatFix",
        "uint8 COVARIANCE_TYPE_UNKNOWN=0\n\
         uint8 COVARIANCE_TYPE_APPROXIMATED=1\n\
         uint8 COVARIANCE_TYPE_DIAGONAL_KNOWN=2\n\
         uint8 COVARIANCE_TYPE_KNOWN=3\n\
         std_msgs/Header header\n\
         sensor_msgs/NavSatStatus status\n\
         float64 latitude\n\
         float64 longitude\n\
         float64 altitude\n\
         float64[9] position_covariance\n\
         uint8 position_covariance_type",
    ),
    (
        "sensor_msgs/msg/NavSatStatus",
        "int8 STATUS_UNKNOWN=-2\n\
         int8 STATUS_NO_FIX=-1\n\
         int8 STATUS_FIX=0\n\
         int8 STATUS_SBAS_FIX=1\n\
         int8 STATUS_GBAS_FIX=2\n\
         uint16 SERVICE_UNKNOWN=0\n\
         uint16 SERVICE_GPS=1\n\
         uint16 SERVICE_GLONASS=2\n\
         uint16 SERVICE_COMPASS=4\n\
         uint16 SERVICE_GALILEO=8\n\
         int8 status\n\
         uint16 service",
    ),
    (
        "sensor_msgs/msg/PointCloud2",
        "std_msgs/Header header\n\
         uint32 height\n\
         uint32 width\n\
         sensor_msgs/PointField[] fields\n\
         bool is_bigendian\n\
         uint32 point_step\n\
         uint32 row_step\n\
         uint8[] data\n\
         bool is_dense",
    ),
    (
        "sensor_msgs/msg/PointField",
        "uint8 INT8=1\n\
         uint8 UINT8=2\n\
         uint8 INT16=3\n\
         uint8 UINT16=4\n\
         uint8 INT32=5\n\
         uint8 UINT32=6\n\
         uint8 FLOAT32=7\n\
         uint8 FLOAT64=8\n\
         string name\n\
         uint32 offset\n\
         uint8 datatype\n\
         uint32 count",
    ),
    (
        "sensor_msgs/msg/RegionOfInterest",
        "uint32 x_offset\n\
         uint32 y_offset\n\
         uint32 height\n\
         uint32 width\n\
         bool do_rectify",
    ),
    ("std_msgs/msg/Bool", "bool data"),
    ("std_msgs/msg/Float64", "float64 data"),
    (
        "std_msgs/msg/Header",
        "builtin_interfaces/Time stamp\n\
         string frame_id",
    ),
    ("std_msgs/msg/String", "string data"),
    ("tf2_msgs/msg/TFMessage", "geometry_msgs/TransformStamped[] transforms"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_complete() {
        for (name, _) in DEFINITIONS {
            let schema = String::from_utf8(schema(name).expect(name)).unwrap();
            for part in schema.split("MSG: ").skip(1) {
                let (part, _) = part.split_once('\n').unwrap();
                assert_eq!(schema.matches(&format!("MSG: {part}\n")).count(), 1, "{name}: {part}");
            }
        }
        let image = String::from_utf8(schema("sensor_msgs/msg/Image").unwrap()).unwrap();
        let lines: Vec<_> = image.lines().collect();
        assert_eq!(lines[0], "std_msgs/Header header");
        let [separator, first, ..] = lines[7..] else { panic!("{image}") };
        assert_eq!((separator.len(), first), (80, "MSG: std_msgs/Header"));
        assert!(
            image.contains("MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"),
            "{image}"
        );
        assert_eq!(schema("my_msgs/msg/Unknown"), None);
        assert_eq!(type_of("application/cdr;my_msgs/msg/Unknown"), Some("my_msgs/msg/Unknown"));
    }
}
