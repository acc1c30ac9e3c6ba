use super::*;

fn channels() -> Channels {
    Channels::new(vec![ChannelType {
        name: "slack".to_owned(),
        events: vec![EventType {
            name: "message".to_owned(),
            description: "Somebody wrote something.".to_owned(),
            ids: vec!["channel_id".to_owned(), "user_id".to_owned()],
        }],
        actions: vec![ActionType {
            name: "send_message".to_owned(),
            description: "Writes something.".to_owned(),
            input: json!({"type": "object"}),
            output: json!({"type": "object"}),
        }],
    }])
}

fn message(channel: &str, user: &str, text: &str) -> Message {
    Message {
        channel: "slack".to_owned(),
        event: "message".to_owned(),
        id: "1700000000.1".to_owned(),
        text: text.to_owned(),
        user: Some(user.to_owned()),
        thread: Some("1700000000.0".to_owned()),
        mentions_bot: text.contains("@cairn"),
        ids: [("channel_id", channel), ("user_id", user), ("channel_name", "support")]
            .map(|(name, id)| (name.to_owned(), id.to_owned()))
            .into(),
        payload: json!({"ts": "1700000000.1"}),
    }
}

fn watch(config: Value) -> Result<Arc<dyn Messages>, String> {
    match Channel::new(channels()).watch(&config) {
        Ok(Watch::Messages(messages)) => Ok(messages),
        Ok(Watch::Unconnected(why)) => Err(format!("unconnected: {why}\n")),
        Ok(_) => Err("watched in another way".to_owned()),
        Err(faults) => {
            Err(faults.iter().map(|f| format!("{}: {}\n", f.field, f.message)).collect())
        }
    }
}

fn fits(config: &Value, message: &Message) -> bool {
    let whole = json!({"channel": "slack", "event": "message", "match": config});
    watch(whole).unwrap().firing(message).is_some()
}

#[test]
fn filters_decide_what_fires() {
    let (here, there) = (message("C1", "U1", "My Disk is full"), message("C2", "U2", "hi @cairn"));
    let list = json!([{"id": "C1", "name": "support"}]);
    let table = [
        (json!({}), true, true),
        (json!({"channel_id": list}), true, false),
        (json!({"channel_id": list.to_string()}), true, false),
        (json!({"channel_id": ["C1", "C2"]}), true, true),
        (json!({"channel_id": "C2"}), false, true),
        (json!({"channel_id": []}), true, true),
        (json!({"mode": "whitelist", "channel_id": list, "user_id": ["U2"]}), false, false),
        (json!({"mode": "blacklist", "channel_id": list}), false, true),
        (json!({"mode": "blacklist", "channel_id": list, "user_id": ["U2"]}), false, false),
        (json!({"text_contains": "DISK"}), true, false),
        (json!({"mention_bot": true}), false, true),
        (json!({"mention_bot": false}), true, false),
        (json!({"mode": "blacklist", "channel_id": list, "mention_bot": true}), false, true),
        (json!({"user_id": [{"id": "U", "name": "U1"}]}), false, false),
    ];
    for (config, first, second) in table {
        assert_eq!((fits(&config, &here), fits(&config, &there)), (first, second), "{config}");
    }
}

#[test]
fn filters_that_are_switched_off_let_everything_through() {
    let config = json!({"channel": "slack", "match_enabled": false, "match": {"channel_id": ["C9"]}, "target": "#other"});
    assert!(watch(config).unwrap().firing(&message("C1", "U1", "x")).is_some());
    let target = |target: &str| watch(json!({"channel": "slack", "target": target})).unwrap();
    assert!(target("#support").firing(&message("C1", "U1", "x")).is_some());
    assert!(target("#other").firing(&message("C1", "U1", "x")).is_none());
}

#[test]
fn a_message_is_known_by_its_id() {
    let watched = watch(json!({"channel": "slack", "reply_source": false})).unwrap();
    let firing = watched.firing(&message("C1", "U1", "x")).unwrap();
    assert_eq!(firing.key, "message/1700000000.1");
    assert_eq!(firing.payload, json!({"ts": "1700000000.1"}));
    assert_eq!(firing.event["text"], "x");
    assert!(!watched.replies());
    let other = Message { channel: "telegram".to_owned(), ..message("C1", "U1", "x") };
    assert!(watched.firing(&other).is_none());
    let other = Message { event: "reaction".to_owned(), ..message("C1", "U1", "x") };
    assert!(watched.firing(&other).is_none());
}

#[test]
fn what_is_not_there_is_told() {
    let told = |config: Value| watch(config).err().unwrap_or_default();
    let all = [
        json!({"channel": "telegram"}),
        json!({"channel": "slack", "event": "reaction"}),
        json!({"channel": "slack", "match": {"team_id": ["T1"]}}),
        json!({"channel": "slack", "match": {"mode": "greylist", "text_contains": 1, "mention_bot": "yes", "channel_id": 7, "user_id": "[{"}}),
    ];
    insta::assert_snapshot!(all.map(told).concat(), @r"
    unconnected: the channel `telegram` is not connected; there are slack
    unconnected: `slack` has no event `reaction`; there are message
    unconnected: `message` cannot be filtered by `team_id`; there are channel_id, user_id
    match.channel_id: `channel_id` is not a list of ids
    match.mention_bot: `mention_bot` is not yes or no
    match.mode: `mode` is neither of the two
    match.text_contains: `text_contains` is not text
    match.user_id: `user_id` is not a list of ids
    ");
    // Which channels are connected is no business of the compiler.
    assert_eq!((Channel::new(channels()).kind().check)(&json!({"channel": "telegram"})), []);
}
