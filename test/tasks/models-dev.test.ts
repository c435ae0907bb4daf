import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Failure } from '../../sql/errors.ts'
import type { KnownModel } from '../../sql/llm/models.ts'
import { parseModelsDev } from '../../tasks/llm/models-dev.ts'
import { checkPlausibility } from '../../tasks/llm/plausible.ts'
import { createRunOptions } from '../runs.ts'
import {
  createListedModel,
  createListedVendor,
  createPlausibleList,
  type ListedVendor,
} from '../standins/models-dev.ts'

/** The reader of models.dev's list accepts plausible lists and rejects invalid ones. */

const readList = (list: unknown) => parseModelsDev(JSON.stringify(list))
const readModel = (more: object) =>
  readList({ acme: createListedVendor('acme', createListedModel('m', { ...more })) }).models[0]!

test('reads a complete model', () => {
  const list = readList({ acme: createListedVendor('acme', createListedModel('a/b', { reasoning: true })) })
  assert.deepEqual(list, {
    vendors: [{ id: 'acme', name: 'ACME' }],
    models: [
      {
        vendor: 'acme',
        model_id: 'a/b',
        title: 'Model a/b',
        family: 'test',
        context_window: 128_000,
        max_output: 4096,
        input_modalities: ['text'],
        output_modalities: ['text'],
        reasoning: true,
        released_on: '2026-03-04',
        disabled: false,
        price: { input: '0.15', output: '0.6', cache_read: '0.075', tiers: [] },
      },
    ],
  })
})

test('accepts missing fields', () => {
  const { family, released_on, price, max_output } = readModel({
    family: undefined,
    release_date: undefined,
    cost: undefined,
    limit: { context: 0 },
  })
  assert.deepEqual(
    { family, released_on, price, max_output },
    {
      family: null,
      released_on: null,
      price: null,
      max_output: 0,
    },
  )
})

test('reads days and months, and rejects other dates', () => {
  const readReleaseDay = (release_date: unknown) => readModel({ release_date }).released_on
  assert.equal(readReleaseDay('2024-02-29'), '2024-02-29')
  assert.equal(readReleaseDay('2025-07'), '2025-07-01')
  for (const text of ['2025-25-06', '2023-02-29', '2025', 'soon', '', '2025-13'])
    assert.equal(readReleaseDay(text), null)
})

test('disables a withdrawn model, but not a preview', () => {
  assert.equal(readModel({ status: 'deprecated' }).disabled, true)
  for (const status of ['alpha', 'beta', 'new words']) assert.equal(readModel({ status }).disabled, false)
})

test('reads known modalities, in our order', () => {
  const modalities = { input: ['video', 'pdf', 'text', 'smell'], output: ['audio', 'text'] }
  const model = readModel({ modalities })
  assert.deepEqual(model.input_modalities, ['text', 'video'])
  assert.deepEqual(model.output_modalities, ['text', 'audio'])
})

describe('prices', () => {
  const readPrice = (cost: object) => readModel({ cost: { input: 1, output: 2, ...cost } }).price
  test('all kinds', () => {
    const more = { cache_read: 0.1, cache_write: 1.25, reasoning: 3, input_audio: 40, output_audio: 80 }
    const texts = Object.fromEntries(Object.entries(more).map(([name, n]) => [name, String(n)]))
    assert.deepEqual(readPrice({ ...more, request: 5 }), { input: '1', output: '2', ...texts, tiers: [] })
  })
  test('tiers are read in ascending order, and override the old format', () => {
    const tiers = [
      { tier: { type: 'context', size: 500_000 }, input: 9, output: 10 },
      { tier: { size: 272_000 }, input: 4, output: 5, cache_read: 0.4 },
    ]
    assert.deepEqual(readPrice({ tiers, context_over_200k: { input: 7, output: 7 } })?.tiers, [
      { over: 272_000, input: '4', output: '5', cache_read: '0.4' },
      { over: 500_000, input: '9', output: '10' },
    ])
  })
  test('the old format is read alone', () =>
    assert.deepEqual(readPrice({ context_over_200k: { input: 7, output: 8 } })?.tiers, [
      { over: 200_000, input: '7', output: '8' },
    ]))
  test('prices are unknown if they depend on unknown conditions', () => {
    assert.equal(readPrice({ tiers: [{ tier: { type: 'hour', size: 3 }, input: 1, output: 1 }] }), null)
    const tier = { tier: { size: 3 }, input: 1, output: 1 }
    assert.equal(readPrice({ tiers: [tier, tier] }), null)
  })
  test('prices are the exact decimals of the list', () => {
    const dollars = fc
      .tuple(fc.nat(9999), fc.nat(999_999))
      .map(([whole, part]) => `${whole}.${String(part).padStart(6, '0')}`.replace(/\.?0+$/, ''))
    fc.assert(
      fc.property(dollars, (text) => {
        const list = `{"a": ${JSON.stringify(createListedVendor('a', createListedModel('m', { cost: { input: 0, output: 777.125 } }))).replace('777.125', text)}}`
        assert.equal(parseModelsDev(list).models[0]!.price!.output, text)
      }),
      createRunOptions(),
    )
    assert.equal(readPrice({ input: 1e-7 })?.input, '0.0000001')
  })
})

function assertRefused(work: () => unknown, why: RegExp): void {
  assert.throws(work, (error) => {
    assert.ok(error instanceof Failure)
    assert.equal(error.code, 'llm.list_refused')
    assert.match(error.detail, why)
    return true
  })
}

describe('rejects other data', () => {
  const texts: readonly [string, RegExp][] = [
    ['', /not JSON/],
    ['<html>', /not JSON/],
    ['{"openai": {"id": "openai", "name": "Ope', /not JSON/],
    ['null', /the list: /],
    ['[]', /the list: /],
    ['"{}"', /the list: /],
  ]
  for (const [text, why] of texts) test(text, () => assertRefused(() => parseModelsDev(text), why))

  const broken: readonly [string, object, RegExp][] = [
    ['a price below 0', { cost: { input: -1, output: 1 } }, /cost \/ input/],
    ['a price that is a text', { cost: { input: '1', output: 1 } }, /cost \/ input/],
    ['a price in other units', { cost: { input: 1, output: 600_000 } }, /cost \/ output/],
    ['half a price', { cost: { input: 1 } }, /cost \/ output/],
    [
      'a tier without a size',
      { cost: { input: 1, output: 1, tiers: [{ input: 1, output: 1, tier: {} }] } },
      /size/,
    ],
    ['no limit', { limit: undefined }, /limit/],
    ['a limit below 0', { limit: { context: -1 } }, /limit \/ context/],
    ['half a token', { limit: { context: 0.5 } }, /limit \/ context/],
    ['no modalities', { modalities: undefined }, /modalities/],
    ['no name', { name: ' ' }, /name/],
    ['a name that can not be stored', { name: 'a\0b' }, /name/],
    ['half a character', { name: 'a\ud800' }, /name/],
    ['another id', { id: 'n' }, /its id is n/],
  ]
  for (const [what, more, why] of broken)
    test(what, () => {
      const vendor = createListedVendor('acme', createListedModel('good'))
      vendor.models.m = { ...createListedModel('m'), ...more }
      const { models, skipped } = readList({ acme: vendor })
      assert.deepEqual(
        models.map(({ model_id }) => model_id),
        ['good'],
      )
      assert.deepEqual(
        skipped!.map(({ vendor, model_id }) => [vendor, model_id]),
        [['acme', 'm']],
      )
      assert.match(skipped![0]!.reason, why)
    })

  for (const [key, vendor, why] of [
    ['acme', createListedVendor('other'), /its id is other/],
    ['a b', createListedVendor('a b'), /^id: /],
    ['a', 1, /expected object/],
    ['a', { id: 'a', name: 'A' }, /models/],
  ] as const)
    test(`skips the vendor ${key} of ${JSON.stringify(vendor).slice(0, 30)}`, () => {
      const { vendors, skipped } = readList({ [key]: vendor, good: createListedVendor('good') })
      assert.deepEqual(vendors, [{ id: 'good', name: 'GOOD' }])
      assert.deepEqual([skipped!.length, skipped![0]!.vendor, skipped![0]!.model_id], [1, key, null])
      assert.match(skipped![0]!.reason, why)
    })

  test('reads a model that accepts no temperature', () =>
    assert.equal(readModel({ temperature: false }).temperature, false))
})

describe('implausible lists', () => {
  const known = (synced: boolean, ...names: [string, number | null][]): KnownModel[] =>
    names.map(([model_id, dollars]) => ({
      vendor: model_id.split('-')[0]!,
      model_id,
      input: dollars,
      output: dollars,
      synced,
    }))
  const check = (change: (list: Record<string, ListedVendor>) => void, before: KnownModel[] = []) => {
    const list = createPlausibleList()
    change(list)
    return () => checkPlausibility(readList(list), before)
  }
  const all = (synced = true) =>
    known(synced, ...[1, 2, 3, 4].map((n): [string, number] => [`openai-${n}`, 0.15]), ['mistral-1', 0.6])

  test('a plausible list is accepted', () => {
    check(() => {}, all())()
    check((list) => {
      delete list.else
      delete list.openai!.models['openai-1']
      delete list.openai!.models['openai-2']
    }, all())()
  })
  test('a provider is missing', () => {
    for (const provider of ['openai', 'anthropic', 'google', 'groq', 'mistral', 'cohere'])
      assertRefused(
        check((list) => delete list[provider]),
        new RegExp(`no model of ${provider} that`),
      )
  })
  test('a provider has only withdrawn or other models', () => {
    const mute = createListedModel('a', { modalities: { input: ['audio'], output: ['text'] } })
    const gone = createListedModel('b', { status: 'deprecated' })
    assertRefused(
      check((list) => {
        list.cohere = createListedVendor('cohere', mute, gone)
      }),
      /no model of cohere/,
    )
  })
  test("most of a provider's models are missing, unless the provider is new", () => {
    const cut = (list: Record<string, ListedVendor>) => {
      list.openai = createListedVendor('openai', createListedModel('openai-4'))
    }
    assertRefused(check(cut, all()), /it lacks 3 of the 4 models of openai/)
    check(cut, all(false))()
  })
  test('prices have other units', () => {
    const scale = (by: number) => (list: Record<string, ListedVendor>) => {
      for (const { models } of Object.values(list))
        for (const model of Object.values(models)) model.cost = { input: 0.15 * by, output: 0.6 * by }
    }
    const before = Object.values(createPlausibleList()).flatMap(({ id, models }) =>
      Object.keys(models).map((model_id) => ({
        vendor: id,
        model_id,
        input: 0.15,
        output: 0.6,
        synced: false,
      })),
    )
    assertRefused(check(scale(1000), before), /25 of 25 prices/)
    assertRefused(check(scale(1e-6), before), /25 of 25 prices/)
    check(scale(9), before)()
    check(scale(0), before)()
    const unknown = before.map((model) => ({ ...model, input: null, output: null }))
    check(scale(1000), unknown)()
  })
  test('some prices may jump', () => {
    const jump = (list: Record<string, ListedVendor>) => {
      for (const n of [1, 2, 3]) list.openai!.models[`openai-${n}`].cost = { input: 9, output: 9 }
    }
    check(jump, all())()
  })
})
