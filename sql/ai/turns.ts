import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Statements that start a turn, and statements that read it while it runs. `ai_turn_settle` records its outcome. */

/** Agent and conversation for the start of a turn. A null conversation id stands for a new conversation. */
export const readTurnStart: ReadStatement<[agentSlug: string, conversation: string | null]> = {
  name: 'ai_turn_start',
  text: `select json_build_object(
    'agent', (select json_build_object('model_id', model_id, 'is_active', is_active) from ai_agent where slug = $1::text),
    'chosen', (select json_build_object('vendor', vendor, 'model_id', model_id) from llm_current),
    'conversation', (select json_build_object('user_id', user_id, 'owner_id', owner_id) from ai_conversation where id = $2::uuid))::text`,
}

/** Results of the tools that an answer called. */
export interface ToolResult {
  readonly tool_call_id: string
  readonly content: string
}

/** The message of a caller that a turn answers. */
export interface NewQuestion {
  readonly id: string
  /** Empty for results of tools. */
  readonly content: string
  readonly documentIds: readonly number[]
  /** Null for a question of a person. */
  readonly toolResults: readonly ToolResult[] | null
}

export interface NewTurn {
  readonly conversationId: string
  readonly jobId: string
  /** Null for another answer to the last message of the active branch. */
  readonly question: NewQuestion | null
  readonly answerId: string
  readonly provider: string
  readonly model: string
}

/** The conversation that a first turn creates. */
export interface NewConversation {
  readonly userId: string
  readonly ownerId: number | null
  readonly title: string
}

const IdRow = z.object({ id: z.string() })

/** Adds the messages of a turn below `parent`, a query for the last message of the active branch. */
const insertMessages = (
  { question, ...turn }: NewTurn,
  parent: ReturnType<typeof sql.fragment>,
) => sql.fragment`
  insert into ai_message (id, conversation_id, parent_id, role, status, content, document_ids, tool_results, job_id, provider,
    model, settled_at)
  select m.id, conversation.id, m.parent_id, m.role, m.status, m.content, m.document_ids, m.tool_results, m.job_id, m.provider,
    m.model, m.settled_at
  from conversation cross join lateral (${parent}) parent cross join lateral (values
    (1, ${question?.id ?? null}::uuid, parent.id, ${question?.toolResults == null ? 'user' : 'tool'}, 'complete',
      ${question?.content ?? ''}, ${`{${(question?.documentIds ?? []).join(',')}}`}::bigint[],
      ${question?.toolResults == null ? null : JSON.stringify(question.toolResults)}::jsonb, null::uuid, null, null, now()),
    (2, ${turn.answerId}::uuid, coalesce(${question?.id ?? null}::uuid, parent.id), 'assistant', 'pending', '', '{}', null, ${turn.jobId}::uuid,
      ${turn.provider}, ${turn.model}, null)
  ) as m (n, id, parent_id, role, status, content, document_ids, tool_results, job_id, provider, model, settled_at)
  where m.id is not null order by m.n
  returning id`

/** Adds the question and the pending answer to the active branch. No row if the conversation no longer exists. */
export const insertTurn = (turn: NewTurn): Query<{ id: string }> =>
  sql.prepared('ai_turn_insert', IdRow)`
    with conversation as (
      update ai_conversation set updated_at = now() where id = ${turn.conversationId}::uuid returning id
    )
    ${insertMessages(
      turn,
      sql.fragment`select (
        select m.id from ai_message m where m.conversation_id = conversation.id and m.is_active order by m.ordinal desc limit 1) as id`,
    )}`

/** Adds a conversation with its first turn. */
export const insertFirstTurn = (turn: NewTurn, c: NewConversation): Query<{ id: string }> =>
  sql.prepared('ai_turn_insert_first', IdRow)`
    with conversation as (
      insert into ai_conversation (id, user_id, owner_id, title, provider, model)
      values (${turn.conversationId}::uuid, ${c.userId}, ${c.ownerId}::int, ${c.title}, ${turn.provider}, ${turn.model})
      returning id
    )
    ${insertMessages(turn, sql.fragment`select null::uuid as id`)}`

/** Finds the account whose id equals a user_id. No row if there is none. */
export const findAccountByUserId = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`select id from account where id = ${id} and deleted_at is null`

/** A call of a tool. `extra_content` belongs to the provider, which needs it again, such as Gemini's signatures. */
export const ToolCall = z.object({
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
  extra_content: z.unknown().optional(),
})
export type ToolCall = z.output<typeof ToolCall>

const PathMessage = z.object({
  role: z.enum(['user', 'assistant', 'tool']),
  status: z.enum(['complete', 'pending', 'failed', 'stopped']),
  content: z.string(),
  document_ids: z.array(z.number()),
  tool_calls: z.array(ToolCall).nullable(),
  tool_results: z.array(z.object({ tool_call_id: z.string(), content: z.string() })).nullable(),
})
/** A message on the way to an answer. */
export type PathMessage = z.output<typeof PathMessage>

const AgentSettings = z.object({
  temperature: z.number().nullable(),
  max_tokens: z.number().nullable(),
  system_prompt: z.string(),
  fallback_model_id: z.string().nullable(),
  /** True if subscribers received pieces of an earlier attempt. */
  shown: z.boolean(),
  /** Model and parameters that an admin chose; null uses those of the settings. */
  chosen: z
    .object({
      vendor: z.string(),
      model_id: z.string(),
      temperature: z.number().nullable(),
      max_tokens: z.number().nullable(),
    })
    .nullable(),
})

export type AgentSettings = z.output<typeof AgentSettings>

const TurnInput = AgentSettings.extend({ path: z.array(PathMessage) })
export type TurnInput = z.output<typeof TurnInput>

const selectAgentSettings = (
  jobId: string,
) => sql.fragment`agent.temperature, agent.max_tokens, agent.system_prompt,
      agent.fallback_model_id,
      exists (select from job_event e where e.job_id = ${jobId}::uuid and e.kind in ('chunk', 'tool_call') and e.seq > coalesce((
        select max(r.seq) from job_event r where r.job_id = ${jobId}::uuid and r.kind = 'restart'), 0)) as shown,
      (select json_build_object('vendor', vendor, 'model_id', model_id, 'temperature', temperature, 'max_tokens', max_tokens)
        from llm_current) as chosen`

/** Reads the current settings of an agent for a job. No row if the agent does not exist. */
export const readAgentSettings = (slug: string, jobId: string): Query<z.output<typeof AgentSettings>> =>
  sql.prepared('ai_agent_settings', AgentSettings)`
    select ${selectAgentSettings(jobId)} from ai_agent agent where agent.slug = ${slug}`

/**
 * Reads the input for the model: the current agent, and the branch up to the question, oldest first. The branch has at
 * least the last `messages`, and begins with a question of a person. No row if the conversation is gone.
 */
export const readTurnInput = (
  answerId: string,
  agentSlug: string,
  messages: number,
  jobId: string,
): Query<TurnInput> =>
  sql.prepared('ai_turn_to_answer', TurnInput)`
    with recursive branch as (
      select m.*, 1 as depth, 1 as used from ai_message answer join ai_message m on m.id = answer.parent_id where answer.id = ${answerId}::uuid
      union all
      -- A turn without an answer does not count.
      select m.*, b.depth + 1, b.used + case when m.role = 'assistant' and m.status not in ('complete', 'stopped') then -1 else 1 end
      from branch b join ai_message m on m.id = b.parent_id
      where (b.used < ${messages}::int or b.role <> 'user') and b.depth < ${messages}::int * 10 + 50
    )
    select ${selectAgentSettings(jobId)},
      (select coalesce(json_agg(json_build_object('role', b.role, 'status', b.status, 'content', b.content,
          'document_ids', b.document_ids, 'tool_calls', b.tool_calls, 'tool_results', b.tool_results) order by b.depth desc), '[]')
        from branch b) as path
    from ai_message answer join ai_agent agent on agent.slug = ${agentSlug}
    where answer.id = ${answerId}::uuid`

/** State of a turn, from which its stream continues. */
export const TurnState = z.object({
  message_id: z.string(),
  conversation_id: z.string(),
  user_id: z.string(),
  owner_id: z.number().nullable(),
  /** Null for an answer that a new conversation took over. */
  job_id: z.string().nullable(),
  status: z.enum(['complete', 'pending', 'failed', 'stopped']),
  content: z.string(),
  tool_calls: z.array(ToolCall).nullable(),
  provider: z.string(),
  model: z.string(),
  response_time_ms: z.number().nullable(),
  finish_reason: z.string().nullable(),
  reasoning: z.string().nullable(),
  rag_sources: z.array(z.unknown()).nullable(),
  error_detail: z.string().nullable(),
  settled_at: z.string().nullable(),
  /** Seq of the job's last event; null if the job is gone. */
  seq: z.number().nullable(),
  /** True if the job has ended; null if it is gone. */
  ended: z.boolean().nullable(),
})
export type TurnState = z.output<typeof TurnState>

const TURN_STATE_QUERY = `select json_build_object('message_id', m.id, 'conversation_id', c.id, 'user_id', c.user_id,
    'owner_id', c.owner_id, 'job_id', m.job_id, 'status', m.status, 'content', m.content, 'tool_calls', m.tool_calls,
    'provider', m.provider, 'model', m.model, 'response_time_ms', m.response_ms, 'finish_reason', m.finish_reason,
    'reasoning', m.reasoning, 'rag_sources', m.rag_sources, 'error_detail', m.error_detail, 'settled_at', iso(m.settled_at),
    'seq', job.seq, 'ended', job.finished_at is not null)::text
  from ai_message m join ai_conversation c on c.id = m.conversation_id left join job on job.id = m.job_id`

/** State of the turn that has this answer. */
export const readTurn: ReadStatement<[answer: string]> = {
  name: 'ai_turn',
  text: `${TURN_STATE_QUERY} where m.id = $1::uuid and m.role = 'assistant'`,
}

/** State of the turn that this job runs. */
export const readTurnByJob: ReadStatement<[job: string]> = {
  name: 'ai_turn_of_job',
  text: `${TURN_STATE_QUERY} where m.job_id = $1::uuid`,
}
