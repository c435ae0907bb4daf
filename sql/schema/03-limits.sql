-- Requests of a client in a window. Losing them in a crash of the server harms nobody, so they are not logged.
create unlogged table request_limit (
  name text not null,
  subject text not null,
  hits timestamptz[] not null,
  expires_at timestamptz not null,
  constraint request_limit_pkey primary key (name, subject)
);
create index request_limit_expires_at_idx on request_limit (expires_at);
