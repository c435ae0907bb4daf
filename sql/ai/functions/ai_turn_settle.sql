-- Settles a turn when its job ends. The task `ai.chat` declares this function. Each attempt reports its usage in its
-- own event. Without any report, for example because the worker was killed, the output is estimated from the text
-- received, at four characters per token.
create or replace function ai_turn_settle(ended job) returns void language plpgsql as $$
declare
  message uuid := (ended.payload ->> 'message_id')::uuid;
  answer text := case when ended.status = 'done' then ended.result ->> 'content' else ai_turn_text(ended.id) end;
  usage record;
begin
  select count(*) as attempts, coalesce(sum((u ->> 'input')::bigint), 0) as input, coalesce(sum((u ->> 'cached')::bigint), 0) as cached,
    coalesce(sum((u ->> 'output')::bigint), 0) as output, coalesce(sum((u ->> 'reasoning')::bigint), 0) as reasoning,
    -- A failed attempt without tokens costs nothing, even if its model has no known price.
    case when count(*) filter (where u ->> 'cost' is null and (u ->> 'input')::bigint + (u ->> 'output')::bigint > 0) = 0
      then sum((u ->> 'cost')::numeric) end as cost,
    coalesce(bool_or((u ->> 'estimated')::boolean), false) as estimated,
    (array_agg(u ->> 'provider' order by seq desc))[1] as provider, (array_agg(u ->> 'model' order by seq desc))[1] as model
  into usage from (select e.seq, e.data as u from job_event e where e.job_id = ended.id and e.kind = 'usage') reports;

  delete from ai_budget_hold where job_id = ended.id;
  if ended.attempt > 0 then
    insert into ai_usage (user_id, owner_id, key_id, conversation_id, message_id, action, vendor, model, input_tokens, cached_tokens,
      output_tokens, reasoning_tokens, cost, estimated, success)
    values (ended.payload ->> 'user_id', (select id from account where id = (ended.payload ->> 'owner_id')::integer),
      (ended.payload ->> 'key_id')::uuid, (ended.payload ->> 'conversation_id')::uuid, message, 'chat', coalesce(usage.provider, ended.payload ->> 'provider'),
      coalesce(usage.model, ended.payload ->> 'model'), usage.input, usage.cached,
      usage.output + case when usage.attempts = 0 then (length(answer) + 3) / 4 else 0 end, usage.reasoning,
      case when usage.attempts > 0 then usage.cost end, usage.estimated or usage.attempts = 0, ended.status = 'done')
    on conflict on constraint ai_usage_message_id_key do nothing;
  end if;

  update ai_message set content = answer, settled_at = now(), response_ms = (ended.result ->> 'response_time_ms')::float8,
    finish_reason = ended.result ->> 'finish_reason', reasoning = ended.result ->> 'reasoning', tool_calls = ended.result -> 'tool_calls',
    rag_sources = ended.result -> 'rag_sources',
    status = case ended.status when 'done' then 'complete' when 'cancelled' then 'stopped' else 'failed' end,
    error_detail = ended.error_detail, provider = coalesce(usage.provider, provider), model = coalesce(usage.model, model)
  where id = message and status = 'pending';
  if found then
    update ai_conversation set updated_at = now(),
      unscored_since = case when ended.status = 'done' then now() else unscored_since end,
      provider = case when ended.status = 'done' then usage.provider else provider end,
      model = case when ended.status = 'done' then usage.model else model end,
      last_response_ms = case when ended.status = 'done' then (ended.result ->> 'response_time_ms')::float8 else last_response_ms end
    where id = (ended.payload ->> 'conversation_id')::uuid;
    -- A failed version without content gives way to the one before.
    perform ai_branch_activate(m.conversation_id, ai_branch_leaf((
      select v.id from ai_message v where v.parent_id = m.parent_id and (v.content <> '' or v.tool_calls is not null)
      order by v.ordinal desc limit 1)))
    from ai_message m
    where m.id = message and m.status in ('failed', 'stopped') and m.content = '' and m.is_active
      and not exists (select from ai_message c where c.parent_id = m.id)
      and exists (select from ai_message v where v.parent_id = m.parent_id and (v.content <> '' or v.tool_calls is not null));
  end if;
end $$;
