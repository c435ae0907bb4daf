-- Inserts jobs as they are specified, in order, and returns their ids; see `job_enqueue` for the fields of a spec.
create or replace function job_insert(specs jsonb) returns setof uuid language sql
as $$
  insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, settle, payload, status, max_tries, run_at, request_id, trace_parent)
  select s.id, s.name, s.queue, s.owner_id, s.mailbox, s.mailbox_limit, s.settle, s.payload,
    case when s.delay_ms > 0 then 'scheduled' else 'available' end, s.max_tries,
    now() + make_interval(secs => coalesce(s.delay_ms, 0) / 1000), s.request_id, s.trace_parent
  from rows from (jsonb_to_recordset(specs) as (id uuid, name text, queue text, owner_id integer, mailbox text,
    mailbox_limit integer, settle text, payload jsonb, max_tries integer, delay_ms float8, request_id text, trace_parent text))
    with ordinality as s(id, name, queue, owner_id, mailbox, mailbox_limit, settle, payload, max_tries, delay_ms, request_id,
      trace_parent, n)
  order by s.n
  returning id
$$;
