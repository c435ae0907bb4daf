-- Numbers of requests per client in a time window. Unlogged: losing the rows in a server crash does no harm.
create unlogged table request_limit (
  name text not null,
  subject text not null,
  hits timestamptz[] not null,
  expires_at timestamptz not null,
  constraint request_limit_pkey primary key (name, subject)
  -- The table is vacuumed early, because each request writes its row.
) with (autovacuum_vacuum_scale_factor = 0.02);
create index request_limit_expires_at_idx on request_limit (expires_at);
