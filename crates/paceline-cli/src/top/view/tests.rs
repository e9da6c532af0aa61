use super::*;
use crate::top::model::tests::{two, without_robot};

fn shown(width: usize, height: usize, keys: &[Key]) -> String {
    let mut look = Look::new(Order::Bits);
    let _ = screen(&two().view(look.order(), false), &mut look, (width, height));
    for &key in keys {
        assert_eq!(look.press(key), Effect::Continue);
    }
    let view = two().view(look.order(), look.is_turned());
    let lines = screen(&view, &mut look, (width, height));
    assert_eq!(lines.len(), height.max(1), "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn a_screen_of_80_columns_has_links_and_streams() {
    assert_eq!(
        shown(80, 12, &[]),
        "\
paceline top: 2 nodes, 1 link, 1 stream, 1 subscription, 0 refused

link        to        capacity  used  held  full  trip ms  jitter  loss  streams
robot.thin  operator     2.00M  480k  400k  24 %     0.17    0.02     -        1

STREAMS (1) by bits
tag           link        form          Hz  bit/s  ms on link  late  dropped
robot/camera  robot.thin  5 Hz at 16~  5.0   400k    20.0/190     0  2 deadline~



q end  s sort  r reverse  Tab next table  space pause  h help
"
    );
}

#[test]
fn a_wide_screen_has_all_columns_and_a_narrow_one_the_first() {
    assert_eq!(
        shown(120, 9, &[]),
        "\
paceline top: 2 nodes, 1 link, 1 stream, 1 subscription, 0 refused

link        to        capacity  used  held  full  trip ms  jitter  loss  streams
robot.thin  operator     2.00M  480k  400k  24 %     0.17    0.02     -        1

STREAMS (1) by bits
tag           link        to        form              Hz  bit/s  ms on link  late  broken  dropped
robot/camera  robot.thin  operator  5 Hz at 160x120  5.0   400k    20.0/190     0       0  2 deadline_missed
q end  s sort  r reverse  Tab next table  space pause  h help
"
    );
    let narrow = shown(40, 9, &[]);
    assert_eq!(narrow.lines().nth(6), Some("tag       link       Hz  bit/s  dropped"), "{narrow}");
}

#[test]
fn tab_switches_to_subscriptions_and_refusals() {
    assert_eq!(
        shown(80, 12, &[Key::Tab]),
        "\
paceline top: 2 nodes, 1 link, 1 stream, 1 subscription, 0 refused

link        to        capacity  used  held  full  trip ms  jitter  loss  streams
robot.thin  operator     2.00M  480k  400k  24 %     0.17    0.02     -        1

SUBSCRIPTIONS (1) by bits
pattern   node      asked        Hz   of  bit/s    age ms  late  lost  state
robot/**  operator  5 Hz at 1~  4.7  5.0   400k  30.0/200     1     3  as reque~



q end  s sort  r reverse  Tab next table  space pause  h help
"
    );
    let refusals = shown(80, 12, &[Key::Tab, Key::Tab]);
    assert!(refusals.contains("REFUSALS (0)\nnone\n"), "{refusals}");
    assert_eq!(shown(80, 12, &[Key::Tab, Key::Tab, Key::Tab]), shown(80, 12, &[]));
}

#[test]
fn a_lost_node_is_named_and_its_rows_are_marked() {
    let mut look = Look::new(Order::Bits);
    let lines = screen(&without_robot().view(Order::Bits, false), &mut look, (80, 24));
    let text = lines.join("\n");
    assert!(text.starts_with(
        "paceline top: 1 node, 1 link, 1 stream, 1 subscription, 0 refused, gone: robot"
    ));
    assert!(
        lines.iter().any(|line| line.starts_with("robot/camera") && line.contains("gone")),
        "{text}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("robot.thin") && line.contains("gone")),
        "{text}"
    );
}

#[test]
fn no_size_is_too_small() {
    for width in 0..100 {
        for height in 0..12 {
            shown(width, height, &[Key::Down, Key::Tab, Key::End]);
        }
    }
}

#[test]
fn many_rows_are_moved_through_and_many_links_are_cut() {
    let mut view = two().view(Order::Tag, false);
    let (row, link) = (view.streams.remove(0), view.links.remove(0));
    view.streams = (0..30).map(|n| Row { tag: format!("t{n:02}"), ..row.clone() }).collect();
    view.links = (0..9).map(|n| LinkRow { place: format!("l{n}"), ..link.clone() }).collect();
    let mut look = Look::new(Order::Tag);
    let mut seen = |key: Option<Key>| {
        if let Some(key) = key {
            look.press(key);
        }
        let lines = screen(&view, &mut look, (80, 15));
        assert!(lines.contains(&"… and 5 more".to_owned()), "{lines:?}");
        let rows: Vec<String> =
            lines.iter().filter(|line| line.starts_with('t')).cloned().collect();
        (rows[1][..3].to_owned(), rows.len() - 1)
    };
    assert_eq!(seen(None), ("t00".to_owned(), 3));
    assert_eq!(seen(Some(Key::Down)).0, "t01");
    assert_eq!(seen(Some(Key::PageDown)).0, "t04");
    assert_eq!(seen(Some(Key::End)), ("t27".to_owned(), 3));
    assert_eq!(seen(Some(Key::PageDown)).0, "t27", "there is no more");
    assert_eq!(seen(Some(Key::Up)).0, "t26");
    assert_eq!(seen(Some(Key::Home)).0, "t00");
}

#[test]
fn a_paused_screen_does_not_change() {
    let (now, later) = (two().view(Order::Bits, false), without_robot().view(Order::Bits, false));
    let mut look = Look::new(Order::Bits);
    look.press(Key::Hold);
    let held = screen(&now, &mut look, (80, 20));
    assert!(held[0].ends_with(", paused"), "{held:?}");
    assert_eq!(screen(&later, &mut look, (80, 20)), held);
    look.press(Key::Hold);
    assert!(screen(&later, &mut look, (80, 20))[0].ends_with("gone: robot"));
}

#[test]
fn help_names_every_key_and_q_ends() {
    let help = shown(80, 24, &[Key::Help]);
    for line in HELP {
        assert!(help.contains(line), "{help}");
    }
    assert_eq!(Look::new(Order::Tag).press(Key::Quit), Effect::End);
    let order = shown(80, 24, &[Key::Next, Key::Turn]);
    assert!(order.contains("STREAMS (1) by delay, reversed"), "{order}");
}

#[test]
fn refusals_are_wrapped_without_control_characters() {
    let mut view = two().view(Order::Bits, false);
    view.refusals = vec![format!("operator cam: {}\x1b[2J", "no ".repeat(40))];
    let mut look = Look::new(Order::Bits);
    look.press(Key::Tab);
    look.press(Key::Tab);
    let lines = screen(&view, &mut look, (80, 24));
    let text: String = lines.concat();
    assert!(text.matches("no ").count() >= 40 && text.ends_with("h help"), "{lines:?}");
    assert!(text.contains("?[2J") && !text.contains('\x1b'), "{text:?}");
}

#[test]
fn plain_tables_have_everything() {
    assert_eq!(
        plain(&two().view(Order::Bits, false)),
        "\
paceline top: 2 nodes, 1 link, 1 stream, 1 subscription, 0 refused

LINKS
link        to        capacity  used  held  full  trip ms  jitter  loss  streams
robot.thin  operator     2.00M  480k  400k  24 %     0.17    0.02     -        1

STREAMS
tag           link        to        form           Hz  bit/s  ms on link  late  broken  dropped
robot/camera  robot.thin  operator  5 Hz at 160~  5.0   400k    20.0/190     0       0  2 deadline_~

SUBSCRIPTIONS
pattern   node      asked             Hz   of  bit/s    age ms  late  lost  state
robot/**  operator  5 Hz at 160x120  4.7  5.0   400k  30.0/200     1     3  as requested: 3 of 50 l~
"
    );
    assert!(plain(&View::default()).starts_with("no other node answers"));
}

#[test]
fn numbers_have_three_digits() {
    let text =
        [0, 999, 1_000, 12_345, 999_999, 2_000_000, 1_500_000_000, 40_000_000_000].map(short);
    assert_eq!(text, ["0", "999", "1.00k", "12.3k", "999k", "2.00M", "1.50G", "40.0G"]);
}
