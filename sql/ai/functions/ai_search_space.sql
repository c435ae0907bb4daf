-- Returns the number under which the words of conversations of an account, or of a user_id without an account, are
-- indexed. It is negative, because documents use the ids of accounts. User_ids are hashed, so two may share a number.
create or replace function ai_search_space(owner_id integer, user_id text) returns integer language sql immutable parallel safe
  return case when owner_id is not null then -1 - owner_id
    else -1073741825 - (('x' || left(md5(user_id), 8))::bit(32)::integer & 1073741823) end;
