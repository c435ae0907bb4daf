-- Size of each table at the end of a UTC day, or at the last measurement of that day. Rows are kept for 400 days. A
-- partitioned table counts as one table, and so do all tables of graphile-worker.
create table table_size (
  day date not null,
  name text not null,
  rows bigint not null,
  bytes bigint not null,
  constraint table_size_pkey primary key (day, name)
);
