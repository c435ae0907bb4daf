-- Stores the words of messages once they are visible, and deletes those of deleted messages.
create or replace function ai_messages_index() returns trigger language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  if tg_op = 'DELETE' then
    delete from ai_text where text_id in (select id from removed);
  else
    perform ai_text_store(array_agg(id), array_agg(conversation_id), array_agg(content))
    from added where status <> 'pending' and content <> '' having count(*) > 0;
  end if;
  return null;
end $$;

-- Stores the words of messages that became visible or changed. It permits hash joins: a switch of branches changes all
-- messages of a conversation, and their old and new rows have no index.
create or replace function ai_messages_reindex() returns trigger language plpgsql as $$
begin
  perform ai_text_store(array_agg(a.id), array_agg(a.conversation_id), array_agg(a.content))
  from added a join removed r using (id)
  where a.status <> 'pending' and (r.status = 'pending' or r.content <> a.content) having count(*) > 0;
  return null;
end $$;

create or replace trigger ai_message_indexed after insert on ai_message referencing new table as added
  for each statement execute function ai_messages_index();

create or replace trigger ai_message_reindexed after update on ai_message referencing old table as removed new table as added
  for each statement execute function ai_messages_reindex();

create or replace trigger ai_message_unindexed after delete on ai_message referencing old table as removed
  for each statement execute function ai_messages_index();
