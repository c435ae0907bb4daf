import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import {
  buildArrayText,
  buildPageSubquery,
  buildTimeSpanCondition,
  mapOrders,
  type PageValues,
  pairConditions,
} from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Queries about conversations and agents. `sql/ai/` has those about turns, usage and sentiment. */

export const CONVERSATION_ORDERS = { updated_at: { 'c.updated_at': 'timestamptz', 'c.id': 'uuid' } } as const

type OwnerFilter = [userId: string, owner: number | null, unowned: boolean]

/**
 * Conversations of account `owner`; null matches none. With `unowned`, also conversations of `userId` that belong to no
 * account. `from` and `to` limit the time of the last change; null means no limit.
 */
export const readConversations = mapOrders(
  CONVERSATION_ORDERS,
  (
    column,
    order,
    direction,
  ): ReadStatement<[...OwnerFilter, from: string | null, to: string | null, ...page: PageValues]> => ({
    name: `ai_conversations_by_${column}_${direction}`,
    text: buildArrayText({
      table: 'ai_conversation',
      row: 'c',
      parameters: 5,
      where: pairConditions(
        ['c.owner_id = $2::int', '$3::boolean and c.user_id = $1::text and c.owner_id is null'],
        [buildTimeSpanCondition('c.updated_at', '$4', '$5')],
      ),
      order,
      hasPageNumbers: false,
      direction,
      item: 'ai_conversation_json(c)',
    }),
  }),
)

/** The owner of a conversation. */
export const readConversationOwner: ReadStatement<[id: string]> = {
  name: 'ai_conversation_owner',
  text: `select json_build_object('user_id', user_id, 'owner_id', owner_id)::text from ai_conversation where id = $1::uuid`,
}

export const MESSAGE_ORDER = { 'm.ordinal': 'bigint' } as const

/**
 * A conversation with a page of the messages of its active branch. Pages run from newest to oldest, but messages within a
 * page from oldest to newest. The usage is that of all branches.
 */
export const readConversation: ReadStatement<[id: string, ...page: PageValues]> = {
  name: 'ai_conversation',
  text: `select json_build_object('id', c.id, 'title', c.title, 'provider', c.provider, 'model', c.model,
    'created_at', iso(c.created_at), 'updated_at', iso(c.updated_at), 'message_count', c.message_count,
    'pending_message_id', (select case last.status when 'pending' then last.id end from (
      select m.id, m.status from ai_message m where m.conversation_id = c.id and m.is_active order by m.ordinal desc limit 1) last),
    'usage', (select json_build_object('input_tokens', coalesce(sum(u.input_tokens), 0), 'output_tokens', coalesce(sum(u.output_tokens), 0),
        'cost', case when count(*) = 0 then 0 else sum(u.cost) end, 'unpriced_answers', count(*) filter (where u.cost is null))
      from ai_message m join ai_usage u on u.message_id = m.id where m.conversation_id = c.id),
    'messages', page.items::json, 'next', page.next,
    'metadata', json_build_object('user_id', c.user_id, 'last_response_time_ms', coalesce(c.last_response_ms, 0)))::text
  from ai_conversation c, ${buildPageSubquery({
    table: 'ai_message',
    row: 'm',
    parameters: 1,
    where: `m.conversation_id = $1::uuid and m.is_visible`,
    order: MESSAGE_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    isReversed: true,
    item: `json_build_object('id', m.id, 'role', m.role, 'content', m.content,
      'timestamp', iso(case m.role when 'user' then m.created_at else m.settled_at end), 'status', m.status,
      'finish_reason', m.finish_reason, 'reasoning', m.reasoning, 'rag_sources', m.rag_sources, 'model', m.model, 'usage', (
        select json_build_object('input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'cost', u.cost)
        from ai_usage u where u.message_id = m.id), 'parent_id', m.parent_id, 'document_ids', m.document_ids,
      'tool_calls', m.tool_calls, 'tool_results', m.tool_results, 'versions', case when m.parent_id is null
        then (select json_agg(v.id order by v.ordinal) from ai_message v where v.conversation_id = m.conversation_id and v.parent_id is null)
        else (select json_agg(v.id order by v.ordinal) from ai_message v where v.parent_id = m.parent_id) end)`,
  })} page
  where c.id = $1::uuid`,
}

/** Renames a conversation and returns its summary. No row if it does not exist. */
export const renameConversation = (id: string, title: string): Query<{ json: string }> =>
  sql.type(JsonText)`
    update ai_conversation c set title = ${title} where id = ${id}::uuid
    returning ai_conversation_json(c)::text as json`

/** The summary of a conversation. */
export const findConversationSummary = (id: string): Query<{ json: string }> =>
  sql.type(
    JsonText,
  )`select ai_conversation_json(c)::text as json from ai_conversation c where c.id = ${id}::uuid`

/** Cancels the pending turns of a conversation and returns their jobs. */
export const cancelPendingTurns = (conversationId: string): Query<{ job_id: string }> =>
  sql.type(z.object({ job_id: z.string() }))`
    select job_cancel(array(
      select job_id from ai_message where conversation_id = ${conversationId}::uuid and status = 'pending')) as job_id`

export const deleteConversation = (id: string): Query<unknown> =>
  sql.type(noRows)`delete from ai_conversation where id = ${id}::uuid`

/** Data for the health check of the AI service. */
export const readAiState: ReadStatement<[defaultAgent: string]> = {
  name: 'ai_state',
  text: `select json_build_object('conversations',
      (select coalesce(sum(conversations), 0) from ai_conversation_count),
    'agent', (select json_build_object('is_active', is_active, 'model_id', model_id, 'fallback_model_id', fallback_model_id) from ai_agent where slug = $1::text),
    'chosen', (select json_build_object('vendor', vendor, 'model_id', model_id) from llm_current))::text`,
}

// Agents.

const AGENT_JSON = `json_build_object('slug', a.slug, 'name', a.name, 'description', a.description, 'category', a.category,
  'model_id', a.model_id, 'fallback_model_id', a.fallback_model_id, 'temperature', coalesce(a.temperature, $1::float8), 'max_tokens', coalesce(a.max_tokens, $2::int),
  'system_prompt', a.system_prompt, 'is_active', a.is_active, 'tools', a.tools, 'memory_modules', a.memory_modules,
  'knowledge_base_ids', a.knowledge_base_ids)`

/** All agents, at most 1000. `temperature` and `maxTokens` are defaults for agents without their own. */
export const readAgents: ReadStatement<[temperature: number, maxTokens: number]> = {
  name: 'ai_agents',
  text: `select coalesce(json_agg(j order by slug), '[]')::text from (
    select a.slug, ${AGENT_JSON} as j from ai_agent a order by a.slug limit 1000) agents`,
}

/** One agent, with the same defaults as {@link readAgents}. */
export const readAgent: ReadStatement<[temperature: number, maxTokens: number, slug: string]> = {
  name: 'ai_agent',
  text: `select ${AGENT_JSON}::text from ai_agent a where a.slug = $3::text`,
}

/** Active agents as models of OpenAI's protocol, at most 1000; with a slug, that agent alone. */
export const readAgentModels: ReadStatement<[slug: string | null]> = {
  name: 'ai_agent_models',
  text: `select coalesce(json_agg(json_build_object('id', a.slug, 'object', 'model',
      'created', extract(epoch from a.created_at)::bigint, 'owned_by', 'millrace') order by a.slug), '[]')::text
    from (select slug, created_at from ai_agent where is_active and ($1::text is null or slug = $1::text) order by slug limit 1000) a`,
}

/** Fields of an agent to change. Absent fields keep their value. */
export interface AgentChanges {
  readonly name?: string | undefined
  readonly description?: string | undefined
  readonly category?: string | undefined
  readonly model_id?: string | null | undefined
  readonly fallback_model_id?: string | null | undefined
  readonly temperature?: number | undefined
  readonly max_tokens?: number | undefined
  readonly system_prompt?: string | undefined
  readonly is_active?: boolean | undefined
}

/**
 * Changes an agent. No row if it does not exist. Takes effect with the next turn, because each turn reads the agent.
 */
export const updateAgent = (slug: string, changes: AgentChanges): Query<{ slug: string }> => {
  const given = JSON.stringify(changes)
  return sql.type(z.object({ slug: z.string() }))`
    update ai_agent a set updated_at = now(),
      (name, description, category, model_id, fallback_model_id, temperature, max_tokens, system_prompt, is_active) = (
        -- Reads the row under its lock: a concurrent change may have committed before.
        select g.name, g.description, g.category, g.model_id, g.fallback_model_id, g.temperature, g.max_tokens, g.system_prompt,
          g.is_active
        from jsonb_populate_record(a, ${given}::jsonb) g)
    where a.slug = ${slug}
    returning a.slug`
}
