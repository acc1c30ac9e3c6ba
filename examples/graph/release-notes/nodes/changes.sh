printf '{"version": "%s", "changes": ["Search finds parts of words", "The cache is cleaned at night", "The old export is gone"]}\n' "$VERSION"
