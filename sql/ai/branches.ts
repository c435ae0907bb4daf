import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { ToolCall } from './turns.ts'

/** Branches of conversations. A caller that changes the active branch holds the lock of the conversation's turns. */

/** Acquires the lock that turns of a conversation acquire when they begin, until the transaction ends. */
export const lockTurns = (mailbox: string): Query<unknown> =>
  sql.type(noRows)`select mailbox_lock(array[${mailbox}])`

/**
 * The relation of a turn to an existing message: it continues an answer, replaces a question, or answers the question
 * of the message again.
 */
export type TurnPlace = 'continue' | 'edit' | 'regenerate'

/** Prepares the active branch for a turn. No row if the conversation has no such message. */
export const placeTurn = (
  conversationId: string,
  place: TurnPlace,
  messageId: string,
): Query<{ id: string | null }> =>
  sql.type(z.object({ id: z.string().nullable() }))`
    select leaf.id from (
      select case ${place} when 'edit' then m.parent_id when 'regenerate' then case m.role when 'assistant' then m.parent_id else m.id end
        else m.id end as id
      from ai_message m
      where m.id = ${messageId}::uuid and m.conversation_id = ${conversationId}::uuid
        and case ${place} when 'edit' then m.role = 'user' when 'continue' then m.role = 'assistant' else true end
    ) leaf cross join lateral ai_branch_activate(${conversationId}::uuid, leaf.id) activated`

/** The last message of the active branch. No row if it is empty. */
export const findLastMessage = (
  conversationId: string,
): Query<{ role: string; status: string; tool_calls: ToolCall[] | null }> =>
  sql.type(z.object({ role: z.string(), status: z.string(), tool_calls: z.array(ToolCall).nullable() }))`
    select m.role, m.status, m.tool_calls from ai_message m where m.conversation_id = ${conversationId}::uuid and m.is_active
    order by m.ordinal desc limit 1`

/** A message of a conversation. */
export const findMessage = (conversationId: string, messageId: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select id from ai_message where id = ${messageId}::uuid and conversation_id = ${conversationId}::uuid`

/** Shows the branch that leads through a message to its latest end. No row if the conversation has no such message. */
export const showBranch = (conversationId: string, messageId: string): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select m.id from ai_message m cross join lateral ai_branch_activate(m.conversation_id, ai_branch_leaf(m.id)) activated
    where m.id = ${messageId}::uuid and m.conversation_id = ${conversationId}::uuid`

/**
 * Copies the branch up to a message into a new conversation. No row if the conversation has no such message, or if an
 * answer of the branch is pending.
 */
export const copyBranch = (
  from: { readonly conversationId: string; readonly messageId: string },
  to: { readonly id: string; readonly title: string | null },
): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    with recursive branch as (
      select m.* from ai_message m where m.id = ${from.messageId}::uuid and m.conversation_id = ${from.conversationId}::uuid
      union all
      select m.* from branch b join ai_message m on m.id = b.parent_id
    ), renamed as materialized (
      select b.id, gen_random_uuid() as new_id from branch b
    ), conversation as (
      insert into ai_conversation (id, user_id, owner_id, title, provider, model)
      select ${to.id}::uuid, c.user_id, c.owner_id, coalesce(${to.title}, c.title), c.provider, c.model
      from ai_conversation c
      where c.id = ${from.conversationId}::uuid and exists (select from branch)
        and not exists (select from branch where status = 'pending')
      returning id
    ), copied as (
      insert into ai_message (id, conversation_id, parent_id, role, status, content, document_ids, tool_calls, tool_results, provider,
        model, response_ms, finish_reason, reasoning, rag_sources, error_detail, created_at, settled_at)
      select own.new_id, conversation.id, parent.new_id, b.role, b.status, b.content, b.document_ids, b.tool_calls, b.tool_results,
        b.provider, b.model, b.response_ms, b.finish_reason, b.reasoning, b.rag_sources, b.error_detail, b.created_at, b.settled_at
      from branch b join renamed own on own.id = b.id left join renamed parent on parent.id = b.parent_id cross join conversation
      order by b.ordinal
    )
    select id from conversation`
