-- Stores the words of a new title of a conversation, see also ai_messages_index.
create or replace function ai_titles_index() returns trigger language plpgsql as $$
begin
  perform ai_text_store(array[new.id], array[new.id], array[new.title]);
  return null;
end $$;

create or replace trigger ai_conversation_reindexed after update of title on ai_conversation
  for each row when (new.title <> old.title) execute function ai_titles_index();
