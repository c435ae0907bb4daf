import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertCounted, createCaller, importFile } from '../edge/blog-help.ts'
import { type Account, type Answered, startEdge, startEdgeAndDatabase } from '../edge/harness.ts'
import { assertRefused } from '../edge/orgs-help.ts'
import { type Child, launchProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'
import { createZip } from '../zip.ts'
import { SHORT_LEASE } from './crash.ts'
import { createClosedGate, type Gate } from './gate.ts'

/** Imports posts with real workers, some of which are killed, and checks the stored rows. */

const { api, url, query } = await startEdgeAndDatabase()
const editor: Account = await api.register('editor@example.com', { full_name: 'Ed' })
const call = createCaller(api)
async function startWorker(name: string): Promise<Child> {
  const started = await launchProcess('worker', url, {
    PROJECT_NAME: name,
    WORKER_QUEUES: 'blog',
    WORKER_THREADS: '1',
    ...SHORT_LEASE,
  })
  stopAfterFile(() => started.kill())
  return started
}
let holder = await startWorker('first')
const send = (name: string, bytes: string | Uint8Array, options = ''): Promise<Answered> =>
  importFile(api, editor, name, bytes, { query: options })
const NO_ERRORS = { created: 0, updated: 0, skipped: 0, failed: 0, errors: [] }

test('imports a Markdown file as a post', async () => {
  const answer = await send('2020-01-02-hello.md', '---\ntitle: Hello\ntags: [one]\n---\nText')
  assert.deepEqual([answer.status, answer.json], [200, { ...NO_ERRORS, created: 1 }])
  const { json } = await call(null, 'GET', '/posts/hello')
  assert.deepEqual(
    [json.title, json.content, json.published_at, json.author_id, json.author_name, json.tags[0].slug],
    ['Hello', 'Text', '2020-01-02T00:00:00.000Z', editor.id, 'Ed', 'one'],
  )
})

test('reports errors of single posts with status 200', async () => {
  const answer = await send(
    'x.zip',
    createZip([
      ['good.md', 'x'],
      ['bad.md', '---\ntitle: [\n---\n'],
      ['hello.md', 'x'],
    ]),
  )
  assert.equal(answer.status, 200)
  const { errors, ...counts } = answer.json
  assert.deepEqual(counts, { created: 1, updated: 0, skipped: 1, failed: 1 })
  assert.deepEqual([errors[0].slug, errors[0].file], ['bad', 'bad.md'])
  assert.deepEqual([errors[1].slug, errors[1].file], ['hello', 'hello.md'])
  assert.match(errors[0].message, /^The front matter is not valid YAML/)
})

test('imports an exported archive', async () => {
  const posts = (await call(editor, 'GET', '/export', { query: { format: 'json' } })).text
  assert.deepEqual((await send('x.json', posts, '?on_conflict=overwrite')).json, { ...NO_ERRORS, updated: 2 })
  assert.equal((await call(editor, 'GET', '/export', { query: { format: 'json' } })).text, posts)
})

test("returns the job's refusals as those of the request", async () => {
  assertRefused(await send('x.json', '{}'), 400, 'The file cannot be imported: it is not a JSON array')
  assertRefused(
    await send('x.zip', 'no archive'),
    400,
    'The file cannot be imported: it is not a zip archive',
  )
  assertRefused(
    await send(
      'x.zip',
      createZip([
        ['a.md', 'x'],
        ['inner.zip', 'x'],
      ]),
    ),
    400,
  )
  assertRefused(
    await send('hello.md', 'x', '?on_conflict=fail'),
    409,
    'Nothing was imported: a post with the slug hello already exists',
  )
})

test('in the background: returns 202, and the job has progress and result', async () => {
  const posts = Array.from({ length: 200 }, (_, i) => ({ title: `Background ${i}` }))
  const answer = await send('x.json', JSON.stringify(posts), '?background=true')
  assert.equal(answer.status, 202)
  const job = await until('the job is done', async () => {
    const { json } = await api.get(`/api/v1/jobs/${answer.json.job_id}`, { token: editor.token })
    return json.status === 'done' && json
  })
  assert.deepEqual(
    [job.result, job.label, job.progress],
    [{ ...NO_ERRORS, created: 200 }, 'Post 200 of 200', { current: 200, total: 200 }],
  )
})

test('repeats the answer to an import with the same key', async () => {
  const options = { headers: { 'idempotency-key': 'k' } }
  const one = await importFile(api, editor, 'once.md', 'x', options)
  const two = await importFile(api, editor, 'once.md', 'x', options)
  assert.deepEqual(
    [one.status, one.json, two.status, two.json],
    [200, { ...NO_ERRORS, created: 1 }, 200, one.json],
  )
})

test('without authentication, imported posts have no author', async () => {
  const none = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
  assert.deepEqual((await importFile(none, null, 'nobody.md', 'x')).json, { ...NO_ERRORS, created: 1 })
  const { json } = await call(null, 'GET', '/posts/nobody')
  assert.deepEqual([json.author_id, json.author_name], [null, null])
})

const SLUGS = Array.from({ length: 400 }, (_, i) => `killed-${i}`)
const countImported = async (): Promise<number> =>
  Number((await query(`select count(*) from blog_post where slug like 'killed-%'`))[0]!.count)

/** Imports 400 posts, kills the worker while it waits at the gate, and lets another worker take over. */
async function killWorkerHalfWay(gate: Gate, last: object, next: string): Promise<Record<string, unknown>> {
  const posts = [...SLUGS.map((slug) => ({ title: slug, slug, tag_slugs: ['killed'] })), last]
  const answer = await send('x.json', JSON.stringify(posts), '?on_conflict=fail&background=true')
  const { job_id } = answer.json
  const readJob = async () =>
    (
      await query('select status, attempt, result, error_code, progress_current from job where id = $1', [
        job_id,
      ])
    )[0]!
  await until('the import is half way', async () => Number((await readJob()).progress_current) >= 150, 60_000)
  await holder.kill()
  assert.equal(await countImported(), 0, 'nothing of it is committed')
  await gate.open()
  holder = await startWorker(next)
  return until(
    'the job has ended',
    async () => {
      const job = await readJob()
      assert.ok([0, SLUGS.length + 1].includes(await countImported()), 'all or nothing, at every moment')
      return ['done', 'failed'].includes(String(job.status)) && job
    },
    60_000,
  )
}

const gate = await createClosedGate(
  url,
  `after insert on blog_post for each row when (new.slug = 'killed-200')`,
)

test('after a worker is killed half way, the next one imports all posts once', {
  timeout: 110_000,
}, async () => {
  const job = await killWorkerHalfWay(gate, { title: 'killed-last', slug: 'killed-last' }, 'second')
  assert.deepEqual(
    [job.status, job.attempt, job.result],
    ['done', 2, { ...NO_ERRORS, created: SLUGS.length + 1 }],
  )
  assert.equal(await countImported(), SLUGS.length + 1)
  await assertCounted(query)
})

test('if the last post collides, the next worker imports nothing', {
  timeout: 110_000,
}, async () => {
  await query(`delete from blog_post where slug like 'killed-%'; delete from blog_tag where slug = 'killed'`)
  await gate.close()
  const job = await killWorkerHalfWay(gate, { title: 'x', slug: 'hello' }, 'third')
  assert.deepEqual([job.status, job.error_code], ['failed', 'import.conflict'])
  assert.equal(await countImported(), 0)
  assert.deepEqual(await query(`select 1 from blog_tag where slug = 'killed'`), [])
  await assertCounted(query)
})
