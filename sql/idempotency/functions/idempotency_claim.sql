-- Claims a key for the rest of the transaction, or returns the state of the request that has it. `storeKey`
-- (sql/idempotency/idempotency.ts) stores the key with its response. States:
--
-- - `first`: unused for 24 hours
-- - `running`: claimed by an open transaction
-- - `other`: used for another request
-- - `repeated`: used for this request
-- - `gone`: used for this request, whose job was deleted before the response was read
--
-- A repeated request writes an empty record to the WAL. So its commit waits for the synchronous standby, which then
-- also has the commit of the first request. Otherwise the response could rely on a commit that only the primary has,
-- and a failover would lose it. This happens if a crash or pg_terminate_backend interrupts the first request's wait
-- (https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION-HA).
create or replace function idempotency_claim(scope text, key text, fingerprint bytea)
returns table (state text, status smallint, headers jsonb, body text, job_id uuid)
language plpgsql as $$
#variable_conflict use_column
begin
  if not pg_try_advisory_xact_lock(hashtextextended('millrace.key:' || idempotency_claim.scope || ' ' || idempotency_claim.key, 0)) then
    state := 'running';
    return next;
    return;
  end if;
  -- A separate statement, so that it sees the commit of the previous lock holder.
  return query select case when k.fingerprint <> idempotency_claim.fingerprint then 'other'
        when k.status is null and not exists (select from job where id = k.job_id) then 'gone'
        else 'repeated' end,
      k.status, k.headers, k.body, k.job_id
    from idempotency_key k
    where k.scope = idempotency_claim.scope and k.key = idempotency_claim.key and k.created_at >= now() - interval '24 hours';
  if not found then
    state := 'first';
    return next;
  else
    perform pg_logical_emit_message(true, 'millrace.repeated', '');
  end if;
end $$;
