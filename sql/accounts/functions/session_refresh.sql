-- Exchanges a refresh token. A replayed token revokes the session. A session ends `max_lifetime` after its start; null
-- means no limit. `seconds_left` is the remaining lifetime.
create or replace function session_refresh(presented bytea, successor bytea, lifetime interval, max_lifetime interval)
returns table (account_id integer, session_id uuid, role text, replayed boolean, seconds_left integer) language plpgsql as $$
#variable_conflict use_column
declare
  family session;
  token refresh_token;
begin
  select s.* into family from session s join refresh_token t on t.session_id = s.id
  join account a on a.id = s.account_id and a.deleted_at is null
  where t.digest = presented for update of s;
  if not found or family.ended_at is not null or family.created_at + max_lifetime <= now() then return; end if;
  -- Reads under the session's lock, so that the second of two concurrent exchanges sees the first.
  select * into token from refresh_token where digest = presented;
  if token.rotated_at is null then
    if token.expires_at <= now() then return; end if;
  elsif not exists (select from refresh_token t where t.digest = successor and t.session_id = family.id
      and t.rotated_at is null and t.expires_at > now()) then
    -- Also applies after a sign-out, because the access tokens are still valid and another party has the refresh token.
    update session set revoked_at = coalesce(revoked_at, now()), ended_at = now() where id = family.id;
    return query select family.account_id, family.id, '', true, null::integer;
    return;
  end if;
  if family.revoked_at is not null then return; end if;
  if not exists (select from account where id = family.account_id and is_active) then return; end if;
  if token.rotated_at is null then
    update refresh_token set rotated_at = now() where digest = presented;
    insert into refresh_token (digest, session_id, expires_at)
    values (successor, family.id, least(now() + lifetime, family.created_at + max_lifetime));
  end if;
  return query select a.id, family.id, a.role, false,
    floor(extract(epoch from family.created_at + max_lifetime - now()))::integer from account a where a.id = family.account_id;
end $$;
