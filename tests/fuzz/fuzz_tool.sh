# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced: the driver of public calls under the tools that are preloaded, and what is looked at after each program.
#
# The recorder does not see hoard_malloc's family, whose blocks realloc takes in another thread, builders, what reapMove moves,
# and what a function of reapOnLimit does; and with it libc's own allocations in an entered reap are that reap's
# (libreap-trace(7)).
unseen='--without hoard_malloc --without reapEnter --without reapMove --without reapOnLimit --without reapAppend
    --without reapAppendString --without reapAppendf --without reapExtend --without reapFinish'

# under TOOL DIRECTORY BUILD PROGRAM ARGUMENT...: the tool writes to the directory, which is for it alone.
under() {
    tool=$1 to=$2 libs=$(cd "$3/.libs" && pwd) analyse=$(cd "$3" && pwd)/tools/trace/reap-analyse program=$4
    shift 4
    case $tool in
    preload) "$program" --preload "$libs/libreap-malloc.so" "$@" ;;
    # The recording is whole, each free in it is of an object that it has, and none is left but libc's. A child that is
    # forked for a mistake has one, too.
    recorder)
        # shellcheck disable=SC2016,SC2086  # for the shell of --after; words
        REAP_TRACE=$to/t.%p TO=$to ANALYSE=$analyse "$program" --preload "$libs/libreap-trace.so:$libs/libreap-malloc.so" \
            $unseen --without 'reapAppend of its own' --without 'reapAppendf, wrongly' --without 'a builder, shared' \
            --without 'reapMove, shared' --after '
                [ -e "$TO/t.$1" ] || exit 0
                "$ANALYSE" --json "$TO/t.$1" >"$TO/json" 2>"$TO/remarks" && [ ! -s "$TO/remarks" ] &&
                    grep -q "\"unknown_frees\": 0," "$TO/json" && grep -qE "\"objects_at_end\": 1?[0-9]," "$TO/json"
                status=$?
                [ $status = 0 ] || { echo "mismatch: the recording"; grep -E "_at_end|unknown" "$TO/json"; cat "$TO/remarks"; }
                rm -f "$TO"/t.*
                exit $status' "$@"
        ;;
    # The profile is whole.
    profile)
        # shellcheck disable=SC2016
        REAP_PROFILE=$to/profile REAP_PROFILE_BYTES=256 TO=$to "$program" --preload \
            "$libs/libreap-malloc.so $libs/libreap-ask.so $libs/libreap-profile.so" \
            --after '[ -s "$TO/profile" ] && gzip -t <"$TO/profile" && rm "$TO/profile" || { echo "mismatch: the profile"; exit 1; }' "$@"
        ;;
    esac
}
