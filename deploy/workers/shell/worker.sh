#!/usr/bin/env bash
# Usage: MILLRACE_URL=... MILLRACE_KEY=... worker.sh QUEUE FOLDER
# Runs the jobs of a queue one after another. Each executable in FOLDER is a task: it reads arguments from stdin and prints
# the result, both as JSON. An exit status other than 0 fails the try; 65 (EX_DATAERR) fails the job.
queue=$1 folder=$2 dir=$(mktemp -d) stopping=
uuid() { uuidgen 2>/dev/null || cat /proc/sys/kernel/random/uuid; }
call() { # METHOD PATH NAME: sends stdin, writes the answer to the file NAME. Other users could read a key in the arguments.
  curl -sS -m 45 -X "$1" "$MILLRACE_URL/api/v1/$2" -H @<(echo "Authorization: Bearer $MILLRACE_KEY") \
    -H 'Content-Type: application/json' --data-binary @- -o "$dir/$3" -w '%{http_code}' >"$dir/$3.status"
}
persist() { # PATH NAME: sends the file NAME.json until the service answers. Signals interrupt `wait`, but not curl.
  until call POST "$1" "$2" <"$dir/$2.json" & wait $! && grep -qE '^(2|4[^2]|422)' "$dir/$2.status"; do sleep 2 & wait $!; done
}
renew() { # PID: renews the lease. Kills the process if its job is cancelled or runs elsewhere.
  until read -rt "${RENEW_SECONDS-10}" <> <(:); do
    jq -c '{jobs: [{job_id, attempt}]}' "$dir/job" | call POST "workers/leases/$lease" lease || continue
    if jq -e '.code == "lease.missing" or (.cancelled + .superseded | length > 0)' "$dir/lease" >"$dir/stopped"; then kill "$1"; fi
  done
}
stop() { trap '' TERM INT; kill $(jobs -p) 2>/dev/null; call DELETE "workers/leases/$lease" last </dev/null; rm -r "$dir"; exit "${1-0}"; }

lease=$(uuid)
while [ -z "$stopping" ]; do
  trap stop TERM INT
  jq -n --arg worker "$HOSTNAME:$$" --arg lease "$lease" --arg claim "$(uuid)" --arg tasks "$(ls "$folder")" \
    '{$worker, lease_id: $lease, claim_id: $claim, tasks: ($tasks / "\n"), wait_seconds: 30}' >"$dir/claim.json"
  persist "worker-queues/$queue/claims" claim
  if grep -q ^4 "$dir/claim.status"; then cat "$dir/claim" >&2; stop 1; fi
  if ! jq -ce '.jobs[0]' "$dir/claim" >"$dir/job"; then sleep 1 & wait $!; continue; fi
  jq -c .args "$dir/job" >"$dir/args"
  "$folder/$(jq -r .task "$dir/job")" <"$dir/args" >"$dir/out" 2>"$dir/err" & command=$!
  echo false >"$dir/stopped"; renew $command & heartbeat=$!
  wait $command; code=$?
  trap stopping=1 TERM INT
  kill $heartbeat
  grep -q true "$dir/stopped" && code=-1
  while :; do
    jq -c --argjson code $code --rawfile out "$dir/out" --rawfile err "$dir/err" '{items: [{job_id, attempt} +
      if $code == 0 then {done: {result: (if $out == "" then null else $out | try fromjson catch $out end)}}
      elif $code < 0 then {release: {}}
      else {failed: {detail: "Exit status \($code): \($err[-2000:])", retry: ($code != 65)}} end]}' "$dir/job" >"$dir/report.json"
    persist "workers/leases/$lease/reports" report
    if [ $code != 0 ] || ! jq -re '.items[0].reason?' "$dir/report" >"$dir/err"; then break; fi
    code=65
  done
  if grep -q 404 "$dir/report.status"; then lease=$(uuid); fi
done
stop
