-- True if the owner of a queue is active. Jobs of other queues wait.
create or replace function worker_queue_is_active(q worker_queue) returns boolean language sql stable
as $$
  select case
    when q.account_id is not null then exists (select from account where id = q.account_id and is_active and deleted_at is null)
    when q.organization_id is not null then exists (select from organization where id = q.organization_id and is_active and deleted_at is null)
    else true end
$$;
