-- How large each table was at the end of a UTC day, or at its last measurement; for 400 days. A table with partitions
-- counts as one, and so do those of the queue.
create table table_size (
  day date not null,
  name text not null,
  rows bigint not null,
  bytes bigint not null,
  constraint table_size_pkey primary key (day, name)
);
