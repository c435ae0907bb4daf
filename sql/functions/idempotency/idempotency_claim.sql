-- Takes a key, or answers what became of the request that has it.
create or replace function idempotency_claim(scope text, key text, fingerprint bytea, lock interval)
returns table (fresh boolean, same boolean, status smallint, headers jsonb, body text, job_id uuid)
language plpgsql as $$
#variable_conflict use_column
begin
  insert into idempotency_key as k (scope, key, fingerprint, locked_until)
  values (idempotency_claim.scope, idempotency_claim.key, idempotency_claim.fingerprint, now() + lock)
  on conflict on constraint idempotency_key_pkey do update
    set fingerprint = excluded.fingerprint, locked_until = excluded.locked_until, created_at = now(),
      status = null, headers = null, body = null, job_id = null
    where k.created_at < now() - interval '24 hours'
      or (k.status is null and k.job_id is null and k.locked_until < now());
  fresh := found;
  -- A statement of its own: it sees what the transaction has left that the first one waited for.
  return query select fresh, k.fingerprint = idempotency_claim.fingerprint, k.status, k.headers, k.body, k.job_id
    from idempotency_key k where k.scope = idempotency_claim.scope and k.key = idempotency_claim.key;
end $$;
