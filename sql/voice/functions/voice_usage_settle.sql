-- Counts the usage of a job that has ended. Each request that an attempt completed reports its usage in an event. A killed
-- attempt may lack the event of a request that was charged, so this request counts with unknown cost. `begun` is the
-- number of requests that the job has started; null if the row that counts them is gone.
create or replace function voice_usage_settle(ended job, usage_action text, begun integer) returns void language plpgsql as $$
declare
  reported integer;
begin
  delete from ai_budget_hold where job_id = ended.id;
  with used as (
    insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, audio_seconds, cost, estimated, success)
    select coalesce(ended.owner_id::text, 'api-user'), ended.owner_id, (ended.payload ->> 'key_id')::uuid, usage_action,
      ended.payload ->> 'provider', ended.payload ->> 'model', (e.data ->> 'input_tokens')::bigint, (e.data ->> 'output_tokens')::bigint,
      (e.data ->> 'audio_seconds')::numeric, (e.data ->> 'cost')::numeric, (e.data ->> 'estimated')::boolean,
      (e.data ->> 'success')::boolean
    from job_event e where e.job_id = ended.id and e.kind = 'usage' order by e.seq
    returning 1
  )
  select count(*) into reported from used;
  insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, estimated, success)
  select coalesce(ended.owner_id::text, 'api-user'), ended.owner_id, (ended.payload ->> 'key_id')::uuid, usage_action,
    ended.payload ->> 'provider', ended.payload ->> 'model', 0, 0, true, false
  from generate_series(reported + 1, coalesce(begun, least(ended.attempt, 1)));
end $$;
