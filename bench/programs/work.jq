# Records grouped, sorted, changed, and made into other records.
group_by(.kind) | map({
    kind: .[0].kind,
    names: (map(.name) | sort | unique | length),
    total: (map(.items | map(.price * .count) | add) | add),
    text: (map(.name + "-" + (.id | tostring)) | join(",") | length),
    entries: (map(to_entries | map(select(.key != "items") | {(.key): (.value | tostring)}) | add) | last)
})
