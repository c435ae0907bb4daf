create or replace function actor_lock_key(actor text) returns bigint
  language sql immutable parallel safe
  return hashtextextended('millrace.actor:' || actor, 0);
