-- Returns the last message of the branch that continues from this message, along the latest version of each message.
create or replace function ai_branch_leaf(message uuid) returns uuid language sql stable as $$
  with recursive branch as (
    select message as id, 1 as n
    union all
    select (select m.id from ai_message m where m.parent_id = b.id order by m.ordinal desc limit 1), b.n + 1
    from branch b where b.id is not null
  )
  select b.id from branch b where b.id is not null order by b.n desc limit 1
$$;
