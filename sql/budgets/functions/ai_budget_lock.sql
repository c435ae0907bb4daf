-- Returns the limited budgets of an account and of an API key. `exceeded` refuses a new job, because usage and running
-- jobs have used up the budget. Locks the account and the key, so that concurrent jobs cannot exceed a budget together.
-- Without a budget it locks nothing and reads no usage.
create or replace function ai_budget_lock(account integer, key uuid, defaults numeric[])
returns table (holder text, kind text, amount numeric, used numeric, reserved numeric, resets_at timestamptz, exceeded boolean)
language plpgsql as $$
#variable_conflict use_column
begin
  if 0 = all (defaults) and not exists (select from ai_budget b where b.account_id = account)
      and not exists (select from ai_budget b where b.key_id = key) then
    return;
  end if;
  perform from account a where a.id = account for no key update;
  perform from api_key k where k.id = key for no key update;
  return query select s.holder, s.kind, s.amount, s.used, s.reserved, s.resets_at, s.used + s.reserved >= s.amount
    from ai_budget_state(account, key, defaults) s where s.amount is not null;
end $$;
