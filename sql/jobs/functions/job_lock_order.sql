-- Returns the place of a job in the order in which transactions lock rows: by ordinal, but batches after all others, inner
-- ones first. A member's end locks the member, then its batch.
create or replace function job_lock_order(j job) returns bigint language sql immutable
  return case when j.waits_for is not null and j.after is null then 9223372036854775807 - j.ordinal else j.ordinal end;
