-- Stores what a worker reports of its attempts: progress and events (see `job_progress`), and ends (see `job_finish`), all
-- fenced. Numbers events without `n` after the last one of their attempt. Returns the ids of the jobs whose progress was
-- current, with the seq of their last event before it. Also returns the ids of the jobs that have ended or changed with them.
create or replace function job_store_report(progress jsonb, ends jsonb, suspect integer, max_interruptions integer,
  out progressed uuid[], out afters integer[], out ended uuid[])
language plpgsql
as $$
begin
  progressed := '{}';
  afters := '{}';
  ended := '{}';
  if progress <> '[]' then
    if ends <> '[]' then
      -- Locks of mailboxes come before those of rows.
      perform mailbox_lock(array(
        select job.mailbox from jsonb_to_recordset(ends) as e(id uuid) join job on job.id = e.id where job.mailbox_limit is not null));
    end if;
    if jsonb_path_exists(progress, '$[*] ? (!exists(@.n))') then
      perform from job where id in (select (e ->> 'id')::uuid from jsonb_array_elements(progress) e)
      order by job_lock_order(job) for no key update;
      select jsonb_agg(jsonb_build_object('n', job.reported + entry.position) || entry.e order by entry.ordinal) into progress
      from (select e, ordinal, row_number() over (partition by e ->> 'id' order by ordinal) as position
        from jsonb_array_elements(progress) with ordinality as given(e, ordinal)) entry
      join job on job.id = (entry.e ->> 'id')::uuid;
    end if;
    select coalesce(array_agg(id), '{}'), coalesce(array_agg(after), '{}') into progressed, afters from job_progress(progress);
  end if;
  if ends <> '[]' then
    ended := array(select job_finish(ends, suspect, max_interruptions));
  end if;
end $$;
