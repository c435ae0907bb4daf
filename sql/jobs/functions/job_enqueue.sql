-- Adds jobs in the caller's transaction. Each spec: id, name, queue, owner_id, mailbox, mailbox_limit, when_busy,
-- settle (see the column), payload, max_tries, delay_ms (from now, by the database's clock), request_id, trace_parent,
-- joins.
--
-- A spec with `when_busy` = `join` joins a job of its mailbox whose payload contains `joins`: the first running one,
-- else the first that waits. It skips jobs that are being cancelled. If it finds none, the spec is added.
-- `join_waiting` joins only jobs that wait, because a running job may have passed the point that the message is about.
--
-- Returns the job id of each spec: its own, or that of the job that it joined. `waiting_quota` is the default quota of
-- waiting jobs per owner (see `job_quota`); null: not checked.
create or replace function job_enqueue(specs jsonb, waiting_quota bigint default null)
returns table (spec_ordinal bigint, job_id uuid, joined boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
  missing_function text;
  batch jsonb;
  spec jsonb;
  found_id uuid;
  joined_ids jsonb := '{}';
  added uuid[] := '{}';
begin
  select s ->> 'settle' into missing_function from jsonb_array_elements(specs) s
  where s ->> 'settle' is not null and to_regprocedure(format('%I(job)', s ->> 'settle')) is null limit 1;
  if found then
    raise exception 'There is no function %(job) to settle a job', missing_function;
  end if;
  perform mailbox_lock(array(
    select s ->> 'mailbox' from jsonb_array_elements(specs) s where s ->> 'mailbox_limit' is not null));

  -- One by one if any spec may join another, else together.
  foreach batch in array case
    when exists (select from jsonb_array_elements(specs) s where s ->> 'when_busy' in ('join', 'join_waiting'))
    then array(select jsonb_build_array(s) from jsonb_array_elements(specs) s) else array[specs] end
  loop
    spec := batch -> 0;
    if spec ->> 'when_busy' in ('join', 'join_waiting') then
      select id into found_id from (
        select id, ordinal, 0 as rank, payload, cancel_requested_at from job
        where mailbox = spec ->> 'mailbox' and lease_id is not null and mailbox_limit is not null and spec ->> 'when_busy' = 'join'
        union all
        select id, ordinal, 1, payload, cancel_requested_at from job
        where mailbox = spec ->> 'mailbox' and status in ('scheduled', 'available')) live
      where cancel_requested_at is null and (spec -> 'joins' is null or payload @> (spec -> 'joins')) order by rank, ordinal limit 1;
      if found then
        joined_ids := joined_ids || jsonb_build_object(spec ->> 'id', found_id);
        continue;
      end if;
    end if;
    with inserted as (
      insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, settle, payload, status, max_tries, run_at, request_id, trace_parent)
      select s.id, s.name, s.queue, s.owner_id, s.mailbox, s.mailbox_limit, s.settle, s.payload,
        case when s.delay_ms > 0 then 'scheduled' else 'available' end, s.max_tries,
        now() + make_interval(secs => coalesce(s.delay_ms, 0) / 1000), s.request_id, s.trace_parent
      from rows from (jsonb_to_recordset(batch) as (id uuid, name text, queue text, owner_id integer, mailbox text,
        mailbox_limit integer, settle text, payload jsonb, max_tries integer, delay_ms float8, request_id text, trace_parent text))
        with ordinality as s(id, name, queue, owner_id, mailbox, mailbox_limit, settle, payload, max_tries, delay_ms, request_id,
          trace_parent, n)
      order by s.n
      returning id
    )
    select added || array_agg(id) into added from inserted;
  end loop;

  perform job_count_add(array(select queue from job where id = any(added)), 1, 0);
  if waiting_quota is not null then
    perform job_quota(array(select (s ->> 'owner_id')::integer from jsonb_array_elements(specs) s), waiting_quota);
  end if;
  perform job_announce(array(select id from job where id = any(added) and status || '' = 'available'));
  return query select n, coalesce((joined_ids ->> (s ->> 'id'))::uuid, (s ->> 'id')::uuid), joined_ids ? (s ->> 'id')
    from jsonb_array_elements(specs) with ordinality e(s, n);
end $$;
