-- True if a job matches a filter of `jobs/search.ts`. Fields missing from the filter match anything.
create or replace function job_matches(j job, filter jsonb) returns boolean language sql stable parallel safe
  return (filter ->> 'status' is null or job_client_status(j.status) = filter ->> 'status')
    and (filter ->> 'queue' is null or j.queue = filter ->> 'queue')
    and (filter ->> 'task' is null or j.name = filter ->> 'task')
    and (filter ->> 'code' is null or j.error_code = filter ->> 'code')
    and (filter ->> 'owner_id' is null or j.owner_id = (filter ->> 'owner_id')::int)
    and (filter ->> 'batch' is null or j.batch_id = (filter ->> 'batch')::uuid)
    and (filter ->> 'key' is null or j.key = filter ->> 'key')
    and (filter ->> 'request_id' is null or j.request_id = filter ->> 'request_id')
    and (filter ->> 'from' is null or j.created_at >= (filter ->> 'from')::timestamptz)
    and (filter ->> 'to' is null or j.created_at < (filter ->> 'to')::timestamptz)
    and (filter ->> 'ended_from' is null or j.finished_at >= (filter ->> 'ended_from')::timestamptz)
    and (filter ->> 'ended_before' is null or j.finished_at <= (filter ->> 'ended_before')::timestamptz)
    and (filter ->> 'search' is null or position(lower(filter ->> 'search') in lower(concat_ws(' ', j.label, j.error_detail))) > 0);
