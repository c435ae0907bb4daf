-- The size of each table at the end of a UTC day, or at its last measurement; kept for 400 days. A partitioned table
-- counts as one, and so do the tables of the queue.
create table table_size (
  day date not null,
  name text not null,
  rows bigint not null,
  bytes bigint not null,
  constraint table_size_pkey primary key (day, name)
);
