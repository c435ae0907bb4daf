-- For people who watch: what a worker takes of its machine, and which job does again what another failed at.

alter table worker_lease add column memory_bytes bigint not null default 0;

-- The failed job that this one does again; each is done again once. No foreign key: housekeeping removes the failed one
-- first, and that changes nothing about the other.
alter table job add column retry_of uuid;
create unique index job_retry_of_key on job (retry_of) where retry_of is not null;

-- The latest failures among many jobs that did not fail.
create index job_failed_idx on job (finished_at) where status = 'failed';
