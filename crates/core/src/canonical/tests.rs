use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn canonical(text: &str) -> Result<String, Error> {
    let StrictValue(value) = parse_value(text)?;
    Ok(String::from_utf8(to_vec(&value)?).expect("canonical JSON is UTF-8"))
}

fn parse_value(text: &str) -> Result<StrictValue, Error> {
    parse::<Value>(text.as_bytes()).map(StrictValue)
}

/// Appendix B of RFC 8785: the bits of a double, and how it is written.
#[test]
fn the_rfc_number_vectors() {
    for (bits, text) in [
        (0x0000000000000000u64, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        let double = f64::from_bits(bits);
        assert_eq!(write::number(double), text, "{bits:#x}");
        match to_vec(&double) {
            Ok(written) => assert_eq!(written, text.as_bytes(), "{bits:#x}"),
            Err(error) => assert_eq!(error, Error::IntegerTooLarge(text.into())),
        }
    }
    for bits in [0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000u64] {
        assert_eq!(to_vec(&f64::from_bits(bits)), Err(Error::NotFinite), "{bits:#x}");
    }
}

/// Section 3.2.3 of RFC 8785: keys are ordered by UTF-16 code units.
#[test]
fn the_rfc_key_order() {
    let text = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
    assert_eq!(canonical(text).as_deref(), Ok(expected));
}

/// Section 3.2.2: literals, numbers and escapes in one object.
#[test]
fn the_rfc_example_object() {
    let text = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
    let expected = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
    assert_eq!(canonical(text).as_deref(), Ok(expected));
}

#[test]
fn what_another_reader_could_misread_is_refused() {
    let twice = r#"{"a":1,"b":{"c":1,"c":2}}"#;
    assert_eq!(canonical(twice), Err(Error::DuplicateKey("c".into())));
    for integer in ["9007199254740993", "-9007199254740993", "18446744073709551615"] {
        assert_eq!(canonical(integer), Err(Error::IntegerTooLarge(integer.into())));
    }
    assert_eq!(canonical("9007199254740992").as_deref(), Ok("9007199254740992"));
    assert_eq!(canonical("-9007199254740992").as_deref(), Ok("-9007199254740992"));
    for integer in ["9007199254740994", "1e16", "-1e20", "18446744073709551616", "1e20"] {
        assert!(matches!(canonical(integer), Err(Error::IntegerTooLarge(_))), "{integer}");
    }
    let digits = "7".repeat(40);
    assert_eq!(
        canonical(&format!("[\"{digits}\\\"\",-{digits}]")),
        Err(Error::IntegerTooLarge(format!("-{digits}")))
    );
    assert_eq!(canonical("6.022e23").as_deref(), Ok("6.022e+23"));
    assert_eq!(canonical(&format!("0.{digits}")).as_deref(), Ok("0.7777777777777778"));
    assert!(canonical("1e400").is_err());
    assert!(canonical(r#""\ud800""#).is_err(), "a lone surrogate is not text");
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(canonical(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(canonical(&nested(DEPTH_MAX + 1)), Err(Error::TooDeep));
    assert_eq!(canonical(&nested(100_000)), Err(Error::TooDeep));
}

#[test]
fn what_another_program_wrote_keeps_its_digits() {
    let read = |text: &str| parse_exact(text.as_bytes()).map(|value| value.to_string());
    for (text, expected) in [
        ("123456789012345678901234567890", r#""123456789012345678901234567890""#),
        ("[-12345678901234567890, 1]", r#"["-12345678901234567890",1]"#),
        (
            r#"{"id":9007199254740993,"n":9007199254740992}"#,
            r#"{"id":"9007199254740993","n":9007199254740992}"#,
        ),
        (
            r#"["123456789012345678901", "a\"123456789012345678901"]"#,
            r#"["123456789012345678901","a\"123456789012345678901"]"#,
        ),
        ("[1e300, 600.0, 1.5]", "[1e+300,600,1.5]"),
        ("[1e16, 1234567890123456789012.5]", r#"["10000000000000000",1.2345678901234568e+21]"#),
        (" {} ", "{}"),
    ] {
        assert_eq!(read(text), Ok(expected.to_owned()), "{text}");
    }
    for text in [r#"{"a":1,"a":2}"#, "{} {}", "[1", "01234567890123456789012", ""] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn an_unwritable_integer_is_named() {
    assert_eq!(to_vec(&u64::MAX), Err(Error::IntegerTooLarge(u64::MAX.to_string())));
    assert_eq!(to_vec(&i64::MIN), Err(Error::IntegerTooLarge(i64::MIN.to_string())));
}

#[test]
fn digests_are_pinned() {
    let value = json!({"b": [1, 2.5, "ü"], "a": null});
    assert_eq!(
        String::from_utf8(to_vec(&value).unwrap()).unwrap(),
        r#"{"a":null,"b":[1,2.5,"ü"]}"#
    );
    assert_eq!(
        digest(&value).unwrap().to_string(),
        "sha256:3ca4eda1ebfd02e4296104981a1e65d4e87e99084ac993fafbc515a8f6a8ad84"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9007199254740992i64..=9007199254740992).prop_map(Value::from),
        any::<f64>()
            .prop_filter("writable", |n| n.is_finite() && !write::is_inexact(*n))
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_an_independent_writer(value in any_json()) {
        let ours = to_vec(&value).unwrap();
        prop_assert_eq!(&ours, &serde_json_canonicalizer::to_vec(&value).unwrap());
        let again: Value = parse(&ours).unwrap();
        prop_assert_eq!(to_vec(&again).unwrap(), ours);
    }

    #[test]
    fn reading_never_panics(bytes: Vec<u8>) {
        let _ = parse::<Value>(&bytes);
    }
}

#[test]
fn a_text_of_countless_values_is_refused_before_they_are_made() {
    let text = format!("[{}0]", "0,".repeat(VALUES_MAX));
    assert_eq!(parse::<Value>(text.as_bytes()), Err(Error::TooMany));
    let commas = format!("\"{}\"", ",[{".repeat(VALUES_MAX));
    assert!(parse::<Value>(commas.as_bytes()).is_ok(), "in a string they are text");
}
