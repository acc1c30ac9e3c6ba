use proptest::prelude::*;

use super::*;

fn schedule(cron: &str, zone: &str, missed: &str) -> Schedule {
    let config = json!({"cron": cron, "timezone": zone, "missed": missed});
    Schedule::new(&config).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn ms(text: &str) -> u64 {
    u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
}

fn text(ms: u64) -> String {
    Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap().to_string()
}

fn after(schedule: &Schedule, from: &str, count: usize) -> Vec<String> {
    let next = |at: &u64| schedule.next_after(*at);
    std::iter::successors(schedule.next_after(ms(from)), next).take(count).map(text).collect()
}

// case: time.clock
#[test]
fn clocks_that_change_are_followed() {
    // A line, a zone, from when, and the instants that follow.
    let table: &[(&str, &str, &str, &[&str])] = &[
        // Berlin, forward on 2026-03-29 at 02:00: one fixed time is fired at the end of the gap.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        ),
        (
            "0 3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"],
        ),
        // Many times a day go by what the clock shows.
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:29:00Z",
            &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
        ),
        (
            "0,30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-30T00:00:00Z", "2026-03-30T00:30:00Z"],
        ),
        // Berlin, back on 2026-10-25 at 03:00: one fixed time is fired once, the first time.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        ),
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
        ),
        // New York, forward on 2026-03-08 and back on 2026-11-01.
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00Z",
            &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
        ),
        // Lord Howe moves by half an hour.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00:00Z",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T06:00:00Z",
            &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
        ),
        // Santiago has no midnight on 2026-09-06.
        (
            "0 0 * * *",
            "America/Santiago",
            "2026-09-05T12:00:00Z",
            &["2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"],
        ),
        // Zones that stay.
        (
            "0 8 * * *",
            "Asia/Jakarta",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"],
        ),
        ("30 5 * * *", "Asia/Kolkata", "2026-03-28T12:00:00Z", &["2026-03-29T00:00:00Z"]),
        (
            "30 2 29 3 *",
            "UTC",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T02:30:00Z", "2027-03-29T02:30:00Z"],
        ),
        // Leap days, weekdays, seconds.
        (
            "0 0 29 2 *",
            "UTC",
            "2026-03-28T12:00:00Z",
            &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
        ),
        ("0 9 * * MON-FRI", "UTC", "2026-11-13T10:00:00Z", &["2026-11-16T09:00:00Z"]),
        (
            "*/20 * * * * *",
            "UTC",
            "2026-11-13T10:00:01Z",
            &["2026-11-13T10:00:20Z", "2026-11-13T10:00:40Z"],
        ),
        ("@daily", "UTC", "2026-11-13T10:00:00Z", &["2026-11-14T00:00:00Z"]),
    ];
    for (cron, zone, from, instants) in table {
        let found = after(&schedule(cron, zone, "once"), from, instants.len());
        assert_eq!(&found, instants, "{cron} in {zone}");
    }
}

// case: time.impossible
#[test]
fn a_wrong_line_is_told() {
    let told = |cron: &str| {
        let found = (Cron.kind().check)(&json!({"cron": cron}));
        found
            .iter()
            .map(|fault| format!("{}: {}\n", fault.field, fault.message))
            .collect::<String>()
    };
    let lines = [
        "61 * * * *",
        "*/0 * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "@reboot",
        "@often",
        "",
        "* * * *",
        "0 0 0 1 1 * 2030",
        "5-1 * * * *",
        "0 8 * * 8",
        "x * * * *",
    ];
    insta::assert_snapshot!(lines.map(told).concat(), @r"
    cron: `61 * * * *` is not a schedule: 61 is no minute, which is a number from 0 to 59
    cron: `*/0 * * * *` is not a schedule: step cannot be zero
    cron: `0 0 30 2 *` is not a schedule: there is no such day
    cron: `0 0 31 4,6 *` is not a schedule: there is no such day
    cron: `@reboot` is not a schedule: a start of the machine is no time
    cron: `@often` is not a schedule: no such name is known
    cron: `` is not a schedule: it is empty
    cron: `* * * *` is not a schedule: it has 4 fields, not 5 or 6
    cron: `0 0 0 1 1 * 2030` is not a schedule: it has 7 fields, not 5 or 6
    cron: `5-1 * * * *` is not a schedule: range out of bounds
    cron: `0 8 * * 8` is not a schedule: 8 is no day of the week, which is a number from 0 to 7
    cron: `x * * * *` is not a schedule: a character in it means nothing
    ");
    for good in ["0 0 29 2 *", "0 0 L * *", "0 0 * * FRI#2", "0 8 1W * *"] {
        assert_eq!(told(good), "", "{good}");
    }
}

#[test]
fn a_wrong_zone_is_told_with_the_nearest() {
    let told = |zone: &str| {
        let found = (Cron.kind().check)(&json!({"cron": "61 * * * *", "timezone": zone}));
        found.last().map(|fault| format!("{}; {}", fault.message, fault.hint)).unwrap()
    };
    insta::assert_snapshot!(told("Europe/Berlni"), @"there is no time zone `Europe/Berlni`; did you mean `Europe/Berlin`?");
    insta::assert_snapshot!(told("Mars"), @"there is no time zone `Mars`; write a name such as `Europe/Berlin`, or leave it out for UTC");
}

// case: time.missed
#[test]
fn what_was_missed_is_made_up_for_as_the_settings_say() {
    let (last, now) = (ms("2026-11-13T10:00:00Z"), ms("2026-11-13T13:10:00Z"));
    let due = |missed: &str, last: u64, now: u64| {
        let found = schedule("0 * * * *", "UTC", missed).due(last, now);
        found.into_iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(due("skip", last, now), [""; 0]);
    assert_eq!(due("once", last, now), ["2026-11-13T13:00:00Z"]);
    assert_eq!(
        due("all", last, now),
        ["2026-11-13T11:00:00Z", "2026-11-13T12:00:00Z", "2026-11-13T13:00:00Z"]
    );
    let week = now + 7 * 86_400_000;
    assert_eq!(due("all", last, week).len(), MISSED_MAX);
    assert_eq!(due("all", last, week).last().unwrap(), "2026-11-20T13:00:00Z");
    for missed in ["skip", "once", "all"] {
        let hour = ms("2026-11-13T11:00:00Z");
        assert_eq!(due(missed, last, hour), ["2026-11-13T11:00:00Z"], "on time");
        assert_eq!(due(missed, last, hour + 20_000), ["2026-11-13T11:00:00Z"], "a little late");
        assert_eq!(due(missed, hour, hour + 20_000), [""; 0], "fired already");
        assert_eq!(due(missed, hour, hour - 7_200_000), [""; 0], "the clock went back two hours");
        assert_eq!(due(missed, hour, hour), [""; 0]);
    }
    assert_eq!(schedule("0 * * * *", "UTC", "once").firing(last).key, "2026-11-13T10:00:00Z");
    assert!(schedule("* * * * *", "UTC", "all").next_after(u64::MAX).is_none());
}

proptest! {
    /// Looking back finds the same instants as looking ahead, across every change of clocks.
    #[test]
    fn looking_back_is_looking_ahead(
        start in 1_767_225_600u64..1_830_297_600, hours in 1u64..60,
        line in prop::sample::select(vec!["30 2 * * *", "*/7 * * * *", "0 1-3 * * *", "15,45 * * * *", "0 0 * * *"]),
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "UTC"]),
    ) {
        let (schedule, from) = (schedule(line, zone, "all"), start * 1000);
        let to = from + hours * 3_600_000;
        let next = |at: &u64| schedule.next_after(*at);
        let ahead: Vec<u64> =
            std::iter::successors(schedule.next_after(from), next).take_while(|at| *at <= to).collect();
        prop_assert!(ahead.windows(2).all(|pair| pair[0] < pair[1]));
        let back = schedule.last_between(from, to, usize::MAX);
        prop_assert_eq!(ahead, back);
    }

    #[test]
    fn any_text_is_a_line_or_is_told(text in "[ -~]{0,30}|[0-9*/,LW#@a-z -]{0,20}") {
        let _ = Schedule::new(&json!({"cron": text, "timezone": text}));
    }
}

#[test]
fn where_clocks_jump_over_midnight_nothing_else_fires() {
    // In Chile clocks go from midnight to one o'clock.
    let at = |line: &str| {
        let next = schedule(line, "America/Santiago", "all").next_after(ms("2026-09-05T12:00:00Z"));
        next.map(|at| firing(at).key)
    };
    assert_eq!(at("30 2 * * *").as_deref(), Some("2026-09-06T05:30:00Z"));
    assert_eq!(at("30 0 * * *").as_deref(), Some("2026-09-06T04:00:00Z"), "which was jumped over");
    assert_eq!(at("0 1 * * *").as_deref(), Some("2026-09-06T04:00:00Z"));
}
