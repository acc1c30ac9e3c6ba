//! A setting or a secret of a workflow, in either order of words: `NAME --workflow W`, or `W NAME`.

use cairn_api::error::{Error, Result};

/// What the words of a command line name.
pub(super) struct Named<'a> {
    /// The workflow, when one is named.
    pub(super) workflow: Option<&'a str>,
    /// The setting or secret.
    pub(super) name: &'a str,
    /// What follows the name.
    pub(super) rest: &'a [&'a str],
}

/// Reads the words behind a command that takes a name and so many more words. One word more is a
/// workflow, in front of them.
pub(super) fn read<'a>(
    words: &'a [&'a str],
    workflow: Option<&'a str>,
    (command, more): (&str, &[&str]),
) -> Result<Named<'a>> {
    let wrong = |message: &str| {
        let rest: String = more.iter().map(|word| format!(" {word}")).collect();
        Error::Usage {
            message: message.to_owned(),
            suggestion: format!(
                "write `{command} NAME{rest} --workflow WORKFLOW` or `{command} WORKFLOW NAME{rest}`"
            ),
        }
    };
    let count = more.len() + 1;
    match (words, workflow) {
        ([name, rest @ ..], workflow) if words.len() == count => Ok(Named { workflow, name, rest }),
        ([of, name, rest @ ..], None) if words.len() == count + 1 => {
            Ok(Named { workflow: Some(of), name, rest })
        }
        ([_, _, ..], Some(_)) if words.len() > count => Err(wrong("the workflow is named twice")),
        _ => Err(wrong(&format!("{} words are missing", count.saturating_sub(words.len()).max(1)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_words_mean_the_same() {
        let told = |words: &[&str], workflow: Option<&str>, more: &[&str]| {
            read(words, workflow, ("cairn env set", more)).map_or_else(
                |error| error.to_string(),
                |named| format!("{:?} {} {:?}", named.workflow, named.name, named.rest),
            )
        };
        let value = ["VALUE"];
        assert_eq!(told(&["w", "N", "v"], None, &value), r#"Some("w") N ["v"]"#);
        assert_eq!(told(&["N", "v"], Some("w"), &value), r#"Some("w") N ["v"]"#);
        assert_eq!(told(&["N"], None, &[]), "None N []");
        assert_eq!(told(&["w", "N"], None, &[]), r#"Some("w") N []"#);
        assert_eq!(told(&["w", "N", "v"], Some("w"), &value), "the workflow is named twice");
        assert_eq!(told(&["N"], Some("w"), &value), "1 words are missing");
    }
}
