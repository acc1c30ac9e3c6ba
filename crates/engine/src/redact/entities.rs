//! The names that HTML has for signs: those of ASCII, and those of Latin-1.

/// Signs with a name. What HTML took without its `;` from the beginning comes first.
const NAMED: &[(&str, char)] = &[
    ("quot", '"'),
    ("QUOT", '"'),
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("COPY", '©'),
    ("REG", '®'),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("apos", '\''),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("UnderBar", '_'),
    ("grave", '`'),
    ("DiacriticalGrave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("verbar", '|'),
    ("vert", '|'),
    ("VerticalLine", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
    ("euro", '€'),
];

/// How many of those need no `;`.
const LOOSE: usize = 10;

/// The names of U+00A0 to U+00FF, in that order. None of them needs a `;`.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

/// The sign that a name stands for.
pub(super) fn sign(name: &str) -> Option<char> {
    let named = NAMED.iter().find(|(known, _)| *known == name).map(|(_, sign)| *sign);
    named.or_else(|| latin(name))
}

/// The sign that the longest beginning of a text stands for that needs no `;`, and its length.
pub(super) fn loose(text: &str) -> Option<(char, usize)> {
    let named = NAMED.iter().take(LOOSE).map(|(name, sign)| (*name, Some(*sign)));
    let all = named.chain(LATIN.iter().map(|name| (*name, latin(name))));
    let begun = all.filter(|(name, _)| text.starts_with(name));
    let (name, sign) = begun.max_by_key(|(name, _)| name.len())?;
    Some((sign?, name.len()))
}

fn latin(name: &str) -> Option<char> {
    let place = LATIN.iter().position(|known| *known == name)?;
    char::from_u32(0xA0 + u32::try_from(place).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_their_signs() {
        for (name, wanted) in [
            ("sol", Some('/')),
            ("LT", Some('<')),
            ("nbsp", Some('\u{a0}')),
            ("eacute", Some('é')),
            ("yuml", Some('ÿ')),
            ("no", None),
        ] {
            assert_eq!(sign(name), wanted, "{name}");
        }
        assert_eq!(loose("notx"), Some(('¬', 3)));
        assert_eq!(loose("ampere"), Some(('&', 3)));
        assert_eq!(loose("sol"), None);
    }
}
