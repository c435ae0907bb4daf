-- Maintains the number of visible messages per conversation, see ai_message.is_visible. The settings force
-- lookups by key, because connections cache plans from when the tables were small.
create or replace function ai_messages_count() returns trigger language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  more uuid[] := '{}';
  fewer uuid[] := '{}';
begin
  if tg_op <> 'DELETE' then
    more := array(select conversation_id from added where is_visible);
  end if;
  if tg_op <> 'INSERT' then
    fewer := array(select conversation_id from removed where is_visible);
  end if;
  update ai_conversation c set message_count = c.message_count + change.n
  from (
    select id, sum(n) as n from (
      select id, 1 as n from unnest(more) id union all select id, -1 from unnest(fewer) id) each
    group by id having sum(n) <> 0) change
  where c.id = change.id;
  return null;
end $$;

create or replace trigger ai_message_added after insert on ai_message referencing new table as added
  for each statement execute function ai_messages_count();

create or replace trigger ai_message_changed after update on ai_message referencing old table as removed new table as added
  for each statement execute function ai_messages_count();

create or replace trigger ai_message_removed after delete on ai_message referencing old table as removed
  for each statement execute function ai_messages_count();
