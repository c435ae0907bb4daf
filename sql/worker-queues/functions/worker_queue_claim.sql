-- Claims up to `most` jobs of a worker queue for a lease, with the deliveries that wait in `worker_delivery`. Wanted tasks
-- are names of jobs; null wants all. Calls `job_claim` and returns its jobs. Keeps deliveries that it could not complete.
--
-- A suspect is claimed alone, and a lease that runs one gets nothing else: if the worker dies, the suspect is guilty. A
-- claim has at most `most_bytes` of arguments, but at least one job. Jobs beyond that are released.
--
-- `held` says why no job may start now: `limit` of the queue, `lease` for a suspect, or `queue` if it is paused, or the worker is
-- drained. `must_repeat` is true if another transaction holds the lock of
-- a mailbox, or if no delivery led to a job: claim again.
create or replace function worker_queue_claim(queue_name text, lease uuid, wanted text[], most integer, most_bytes integer,
  suspect integer, max_interruptions integer,
  out claims text, out held text, out must_repeat boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  room integer := most;
  most_running integer;
  is_paused boolean;
  -- One claim in twenty begins with a delivery of the lowest priority, which might otherwise never be its turn.
  promoted bigint;
  deliveries bigint[];
  all_mailboxes text[];
  tasks text[];
  mailboxes text[];
  limits integer[];
  firsts bigint[];
  slots integer[];
  again text[];
  excess jsonb;
begin
  must_repeat := false;
  select least(c.most_running, q.endpoint_concurrency), c.paused_at is not null or not worker_queue_is_active(q)
    or q.endpoint_url is not null and exists (select from queue_control push where push.queue = 'push' and push.paused_at is not null)
    or exists (select from worker_lease l where l.id = lease and l.drained_at is not null)
  into most_running, is_paused
  from worker_queue q left join queue_control c on c.queue = q.name where q.name = queue_name;
  if is_paused is not false then
    held := 'queue';
    return;
  end if;
  if exists (select from job where lease_id = lease and status = 'running' and interruptions >= 2 and interruptions >= suspect and queue = queue_name) then
    held := 'lease';
    return;
  end if;
  if most_running is not null then
    -- Claims of the queue run one at a time, so that they can count.
    perform pg_advisory_xact_lock(hashtextextended('millrace.worker_queue:' || queue_name, 0));
    room := least(room, most_running - (select coalesce(sum(running), 0) from job_count where job_count.queue = queue_name)::integer);
    if room <= 0 then
      held := 'limit';
      return;
    end if;
  end if;

  if random() < 0.05 then
    select d.id into promoted from worker_delivery d
    where d.queue = queue_name and (wanted is null or d.name = any(wanted)) order by d.priority desc, d.id limit 1;
  end if;
  with first as (
    select d.id, d.mailbox, d.name, d.mailbox_limit, d.first from worker_delivery d where d.id = promoted for update skip locked
  ), others as (
    select d.id, d.mailbox, d.name, d.mailbox_limit, d.first from worker_delivery d
    where d.queue = queue_name and (wanted is null or d.name = any(wanted)) and d.id is distinct from promoted
    order by d.priority, d.id limit room - case when promoted is null then 0 else 1 end for update skip locked
  ), due as (
    select * from first union all select * from others
  ), chosen as (
    select distinct on (mailbox) mailbox, name, mailbox_limit, first from due order by mailbox, first
  ), sized as (
    select chosen.*, row_number() over (order by first) as n, count(*) over () as boxes, (
      select octet_length(payload::text) from job
      where job.mailbox = chosen.mailbox and job.status = 'available' and job.ordinal >= chosen.first
      order by job.ordinal limit 1) as bytes
    from chosen
  )
  select (select array_agg(id) from due), (select array_agg(mailbox) from due), array_agg(name), array_agg(mailbox),
    array_agg(mailbox_limit), array_agg(first),
    array_agg(greatest(1, least(room / boxes + case when n <= room % boxes then 1 else 0 end, most_bytes / greatest(bytes, 1)))::integer)
  into deliveries, all_mailboxes, tasks, mailboxes, limits, firsts, slots from sized;
  if deliveries is null then return; end if;

  select c.claims, coalesce(c.again, '{}') into claims, again
  from job_claim(lease, tasks, mailboxes, limits, firsts, slots) c;
  -- Deliveries may lead to nothing, and others may wait behind them.
  must_repeat := cardinality(again) > 0 or claims is null;
  delete from worker_delivery d using unnest(deliveries, all_mailboxes) as done(id, mailbox)
  where d.id = done.id and done.mailbox <> all(again);
  if claims is null then return; end if;

  with claimed as (
    select c, n, (c ->> 5)::integer >= suspect as is_suspect, sum(octet_length(c ->> 10)) over (order by n) as bytes
    from json_array_elements(claims::json) with ordinality as e(c, n)
  ), judged as (
    select c, n, case when (select bool_or(is_suspect) from claimed) then n = (select min(n) from claimed where is_suspect)
      else bytes <= most_bytes or n = 1 end as is_kept
    from claimed
  )
  select jsonb_agg(jsonb_build_object('id', c ->> 0, 'attempt', (c ->> 2)::integer, 'outcome', 'release')) filter (where not is_kept),
    case when bool_and(is_kept) then claims else json_agg(c order by n) filter (where is_kept)::text end
  into excess, claims from judged;
  if excess is not null then
    perform job_finish(excess, suspect, max_interruptions);
  end if;
end $$;
