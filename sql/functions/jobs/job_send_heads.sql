-- Marks the oldest waiting message of each idle actor as sent; the caller holds the actors' locks and sends them.
create or replace function job_send_heads(actors text[]) returns uuid[] language sql
as $$
  with head as (
    select h.id from unnest(actors) as a(actor)
    cross join lateral (
      select id from job where job.actor = a.actor and status = 'queued' order by ordinal limit 1) h
    where not exists (select from job live where live.actor = a.actor and live.status in ('sent', 'running'))
  ), sent as (
    update job set status = 'sent', delivery = delivery + 1 from head where job.id = head.id returning job.id
  )
  select coalesce(array_agg(id), '{}') from sent
$$;
