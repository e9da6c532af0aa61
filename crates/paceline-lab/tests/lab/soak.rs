//! The soak test: processes that are killed and stopped at random.

use crate::host::Host;

#[test]
fn a_soak_completes_its_faults_and_reports_their_cost() {
    let host = Host::new();
    let ended = host.run(&["bench", "soak", "--duration", "10s", "--seed", "7", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("one document");
    let rows = report["sections"][0]["rows"].as_array().expect("rows");
    let value = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).expect("the row");
        row["value"].as_f64().expect("a number")
    };
    let hit = value("processes killed") + value("processes suspended");
    assert!(hit >= 1.0, "{report}");
    assert!(value("streams whose counters do not add up") < 0.5, "{report}");
}
