-- Stores the words of texts. Each text has an id, a conversation and a content.
create or replace function ai_text_store(ids uuid[], conversations uuid[], contents text[]) returns void language sql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
  delete from ai_text where text_id = any(ids);
  insert into ai_text (text_id, part, conversation_id, space, search)
  select t.id, part, c.id, ai_search_space(c.owner_id, c.user_id), search_vector(page_part(t.content, part))
  from unnest(ids, conversations, contents) t (id, conversation_id, content)
    join ai_conversation c on c.id = t.conversation_id
    cross join generate_series(0, least(7, page_last_part(t.content))) part
  where t.content <> '';
$$;
