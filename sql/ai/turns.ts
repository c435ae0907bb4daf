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

export interface NewTurn {
  readonly conversationId: string
  readonly jobId: string
  readonly questionId: string
  readonly answerId: string
  readonly message: string
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

const insertMessages = (turn: NewTurn) => sql.fragment`
  insert into ai_message (id, conversation_id, role, status, content, job_id, provider, model, settled_at)
  select m.id, conversation.id, m.role, m.status, m.content, m.job_id, m.provider, m.model, m.settled_at
  from conversation cross join (values
    (1, ${turn.questionId}::uuid, 'user', 'complete', ${turn.message}, null::uuid, null, null, now()),
    (2, ${turn.answerId}::uuid, 'assistant', 'pending', '', ${turn.jobId}::uuid, ${turn.provider}, ${turn.model}, null)
  ) as m (n, id, role, status, content, job_id, provider, model, settled_at) order by m.n
  returning id`

/** Adds the question and the pending answer. No row if the conversation no longer exists. */
export const insertTurn = (turn: NewTurn): Query<{ id: string }> =>
  sql.prepared('ai_turn_insert', IdRow)`
    with conversation as (
      update ai_conversation set updated_at = now() where id = ${turn.conversationId}::uuid returning id
    )
    ${insertMessages(turn)}`

/** Adds a conversation with its first turn. */
export const insertFirstTurn = (turn: NewTurn, c: NewConversation): Query<{ id: string }> =>
  sql.prepared('ai_turn_insert_first', IdRow)`
    with conversation as (
      insert into ai_conversation (id, user_id, owner_id, title, provider, model)
      values (${turn.conversationId}::uuid, ${c.userId}, ${c.ownerId}::int, ${c.title}, ${turn.provider}, ${turn.model})
      returning id
    )
    ${insertMessages(turn)}`

/** Finds the account whose id equals a user_id. No row if there is none. */
export const findAccountByUserId = (id: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`select id from account where id = ${id} and deleted_at is null`

const TurnInput = z.object({
  temperature: z.number().nullable(),
  max_tokens: z.number().nullable(),
  system_prompt: z.string(),
  fallback_model_id: z.string().nullable(),
  history: z.array(z.object({ role: z.enum(['user', 'assistant']), content: z.string() })),
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
export type TurnInput = z.output<typeof TurnInput>

/**
 * Reads the input for the model: the current agent and the last `messages` up to the question, oldest first. Skips
 * unanswered questions, because a provider that refused one would refuse the whole request. Also skips questions with a
 * blank answer, which Anthropic refuses. No row if the conversation is gone.
 */
export const readTurnInput = (
  answerId: string,
  agentSlug: string,
  messages: number,
  jobId: string,
): Query<TurnInput> =>
  sql.prepared('ai_turn_to_answer', TurnInput)`
    select agent.temperature, agent.max_tokens, agent.system_prompt, agent.fallback_model_id,
      exists (select from job_event e where e.job_id = ${jobId}::uuid and e.kind = 'chunk' and e.seq > coalesce((
        select max(r.seq) from job_event r where r.job_id = ${jobId}::uuid and r.kind = 'restart'), 0)) as shown,
      (select json_build_object('vendor', vendor, 'model_id', model_id, 'temperature', temperature, 'max_tokens', max_tokens)
        from llm_current) as chosen,
      (select coalesce(json_agg(json_build_object('role', h.role, 'content', h.content) order by h.ordinal), '[]') from (
        select said.* from (
          select a.id, a.content, a.ordinal from ai_message a
          where a.conversation_id = answer.conversation_id and a.role = 'assistant' and a.ordinal <= answer.ordinal
            and (a.id = answer.id or (a.status in ('complete', 'stopped') and a.content ~ '\\S'))
          order by a.ordinal desc limit ${messages}) a
        cross join lateral (
          (select q.role, q.content, q.ordinal from ai_message q
            where q.conversation_id = answer.conversation_id and q.ordinal < a.ordinal order by q.ordinal desc limit 1)
          union all
          select 'assistant', a.content, a.ordinal where a.id <> answer.id) said
        order by said.ordinal desc limit ${messages}) h) as history
    from ai_message answer join ai_agent agent on agent.slug = ${agentSlug}
    where answer.id = ${answerId}::uuid`

/** State of a turn, from which its stream continues. */
export const TurnState = z.object({
  message_id: z.string(),
  conversation_id: z.string(),
  user_id: z.string(),
  owner_id: z.number().nullable(),
  job_id: z.string(),
  status: z.enum(['complete', 'pending', 'failed', 'stopped']),
  content: z.string(),
  provider: z.string(),
  model: z.string(),
  response_time_ms: z.number().nullable(),
  finish_reason: z.string().nullable(),
  reasoning: z.string().nullable(),
  error_detail: z.string().nullable(),
  settled_at: z.string().nullable(),
  /** Seq of the job's last event; null if the job is gone. */
  seq: z.number().nullable(),
  /** True if the job has ended; null if it is gone. */
  ended: z.boolean().nullable(),
})
export type TurnState = z.output<typeof TurnState>

const TURN_STATE_QUERY = `select json_build_object('message_id', m.id, 'conversation_id', c.id, 'user_id', c.user_id,
    'owner_id', c.owner_id, 'job_id', m.job_id, 'status', m.status, 'content', m.content, 'provider', m.provider,
    'model', m.model, 'response_time_ms', m.response_ms, 'finish_reason', m.finish_reason,
    'reasoning', m.reasoning, 'error_detail', m.error_detail, 'settled_at', iso(m.settled_at),
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
