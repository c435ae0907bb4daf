-- Emits events for callers' messages whose state has changed.
create or replace function webhook_emit_send() returns trigger language plpgsql as $$
begin
  if webhook_is_subscribed(new.owner_id, 'send.changed') then
    perform webhook_emit(new.owner_id, 'send.changed', json_build_object('id', new.id, 'job_id', new.job_id,
      'channel', new.channel, 'to', new.recipients, 'status', new.status, 'provider_id', new.provider_id,
      'error_code', new.error_code, 'detail', new.detail, 'created_at', iso(new.created_at), 'settled_at', iso(new.settled_at)));
  end if;
  return null;
end $$;

create or replace trigger webhook_send_changed after update of status on comms_send for each row
  when (new.status is distinct from old.status and new.status not in ('scheduled', 'queued', 'sending')
    and new.purpose = 'caller' and new.owner_id is not null)
  execute function webhook_emit_send();
