use std::collections::BTreeMap;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Line(u32),
    Box { width: f64 },
    Both(u8, i8),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Whole {
    flag: bool,
    name: String,
    none: Option<u64>,
    some: Option<i64>,
    shapes: Vec<Shape>,
    counts: BTreeMap<String, u64>,
    half: f32,
    pair: (i64, char),
    wrapped: Wrapped,
    nothing: (),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped(u16);

fn whole() -> Whole {
    Whole {
        flag: true,
        name: "n".repeat(40),
        none: None,
        some: Some(-300),
        shapes: vec![Shape::Point, Shape::Line(7), Shape::Box { width: 0.5 }, Shape::Both(200, -3)],
        counts: BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), u64::MAX)]),
        half: 0.25,
        pair: (i64::MIN, 'ß'),
        wrapped: Wrapped(65_535),
        nothing: (),
    }
}

#[test]
fn what_is_written_is_read() {
    let bytes = packed(&whole()).unwrap();
    assert_eq!(unpacked::<Whole>(&bytes).unwrap(), whole());
    for cut in 0..bytes.len() {
        assert!(unpacked::<Whole>(&bytes[..cut]).is_err(), "cut at {cut}");
    }
}

/// Files that were written before are read by later versions, and by other programs.
#[test]
fn numbers_texts_and_lists_have_the_shortest_form_of_messagepack() {
    let numbers: [(i64, &[u8]); 10] = [
        (0, &[0]),
        (127, &[127]),
        (128, &[0xcc, 128]),
        (256, &[0xcd, 1, 0]),
        (65_536, &[0xce, 0, 1, 0, 0]),
        (1 << 32, &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
        (-32, &[0xe0]),
        (-33, &[0xd0, 0xdf]),
        (-129, &[0xd1, 0xff, 0x7f]),
        (-40_000, &[0xd2, 0xff, 0xff, 0x63, 0xc0]),
    ];
    for (number, bytes) in numbers {
        assert_eq!(packed(&number).unwrap(), bytes, "{number}");
        assert_eq!(unpacked::<i64>(bytes).unwrap(), number);
    }
    for (length, head) in
        [(31, &[0xbf][..]), (32, &[0xd9, 32]), (256, &[0xda, 1, 0]), (65_536, &[0xdb, 0, 1, 0, 0])]
    {
        let text = "x".repeat(length);
        let bytes = packed(&text).unwrap();
        assert_eq!((&bytes[..head.len()], bytes.len()), (head, head.len() + length));
        assert_eq!(unpacked::<String>(&bytes).unwrap(), text);
    }
    for (length, head) in [(15, &[0x9f][..]), (16, &[0xdc, 0, 16]), (65_536, &[0xdd, 0, 1, 0, 0])] {
        let list = vec![true; length];
        let bytes = packed(&list).unwrap();
        assert_eq!((&bytes[..head.len()], bytes.len()), (head, head.len() + length));
        assert_eq!(unpacked::<Vec<bool>>(&bytes).unwrap(), list);
    }
    let variants = packed(&(Shape::Point, Shape::Line(1))).unwrap();
    assert_eq!(variants, b"\x92\xa5Point\x81\xa4Line\x01");
}

#[test]
fn a_list_of_unknown_length_gets_its_length_at_the_end() {
    struct Evens;
    impl Serialize for Evens {
        fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq((0..100_u8).filter(|number| number % 2 == 0))
        }
    }
    let bytes = packed(&(Evens, 1_u8)).unwrap();
    let (evens, one): (Vec<u8>, u8) = unpacked(&bytes).unwrap();
    assert_eq!((evens.len(), evens[49], one), (50, 98, 1));
}

#[test]
fn fields_of_every_kind_that_are_not_known_are_passed_over() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Known {
        flag: bool,
        nothing: (),
    }
    let mut bytes = packed(&whole()).unwrap();
    assert_eq!(unpacked::<Known>(&bytes).unwrap(), Known { flag: true, nothing: () });
    // Also kinds that are never written: bytes, and an extension of 16.
    let more = [&b"\xa1b\xc4\x02\xff\xff\xa1e\xd8\x01"[..], &[0; 16]].concat();
    bytes.splice(1..1, more);
    bytes[0] += 2;
    assert_eq!(unpacked::<Known>(&bytes).unwrap(), Known { flag: true, nothing: () });
}

#[test]
fn wrong_kinds_lengths_and_depths_are_errors() {
    #[derive(Debug, Deserialize)]
    struct Nested {
        #[expect(dead_code, reason = "only read")]
        inside: Vec<Nested>,
    }
    assert!(unpacked::<u8>(&[0xcd, 1, 0]).is_err(), "256 does not fit");
    assert!(unpacked::<u8>(&[0xff]).is_err(), "nor does -1");
    assert!(unpacked::<u64>(&[0xca, 0, 0, 0, 0]).is_err(), "a fraction is no count");
    assert_eq!(unpacked::<f64>(&[7]).unwrap(), 7.0);
    assert!(unpacked::<bool>(&[0]).is_err() && unpacked::<String>(b"\xa1\xff").is_err());
    assert!(unpacked::<(u8, u8)>(&[0x93, 1, 2, 3]).is_err(), "one item too many");
    assert!(unpacked::<Vec<u8>>(&[0xdd, 0xff, 0xff, 0xff, 0xff]).is_err());
    assert!(unpacked::<Shape>(b"\xa4Line").is_err() && unpacked::<Shape>(b"\xa5Other").is_err());
    let deep = b"\x81\xa6inside\x91".repeat(100_000);
    assert!(unpacked::<Nested>(&deep).unwrap_err().to_string().contains("deep"));
    let long = [&b"\x82\xa1x"[..], &vec![0x91; 1 << 20], b"\xc0\xa6inside\x90"].concat();
    assert!(unpacked::<Nested>(&long).is_ok(), "passing over needs no stack");
}
