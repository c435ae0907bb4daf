-- Confirms a change of address with the token of one of its addresses. Once both are confirmed, the account gets the
-- new address. No row if the token is unknown, used or expired. The outcomes are:
--
-- - `waiting`: the other address must still confirm
-- - `changed`: the account has the new address
-- - `taken`: another account has the new address by now, so the change is dropped
create or replace function email_change_confirm(digest bytea)
returns table (account_id integer, side text, outcome text, old_email text, new_email text, session_id uuid)
language plpgsql as $$
#variable_conflict use_column
declare
  change email_change;
begin
  select * into change from email_change c where email_change_confirm.digest in (c.old_digest, c.new_digest);
  if not found then return; end if;
  perform invites_lock(change.email);
  select a.email into old_email from account a where a.id = change.account_id and a.deleted_at is null and a.is_active
  for update;
  if not found then return; end if;
  -- Rereads under the account's lock, because the change may have been replaced, refused or confirmed meanwhile.
  select * into change from email_change c where c.id = change.id and c.expires_at > now() for update;
  if not found then return; end if;
  side := case when digest = change.old_digest then 'old' else 'new' end;
  if (side = 'old' and change.old_confirmed_at is not null) or (side = 'new' and change.new_confirmed_at is not null) then
    return;
  end if;
  account_id := change.account_id;
  new_email := change.email;
  session_id := change.session_id;
  if change.old_confirmed_at is null and change.new_confirmed_at is null then
    update email_change c set old_confirmed_at = case side when 'old' then now() end,
      new_confirmed_at = case side when 'new' then now() end
    where c.id = change.id;
    outcome := 'waiting';
    return next;
    return;
  end if;
  delete from email_change c where c.id = change.id;
  begin
    -- The new address is verified, because the token was mailed to it.
    update account a set email = new_email, is_verified = true, updated_at = now() where a.id = change.account_id;
    outcome := 'changed';
  exception when unique_violation then
    outcome := 'taken';
  end;
  return next;
end $$;
