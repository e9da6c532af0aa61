use super::*;

fn here() -> Facts {
    Facts { version: "1.2.3".to_owned(), processor: "a chip".to_owned(), cores: 4 }
}

const GOOD: &str = r#"{"schema": 1, "version": "1.2.3", "processor": "a chip", "cores": 4,
    "samples": [{"bytes": 64, "load_permille": 0, "nanos": 20000}]}"#;

#[test]
fn a_saved_calibration_is_read_back() {
    let dir = std::env::temp_dir().join(format!("plk-{}", std::process::id()));
    let path = dir.join("deep/calibration.json");
    let table = CpuTable::new(vec![
        CpuPoint { bytes: 64, load_permille: 0, nanos: 20_000 },
        CpuPoint { bytes: 64_000, load_permille: 1_000, nanos: 90_000 },
    ])
    .unwrap();
    save(&path, &table).unwrap();
    save(&path, &table).unwrap();
    let again = load(&path);
    let files = std::fs::read_dir(dir.join("deep")).unwrap().count();
    std::fs::remove_dir_all(dir).unwrap();
    assert_eq!((again.unwrap(), files), (table, 1));
}

#[test]
fn an_invalid_file_is_refused_with_the_reason() {
    let wrong = |text: &str| format!("{:#}", read(text, &here()).unwrap_err());
    assert!(read(GOOD, &here()).is_ok());
    for (text, part) in [
        (&GOOD[..60], "it is not a calibration"),
        ("", "it is not a calibration"),
        (&GOOD.replace("\"cores\"", "\"kernels\""), "unknown field `kernels`"),
        (&GOOD.replace("\"schema\": 1", "\"schema\": 2"), "its schema is 2"),
        (&GOOD.replace("a chip", "another"), "on 4 cores of another, and this is paceline 1.2.3"),
        (&GOOD.replace("1.2.3", "1.2.2"), "it was measured by paceline 1.2.2"),
        (&GOOD.replace("20000", "0"), "64 bytes in 0 ns"),
        (&GOOD.replace("20000", "2000000000"), "1 to 1000000000 ns"),
        (&GOOD.replace("20000", "-1"), "invalid value"),
        (&GOOD.replace("\"load_permille\": 0", "\"load_permille\": 1001"), "1001/1000"),
        (
            r#"{"schema": 1, "version": "1.2.3", "processor": "a chip", "cores": 4, "samples": []}"#,
            "at least one",
        ),
    ] {
        let found = wrong(text);
        assert!(found.contains(part), "{text}: {found}");
    }
    let long = std::env::temp_dir().join(format!("plk-{}.json", std::process::id()));
    std::fs::write(&long, " ".repeat(70_000)).unwrap();
    let found = load(&long).unwrap_err().to_string();
    std::fs::remove_file(&long).unwrap();
    assert_eq!(found, "it is longer than 65536 bytes");
}

#[test]
fn processors_have_names() {
    assert_eq!(processor("processor\t: 0\nmodel name\t: A Chip @ 2 GHz\n"), "A Chip @ 2 GHz");
    assert_eq!(processor("CPU implementer : 0x41\nCPU part\t: 0xd0b\n"), "0xd0b");
    assert_eq!(processor(""), "unknown");
}
