import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import {
  cancelPendingTurns,
  deleteConversation,
  readConversation,
  readConversationOwner,
  readConversations,
  renameConversation,
} from '../../sql/ai/conversations.ts'
import { searchConversations } from '../../sql/ai/search.ts'
import {
  findUnscoredConversations,
  readAccountSentiment,
  readSentiment,
  storeJudgement,
} from '../../sql/ai/sentiment.ts'
import {
  insertFirstTurn,
  insertTurn,
  readTurn,
  readTurnByJob,
  readTurnInput,
  readTurnStart,
} from '../../sql/ai/turns.ts'
import { insertUsage, readUsage, readUserUsage } from '../../sql/ai/usage.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertWriteByIndex, daysAgo, planRead, testReads } from './plans-help.ts'

/** Queries of conversations use an index, with 4,000 conversations and 16,000 messages. */

const { url, query } = await createTestDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 500) n`,
)
await query(
  `insert into ai_conversation (id, user_id, owner_id, title, provider, model, updated_at, unscored_since)
   select gen_random_uuid(), (1 + n % 500)::text, case when n % 3 > 0 then 1 + n % 500 end, 't', 'openai', 'm',
     now() - n * interval '2 minutes', case when n % 50 = 0 then now() - n * interval '2 minutes' end from generate_series(1, 4000) n`,
)
await query(
  `insert into ai_message (id, conversation_id, role, status, content, job_id, settled_at)
   select gen_random_uuid(), id, case n % 2 when 1 then 'user' else 'assistant' end, 'complete', 'x',
     case n % 2 when 0 then gen_random_uuid() end, now() from ai_conversation, generate_series(1, 4) n`,
)
await query(
  `insert into ai_usage (user_id, conversation_id, message_id, action, vendor, model, input_tokens, output_tokens, estimated, success, created_at)
   select (n % 500)::text, gen_random_uuid(), gen_random_uuid(), 'chat', 'openai', 'm', 1, 1, false, true, now() - n * interval '2 minutes'
   from generate_series(1, 4000) n`,
)
await query(
  `insert into ai_sentiment (conversation_id, owner_id, sentiment, performance, score) select id, owner_id, 'negative', 'poor', -1 from ai_conversation limit 1200`,
)
await query(
  `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, result)
   select gen_random_uuid(), 'noop', 'system', 'noop/0', '{}', 'done', 3, now(), '{}' from generate_series(1, 1500)`,
)
await vacuumAnalyze(query)

const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())
const readValue = async (text: string): Promise<string> => String(Object.values((await query(text))[0]!)[0])
const conversation = await readValue('select id from ai_conversation limit 1')
const answer = await readValue(`select id from ai_message where role = 'assistant' limit 1`)
const job = await readValue(`select job_id from ai_message where role = 'assistant' limit 1`)

const ANY_TIME = [null, null] as const
// The test's rows are from the last five days.
const TIME_RANGE = [daysAgo(4), daysAgo(1)] as const
const reads = [
  ...(['asc', 'desc'] as const).flatMap((way) =>
    [ANY_TIME, TIME_RANGE].flatMap((time) => {
      const statement = readConversations.updated_at[way]
      const what = `(${way}, ${time === ANY_TIME ? 'of any time' : 'of some days'})`
      return [
        planRead(`conversations of an account ${what}`, statement, '5', 5, false, ...time, null, 0, 50),
        planRead(
          `conversations without an owner ${what}`,
          statement,
          'api-user',
          null,
          true,
          ...time,
          null,
          0,
          50,
        ),
        planRead(`conversations that an admin sees ${what}`, statement, '5', 5, true, ...time, null, 0, 200),
      ]
    }),
  ),
  ...(['asc', 'desc'] as const).flatMap((way) => {
    const statement = searchConversations.updated_at[way]
    return [
      planRead(`a search of an account (${way})`, statement, '5', 5, false, ...ANY_TIME, 'x t', null, 0, 50),
      planRead(
        `a search that an admin makes (${way})`,
        statement,
        '5',
        5,
        true,
        ...TIME_RANGE,
        'x -y',
        null,
        0,
        50,
      ),
    ]
  }),
  planRead('a conversation', readConversation, conversation, null, 0, 200),
  planRead('the owner of a conversation', readConversationOwner, conversation),
  planRead('a turn by its answer', readTurn, answer),
  planRead('a turn by its job', readTurnByJob, job),
  planRead('usage of a user', readUserUsage, null, null, 10, '5', null, false),
  planRead('usage of all users', readUsage, null, null, 10),
  planRead('usage of some days', readUsage, ...TIME_RANGE, 10),
  planRead('sentiment of all conversations', readSentiment, true, true),
  planRead('sentiment of an account’s conversations', readAccountSentiment, true, 5),
]
// For these small tables, a sequential scan may be cheaper.
const SMALL_TABLES = ['ai_agent', 'llm_current']

describe('reads by index', () => {
  testReads(client, reads)

  test('starting a turn', async () => {
    await client.query(`prepare start as ${readTurnStart.text}`)
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain execute start('assistant', '${conversation}')`,
    )
    const scanned = rows.flatMap((row) => /Seq Scan on (\w+)/.exec(row['QUERY PLAN'])?.[1] ?? [])
    assert.deepEqual(
      scanned.filter((table) => !SMALL_TABLES.includes(table)),
      [],
    )
  })
})

describe('writes by index', () => {
  const turn = (conversationId: string) => ({
    conversationId,
    jobId: uuidv7(),
    question: { id: uuidv7(), content: 'x', documentIds: [], toolResults: null },
    answerId: uuidv7(),
    provider: 'openai',
    model: 'm',
  })
  const readUnscored = async () => {
    const [row] = await query(
      'select id, unscored_since::text as since from ai_conversation where unscored_since is not null limit 1',
    )
    return row as { id: string; since: string }
  }
  const writes: readonly [what: string, () => Promise<Query<unknown>> | Query<unknown>][] = [
    ['a first turn', () => insertFirstTurn(turn(uuidv7()), { userId: 'u', ownerId: 5, title: 't' })],
    ['a turn', () => insertTurn(turn(conversation))],
    ['the input of a turn', () => readTurnInput(answer, 'assistant', 21, job)],
    ['renaming a conversation', () => renameConversation(conversation, 'x')],
    ['cancelling pending turns', () => cancelPendingTurns(conversation)],
    ['unscored conversations', () => findUnscoredConversations(300, 20, 50)],
    [
      'storing a sentiment',
      async () =>
        storeJudgement(await readUnscored(), { sentiment: 'neutral', performance: 'good', score: 0 }),
    ],
    [
      'recording usage',
      () =>
        insertUsage({
          userId: 'u',
          conversationId: conversation,
          action: 'sentiment',
          vendor: 'v',
          model: 'm',
          input: 1,
          cached: 0,
          output: 1,
          reasoning: 0,
          cost: null,
          estimated: false,
          success: true,
        }),
    ],
    [
      'deleting a conversation',
      async () =>
        deleteConversation(await readValue('select id from ai_conversation order by id desc limit 1')),
    ],
  ]
  // A sequential scan is allowed for the few agents.
  for (const [what, make] of writes)
    test(what, () => assertWriteByIndex(client, make, 'ai_m', 'ai_c', 'ai_u', 'ai_s'))
})
