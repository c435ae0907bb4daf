-- Size of each table at the end of a UTC day, or at the last measurement of that day. Rows are kept for 400 days. A
-- partitioned table counts as one table, and so do all tables of graphile-worker.
create table table_size (
  day date not null,
  name text not null,
  rows bigint not null,
  bytes bigint not null,
  constraint table_size_pkey primary key (day, name)
);

-- Random keys of MACs that must survive a change of SECRET_KEY, such as those of unsubscribe links. Each is sealed (see
-- tasks/platform/keys.ts). The newest that a process can open makes MACs; all of them verify.
create table stored_key (
  id uuid not null,
  secret text not null,
  constraint stored_key_pkey primary key (id),
  constraint stored_key_secret_check check (secret ~ '^[\w-]{8}\.[\w-]+$')
);
