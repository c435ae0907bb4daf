import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createChance } from '../chance.ts'
import { assertAnswerRead, readAnswer } from '../chat-reader.ts'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, type Frame, startProcess } from '../service.ts'
import { startModelServer } from '../standins/models.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'

/**
 * Answers survive lost connections of readers, a killed edge and a killed worker. `npm run bench -- chat-kills` is the
 * large version.
 */

const READERS = 8
const PIECES = Array.from({ length: 60 }, (_, i) => `piece ${i}. `)

const { url, query } = await createTestDatabase()
const models = await startModelServer()
after(() => models.stop())
// Answers end only after their worker was killed. The first answer ends only when it is stopped.
let isKilled = false
models.script = ({ body }) => {
  const ends = isKilled && body.messages.at(-1)!.content !== 'Question 0'
  return { pieces: PIECES, betweenMs: 25, ...(ends ? {} : { breaks: { after: 40, does: 'hang' } }) }
}
const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: models.url, WORKER_QUEUES: 'ai', ...SHORT_LEASE }
const [doomedEdge, edge, doomedWorker] = await Promise.all([
  startProcess('edge', url, env),
  startEdge(url, { env }),
  startProcess('worker', url, env),
])
const ports = [doomedEdge.ready.port!, edge.port]
const client = new Client(edge.port)
await client.register('reader@example.com')

const hasRestarted = (frames: readonly Frame[]): boolean =>
  frames.slice(0, -2).some(({ event }) => event === 'restart')

test('readers get exactly the stored answer, without gaps or repeats, and can stop it after a resume', async () => {
  const { next: random } = createChance(7)
  const readers = Array.from({ length: READERS }, (_, i) =>
    readAnswer({
      ports: () => ports,
      message: `Question ${i}`,
      key: `reader ${i}`,
      random,
      dropProbability: 0.02,
      ...(i === 0 ? { stopWhen: hasRestarted, token: client.token } : {}),
    }),
  )
  await until('the first pieces have arrived', async () => {
    const [row] = await query(`select count(distinct job_id)::int as n from job_event where kind = 'chunk'`)
    return row!.n === READERS
  })
  await doomedWorker.kill()
  isKilled = true
  const [worker] = await Promise.all([
    startProcess('worker', url, env),
    doomedEdge.kill().then(() => ports.shift()),
  ])
  assert.ok(worker)
  const streams = await Promise.all(readers)
  const checked = await Promise.all(streams.map((one) => assertAnswerRead(query, one)))
  // A lease can expire on a busy machine, so there may be more attempts.
  assert.ok(
    checked.every(({ attempts }) => attempts >= 2),
    checked.map(({ attempts }) => attempts).join(),
  )
  assert.deepEqual(
    checked.map(({ status }) => status),
    ['stopped', ...Array(READERS - 1).fill('complete')],
  )
  assert.ok(streams.every(({ frames }) => frames.some(({ event }) => event === 'restart')))
  // The usage includes both attempts; the killed one is counted by its pieces.
  const [used] = await query(
    `select count(*)::int as n, count(distinct message_id)::int as messages from ai_usage`,
  )
  assert.deepEqual(used, { n: READERS, messages: READERS })
})
