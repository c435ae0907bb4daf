-- Deletes what workers need of deleted queues. Their jobs remain, see `listStrandedJobs`.
create or replace function worker_queue_cleanup() returns trigger language plpgsql as $$
begin
  delete from worker_lease using gone where worker_lease.queue = gone.name;
  delete from worker_delivery using gone where worker_delivery.queue = gone.name;
  delete from queue_control using gone where queue_control.queue = gone.name;
  return null;
end $$;

create or replace trigger worker_queue_cleanup after delete on worker_queue referencing old table as gone
  for each statement execute function worker_queue_cleanup();
