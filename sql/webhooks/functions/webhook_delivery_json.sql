-- Returns a delivery as public JSON for lists.
create or replace function webhook_delivery_json(d webhook_delivery) returns json language sql stable parallel safe
  return json_build_object('id', d.id, 'message_id', d.message_id, 'type', d.type, 'url', d.url, 'status', d.status,
    'attempts', d.attempts, 'due_at', iso(d.due_at), 'created_at', iso(d.created_at), 'ended_at', iso(d.ended_at),
    'last_answer', d.answers -> -1);
