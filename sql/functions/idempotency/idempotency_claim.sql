-- Takes a key for the rest of the transaction, or answers what became of the request that has it. Nothing is written:
-- the key is kept together with its answer, by idempotency_keep. `first`: nobody has used it for 24 hours; `running`: a
-- transaction has taken it and is still open; `other`: it was used for another request; `repeated`: for this one.
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
  -- A statement of its own: it sees what the transaction has left that had the lock before.
  return query select case when k.fingerprint = idempotency_claim.fingerprint then 'repeated' else 'other' end,
      k.status, k.headers, k.body, k.job_id
    from idempotency_key k
    where k.scope = idempotency_claim.scope and k.key = idempotency_claim.key and k.created_at >= now() - interval '24 hours';
  if not found then
    state := 'first';
    return next;
  end if;
end $$;
