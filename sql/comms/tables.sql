-- Requested emails, text messages and calls, and their outcomes. Most providers accept no idempotency key, so this
-- table ensures that a message is sent only once. The row records that a request is about to be sent, and later the
-- provider's response. A recorded request without a response may have been sent, and must not simply be repeated.
--
-- Status of a message:
--
-- - scheduled: no request has been sent, and none will be before `send_at`
-- - queued: no request is under way. With `next_attempt_at`: the provider did not accept the last one for now, and the
--   job retries it. Some recipients of an email may already have it
-- - sending: a request is being sent, and may have been accepted
-- - sent: the provider has accepted the request
-- - failed: no request was accepted, and none follows. With a `provider_id`: the provider accepted the message but
--   failed to deliver it
-- - unknown: a request was sent, and its outcome could not be determined
-- - cancelled: the job was cancelled before a request was accepted; the message will never be sent
-- - delivered: the message has reached all recipients that the provider has reported on
-- - bounced: a recipient's server has rejected the message
-- - complained: a recipient has marked the message as spam

create table comms_send (
  id uuid not null,
  channel text not null,
  -- - caller: requested by a caller
  -- - account: an email of the account itself, such as one with a token; its text is not stored
  -- - gone: requested by a deleted account; hidden from callers without an account
  purpose text not null default 'caller',
  -- - transactional: text messages, calls, emails of accounts, and emails that recipients have caused
  -- - broadcast: newsletters and other emails to many, whose recipients may unsubscribe without losing the others
  stream text not null default 'transactional',
  owner_id integer,
  -- The job that sends the message. No foreign key, because the pruner deletes the job first.
  job_id uuid not null,
  recipients text[] not null,
  -- All recipients of an email, also of copies: [{address, status?, detail?}]. `status` is sent, queued, failed or
  -- cancelled if the mail server has treated this recipient unlike the others. Otherwise the status of the message holds.
  deliveries jsonb not null default '[]',
  -- The content in the format of the channel's task. Cleared once the message is sent or cancelled.
  message jsonb,
  status text not null default 'queued',
  -- Stored documents attached to an email at the time of the request: [{document_id, filename, media_type, byte_size}].
  -- There is no foreign key: if a document is deleted before the email is sent, the email fails.
  attachments jsonb not null default '[]',
  -- Name of the template at the time of the request; null without a template.
  template text,
  -- When the job is due; null for immediately.
  send_at timestamptz,
  requests integer not null default 0,
  -- When the job retries a request that was not accepted; null before the first one.
  next_attempt_at timestamptz,
  -- The job's attempt that sent the last request.
  attempt integer,
  -- The provider's id and state of the message, as of its acceptance or of the last event that changed the state. An
  -- email has no id until its first event.
  provider_id text,
  provider_status text,
  error_code text,
  detail text,
  -- Ids of the provider's events that have suppressed addresses. Each event does so only once, even if an admin lifts
  -- the suppression afterwards.
  suppressed_by text[] not null default '{}',
  created_at timestamptz not null default now(),
  requested_at timestamptz,
  settled_at timestamptz,
  constraint comms_send_pkey primary key (id),
  constraint comms_send_owner_id_fkey foreign key (owner_id) references account (id) on delete set null,
  constraint comms_send_channel_check check (channel in ('email', 'sms', 'call')),
  constraint comms_send_purpose_check check (purpose in ('caller', 'account', 'gone')),
  constraint comms_send_stream_check check (stream in ('transactional', 'broadcast') and (channel = 'email' or stream = 'transactional')),
  constraint comms_send_recipients_check check (cardinality(recipients) > 0),
  constraint comms_send_status_check check (status in
    ('scheduled', 'queued', 'sending', 'sent', 'failed', 'unknown', 'cancelled', 'delivered', 'bounced', 'complained')),
  constraint comms_send_scheduled_check check (status <> 'scheduled' or send_at is not null),
  constraint comms_send_requested_check check (status in ('scheduled', 'queued', 'failed', 'cancelled') or requested_at is not null),
  constraint comms_send_settled_check check ((status not in ('scheduled', 'queued', 'sending')) = (settled_at is not null)),
  constraint comms_send_deliveries_check check (jsonb_typeof(deliveries) = 'array'),
  constraint comms_send_attachments_check check (jsonb_typeof(attachments) = 'array' and (channel = 'email' or attachments = '[]')),
  constraint comms_send_error_check check ((status = 'failed') = (error_code is not null)),
  constraint comms_send_message_check check (message is not null or status in ('sent', 'cancelled') or provider_id is not null),
  constraint comms_send_provider_id_check check (status not in ('delivered', 'bounced', 'complained') or provider_id is not null)
);

-- No two rows may refer to the same message at the provider.
create unique index comms_send_provider_id_key on comms_send (channel, provider_id) where provider_id is not null;
create index comms_send_recipient_idx on comms_send (channel, (recipients[1]), requested_at) where provider_id is not null;
create index comms_send_open_idx on comms_send (job_id) where status in ('scheduled', 'queued', 'sending', 'failed');
-- Serve the lists of all messages, of an owner's messages, and of messages without an owner. A list of all channels
-- merges one scan per channel. The status indexes have the same order, because hardly any message stays `sent` where
-- the provider reports deliveries.
create index comms_send_channel_idx on comms_send (channel, created_at desc, id desc);
create index comms_send_owner_id_idx on comms_send (owner_id, channel, created_at desc, id desc) where owner_id is not null;
create index comms_send_unowned_idx on comms_send (channel, created_at desc, id desc) where owner_id is null and purpose = 'caller';
create index comms_send_status_idx on comms_send (status, channel, created_at desc, id desc);
create index comms_send_owner_id_status_idx on comms_send (owner_id, status, channel, created_at desc, id desc)
  where owner_id is not null;
create index comms_send_unowned_status_idx on comms_send (status, channel, created_at desc, id desc)
  where owner_id is null and purpose = 'caller';
create index comms_send_settled_at_idx on comms_send (settled_at);
-- Some channels lack some statuses: for example, no event reports that a call was delivered. A plan that assumes
-- independence would scan all calls by time for such a combination.
create statistics comms_send_status_channel (mcv) on status, channel from comms_send;

-- Message templates with {{name}} as placeholders. A message is rendered when it is requested, so later changes to the
-- template do not affect it.
create table comms_template (
  -- The name by which messages refer to the template.
  name text not null,
  channel text not null,
  subject text,
  -- The body of a text message, or the plain-text part of an email.
  text text,
  html text,
  -- The placeholders: [{name, default?}]. A value is required if there is no default.
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

-- Number of messages requested per UTC day, by status. `waiting` counts scheduled, queued and sending ones together.
-- Maintained by sums/functions.
create table comms_send_count (
  id bigint generated always as identity,
  day date not null,
  channel text not null,
  outcome text not null,
  sends bigint not null,
  constraint comms_send_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index comms_send_count_day_idx on comms_send_count (day, channel, outcome);

-- Suppressed addresses. The server of such an address has permanently rejected mail, or the recipient has marked mail
-- as spam or unsubscribed from it. Further mail to it would damage the reputation of the sender's domain. Phone numbers
-- whose owners have opted out of text messages count as addresses, too. An address stays suppressed until an admin lifts
-- the suppression, or the owner of a number opts in again.
create table comms_suppression (
  channel text not null default 'email',
  -- The email address in lower case, since hardly any mail server distinguishes case; or the number in E.164 form.
  address text not null,
  -- The stream of messages that the address no longer gets; an address may have a row for each.
  stream text not null default 'transactional',
  reason text not null,
  -- The message that caused the suppression. It is eventually deleted.
  send_id uuid not null,
  created_at timestamptz not null default now(),
  constraint comms_suppression_pkey primary key (address, stream),
  constraint comms_suppression_address_check check (address = lower(address)),
  constraint comms_suppression_stream_check check (stream in ('transactional', 'broadcast')),
  constraint comms_suppression_reason_check check (
    case channel when 'email' then reason in ('bounced', 'complained', 'unsubscribed')
      when 'sms' then reason = 'opted_out' and stream = 'transactional' else false end)
);
create index comms_suppression_created_at_idx on comms_suppression (stream, created_at desc, address desc);
