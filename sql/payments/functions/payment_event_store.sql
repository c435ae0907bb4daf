-- Stores an event once. `fresh` is true if the event needs a job, because it is new, or because it was never applied
-- and no live job has it. Otherwise `job_id` is the job that has it, or null if the event was applied.
create or replace function payment_event_store(id text, type text, created_at timestamptz, data jsonb)
returns table (fresh boolean, job_id uuid) language plpgsql as $$
#variable_conflict use_column
begin
  insert into payment_event (id, type, created_at, data)
  values (payment_event_store.id, payment_event_store.type, payment_event_store.created_at, payment_event_store.data)
  on conflict on constraint payment_event_pkey do nothing;
  if found then
    return query select true, null::uuid;
    return;
  end if;
  -- Locks the row, so that only one of two concurrent redeliveries handles the event.
  return query select e.applied_at is null and not exists (
      select from job j where j.id = e.job_id and j.status in ('scheduled', 'available', 'running')),
      case when e.applied_at is null then e.job_id end
    from payment_event e where e.id = payment_event_store.id for update;
end $$;
