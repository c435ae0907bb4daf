-- What was asked to be sent by email, text message or call, and what became of it. Most providers take no idempotency
-- key, so this is how a message is sent once: the row says that a request is about to go out before it does, and what
-- the provider answered after it has. What stands between the two may have been sent, and is never simply sent again.
--
-- status:  queued   no request has gone out
--          sending  a request goes out, and may have been taken
--          sent     the provider has taken it
--          failed   the last request was certainly not taken; the job may try again
--          unknown  a request went out, and nobody could tell what became of it

create table comms_send (
  id uuid not null,
  channel text not null,
  owner_id integer,
  -- The job that sends it; it is gone sooner than this row.
  job_id uuid not null,
  recipients text[] not null,
  -- What to send, as the task of the channel reads it; gone once it is sent.
  message jsonb,
  status text not null default 'queued',
  requests integer not null default 0,
  -- What the provider calls it, and the state it was in when it was taken.
  provider_id text,
  provider_status text,
  error_code text,
  detail text,
  created_at timestamptz not null default now(),
  requested_at timestamptz,
  settled_at timestamptz,
  constraint comms_send_pkey primary key (id),
  constraint comms_send_owner_id_fkey foreign key (owner_id) references account (id) on delete set null,
  constraint comms_send_channel_check check (channel in ('email', 'sms', 'call')),
  constraint comms_send_recipients_check check (cardinality(recipients) > 0),
  constraint comms_send_status_check check (status in ('queued', 'sending', 'sent', 'failed', 'unknown')),
  constraint comms_send_requested_check check (status not in ('sending', 'sent', 'unknown') or requested_at is not null),
  constraint comms_send_settled_check check ((status in ('sent', 'failed', 'unknown')) = (settled_at is not null)),
  constraint comms_send_error_check check ((status = 'failed') = (error_code is not null)),
  constraint comms_send_message_check check (status = 'sent' or message is not null)
);

-- One message of the provider is the answer to one send.
create unique index comms_send_provider_id_key on comms_send (channel, provider_id) where provider_id is not null;
create index comms_send_owner_id_idx on comms_send (owner_id, id) where owner_id is not null;
create index comms_send_recipient_idx on comms_send (channel, (recipients[1]), requested_at) where provider_id is not null;
create index comms_send_open_idx on comms_send (job_id) where status in ('queued', 'sending', 'failed');
create index comms_send_unknown_idx on comms_send (id) where status = 'unknown';
create index comms_send_created_at_idx on comms_send (created_at);
