import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { insertFirstTurn, readTurnInput } from '../../sql/ai/turns.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
import { ALONE_FROM_DEATHS, cancelJobs, endAttempts, enqueueJobs, MAX_CRASHES } from '../../sql/jobs/jobs.ts'
import { answerMessage } from '../../tasks/ai/chat.task.ts'
import { createTestDatabase } from '../database.ts'
import { storeProgress } from './ledger-help.ts'

/** A turn is settled when its job ends, however the job ended. */

const { db, query } = await createTestDatabase()
const LEASE = uuidv7()
await query(
  `insert into worker_lease (id, name, queues, expires_at) values ($1, 'w', '{ai}', now() + interval '1 hour')`,
  [LEASE],
)

interface Turn {
  readonly jobId: string
  readonly answerId: string
  readonly conversationId: string
}

async function beginTurn(): Promise<Turn> {
  const [jobId, answerId, conversationId] = [uuidv7(), uuidv7(), uuidv7()]
  const payload = {
    message_id: answerId,
    conversation_id: conversationId,
    user_id: 'u',
    owner_id: null,
    agent_slug: 'assistant',
    provider: 'openai',
    model: 'asked',
    stream: true,
  }
  const spec = {
    id: jobId,
    name: 'ai.chat',
    queue: 'ai',
    owner_id: null,
    mailbox: `conversation:${conversationId}`,
    mailbox_limit: 1,
    when_busy: 'wait' as const,
    settle: answerMessage.settleFunction!,
    payload,
    max_tries: 3,
    delay_ms: null,
    request_id: null,
  }
  await db.any(enqueueJobs([spec], 0))
  const turn = {
    conversationId,
    jobId,
    question: { id: uuidv7(), content: 'Q', documentIds: [], toolResults: null },
    answerId,
    provider: 'openai',
    model: 'asked',
  }
  await db.any(insertFirstTurn(turn, { userId: 'u', ownerId: null, title: 'Q' }))
  return { jobId, answerId, conversationId }
}
async function claimJob({ jobId, conversationId }: Turn): Promise<number> {
  const delivery = {
    task: answerMessage.name,
    mailbox: `conversation:${conversationId}`,
    limit: 1,
    first: 0,
    id: jobId,
    owner: null,
  }
  const [claimed] = parseClaims(await db.one(claimJobs(LEASE, [{ delivery, freeSlots: 1 }])))
  assert.equal(claimed!.id, jobId)
  return claimed!.attempt
}
const storeEvents = (
  id: string,
  attempt: number,
  events: readonly (readonly [kind: string, data: object])[],
) => db.any(storeProgress(events.map(([kind, data], i) => ({ id, attempt, n: i + 1, kind, data }))))
const createChunkEvent = (content: string) => ['chunk', { content, timestamp: 't' }] as const
const createUsageEvent = (more: object = {}) =>
  [
    'usage',
    {
      provider: 'mistral',
      model: 'said',
      input: 10,
      cached: 1,
      output: 4,
      reasoning: 2,
      cost: '0.1',
      estimated: false,
      ...more,
    },
  ] as const
const finishTurn = ({ jobId, answerId, conversationId }: Turn, attempt: number) =>
  endAttempts(db, [
    {
      id: jobId,
      attempt,
      outcome: 'done',
      result: JSON.stringify({
        message_id: answerId,
        conversation_id: conversationId,
        content: 'all of it',
        response_time_ms: 12.5,
      }),
    },
  ])
const readMessage = async ({ answerId }: Turn) =>
  (
    await query(
      'select status, content, provider, model, response_ms, error_detail from ai_message where id = $1',
      [answerId],
    )
  )[0]
const readUsage = async ({ answerId }: Turn) =>
  (
    await query(
      `select vendor, model, input_tokens::int as input, cached_tokens::int as cached, output_tokens::int as output,
        reasoning_tokens::int as reasoning, cost, estimated, success, action from ai_usage where message_id = $1`,
      [answerId],
    )
  )[0]
const readConversation = async ({ conversationId }: Turn) =>
  (
    await query(
      'select provider, model, last_response_ms, unscored_since is not null as unscored from ai_conversation where id = $1',
      [conversationId],
    )
  )[0]

describe('settling a turn', () => {
  test('sums up the usage of all attempts when the job ends', async () => {
    const turn = await beginTurn()
    assert.equal((await db.one(readTurnInput(turn.answerId, 'assistant', 5, turn.jobId))).shown, false)
    const first = await claimJob(turn)
    await storeEvents(turn.jobId, first, [createChunkEvent('gone'), createUsageEvent()])
    assert.equal((await db.one(readTurnInput(turn.answerId, 'assistant', 5, turn.jobId))).shown, true)
    await endAttempts(db, [{ id: turn.jobId, attempt: first, outcome: 'release' }])
    assert.equal((await readMessage(turn))!.status, 'pending')
    const second = await claimJob(turn)
    await storeEvents(turn.jobId, second, [
      ['restart', {}],
      createChunkEvent('all '),
      createChunkEvent('of it'),
      createUsageEvent({ cost: '0.20000000000000000001' }),
    ])
    await finishTurn(turn, second)
    assert.deepEqual(await readMessage(turn), {
      status: 'complete',
      content: 'all of it',
      provider: 'mistral',
      model: 'said',
      response_ms: 12.5,
      error_detail: null,
    })
    assert.deepEqual(await readUsage(turn), {
      vendor: 'mistral',
      model: 'said',
      input: 20,
      cached: 2,
      output: 8,
      reasoning: 4,
      cost: '0.30000000000000000001',
      estimated: false,
      success: true,
      action: 'chat',
    })
    assert.deepEqual(await readConversation(turn), {
      provider: 'mistral',
      model: 'said',
      last_response_ms: 12.5,
      unscored: true,
    })
  })

  test('stores no cost if the price of one attempt is unknown', async () => {
    const turn = await beginTurn()
    const first = await claimJob(turn)
    await storeEvents(turn.jobId, first, [createUsageEvent({ cost: null, estimated: true })])
    await endAttempts(db, [{ id: turn.jobId, attempt: first, outcome: 'retry' }])
    const second = await claimJob(turn)
    await storeEvents(turn.jobId, second, [createUsageEvent()])
    await finishTurn(turn, second)
    const { cost, estimated } = (await readUsage(turn))!
    assert.deepEqual([cost, estimated], [null, true])
  })

  test('stores the text since the last start, and the reason, when the job fails', async () => {
    const turn = await beginTurn()
    const attempt = await claimJob(turn)
    await storeEvents(turn.jobId, attempt, [
      createChunkEvent('x'),
      ['restart', {}],
      createChunkEvent('Par'),
      createChunkEvent('tial'),
      createUsageEvent(),
    ])
    await endAttempts(db, [
      { id: turn.jobId, attempt, outcome: 'failed', code: 'ai.interrupted', detail: 'It broke off' },
    ])
    const { status, content, error_detail } = (await readMessage(turn))!
    assert.deepEqual([status, content, error_detail], ['failed', 'Partial', 'It broke off'])
    assert.equal((await readUsage(turn))!.success, false)
    assert.deepEqual(await readConversation(turn), {
      provider: 'openai',
      model: 'asked',
      last_response_ms: null,
      unscored: false,
    })
  })

  test('estimates usage from the text length when the process died for the last time', async () => {
    const turn = await beginTurn()
    const attempt = await claimJob(turn)
    await storeEvents(turn.jobId, attempt, [createChunkEvent('0123456789')])
    const interruptions = ALONE_FROM_DEATHS + MAX_CRASHES
    await endAttempts(db, [
      { id: turn.jobId, attempt, outcome: 'crashed', interruptions, code: 'job.crashed', detail: 'x' },
    ])
    assert.deepEqual(
      [(await readMessage(turn))!.status, (await readMessage(turn))!.content],
      ['failed', '0123456789'],
    )
    const { output, cost, estimated, success, model } = (await readUsage(turn))!
    assert.deepEqual([output, cost, estimated, success, model], [3, null, true, false, 'asked'])
  })

  test('counts no usage if the turn was stopped before it began', async () => {
    const turn = await beginTurn()
    await db.any(cancelJobs([turn.jobId]))
    assert.deepEqual([(await readMessage(turn))!.status, (await readMessage(turn))!.content], ['stopped', ''])
    assert.equal(await readUsage(turn), undefined)
  })

  test('happens once, and counts usage even if the conversation is gone', async () => {
    const turn = await beginTurn()
    const attempt = await claimJob(turn)
    await storeEvents(turn.jobId, attempt, [createUsageEvent()])
    await query('delete from ai_conversation where id = $1', [turn.conversationId])
    await finishTurn(turn, attempt)
    assert.equal((await readUsage(turn))!.input, 10)
  })
})

test('counts the visible messages, whatever is written', async () => {
  const [one, other] = [uuidv7(), uuidv7()].sort()
  await query(
    `insert into ai_conversation (id, user_id, title, provider, model) select id, 'u', 't', 'p', 'm' from unnest($1::uuid[]) id`,
    [[one, other]],
  )
  const readCounts = async () =>
    (
      await query('select message_count as n from ai_conversation where id = any($1) order by id', [
        [one, other],
      ])
    ).map(({ n }) => n)
  await query(
    `insert into ai_message (id, conversation_id, role, status, content, job_id, settled_at)
     select gen_random_uuid(), c, role, status, content, case role when 'assistant' then gen_random_uuid() end,
       case when status <> 'pending' then now() end
     from unnest($1::uuid[]) c, (values ('user', 'complete', 'Hello'), ('assistant', 'complete', 'Hi'),
       ('assistant', 'failed', ''), ('assistant', 'pending', ''), ('assistant', 'pending', 'Wel')) m(role, status, content)`,
    [[one, other]],
  )
  assert.deepEqual(await readCounts(), [2, 2])
  for (const [change, expected] of [
    [`set status = 'complete', settled_at = now() where content = 'Wel'`, [3, 3]],
    [`set content = 'Sorry' where status = 'failed'`, [4, 4]],
    [`set content = '' where content = 'Hi' and conversation_id = $1`, [3, 4]],
    [`set response_ms = 1 where role = 'user'`, [3, 4]],
    [`set conversation_id = $1 where content = 'Sorry'`, [4, 3]],
  ] as const) {
    const given = change.replace('$1', `'${one}'`)
    await query(`update ai_message ${given} and conversation_id in ('${one}', '${other}')`)
    assert.deepEqual(await readCounts(), expected, change)
  }
  await query(
    `delete from ai_message where content in ('Hello', '') and conversation_id in ('${one}', '${other}')`,
  )
  assert.deepEqual(await readCounts(), [3, 2])
  await query('delete from ai_conversation where id = $1', [one])
  assert.deepEqual(await readCounts(), [2])
})
