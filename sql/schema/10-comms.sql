-- Requested emails, text messages and calls, and their outcomes. Most providers accept no idempotency key, so this
-- table ensures that a message is sent only once. The row records a request before it is sent, and the provider's
-- response after it. A request between the two may have been sent, and is never simply repeated.
--
-- Status:
--
-- - scheduled: no request has been sent, and none will be before `send_at`
-- - queued: no request has been sent
-- - sending: a request is being sent, and may have been accepted
-- - sent: the provider has accepted it
-- - failed: the last request was certainly not accepted; the job may retry it. With a `provider_id`: the provider
--   accepted the message but failed to deliver it
-- - unknown: a request was sent, and its outcome could not be determined
-- - cancelled: its job was cancelled before a request was accepted; it will never be sent
-- - delivered: the provider has delivered it to all recipients that it has reported on
-- - bounced: a recipient's server has rejected it
-- - complained: a recipient has marked it as spam

create table comms_send (
  id uuid not null,
  channel text not null,
  -- - caller: requested by a caller
  -- - account: a mail of the account itself, such as a token, whose text is not stored
  -- - gone: requested by a deleted account; hidden from callers without an account
  purpose text not null default 'caller',
  owner_id integer,
  -- The job that sends it; deleted before this row.
  job_id uuid not null,
  recipients text[] not null,
  -- The content, in the format of the channel's task; cleared once the message is sent or cancelled.
  message jsonb,
  status text not null default 'queued',
  -- Stored documents attached to a mail: [{document_id, filename, media_type, byte_size}], as of the request. Not
  -- references: if one is deleted before the mail is sent, the mail fails.
  attachments jsonb not null default '[]',
  -- The name of its template at the time of the request; null: none.
  template text,
  -- When its job is due; null: immediately.
  send_at timestamptz,
  requests integer not null default 0,
  -- The attempt of its job that sent the last request.
  attempt integer,
  -- The provider's id for it, and its state there: as of the acceptance, or of the last event that changed it. A mail
  -- has an id only from its first event on.
  provider_id text,
  provider_status text,
  error_code text,
  detail text,
  -- Ids of the provider's events that have suppressed addresses. Each event does so once, even if an admin lifts the
  -- suppression afterwards.
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

-- A message at the provider belongs to one send only.
create unique index comms_send_provider_id_key on comms_send (channel, provider_id) where provider_id is not null;
create index comms_send_recipient_idx on comms_send (channel, (recipients[1]), requested_at) where provider_id is not null;
create index comms_send_open_idx on comms_send (job_id) where status in ('scheduled', 'queued', 'sending', 'failed');
-- The list of all messages, of an owner's, or of those without an owner. A list of all channels merges one scan per
-- channel. The status indexes have the same order: where the provider reports deliveries, hardly any message stays
-- `sent`.
create index comms_send_channel_idx on comms_send (channel, created_at desc, id desc);
create index comms_send_owner_id_idx on comms_send (owner_id, channel, created_at desc, id desc) where owner_id is not null;
create index comms_send_unowned_idx on comms_send (channel, created_at desc, id desc) where owner_id is null and purpose = 'caller';
create index comms_send_status_idx on comms_send (status, channel, created_at desc, id desc);
create index comms_send_owner_id_status_idx on comms_send (owner_id, status, channel, created_at desc, id desc)
  where owner_id is not null;
create index comms_send_unowned_status_idx on comms_send (status, channel, created_at desc, id desc)
  where owner_id is null and purpose = 'caller';
create index comms_send_settled_at_idx on comms_send (settled_at);
-- No channel has every status: no event reports that a call was delivered, for example. A plan that assumes
-- independence would search all calls by time for such a pair.
create statistics comms_send_status_channel (mcv) on status, channel from comms_send;

-- Message templates, with {{name}} as placeholders. A message is rendered when it is requested, so later changes to its
-- template do not affect it.
create table comms_template (
  -- Messages refer to the template by this name.
  name text not null,
  channel text not null,
  subject text,
  -- The body of a text message, or the plain text of a mail.
  text text,
  html text,
  -- The placeholders: [{name, default?}]; a value is required if there is no default.
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

-- Number of messages requested per UTC day, by status; `waiting` combines scheduled, queued and sending. Maintained by
-- functions/sums.
create table comms_send_count (
  id bigint generated always as identity,
  day date not null,
  channel text not null,
  outcome text not null,
  sends bigint not null,
  constraint comms_send_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index comms_send_count_day_idx on comms_send_count (day, channel, outcome);

-- Suppressed addresses: their servers have permanently rejected mail, or the recipients mark it as spam. Sending there
-- again would damage the reputation of the sender's domain. An address stays suppressed until an admin lifts it.
create table comms_suppression (
  -- In lower case: hardly any mail server distinguishes case.
  address text not null,
  reason text not null,
  -- The mail that caused the suppression; it is deleted eventually.
  send_id uuid not null,
  created_at timestamptz not null default now(),
  constraint comms_suppression_pkey primary key (address),
  constraint comms_suppression_address_check check (address = lower(address)),
  constraint comms_suppression_reason_check check (reason in ('bounced', 'complained'))
);
create index comms_suppression_created_at_idx on comms_suppression (created_at desc, address desc);
