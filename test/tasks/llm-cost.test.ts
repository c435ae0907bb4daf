import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Price } from '../../sql/llm/models.ts'
import { computeCost } from '../../tasks/llm/cost.ts'
import { createRunOptions } from '../runs.ts'

/** Costs are compared with an independent computation in integer fractions. */

interface Fraction {
  readonly over: bigint
  readonly under: bigint
}

const parseFraction = (text: string): Fraction => {
  const [whole = '', places = ''] = text.split('.')
  return { over: BigInt(whole + places), under: 10n ** BigInt(places.length) }
}
const addFractions = (a: Fraction, b: Fraction): Fraction => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
})

/** Adds up the costs of all kinds of tokens, each with its own price. */
function addUpCosts(
  price: Price,
  input: number,
  cached: number,
  output: number,
  reasoning: number,
): Fraction {
  let rates: Price | Price['tiers'][number] = price
  for (const tier of price.tiers) if (BigInt(input) > BigInt(tier.over)) rates = tier
  const parts: [number, string][] = [
    [input - cached, rates.input],
    [cached, rates.cache_read == null ? rates.input : rates.cache_read],
    [output - reasoning, rates.output],
    [reasoning, rates.reasoning == null ? rates.output : rates.reasoning],
  ]
  return parts
    .map(([tokens, rate]): Fraction => {
      const { over, under } = parseFraction(rate)
      return { over: BigInt(tokens) * over, under: under * 1_000_000n }
    })
    .reduce(addFractions)
}

function assertCost(price: Price, input: number, cached: number, output: number, reasoning: number): void {
  const cost = computeCost(price, { input, cached, output, reasoning })
  assert.match(cost!, /^(0|[1-9]\d*)(\.\d*[1-9])?$/)
  const [a, b] = [parseFraction(cost!), addUpCosts(price, input, cached, output, reasoning)]
  assert.equal(
    a.over * b.under,
    b.over * a.under,
    `${JSON.stringify(price)} ${input} ${cached} ${output} ${reasoning}`,
  )
}

const RATES = ['0', '0.1', '0.075', '2.5', '0.000000001', '600', '3.33333333333333333333']
const OTHER_RATES = [null, '0', '0.025', '1.25']
const TOKEN_COUNTS = [0, 1, 3, 999, 200_000, 200_001, 272_001, 4_294_967_297, Number.MAX_SAFE_INTEGER]
const TIERS: readonly Price['tiers'][] = [
  [],
  [{ over: 200_000, input: '5', output: '22.5', cache_read: '0.5', reasoning: null }],
  [
    { over: 0, input: '0.7', output: '0.9' },
    { over: 200_000, input: '1.4', output: '0', reasoning: '0.123456789' },
    { over: 272_000, input: '0.01', output: '77', cache_read: '0' },
  ],
]

test('costs are exact for every pair of prices, kind of token and tier', () => {
  for (const input of RATES)
    for (const output of RATES)
      for (const cache_read of OTHER_RATES)
        for (const reasoning of OTHER_RATES)
          for (const tiers of TIERS)
            for (const [n, tokens] of TOKEN_COUNTS.entries()) {
              const out = TOKEN_COUNTS[(n * 4 + 2) % TOKEN_COUNTS.length]!
              const price = { input, output, cache_read, reasoning, tiers }
              assertCost(price, tokens, Math.floor(tokens / 3), out, Math.floor(out / 7))
            }
})

test('costs are exact for any prices and counts', () => {
  const rate = fc
    .tuple(fc.bigInt(0n, 10n ** 25n), fc.integer({ min: 0, max: 24 }))
    .map(([digits, places]) => {
      const text = String(digits).padStart(places + 1, '0')
      return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`
    })
  const rates = { input: rate, output: rate, cache_read: fc.option(rate), reasoning: fc.option(rate) }
  const tier = fc.record({ ...rates, over: fc.integer({ min: 0, max: 1_000_000 }) })
  const price = fc.record({
    ...rates,
    tiers: fc
      .uniqueArray(tier, { maxLength: 3, selector: ({ over }) => over })
      .map((tiers) => tiers.toSorted((a, b) => a.over - b.over)),
  })
  const count = fc.oneof(fc.maxSafeNat(), fc.nat(2_000_000))
  fc.assert(
    fc.property(
      price,
      count,
      fc.double({ min: 0, max: 1, noNaN: true }),
      count,
      (given, input, part, output) => {
        assertCost(given, input, Math.floor(input * part), output, Math.floor(output * part))
      },
    ),
    createRunOptions(),
  )
})

test('costs are exact where binary fractions are not', () => {
  const price = { input: '0.1', output: '0.2', tiers: [] }
  assert.equal(computeCost(price, { input: 1_000_000, cached: 0, output: 1_000_000, reasoning: 0 }), '0.3')
  assert.equal(computeCost(price, { input: 1, cached: 0, output: 0, reasoning: 0 }), '0.0000001')
  assert.equal(computeCost(price, { input: 0, cached: 0, output: 0, reasoning: 0 }), '0')
})

test('a tier begins above its limit, and also applies to the output', () => {
  const tiers = [{ over: 200_000, input: '4', output: '18' }]
  const price = { input: '2', output: '12', cache_read: '0.2', tiers }
  const cost = (input: number, cached = 0) =>
    computeCost(price, { input, cached, output: 1000, reasoning: 0 })
  assert.equal(cost(200_000), '0.412')
  assert.equal(cost(200_001), '0.818004')
  assert.equal(cost(200_001, 200_001), '0.818004', 'the tier has no price of its own for what is cached')
  assert.equal(cost(100_000, 100_000), '0.032')
})

describe('the cost is unknown', () => {
  const price = { input: '1', output: '1', tiers: [] }
  const usage = { input: 10, cached: 1, output: 10, reasoning: 1 }
  test('without a price', () => assert.equal(computeCost(null, usage), null))
  const impossible = [
    { cached: 11 },
    { reasoning: 11 },
    { input: -1 },
    { cached: -1 },
    { output: 0.5 },
    { reasoning: Number.NaN },
    { input: Number.POSITIVE_INFINITY },
    { input: 2 ** 53 },
  ]
  for (const part of impossible)
    test(`with ${JSON.stringify(part)}`, () => assert.equal(computeCost(price, { ...usage, ...part }), null))
})
