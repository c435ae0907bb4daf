import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { syncCatalog } from '../../tasks/llm/sync.task.ts'
import { enqueue } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import {
  createListedModel,
  createListedVendor,
  createPlausibleList,
  startModelsDev,
} from '../standins/models-dev.ts'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** A sync must apply the whole model list, or change nothing and give a reason. */

const server = await startModelsDev()
const env = { AUTH_LEVEL: 'none', LLM_CATALOG_URL: server.url, WORKER_MAX_TRIES: '1' }
const { api, db, query, url } = await startEdgeAndDatabase({ env })
await startOwnWorker(url, 'system', env)

const serve = (list: unknown): void => {
  const text = typeof list === 'string' ? list : JSON.stringify(list)
  server.answer = (response) => response.end(text)
}
const reply = (answer: typeof server.answer): void => {
  server.answer = answer
}
const readCatalog = () =>
  query(`select v.name, m.*, (select json_agg(p order by valid_from) from llm_price p
    where p.vendor = m.vendor and p.model_id = m.model_id) as prices
    from llm_vendor v join llm_model m on m.vendor = v.id order by m.vendor, m.model_id`)
const read = (more = '') => api.post(`/llm/sync${more}`)

describe('before the first sync', () => {
  test('the built-in list is used', async () => {
    const status = (await api.get('/llm/status')).json
    assert.equal(status.source, 'built-in')
    assert.deepEqual(
      (await api.get('/llm/vendors')).json.map(({ name }: { name: string }) => name),
      ['anthropic', 'cohere', 'google', 'groq', 'mistral', 'openai'],
    )
  })

  test('an invalid answer changes nothing and gives a reason', async () => {
    const before = await readCatalog()
    const cases: readonly [string, () => void, string, boolean][] = [
      ['no JSON', () => serve('<html>'), 'rejected: it is not JSON', true],
      ['no UTF-8', () => reply((r) => r.end(Buffer.from([0x7b, 0xff]))), 'rejected: it is not UTF-8', true],
      [
        'cut in the middle',
        () => serve(JSON.stringify(createPlausibleList()).slice(0, 1000)),
        'rejected: it is not JSON',
        true,
      ],
      ['empty', () => serve({}), 'rejected: it has no model of openai that reads and writes text', true],
      [
        'a list of lists',
        () => serve([]),
        'rejected: the list: Invalid input: expected record, received array',
        true,
      ],
      [
        'an error',
        () => reply((r) => r.writeHead(500).end()),
        'could not be fetched: HTTP status 500',
        false,
      ],
      [
        'not there',
        () => reply((r) => r.writeHead(404).end()),
        'could not be fetched: HTTP status 404',
        false,
      ],
      ['a broken connection', () => reply((r) => r.destroy()), 'could not be fetched: UND_ERR_SOCKET', false],
      [
        'broken off',
        () => reply((r) => r.writeHead(200, { 'content-length': 100 }).write('{', () => r.destroy())),
        'could not be fetched: UND_ERR_SOCKET',
        false,
      ],
    ]
    for (const [what, arrange, why, noted] of cases) {
      await query('update llm_list set refused_at = null, refusal = null')
      arrange()
      const answer = await read()
      assert.equal(answer.status, 502, what)
      assert.deepEqual(
        answer.json,
        {
          detail: `The model list ${noted ? 'was ' : ''}${why}`,
          code: noted ? 'llm.list_refused' : 'llm.list_failed',
        },
        what,
      )
      const status = (await api.get('/llm/status')).json
      assert.equal(status.refusal, noted ? answer.json.detail : null, what)
      assert.equal(status.refused_at === null, !noted)
      assert.equal(status.source, 'built-in')
    }
    assert.deepEqual(await readCatalog(), before)
  })
})

describe('a synced list', () => {
  test('replaces the built-in one as a whole', async () => {
    serve(createPlausibleList())
    const answer = await read()
    assert.equal(answer.status, 200, answer.text)
    const enabled = await query('select count(*)::int as n from llm_model where not disabled')
    assert.deepEqual(enabled, [{ n: 25 }])
    const { status, changes } = answer.json
    assert.deepEqual(
      { status, ...changes, gone: 0 },
      {
        status: 'applied',
        vendors: 7,
        models: 25,
        added: 25,
        gone: 0,
        repriced: 25,
      },
    )
    assert.ok(changes.gone > 100)
    const { source, refusal, vendor_count, model_count, deployment_count } = (await api.get('/llm/status'))
      .json
    assert.deepEqual(
      { source, refusal, vendor_count, model_count, deployment_count },
      { source: 'sync', refusal: null, vendor_count: 7, model_count: 25, deployment_count: 24 },
    )
  })

  test('changes nothing when repeated', async () => {
    const before = await readCatalog()
    const none = { vendors: 7, models: 25, added: 0, gone: 0, repriced: 0 }
    assert.deepEqual((await read()).json.changes, none)
    assert.deepEqual(await readCatalog(), before)
  })

  for (const [what, path, value] of [
    ['no cost', 'cost', null],
    ['a price as text', 'cost.input', '0.15'],
    ['a negative price', 'cost.input', -1],
    ['a price in other units', 'cost.output', 150_000],
    ['no output price', 'cost.output', undefined],
    ['no limit', 'limit', undefined],
    ['no modalities', 'modalities', undefined],
    ['a fractional context', 'limit.context', 0.5],
    ['an empty name', 'name', ''],
    ['a long name', 'name', 'x'.repeat(301)],
    ['NUL in its name', 'name', 'a\0b'],
    ['another id', 'id', 'other'],
  ] as const)
    for (const [vendor, id] of [
      ['else', 'vendor/model'],
      ['openai', 'openai-1'],
    ] as const)
      test(`keeps all good entries if one of ${vendor} has ${what}, and names it`, async () => {
        serve(createPlausibleList())
        await read()
        const before = await readCatalog()
        const list = createPlausibleList()
        const [field, inner] = path.split('.') as [string, string?]
        const model = list[vendor]!.models[id]
        if (inner === undefined) model[field] = value
        else model[field][inner] = value
        list.openai!.models['openai-9'] = createListedModel('openai-9')
        serve(list)
        const { status, json } = await read()
        assert.equal(status, 200)
        assert.deepEqual(
          json.skipped.map((one: Record<string, unknown>) => [one.vendor, one.model_id]),
          [[vendor, id]],
        )
        const known = await readCatalog()
        assert.deepEqual(
          known.filter((one) => one.model_id !== 'openai-9'),
          before,
        )
        assert.equal(known.find((one) => one.model_id === 'openai-9')!.disabled, false)
        const { skipped, skipped_count } = (await api.get('/llm/status')).json
        assert.deepEqual([skipped_count, skipped], [1, json.skipped])
        await query(`delete from llm_price where model_id = 'openai-9'`)
        await query(`delete from llm_model where model_id = 'openai-9'`)
      })

  test('skips vendors that are invalid, and keeps their models', async () => {
    const list = createPlausibleList() as Record<string, unknown>
    list.Capital = createListedVendor('Capital', createListedModel('m'))
    list.else = 'gone'
    list.empty = null
    serve(list)
    const { json } = await read()
    assert.deepEqual(
      json.skipped.map(({ vendor }: { vendor: string }) => vendor),
      ['else', 'Capital', 'empty'],
    )
    const [kept] = await query(`select disabled from llm_model where model_id = 'vendor/model'`)
    assert.equal(kept!.disabled, false)
    serve(createPlausibleList())
    assert.equal('skipped' in (await read()).json, false)
  })

  test('is rejected if it lacks most models of a provider, unless forced', async () => {
    const list = createPlausibleList()
    list.mistral = createListedVendor('mistral', createListedModel('mistral-1'))
    serve(list)
    const before = await readCatalog()
    const answer = await read()
    assert.equal(answer.status, 502)
    assert.match(answer.json.detail, /it lacks 3 of the 4 models of mistral/)
    assert.deepEqual(await readCatalog(), before)
    assert.equal((await read('?force=true')).json.changes.gone, 3)
    assert.equal((await api.get('/llm/status')).json.refusal, null)
  })

  test('adds changed prices to their history', async () => {
    await query(`update llm_price set valid_from = '2026-01-01'`)
    const list = createPlausibleList()
    list.openai!.models['openai-1'].cost = { input: 3, output: 0.6 }
    serve(list)
    assert.equal((await read()).json.changes.repriced, 1)
    const { json } = await api.get('/llm/prices?vendor=openai&model_id=openai-1')
    assert.deepEqual(
      json.map((price: Record<string, unknown>) => [
        price.input_price,
        price.output_price,
        price.cache_read_price,
      ]),
      [
        [3, 0.6, null],
        [0.15, 0.6, 0.075],
      ],
    )
    assert.equal(json[1].valid_from, '2026-01-01')
  })
})

describe('the scheduled sync', () => {
  afterEach(() => serve(createPlausibleList()))
  const tick = async (): Promise<Record<string, unknown>> => {
    const options = { ownerId: null, settings: createJobSettings(1) }
    const { jobId } = await db.transaction((tx) => enqueue(tx, syncCatalog, {}, options))
    const job = () => query('select status, result, error_detail from job where id = $1', [jobId])
    // No notification wakes the worker for this job, so it finds the job by polling within a second.
    await until('the job ends', async () => ['done', 'failed'].includes(String((await job())[0]!.status)))
    return (await job())[0]!
  }

  test('runs once a day, and immediately after the address changes', async () => {
    await read()
    const asked = server.requestCount
    assert.deepEqual((await tick()).result, { status: 'fresh', changes: null })
    assert.equal(server.requestCount, asked)
    await query(`update llm_list set applied_at = applied_at - interval '21 hours'`)
    assert.equal(((await tick()).result as { status: string }).status, 'applied')
    await query(`update llm_list set url = 'https://other.example'`)
    assert.equal(((await tick()).result as { status: string }).status, 'applied')
    assert.equal(server.requestCount, asked + 2)
  })

  test('retries a rejected list the next day', async () => {
    serve('{}')
    await query(`update llm_list set applied_at = applied_at - interval '21 hours'`)
    assert.match(String((await tick()).error_detail), /rejected: it has no model of openai/)
    assert.deepEqual((await tick()).result, { status: 'fresh', changes: null })
    await query(`update llm_list set refused_at = refused_at - interval '21 hours'`)
    assert.equal((await tick()).status, 'failed')
  })
})
