import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  applyList,
  findChosenModel,
  type ListedModel,
  type ModelList,
  readModelFacts,
} from '../../sql/llm/models.ts'
import { createTestDatabase } from '../database.ts'

/** Applying lists to the catalog's tables, and the constraints of the tables. */

const { db, query } = await createTestDatabase()
await query('truncate llm_vendor, llm_model, llm_price, llm_current, llm_list')

const createModel = (fields: Partial<ListedModel> = {}): ListedModel => ({
  vendor: 'acme',
  model_id: 'one',
  title: 'One',
  family: null,
  context_window: 1000,
  max_output: 100,
  input_modalities: ['image', 'text'],
  output_modalities: ['text'],
  reasoning: false,
  released_on: '2026-01-02',
  disabled: false,
  price: { input: '1', output: '2', tiers: [] },
  ...fields,
})
const listOf = (...models: ListedModel[]): ModelList => ({
  vendors: [...new Set(models.map(({ vendor }) => vendor))].map((id) => ({ id, name: id.toUpperCase() })),
  models,
})
const applyLists = async (day: string, ...models: ListedModel[]) =>
  (await db.one(applyList(listOf(...models), 'https://list.example', day))).applied
const readPrices = (modelId: string) =>
  query(
    `select valid_from::text, input::text, output::text from llm_price where vendor = 'acme' and model_id = $1 order by 1`,
    [modelId],
  )

test('a price holds until the next one, and is written only when it changes', async () => {
  await applyLists('2026-01-10', createModel())
  assert.equal((await applyLists('2026-01-11', createModel())).repriced, 0)
  const dearer = createModel({
    price: { input: '1.50', output: '2', cache_read: '0.1', reasoning: '3', tiers: [] },
  })
  assert.equal((await applyLists('2026-02-01', dearer)).repriced, 1)
  assert.equal((await applyLists('2026-03-01', createModel({ price: null }))).repriced, 1)
  assert.equal((await applyLists('2026-03-02', createModel({ price: null }))).repriced, 0)
  const tiers = [{ over: 200_000, input: '4', output: '5', cache_read: '0.4' }]
  assert.equal(
    (await applyLists('2026-04-01', createModel({ price: { input: '1', output: '2', tiers } }))).repriced,
    1,
  )
  assert.equal(
    (await applyLists('2026-04-02', createModel({ price: { input: '1', output: '2', tiers } }))).repriced,
    0,
  )

  const on = (day: string | null) => db.one(readModelFacts('acme', 'one', day)).then(({ price }) => price)
  assert.equal(await on('2026-01-09'), null)
  const first = { input: '1', output: '2', cache_read: null, reasoning: null, tiers: [] }
  assert.deepEqual(await on('2026-01-10'), first)
  assert.deepEqual(await on('2026-01-31'), first)
  assert.deepEqual(await on('2026-02-28'), {
    input: '1.50',
    output: '2',
    cache_read: '0.1',
    reasoning: '3',
    tiers: [],
  })
  assert.equal(await on('2026-03-01'), null)
  assert.deepEqual(await on('2026-04-01'), { ...first, tiers })
  assert.deepEqual(await on(null), { ...first, tiers })
  assert.equal((await db.one(readModelFacts('acme', 'two'))).price, null)
  assert.equal((await db.one(readModelFacts('other', 'one'))).price, null)
})

test('the second list of a day replaces the prices of the first', async () => {
  await applyLists('2026-05-01', createModel({ model_id: 'same' }))
  await applyLists(
    '2026-05-01',
    createModel({ model_id: 'same', price: { input: '9', output: '9', tiers: [] } }),
  )
  assert.deepEqual(await readPrices('same'), [{ valid_from: '2026-05-01', input: '9', output: '9' }])
})

test('a new model without a listed price has none', async () => {
  await applyLists(
    '2026-05-02',
    createModel({ model_id: 'free' }),
    createModel({ model_id: 'secret', price: null }),
  )
  assert.deepEqual(await readPrices('secret'), [])
})

test('a model that is missing from the list is disabled, keeps its prices, and can return', async () => {
  const readEnabled = async () =>
    (await query(`select model_id from llm_model where not disabled order by 1`)).map((row) => row.model_id)
  const counts = await applyLists(
    '2026-06-01',
    createModel({ model_id: 'a' }),
    createModel({ model_id: 'b' }),
  )
  assert.deepEqual({ ...counts, gone: 0 }, { vendors: 1, models: 2, added: 2, gone: 0, repriced: 2 })
  assert.deepEqual(await readEnabled(), ['a', 'b'])
  assert.equal((await applyLists('2026-06-02', createModel({ model_id: 'b' }))).gone, 1)
  assert.deepEqual(await readEnabled(), ['b'])
  assert.equal((await readPrices('a')).length, 1)
  assert.equal(
    (await applyLists('2026-06-03', createModel({ model_id: 'a' }), createModel({ model_id: 'b' }))).added,
    0,
  )
  assert.deepEqual(await readEnabled(), ['a', 'b'])
  await applyLists(
    '2026-06-04',
    createModel({ model_id: 'a', disabled: true }),
    createModel({ model_id: 'b', title: 'Other' }),
  )
  assert.deepEqual(await readEnabled(), ['b'])
  const [row] = await query(`select title, modalities from llm_model where model_id = 'b'`)
  assert.deepEqual(row, { title: 'Other', modalities: ['text', 'image'] })
})

test('a built-in list does nothing after another one', async () => {
  const before = await query('select * from llm_model order by vendor, model_id')
  const [row] = await query(
    `select llm_apply('{"vendors": [], "models": []}', 'built-in', null, '2026-07-01') as applied`,
  )
  assert.equal(row!.applied, null)
  assert.deepEqual(await query('select * from llm_model order by vendor, model_id'), before)
})

test('concurrent lists are applied one after the other', async () => {
  const names = Array.from({ length: 6 }, (_, n) => `at-once-${n}`)
  await Promise.all(names.map((model_id) => applyLists('2026-07-01', createModel({ model_id }))))
  const enabled = await query(`select model_id from llm_model where not disabled`)
  assert.equal(enabled.length, 1)
})

test('the chosen model must be in the catalog', async () => {
  assert.equal(await db.maybeOne(findChosenModel()), null)
  await query(`insert into llm_current (vendor, model_id, temperature) values ('acme', 'one', 0.5)`)
  assert.deepEqual(await db.maybeOne(findChosenModel()), {
    vendor: 'acme',
    model_id: 'one',
    temperature: 0.5,
    max_tokens: null,
  })
  await query('delete from llm_current')
})

describe('constraints', () => {
  const insert = (table: string, row: Readonly<Record<string, unknown>>) => {
    const keys = Object.keys(row)
    return query(
      `insert into ${table} (${keys.join(', ')}) values (${keys.map((_, n) => `$${n + 1}`).join(', ')})`,
      Object.values(row),
    )
  }
  const vendor = { id: 'valid', name: 'Valid' }
  const { price: _, ...listed } = createModel({ model_id: 'valid' })
  const valid = { ...listed, modalities: ['text', 'image'] }
  const price = { vendor: 'acme', model_id: 'one', valid_from: '2030-01-01', input: 1, output: 1 }
  const list = { source: 'sync', applied_at: new Date() }
  const current = { vendor: 'acme', model_id: 'one' }
  const cases: readonly [constraint: string, table: string, row: Readonly<Record<string, unknown>>][] = [
    ['llm_vendor_pkey', 'llm_vendor', { ...vendor, id: 'acme' }],
    ['llm_vendor_id_check', 'llm_vendor', { ...vendor, id: 'Acme' }],
    ['llm_vendor_name_check', 'llm_vendor', { ...vendor, name: '' }],
    ['llm_model_pkey', 'llm_model', { ...valid, model_id: 'one' }],
    ['llm_model_vendor_fkey', 'llm_model', { ...valid, vendor: 'nobody' }],
    ['llm_model_model_id_check', 'llm_model', { ...valid, model_id: '' }],
    ['llm_model_title_check', 'llm_model', { ...valid, title: '' }],
    ['llm_model_limits_check', 'llm_model', { ...valid, context_window: -1 }],
    ['llm_model_limits_check', 'llm_model', { ...valid, max_output: -1 }],
    ['llm_model_modalities_check', 'llm_model', { ...valid, modalities: ['text'] }],
    ['llm_model_modalities_check', 'llm_model', { ...valid, modalities: ['text', 'image', 'audio'] }],
    [
      'llm_model_modalities_check',
      'llm_model',
      { ...valid, output_modalities: ['pdf'], modalities: ['text', 'image', 'pdf'] },
    ],
    ['llm_price_model_fkey', 'llm_price', { ...price, model_id: 'none' }],
    ['llm_price_known_check', 'llm_price', { ...price, output: null }],
    ['llm_price_known_check', 'llm_price', { ...price, input: null, output: null, cache_read: 1 }],
    ['llm_price_amount_check', 'llm_price', { ...price, cache_write: -0.1 }],
    ['llm_price_tiers_check', 'llm_price', { ...price, tiers: '{}' }],
    ['llm_list_id_check', 'llm_list', { ...list, id: false }],
    ['llm_list_source_check', 'llm_list', { ...list, source: 'rumour' }],
    ['llm_list_refusal_check', 'llm_list', { ...list, refusal: 'why' }],
    ['llm_list_pkey', 'llm_list', list],
    ['llm_current_id_check', 'llm_current', { ...current, id: false }],
    ['llm_current_model_fkey', 'llm_current', { ...current, model_id: 'none' }],
    ['llm_current_chosen_by_fkey', 'llm_current', { ...current, chosen_by: 2_000_000_000 }],
    ['llm_current_temperature_check', 'llm_current', { ...current, temperature: 2.1 }],
    ['llm_current_max_tokens_check', 'llm_current', { ...current, max_tokens: 0 }],
  ]
  for (const [constraint, table, row] of cases)
    test(`${constraint}: ${JSON.stringify(row)}`, () => assert.rejects(insert(table, row), { constraint }))

  test('accept valid rows, and each rejects an invalid one', async () => {
    await insert('llm_vendor', vendor)
    await insert('llm_model', valid)
    await insert('llm_price', price)
    await assert.rejects(insert('llm_price', price), { constraint: 'llm_price_pkey' })
    await insert('llm_current', current)
    await assert.rejects(insert('llm_current', current), { constraint: 'llm_current_pkey' })
    const named = await query(
      `select conname from pg_constraint where conrelid::regclass::text like 'llm\\_%' and contype <> 'n'`,
    )
    const tried = new Set([...cases.map(([name]) => name), 'llm_price_pkey', 'llm_current_pkey'])
    assert.deepEqual(
      named.map(({ conname }) => String(conname)).filter((name) => !tried.has(name)),
      [],
    )
  })
})
