use super::*;

fn config() -> Config {
    Config {
        http: "127.0.0.1:8470".parse().ok(),
        name: Some("file".to_owned()),
        runtime_dir: Some(PathBuf::from("/run/file")),
        isolated: true,
        log: Some("info".to_owned()),
        links: vec!["name=file,connect=tcp/h:1".parse().unwrap()],
        buffers: Vec::new(),
        ..Config::default()
    }
}

#[test]
fn flags_win_over_the_file() {
    let file = Some(PathBuf::from("/etc/p.toml"));
    let plain = NodeArgs::default().merge(config(), file.clone()).unwrap();
    assert_eq!((plain.name.as_deref(), plain.isolated), (Some("file"), true));
    assert_eq!(
        (plain.links[0].name(1).as_str(), plain.links_from.as_str()),
        ("file", "/etc/p.toml")
    );
    let args = NodeArgs {
        name: Some("flag".to_owned()),
        link: vec!["name=flag,connect=tcp/h:2".parse().unwrap()],
        runtime_dir: Some(PathBuf::from("/run/flag")),
        ..NodeArgs::default()
    };
    let settings = args.merge(config(), file).unwrap();
    assert_eq!(settings.name.as_deref(), Some("flag"));
    assert_eq!(settings.runtime_dir, Some(PathBuf::from("/run/flag")));
    assert_eq!(settings.links.len(), 1, "all of them are replaced");
    assert_eq!(
        (settings.links[0].name(1).as_str(), settings.links_from.as_str()),
        ("flag", "--link")
    );
}

#[test]
fn links_are_checked_without_opening_them() {
    let mut config = config();
    config.links = vec!["listen=tcp/0.0.0.0:7600".parse().unwrap()];
    let settings = NodeArgs::default().merge(config, Some(PathBuf::from("p.toml"))).unwrap();
    let error = settings.check().unwrap_err().to_string();
    assert!(error.starts_with("p.toml: link 'link1': listening on tcp/0.0.0.0:7600"), "{error}");
}
