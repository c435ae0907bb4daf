-- Makes the branch from a root to this message the active one. Null deactivates all messages, so that the next question
-- starts a branch of its own. Callers hold the lock of the conversation's turns.
create or replace function ai_branch_activate(conversation uuid, leaf uuid) returns void language sql as $$
  with recursive branch as (
    select m.id, m.parent_id from ai_message m where m.id = leaf and m.conversation_id = conversation
    union all
    select m.id, m.parent_id from branch b join ai_message m on m.id = b.parent_id
  )
  update ai_message m set is_active = not m.is_active
  where m.conversation_id = conversation and m.is_active <> (m.id in (select b.id from branch b))
$$;
