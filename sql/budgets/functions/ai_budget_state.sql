-- Returns the budgets of an account and of an API key, with their usage. `defaults` are the settings in the order of the
-- kinds below; 0 means no limit. A null amount means unlimited; budgets of accounts do not apply to admins. `reserved` is
-- the estimate for jobs that have not ended. Usage without a known price costs 0 and counts as unpriced.
create or replace function ai_budget_state(account integer, key uuid, defaults numeric[])
returns table (holder text, kind text, amount numeric, own numeric, used numeric, reserved numeric, unpriced bigint, resets_at timestamptz)
language sql stable
  -- Forces index scans regardless of the statistics, because connections cache plans from when tables were small.
  set enable_seqscan = off as $$
  with period as materialized (
    select day, date_trunc('month', day::timestamp)::date as month from (select (now() at time zone 'utc')::date) today(day)
  ), part as (
    select 'account' as holder, s.day, s.input_tokens + s.output_tokens as tokens, s.cost, s.unpriced
    from ai_usage_sum s
    where s.user_id = account::text and s.owner_id = account and s.day between (select month from period) and (select day from period)
    union all
    select 'key', s.day, s.tokens, s.cost, s.unpriced from ai_key_sum s
    where s.key_id = key and s.day between (select month from period) and (select day from period)
  ), held as (
    select 'account' as holder, tokens, cost from ai_budget_hold where account_id = account
    union all
    select 'key', tokens, cost from ai_budget_hold where key_id = key
  ), each as (
    select * from unnest(array['day_tokens', 'day_cost', 'month_tokens', 'month_cost']) with ordinality kinds(kind, n)
  ), limited as (
    select 'account' as holder, each.kind, each.n, b.amount as own_amount,
      case when not exists (select from account a where a.id = account and a.role = 'admin')
        then nullif(coalesce(b.amount, defaults[each.n]), 0) end as amount
    from each left join ai_budget b on b.account_id = account and b.kind = each.kind
    where account is not null
    union all
    select 'key', each.kind, each.n, b.amount, b.amount
    from each left join ai_budget b on b.key_id = key and b.kind = each.kind
    where key is not null
  )
  select l.holder, l.kind, l.amount, l.own_amount, used.amount, held.amount, used.unpriced,
    (case when l.kind like 'day%' then p.day + 1 else (p.month + interval '1 month')::date end)::timestamp at time zone 'utc'
  from limited l cross join period p
  cross join lateral (
    select coalesce(sum(case when l.kind like '%tokens' then u.tokens else u.cost end), 0) as amount,
      coalesce(sum(u.unpriced), 0)::bigint as unpriced
    from part u where u.holder = l.holder and (l.kind like 'month%' or u.day = p.day)) used
  cross join lateral (
    select coalesce(sum(case when l.kind like '%tokens' then h.tokens else h.cost end), 0) as amount
    from held h where h.holder = l.holder) held
  order by l.holder, l.n
$$;
