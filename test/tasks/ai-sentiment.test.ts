import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { Failure, fail } from '../../sql/errors.ts'
import type { Completion, Question } from '../../tasks/ai/ports.ts'
import { scoreSentiment } from '../../tasks/ai/sentiment.task.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { startEdge, startEdgeAndDatabase } from '../edge/harness.ts'

/** A model judges the sentiment of conversations, and the API returns its verdicts. */

const { api, db, query, url } = await startEdgeAndDatabase({ env: { AI_SENTIMENT_ENABLED: 'true' } })
const edgeWithoutSentiment = await startEdge(url)
const STATS = '/api/v1/ai/sentiment/stats'
const asked: Question[] = []

async function runTask(answer: (question: Question) => string | Failure, env: Record<string, string> = {}) {
  const ask = async (question: Question): Promise<Completion> => {
    asked.push(question)
    const reply = answer(question)
    if (reply instanceof Failure) throw reply
    return {
      text: reply,
      toolCalls: [],
      tokens: { input: 9, cached: 0, output: 3, reasoning: 0 },
      finishReason: 'stop',
    }
  }
  asked.length = 0
  return scoreSentiment.run(
    {
      db,
      settings: parseSettings({ OPENAI_API_KEY: 'k', AI_SENTIMENT_ENABLED: 'true', ...env }),
      signal: new AbortController().signal,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      reportProgress: () => {},
      providers: { chat: { ask } },
    } as unknown as TaskContext,
    {},
  )
}

async function addConversation(said: string, minutesAgo = 10, owner: number | null = null): Promise<string> {
  const id = randomUUID()
  await query(
    `insert into ai_conversation (id, user_id, owner_id, title, provider, model, unscored_since, updated_at)
     values ($1, 'u', $3, $4, 'openai', 'm', now() - $2 * interval '1 minute', now() - $2 * interval '1 minute')`,
    [id, minutesAgo, owner, said.slice(0, 20)],
  )
  await query(
    `insert into ai_message (id, conversation_id, role, status, content, job_id, settled_at) values
     (gen_random_uuid(), $1, 'user', 'complete', $2, null, now()), (gen_random_uuid(), $1, 'assistant', 'complete', 'Sure.', gen_random_uuid(), now())`,
    [id, said],
  )
  return id
}
const ageConversations = (id: string) =>
  query(`update ai_conversation set unscored_since = unscored_since - interval '1 day' where id = $1`, [id])
const createVerdict = (sentiment: string, performance: string, score: number): string =>
  JSON.stringify({ sentiment, performance, score })

describe('judging conversations', () => {
  test('statistics are zero before the first run, and show the setting', async () => {
    const empty = {
      total: 0,
      distribution: { positive: 0, neutral: 0, negative: 0, frustrated: 0 },
      performance: { good: 0, acceptable: 0, poor: 0 },
      average_score: 0,
      recent_negatives: [],
    }
    assert.deepEqual((await api.get(STATS)).json, { enabled: true, ...empty })
    assert.deepEqual((await edgeWithoutSentiment.get(STATS)).json, { enabled: false, ...empty })
  })

  test('quiet conversations are judged once, and verdict and usage are stored', async () => {
    const happy = await addConversation('Thank you!')
    const angry = await addConversation('THIS IS WRONG AGAIN')
    await addConversation('just now', 1)
    const judge = ({ messages }: Question): string =>
      messages[0]!.content.includes('Thank')
        ? createVerdict('positive', 'good', 0.9)
        : `\`\`\`json\n${createVerdict('frustrated', 'poor', -0.8)}\n\`\`\``
    assert.deepEqual(await runTask(judge), { scored: 2, failed: 0 })
    assert.match(asked[0]!.messages[0]!.content, /^user: .*\n\nassistant: Sure\.$/s)
    assert.deepEqual(await runTask(judge), { scored: 0, failed: 0 })
    const { recent_negatives: negatives, ...rest } = (await api.get(STATS)).json
    assert.deepEqual(rest, {
      enabled: true,
      total: 2,
      distribution: { positive: 1, neutral: 0, negative: 0, frustrated: 1 },
      performance: { good: 1, acceptable: 0, poor: 1 },
      average_score: 0.05,
    })
    const [{ scored_at, ...negative }] = negatives
    assert.ok(!Number.isNaN(Date.parse(scored_at)))
    assert.deepEqual(negative, {
      conversation_id: angry,
      title: 'THIS IS WRONG AGAIN',
      sentiment: 'frustrated',
      performance: 'poor',
      score: -0.8,
    })
    const used = await query(
      `select conversation_id, user_id, success from ai_usage where action = 'sentiment' order by id`,
    )
    assert.deepEqual(used.map(({ conversation_id }) => conversation_id).sort(), [happy, angry].sort())
    assert.ok(used.every(({ user_id, success }) => user_id === 'system' && success === true))
  })

  test('an invalid verdict is dropped, and requested again after a day', async () => {
    const odd = await addConversation('odd', 20)
    for (const answer of [
      'no idea',
      '{}',
      createVerdict('sad', 'good', 0),
      createVerdict('neutral', 'good', 2),
    ]) {
      assert.deepEqual(await runTask(() => answer), { scored: 0, failed: 1 })
      await ageConversations(odd)
    }
    assert.deepEqual(await runTask(() => fail('ai.refused', { reason: 'x' })), { scored: 0, failed: 1 })
    assert.deepEqual(await runTask(() => ''), { scored: 0, failed: 0 }, 'each time it is asked costs')
    assert.equal(asked.length, 0)
    await ageConversations(odd)
    assert.deepEqual(await runTask(() => createVerdict('neutral', 'acceptable', 0)), { scored: 1, failed: 0 })
  })

  test('a failing provider or its rate ends the run', async () => {
    await addConversation('later')
    for (const failure of [fail('ai.failed', { reason: 'x' }), fail('provider.rate_limited')]) {
      await assert.rejects(
        runTask(() => failure),
        { code: failure.code },
      )
      assert.equal(asked.length, 1)
    }
  })

  test('no request is made if it is disabled or has no key', async () => {
    for (const env of [{ AI_SENTIMENT_ENABLED: 'false' }, { AI_ENABLED: 'false' }, { AI_PROVIDER: 'cohere' }])
      assert.deepEqual(await runTask(() => '', env), { scored: 0, failed: 0 })
    assert.equal(asked.length, 0)
  })

  test('an account sees its own statistics, an admin all', async () => {
    const admin = await api.register('admin@example.com')
    const user = await api.register('user@example.com')
    await addConversation('mine', 10, user.id)
    await runTask(() => createVerdict('negative', 'poor', -0.5))
    const own = (await api.get(STATS, { token: user.token })).json
    assert.deepEqual([own.total, own.recent_negatives.length, own.average_score], [1, 1, -0.5])
    assert.ok((await api.get(STATS, { token: admin.token })).json.total > 1)
    // In an open area, a caller without a credential.
    const { total, recent_negatives } = (await api.get(STATS)).json
    assert.ok(total > 1 && recent_negatives.length > 0)
    assert.ok(!recent_negatives.some(({ title }: { title: string }) => title === 'mine'))
  })
})
