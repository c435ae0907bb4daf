-- Returns the summary of a conversation as public JSON.
create or replace function ai_conversation_json(c ai_conversation) returns json language sql stable parallel safe
  return json_build_object('id', c.id, 'title', c.title, 'message_count', c.message_count,
    'last_activity', iso(c.updated_at), 'provider', c.provider, 'model', c.model);
