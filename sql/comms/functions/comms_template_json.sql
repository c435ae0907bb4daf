-- Returns a template as public JSON.
create or replace function comms_template_json(t comms_template) returns json language sql stable parallel safe
  return json_build_object('name', t.name, 'channel', t.channel, 'subject', t.subject, 'text', t.text, 'html', t.html,
    'variables', t.variables, 'created_at', iso(t.created_at), 'updated_at', iso(t.updated_at));
