//! Plain text, the alphabet of names. It contains no character that moves the cursor, breaks the line or
//! changes the writing direction. It is therefore safe on a terminal, in a log and in a table.

use std::borrow::Cow;

/// Returns true for a character that plain text must not contain.
///
/// These are control characters, line and paragraph separators, marks of writing direction, and invisible
/// characters. The joiners U+200C and U+200D are allowed: scripts and emoji need them.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns true if `text` is plain.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    // Most names are short and in ASCII.
    if text.is_ascii() {
        return !text.bytes().any(|byte| byte.is_ascii_control());
    }
    !text.contains(is_unprintable)
}

/// Returns `text` with each character that is not plain escaped as in `\n`, `\t`, `\u{202e}`.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_except(text, &[])
}

/// Returns `text` escaped as by [`escape`], except for the characters of `kept`.
#[must_use]
pub fn escape_except<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unprintable(c) && !kept.contains(&c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_scripts_are_plain() {
        for text in
            ["", "robot/camera", "Wärme-ß", "カメラ", "می\u{200c}خواهم", "👩\u{200d}🚀", "x\u{301}"]
        {
            assert!(is_plain(text), "{text:?}");
            assert!(matches!(escape(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        for (text, shown) in [
            ("a\nb", "a\\nb"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\x7f\0", "\\u{7f}\\u{0}"),
            ("x\u{202e}gpj.exe", "x\\u{202e}gpj.exe"),
            ("\u{2066}\u{200f}\u{61c}", "\\u{2066}\\u{200f}\\u{61c}"),
            ("a\u{2028}b\u{feff}", "a\\u{2028}b\\u{feff}"),
            ("a\u{e0041}", "a\\u{e0041}"),
        ] {
            assert!(!is_plain(text), "{text:?}");
            assert_eq!(escape(text), shown);
            assert!(is_plain(&escape(text)));
        }
        assert_eq!(escape_except("a\tb\r\n", &['\t', '\n']), "a\tb\\r\n");
    }
}
