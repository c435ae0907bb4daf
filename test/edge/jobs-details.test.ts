import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
const getDetails = (id: string, token?: string) =>
  api.get(`/api/v1/jobs/${id}/details`, token === undefined ? {} : { token })
const UNKNOWN_ID = '01900000-0000-7000-8000-000000000000'

const payload = { documentId: 7, force: true, sealedPassword: 'c2VhbGVk' }
const maskedPayload = { documentId: 7, force: true, sealedPassword: '***' }
const BUSY_ERROR = { code: 'database.busy', detail: 'The service is overloaded; try again shortly' }

test('the owner and admins see all details, with secrets masked', async () => {
  const id = await ledger.add(ann.id, { payload, actor: 'document:7', request_id: 'r-1', max_tries: 2 })
  await ledger.claim(id)
  await ledger.finish(id, 'retry', { ...BUSY_ERROR, delay_ms: 0 })
  await ledger.claim(id)
  await ledger.finish(id, 'failed', { code: 'internal', detail: 'Internal error' })
  for (const { token } of [ann, admin]) {
    const answer = await getDetails(id, token)
    assert.equal(answer.status, 200, answer.text)
    const { job, attempts, ...rest } = answer.json
    assert.deepEqual(job, (await api.get(`/api/v1/jobs/${id}`, { token })).json)
    assert.deepEqual(rest, {
      owner_id: ann.id,
      request_id: 'r-1',
      mailbox: { name: 'document:7', limit: 1 },
      key: null,
      priority: 'normal',
      after: [],
      due_at: null,
      tries: 2,
      max_tries: 2,
      interruptions: 0,
      payload: maskedPayload,
      waits_for: null,
      log: token === admin.token ? [] : null,
      chain: { retry_of: [], retried_by: [] },
      links: [{ kind: 'document', id: '7', path: '/documents/7' }],
    })
    const outlines = attempts.map((a: Record<string, unknown>) => [a.attempt, a.worker, a.outcome, a.error])
    assert.deepEqual(outlines, [
      [1, 'test', 'retry', BUSY_ERROR],
      [2, 'test', 'failed', { code: 'internal', detail: 'Internal error' }],
    ])
  }
})

test("others see no payload of jobs without an owner, and get 404 for private and other owners' jobs", async () => {
  const id = await ledger.add(null, { payload, request_id: 'r-2' })
  await ledger.claim(id)
  for (const token of [ann.token, undefined]) {
    const answer = await getDetails(id, token)
    assert.equal(answer.status, 200)
    const { payload: content, links, mailbox, request_id, attempts, job } = answer.json
    assert.deepEqual([content, links, mailbox, request_id], [null, [], null, null])
    assert.deepEqual([attempts[0].worker, attempts[0].outcome, job.status], [null, null, 'running'])
  }
  const whole = (await getDetails(id, admin.token)).json
  assert.deepEqual(
    [whole.payload, whole.request_id, whole.attempts[0].worker],
    [maskedPayload, 'r-2', 'test'],
  )
  const own = await ledger.add(ann.id)
  const mail = await ledger.add(null, {
    name: 'accounts.password-reset',
    queue: 'accounts',
    payload: { email: 'a@b.c' },
  })
  const missing = await getDetails(UNKNOWN_ID, ann.token)
  assert.deepEqual([missing.status, missing.json], [404, { detail: 'Job not found', code: 'job.missing' }])
  for (const [hidden, token] of [
    [own, bob.token],
    [own, undefined],
    [mail, ann.token],
    [mail, undefined],
    ['x', admin.token],
    [UNKNOWN_ID, admin.token],
  ] as const)
    assert.deepEqual((await getDetails(hidden, token)).json, missing.json)
  assert.deepEqual((await getDetails(mail, admin.token)).json.payload, { email: 'a@b.c' })
})

test('a result is masked according to its task', async () => {
  const open = { session_id: 'cs_1', checkout_url: 'https://pay.example.com/cs_1', provider_key: 'stripe' }
  const id = await ledger.add(ann.id, {
    name: 'payments.checkout',
    queue: 'payments',
    payload: {
      user_id: ann.id,
      price_id: 'price_1',
      quantity: 1,
      mode: 'payment',
      success_url: 'https://example.com/yes',
      cancel_url: 'https://example.com/no',
      allow_second: false,
    },
  })
  await ledger.claim(id)
  await ledger.finish(id, 'done', { result: open })
  const { job, links } = (await getDetails(id, ann.token)).json
  assert.deepEqual([job.result.session_id, job.result.checkout_url], ['cs_1', '***'])
  assert.deepEqual(links, [{ kind: 'account', id: String(ann.id), path: `/api/v1/auth/users/${ann.id}` }])
})

test('a job of a removed task has no links, and an outdated payload is hidden', async () => {
  for (const more of [
    { name: 'gone.task', payload: { documentId: 7, token: 'x' } },
    { payload: { documentId: 'seven' } },
  ]) {
    const { json } = await getDetails(await ledger.add(ann.id, more), ann.token)
    assert.deepEqual([json.links, json.payload.token], [[], 'token' in more.payload ? '***' : undefined])
  }
})

test('a waiting job shows its dependencies and due time', async () => {
  const running = await ledger.add(ann.id, { payload, mailbox: 'document:9', mailbox_limit: 1 })
  await ledger.claim(running)
  const next = await ledger.add(ann.id, { payload, mailbox: 'document:9', mailbox_limit: 1 })
  const last = await ledger.add(ann.id, {
    payload,
    mailbox: 'document:9',
    mailbox_limit: 1,
    delay_ms: 60_000,
  })
  const queue = { paused_at: null, limit: null }
  const holding = [{ job_id: running, name: 'documents.extract' }]
  const [one, two] = [(await getDetails(next, ann.token)).json, (await getDetails(last, ann.token)).json]
  assert.deepEqual([one.waits_for, one.due_at], [{ ahead: 0, queue, running: holding, jobs: [] }, null])
  assert.deepEqual(two.waits_for, { ahead: 1, queue, running: holding, jobs: [] })
  assert.match(two.due_at, /Z$/)
  await database.query(
    `insert into queue_control (queue, paused_at, most_running) values ($1, '2026-01-31T12:00:00Z', 3)`,
    [one.job.queue],
  )
  assert.deepEqual((await getDetails(next, ann.token)).json.waits_for.queue, {
    paused_at: '2026-01-31T12:00:00.000Z',
    limit: 3,
  })
})

test('a failed job and its retry link to each other', async () => {
  const id = await ledger.add(ann.id, { payload: { documentId: 8, force: false }, actor: 'document:8' })
  await ledger.claim(id)
  await ledger.finish(id, 'failed', { code: 'internal', detail: 'x' })
  const again = (await api.post(`/api/v1/jobs/${id}/retry`, { token: ann.token })).json.job_id
  assert.deepEqual((await getDetails(id, ann.token)).json.chain, { retry_of: [], retried_by: [again] })
  assert.deepEqual((await getDetails(again, ann.token)).json.chain, { retry_of: [id], retried_by: [] })
})

test('frames and history contain only public fields', async () => {
  const id = await ledger.add(ann.id, { payload, mailbox: 'document:10', mailbox_limit: 1 })
  await ledger.claim(id)
  await ledger.finish(id, 'retry', { ...BUSY_ERROR, delay_ms: 0 })
  await ledger.claim(id)
  await ledger.finish(id, 'done', { result: null })
  const history = (await api.get(`/api/v1/jobs/${id}/history`, { token: ann.token })).json
  assert.equal(history.length, 4)
  for (const { data } of history)
    assert.deepEqual(Object.keys(data).sort(), ['current', 'label', 'status', 'total'])
  const stream = await api.get(`/api/v1/jobs/${id}/events`, {
    token: ann.token,
    headers: { 'last-event-id': '0' },
  })
  assert.doesNotMatch(stream.text, /database\.busy|worker|attempt|due_at/)
  assert.equal(stream.text.match(/^event: status$/gm)!.length, 4)
})

test('without authentication all callers see all details', async () => {
  const none = await startEdge(database.url, { env: { AUTH_LEVEL: 'none' } })
  const id = await ledger.add(null, { payload })
  assert.deepEqual((await none.get(`/api/v1/jobs/${id}/details`)).json.payload, maskedPayload)
})
