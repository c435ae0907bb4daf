-- Requested emails, text messages and calls, and what became of them. Most providers accept no idempotency key, so this
-- is how a message is sent only once: the row records a request before it is sent, and the provider's answer after it.
-- A request between the two may have been sent, and is never simply sent again.
--
-- status:  scheduled   no request has been sent, and none will be before `send_at`
--          queued      no request has been sent
--          sending     a request is being sent, and may have been accepted
--          sent        the provider has accepted it
--          failed      the last request was certainly not accepted; the job may try again. With a `provider_id`: the
--                      provider has accepted it and could not deliver it
--          unknown     a request was sent, and its outcome could not be determined
--          cancelled   its job was cancelled before a request was accepted: it will never be sent
--          delivered   the provider has delivered it to all recipients that it has told of
--          bounced     the server of a recipient has refused it
--          complained  a recipient calls it spam

create table comms_send (
  id uuid not null,
  channel text not null,
  -- caller: asked for by a caller; account: a mail of an account, such as a token, whose text is not stored; gone: asked for by
  -- an account that is gone, which is not what callers without an account have sent.
  purpose text not null default 'caller',
  owner_id integer,
  -- The job that sends it; it is deleted sooner than this row.
  job_id uuid not null,
  recipients text[] not null,
  -- What to send, in the format of the channel's task; cleared once it is sent or cancelled.
  message jsonb,
  status text not null default 'queued',
  -- Stored documents that go with a mail: [{document_id, filename, media_type, byte_size}], as they were when it was asked for. Not
  -- references: one that is deleted before it is sent fails it.
  attachments jsonb not null default '[]',
  -- The template that it was made of, by the name that it had.
  template text,
  -- When its job is due, if that is later than when it was asked for.
  send_at timestamptz,
  requests integer not null default 0,
  -- The attempt of its job that made the last one.
  attempt integer,
  -- The provider's id for it, and its state there: when it was accepted, or since the last event that has moved it on.
  -- Mail has an id from its first event on.
  provider_id text,
  provider_status text,
  error_code text,
  detail text,
  -- Ids of the provider's events that have suppressed addresses: each does so once, also if an admin has lifted it since.
  suppressed_by text[] not null default '{}',
  created_at timestamptz not null default now(),
  requested_at timestamptz,
  settled_at timestamptz,
  constraint comms_send_pkey primary key (id),
  constraint comms_send_owner_id_fkey foreign key (owner_id) references account (id) on delete set null,
  constraint comms_send_channel_check check (channel in ('email', 'sms', 'call')),
  constraint comms_send_purpose_check check (purpose in ('caller', 'account', 'gone')),
  constraint comms_send_recipients_check check (cardinality(recipients) > 0),
  constraint comms_send_status_check check (status in
    ('scheduled', 'queued', 'sending', 'sent', 'failed', 'unknown', 'cancelled', 'delivered', 'bounced', 'complained')),
  constraint comms_send_scheduled_check check (status <> 'scheduled' or send_at is not null),
  constraint comms_send_requested_check check (status in ('scheduled', 'queued', 'failed', 'cancelled') or requested_at is not null),
  constraint comms_send_settled_check check ((status not in ('scheduled', 'queued', 'sending')) = (settled_at is not null)),
  constraint comms_send_attachments_check check (jsonb_typeof(attachments) = 'array' and (channel = 'email' or attachments = '[]')),
  constraint comms_send_error_check check ((status = 'failed') = (error_code is not null)),
  constraint comms_send_message_check check (message is not null or status in ('sent', 'cancelled') or provider_id is not null),
  constraint comms_send_provider_id_check check (status not in ('delivered', 'bounced', 'complained') or provider_id is not null)
);

-- A message of the provider belongs to one send only.
create unique index comms_send_provider_id_key on comms_send (channel, provider_id) where provider_id is not null;
create index comms_send_recipient_idx on comms_send (channel, (recipients[1]), requested_at) where provider_id is not null;
create index comms_send_open_idx on comms_send (job_id) where status in ('scheduled', 'queued', 'sending', 'failed');
-- The list, for those who see all, their own or what is nobody's. One of all channels is merged from those of each channel.
-- Those of a status are in their order, too: where the provider tells of what it delivers, hardly any stay `sent`.
create index comms_send_channel_idx on comms_send (channel, created_at desc, id desc);
create index comms_send_owner_id_idx on comms_send (owner_id, channel, created_at desc, id desc) where owner_id is not null;
create index comms_send_unowned_idx on comms_send (channel, created_at desc, id desc) where owner_id is null and purpose = 'caller';
create index comms_send_status_idx on comms_send (status, channel, created_at desc, id desc);
create index comms_send_owner_id_status_idx on comms_send (owner_id, status, channel, created_at desc, id desc)
  where owner_id is not null;
create index comms_send_unowned_status_idx on comms_send (status, channel, created_at desc, id desc)
  where owner_id is null and purpose = 'caller';
create index comms_send_settled_at_idx on comms_send (settled_at);
-- No channel has every status: nothing tells of calls that were delivered. A plan that took the two for independent would look for
-- them among all calls, by their time.
create statistics comms_send_status_channel (mcv) on status, channel from comms_send;

-- Texts for messages, with {{name}} in place of values. A message is rendered when it is asked for, and keeps that: what becomes of
-- its template changes nothing about it.
create table comms_template (
  -- By which messages name it.
  name text not null,
  channel text not null,
  subject text,
  -- Of a text message: its body.
  text text,
  html text,
  -- What may be filled in: [{name, default?}]; without a default it has to be.
  variables jsonb not null default '[]',
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  constraint comms_template_pkey primary key (name),
  constraint comms_template_name_check check (name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
  constraint comms_template_content_check check (
    case channel when 'email' then subject is not null and (text is not null or html is not null)
      when 'sms' then text is not null and subject is null and html is null else false end),
  constraint comms_template_variables_check check (jsonb_typeof(variables) = 'array')
);

-- How many messages were asked for on a UTC day, by what became of them: their status, or waiting, which is
-- scheduled, queued and sending. Kept as functions/sums says.
create table comms_send_count (
  id bigint generated always as identity,
  day date not null,
  channel text not null,
  outcome text not null,
  sends bigint not null,
  constraint comms_send_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index comms_send_count_day_idx on comms_send_count (day, channel, outcome);

-- Addresses that mail is not sent to: their servers have refused it for good, or they call it spam. Sending there again costs
-- the standing of the sender's domain. They stay until an admin lifts them.
create table comms_suppression (
  -- In lower case: hardly any server tells apart what differs in case alone.
  address text not null,
  reason text not null,
  -- The mail that it is known from, which is deleted sooner or later.
  send_id uuid not null,
  created_at timestamptz not null default now(),
  constraint comms_suppression_pkey primary key (address),
  constraint comms_suppression_address_check check (address = lower(address)),
  constraint comms_suppression_reason_check check (reason in ('bounced', 'complained'))
);
create index comms_suppression_created_at_idx on comms_suppression (created_at desc, address desc);
