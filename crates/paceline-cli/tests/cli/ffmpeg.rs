//! The recipes of docs/guides/ffmpeg.md, with a generated picture in place of the camera.

use crate::host::{Host, Running};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a line of the guide in a shell whose `paceline` is the program under test.
pub(crate) fn shell(host: &Host, line: &str) -> Command {
    let command = host.command(&[]);
    let mut bash = Command::new("bash");
    let program =
        format!("paceline() {{ \"{}\" \"$@\"; }}\nset -o pipefail\n{line}", crate::BINARY);
    bash.arg("-c").arg(program).current_dir(host.path("."));
    bash.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    bash
}

/// Returns the command of the guide that begins with `begin`, with a part replaced.
fn recipe(guide: &str, begin: &str, replaced: Option<(&str, &str)>) -> String {
    let joined = guide.replace("\\\n", " ");
    let line = joined.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("the guide has no '{begin}'"));
    let Some((part, by)) = replaced else { return line.to_owned() };
    assert!(line.contains(part), "{line} lacks {part}");
    line.replace(part, by)
}

fn done(host: &Host, line: &str) {
    let output = shell(host, line).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

#[test]
fn the_recipes_of_the_guide_work() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        println!("skipped: recipes with ffmpeg (ffmpeg is not installed)");
        return;
    }
    let host = Host::new();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/ffmpeg.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let _node = host.start_node();
    let coded = "-re -f lavfi -i testsrc=size=160x120:rate=25 -t 12 -c:v libx264 -pix_fmt yuv420p -tune zerolatency -g 25";
    assert!(guide.contains("-re -f lavfi -i testsrc=size=640x480:rate=25 -c:v libx264 -pix_fmt yuv420p -tune zerolatency"));
    let camera = "-rtsp_transport tcp -i rtsp://192.168.1.20/stream -an -c copy";
    let camera = recipe(&guide, "ffmpeg -v error -rtsp_transport", Some((camera, coded)));
    let _camera = Running::gathered(shell(&host, &camera).spawn().unwrap());
    let seen =
        host.run(&["sub", "robot/camera", "--size", "80x60", "--count", "20", "--timeout", "20s"]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let store =
        recipe(&guide, "paceline sub robot/camera --count", Some(("--count 300", "--count 50")));
    done(&host, &store);
    assert!(host.path("camera.mp4").metadata().unwrap().len() > 1_000);
    done(
        &host,
        "ffmpeg -v error -f lavfi -i testsrc=size=160x120:rate=25 -t 2 -c:v libx264 -g 10 film.mp4",
    );
    done(&host, &recipe(&guide, "ffmpeg -v error -i film.mp4", None));
    // The film lasts 2 s.
    done(&host, &recipe(&guide, "mkfifo", None));
    done(&host, &recipe(&guide, "ffmpeg -y -v error -re -i film.mp4", None));
    let port = crate::host::free_port().to_string();
    let tcp = recipe(&guide, "ffmpeg -v error -re -i film.mp4 -an", None);
    done(&host, &tcp.replace("9000", &port));
    let test = recipe(&guide, "ffmpeg -v error -re -f lavfi", Some(("rate=25", "rate=25 -t 1")));
    done(&host, &test);
    let film = recipe(&guide, "paceline pub robot/film", Some(("--loop", "--loop --count 200")));
    let _film = Running::gathered(shell(&host, &film).spawn().unwrap());
    let receive = recipe(
        &guide,
        "paceline sub robot/film",
        Some(("--out", "--count 30 --timeout 20s --out")),
    );
    done(&host, &receive);
    done(&host, &recipe(&guide, "ffmpeg -v error -framerate 25", None));
    assert!(host.path("received.mp4").metadata().unwrap().len() > 1_000);
}
