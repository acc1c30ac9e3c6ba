words=$(wc -w | tr -d ' ')
printf '%s (%s words)\n' "$HEADLINE" "$words"
