-- Returns the declaration of a task as public JSON.
create or replace function worker_task_json(t worker_task) returns json language sql stable
as $$
  select json_build_object('name', t.name, 'args', t.args_schema, 'result', t.result_schema, 'max_tries', t.max_tries,
    'timeout_seconds', t.timeout_seconds, 'stall_seconds', t.stall_seconds, 'limit', t.most_running, 'secrets', t.secrets)
$$;
