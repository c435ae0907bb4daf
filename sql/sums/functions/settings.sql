-- Creates the triggers that maintain counts and sums, because recomputing them costs more the more rows there are.
--
-- A function `SUMS_of(row)` returns the contribution of a row, as rows of the table SUMS. In that table, bigint and
-- numeric columns are sums, and the others are their key. The value of a sum is the total of all rows of its key.
-- Triggers add the changes of a statement. They merge the unlocked rows of each changed key into one, or into none if
-- all sums are 0. So no transaction waits for another, and reads are exact. A key has no more rows than concurrent
-- transactions that changed it.
--
-- The trigger functions are generated here from one template. With a cached plan, each takes 0.1 to 0.2 ms per row. A
-- single generic function that builds its statement each time takes 1 ms. The settings force index scans regardless of
-- the statistics, because connections cache plans from when tables were small.
do $make$
declare
  target record;
begin
  for target in
    select source, sums, event, transitions, changed,
      string_agg(name, ', ') filter (where not is_sum) as key,
      string_agg(name, ', ') filter (where is_sum) as columns,
      string_agg(format('sum(sign * %1$s) as %1$s', name), ', ') filter (where is_sum) as changes,
      string_agg(format('sum(%1$s) over same as %1$s', name), ', ') filter (where is_sum) as totals,
      string_agg(format('%1$s = total.%1$s', name), ', ') filter (where is_sum) as assignments,
      string_agg(format('%s <> 0', name), ' or ') filter (where is_sum) as is_left
    from (values
      -- Updates are ignored: they never change what a conversation contributes, and each turn updates the row several
      -- times.
      ('ai_conversation', 'ai_conversation_count', '{insert,delete}'::text[]),
      ('ai_sentiment', 'ai_sentiment_sum', '{insert,update,delete}'),
      ('ai_usage', 'ai_usage_sum', '{insert,update,delete}'),
      ('ai_usage', 'ai_key_sum', '{insert,update,delete}'),
      ('blog_post', 'blog_post_count', '{insert,update,delete}'),
      ('comms_send', 'comms_send_count', '{insert,update,delete}'),
      ('document', 'document_sum', '{insert,update,delete}'),
      ('document', 'document_tag_count', '{insert,update,delete}'),
      ('payment_subscription', 'payment_subscription_count', '{insert,update,delete}'),
      ('payment_transaction', 'payment_sum', '{insert,update,delete}'),
      ('webhook_delivery', 'webhook_pending_sum', '{insert,update,delete}')
    ) kept (source, sums, events) cross join unnest(events) event
    cross join lateral (
      select string_agg(format('%s table as %s', age, rows), ' ') as transitions,
        string_agg(format('select %s as sign, c.* from %s r, %s_of(row(r.*)::%s) c', sign, rows, sums, source), ' union all ') as changed
      from (values ('added', 'new', 1, 'delete'), ('removed', 'old', -1, 'insert')) side (rows, age, sign, absent)
      where event <> absent) sides
    cross join lateral (
      select quote_ident(attname) as name, atttypid in ('bigint'::regtype, 'numeric'::regtype) as is_sum
      from pg_attribute where attrelid = sums::regclass and attnum > 0 and not attisdropped and attname <> 'id') columns
    group by source, sums, event, transitions, changed
  loop
    execute format($text$
      create or replace function %2$s_%3$s() returns trigger language plpgsql
      set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $body$
      begin
        with change as (
          select * from (select null::bigint as id, %6$s, %8$s from (%5$s) changed group by %6$s) each where %11$s
        ), free as (
          select id, %6$s, %7$s from (select %6$s from change) keys join %2$s kept using (%6$s) for update of kept skip locked
        ), total as (
          select id, %6$s, %9$s, id is not distinct from min(id) over same as is_first
          from (select id, %6$s, %7$s from change union all select * from free) rows window same as (partition by %6$s)
        )
        merge into %2$s kept using (select *, is_first and (%11$s) as stays from total) total on kept.id = total.id
        when matched and not stays then delete
        when matched then update set %10$s
        when not matched and stays then insert (%6$s, %7$s) values (%6$s, %7$s);
        return null;
      end $body$;
      create or replace trigger %2$s_%3$s after %3$s on %1$s referencing %4$s
        for each statement execute function %2$s_%3$s();
    $text$, target.source, target.sums, target.event, target.transitions, target.changed, target.key, target.columns, target.changes,
      target.totals, target.assignments, target.is_left);
  end loop;
end $make$;
