-- Returns a queue as public JSON, without its secret.
create or replace function worker_queue_json(q worker_queue) returns json language sql stable
as $$
  select json_build_object('name', q.name, 'account_id', q.account_id, 'organization_id', q.organization_id,
    'description', q.description, 'open', q.is_open,
    'endpoint', case when q.endpoint_url is not null then json_build_object('url', q.endpoint_url, 'concurrency', q.endpoint_concurrency) end,
    'tasks', (select coalesce(json_agg(worker_task_json(t) order by t.name), '[]') from worker_task t where t.queue = q.name),
    'queued', coalesce(live.queued, 0), 'running', coalesce(live.running, 0), 'waiting', coalesce(live.waiting, 0),
    'workers', (select count(*) from worker_lease where queue = q.name and expires_at > now() and not info ? 'push'),
    'paused_at', iso(c.paused_at), 'created_at', iso(q.created_at), 'updated_at', iso(q.updated_at))
  from (select sum(queued) as queued, sum(running) as running, sum(waiting) as waiting from job_count where job_count.queue = q.name) live
  left join queue_control c on c.queue = q.name
$$;
