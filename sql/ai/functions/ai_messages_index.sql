-- Stores the words of messages that arrive complete, as in the copy of a branch, with the titles of their conversations.
-- A turn stores the words of its question when its answer ends, because the answer must not wait for them. Deletes the
-- words of deleted messages.
create or replace function ai_messages_index() returns trigger language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  if tg_op = 'DELETE' then
    delete from ai_text where text_id in (select id from removed);
  elsif not exists (select from added where status = 'pending') then
    perform ai_text_store(array_agg(t.id), array_agg(t.conversation_id), array_agg(t.content)) from (
      select id, conversation_id, content from added
      union all
      select c.id, c.id, c.title from ai_conversation c where c.id in (select conversation_id from added)) t
    having count(*) > 0;
  end if;
  return null;
end $$;

-- Stores the words of answers that ended or changed. The first end of an answer also stores its question, and the title of
-- its conversation. Permits hash joins: a switch of branches changes all messages of a conversation, and their old and new
-- rows have no index.
create or replace function ai_messages_reindex() returns trigger language plpgsql as $$
begin
  perform ai_text_store(array_agg(t.id), array_agg(t.conversation_id), array_agg(t.content)) from (
    with changed as materialized (
      select a.id, a.conversation_id, a.parent_id, a.content, r.status = 'pending' as has_ended
      from added a join removed r using (id)
      where a.status <> 'pending' and (r.status = 'pending' or r.content <> a.content))
    select id, conversation_id, content from changed
    union all
    select q.id, q.conversation_id, q.content from changed c join ai_message q on q.id = c.parent_id
    where c.has_ended and not exists (select from ai_text x where x.text_id = q.id)
    union all
    select distinct v.id, v.id, v.title from changed c join ai_conversation v on v.id = c.conversation_id
    where c.has_ended and not exists (select from ai_text x where x.text_id = v.id)) t
  having count(*) > 0;
  return null;
end $$;

create or replace trigger ai_message_indexed after insert on ai_message referencing new table as added
  for each statement execute function ai_messages_index();

create or replace trigger ai_message_reindexed after update on ai_message referencing old table as removed new table as added
  for each statement execute function ai_messages_reindex();

create or replace trigger ai_message_unindexed after delete on ai_message referencing old table as removed
  for each statement execute function ai_messages_index();
