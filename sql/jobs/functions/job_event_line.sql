-- Returns an event of a job as a line for streams. Tabs separate its fields: job id, seq, kind, status, owner, queue, task,
-- batch, frame. The owner is empty for a job without one, and 0 if only admins can see the job. The queues are those of
-- PRIVATE_QUEUES. A line contains no other tab and no line break, because JSON text escapes them.
create or replace function job_event_line(job job, seq integer, kind text, data jsonb) returns text language sql stable
  return concat_ws(E'\t', job.id, seq, kind,
    -- Workers of callers choose the data of other events, which may contain a tab.
    case when kind = 'status' then coalesce(data ->> 'status', '') else '' end,
    coalesce(job.owner_id::text, case when job.queue in ('accounts', 'payments', 'schedules', 'webhooks') then '0' else '' end),
    job.queue, job.name, coalesce(job.batch_id::text, ''),
    (case when kind <> 'status' then data
      else json_strip_nulls(json_build_object('job_id', job.id, 'status', data ->> 'status', 'label', data ->> 'label',
        'progress', case when data ->> 'current' is not null or data ->> 'total' is not null
          then json_build_object('current', (data ->> 'current')::integer, 'total', (data ->> 'total')::integer) end,
        'error', case when data ->> 'status' in ('failed', 'cancelled') and job.error_code is not null
          then json_build_object('code', job.error_code, 'detail', job.error_detail, 'retry_after',
            case when job.retry_at > clock_timestamp() then ceil(extract(epoch from job.retry_at - clock_timestamp()))::integer end)
          end))::jsonb
        || case when data ->> 'status' = 'done' then jsonb_build_object('result', job.result) else '{}' end
      end)::text);
