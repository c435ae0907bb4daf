import fc from 'fast-check'
import { ODD_TEXTS, UNSTORABLE_TEXTS } from './odd.ts'

/** Generates values for JSON schemas: valid ones, ones just inside or outside the bounds, and unexpected ones. */

export type Json = Readonly<Record<string, unknown>>
export type Components = Readonly<Record<string, Json>>

interface Bounds {
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: string
  readonly format?: string
}

const oddTexts = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...UNSTORABLE_TEXTS) },
  { weight: 6, arbitrary: fc.constantFrom(...ODD_TEXTS) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
  { weight: 1, arbitrary: fc.integer({ min: 500, max: 20_000 }).map((n) => 'x'.repeat(n)) },
)
export const oddText: fc.Arbitrary<string> = oddTexts

const nest = (depth: number, isArray: boolean): unknown => {
  let value: unknown = 'x'
  for (let i = 0; i < depth; i++) value = isArray ? [value] : { a: value }
  return value
}

/** Generates any JSON value. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 5, arbitrary: oddTexts },
  {
    weight: 4,
    arbitrary: fc.constantFrom<unknown>(
      ...[null, true, false, 0, -1, 1, 1.5, -0, 1e308, -1e308, 5e-324, 2 ** 31, 2 ** 53, -(2 ** 63), 10_001],
      ...[[], {}, [null], [[]], { '': '' }, { $ref: '#' }, [0, '0', null], ['a', 'a']],
    ),
  },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom(2, 40, 3000), fc.boolean()).map(([n, is]) => nest(n, is)),
  },
)

// Length of the longest generated text. Longer texts would exceed the size limit of bodies anyway.
const MAX_TEXT_LENGTH = 1_100_000

/** Generates values just inside and just outside the schema's bounds, or any value if it has no bounds. */
function generateBoundary(schema: Json): fc.Arbitrary<unknown> {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems } = schema as Bounds
  const values: unknown[] = []
  for (const length of [minLength, maxLength])
    for (const n of [length, length && length - 1, length && length + 1])
      if (n !== undefined && n <= MAX_TEXT_LENGTH) values.push('x'.repeat(n), 'é'.repeat(Math.min(n, 2000)))
  for (const n of [minimum, maximum]) if (n !== undefined) values.push(n - 1, n + 1, n + 0.5)
  for (const n of [minItems, maxItems])
    if (n !== undefined && n <= 1000) values.push(Array(Math.max(0, n + 1)).fill('x'))
  return values.length === 0 ? oddValue : fc.constantFrom(...values)
}

/** Generates values for schemas. `known` supplies valid values by field name. */
export class Values {
  private readonly components: Components
  private readonly known: (name: string, schema: Json) => fc.Arbitrary<unknown> | undefined

  constructor(
    components: Components,
    known: (name: string, schema: Json) => fc.Arbitrary<unknown> | undefined,
  ) {
    this.components = components
    this.known = known
  }

  resolve(schema: Json): Json {
    return typeof schema.$ref === 'string'
      ? this.resolve(this.components[schema.$ref.split('/').at(-1)!]!)
      : schema
  }

  /** Generates values that the schema allows. */
  generateValid(given: Json, name = ''): fc.Arbitrary<unknown> {
    const schema = this.resolve(given)
    const known = this.known(name, schema)
    if (known !== undefined) return known
    if ('const' in schema) return fc.constant(schema.const)
    if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]))
    const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined
    if (choices !== undefined) return fc.oneof(...choices.map((choice) => this.generateValid(choice, name)))
    const { minItems = 0, maxItems = 3, minimum = -1000, maximum = 100_000 } = schema as Bounds
    if (schema.type === 'object') return this.object(schema)
    if (schema.type === 'array') {
      const item = this.generateValid((schema.items ?? {}) as Json, name.replace(/s$/, ''))
      return fc.array(item, { minLength: minItems, maxLength: Math.min(maxItems, minItems + 3) })
    }
    if (schema.type === 'string') return generateText(schema)
    // Uniform values within wide bounds would mostly be unrealistically large.
    if (schema.type === 'integer') return fc.integer({ min: minimum, max: Math.min(maximum, minimum + 1000) })
    if (schema.type === 'number')
      return fc.double({ min: minimum, max: Math.min(maximum, minimum + 1000), noNaN: true })
    if (schema.type === 'boolean') return fc.boolean()
    return schema.type === 'null' ? fc.constant(null) : fc.jsonValue({ maxDepth: 2 })
  }

  private object(schema: Json): fc.Arbitrary<unknown> {
    const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>)
    const required = new Set((schema.required ?? []) as string[])
    if (properties.length === 0)
      return fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 1 }))
    const entries = properties.map(([name, property]) => [name, this.generateValid(property, name)] as const)
    return fc.record(Object.fromEntries(entries), { requiredKeys: [...required] })
  }

  /** Generates valid values with one or two changed fields. */
  generateSpoiled(given: Json): fc.Arbitrary<unknown> {
    const schema = this.resolve(given)
    const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>)
    if (properties.length === 0) return oddValue
    const change = fc.oneof(
      ...properties.map(([name, property]) => {
        const inner = this.resolve(property)
        const choices = ((inner.anyOf ?? [inner]) as Json[]).map((choice) => this.resolve(choice))
        return fc
          .oneof(oddValue, fc.constant(undefined), ...choices.map(generateBoundary))
          .map((value): [string, unknown] => [name, value])
      }),
      fc
        .tuple(fc.constantFrom('extra', '__proto__', 'constructor', 'id', 'role', '', 'owner_id'), oddValue)
        .map(([name, value]): [string, unknown] => [name, value]),
    )
    const changed = fc
      .tuple(this.generateValid(schema), fc.array(change, { minLength: 1, maxLength: 2 }))
      .map(([value, changes]) => ({ ...(value as object), ...Object.fromEntries(changes) }))
    return fc.oneof({ weight: 9, arbitrary: changed }, { weight: 1, arbitrary: oddValue })
  }
}

/** Generates valid values with one string that PostgreSQL cannot store. */
export function poisonTexts(good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(good, fc.nat(100), fc.constantFrom(...UNSTORABLE_TEXTS)).map(([value, n, poison]) => {
    const places = findTexts(value)
    return places.length === 0 ? value : replaceAt(value, places[n % places.length]!, poison)
  })
}

type Path = readonly (string | number)[]

function findTexts(value: unknown, at: Path = []): Path[] {
  if (typeof value === 'string') return [at]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => findTexts(item, [...at, key]))
}

function replaceAt(value: unknown, [key, ...rest]: Path, by: string): unknown {
  if (key === undefined) return by
  const inner = replaceAt((value as Record<string, unknown>)[key], rest, by)
  return Array.isArray(value)
    ? value.with(Number(key), inner)
    : Object.fromEntries(
        Object.entries(value as object).map(([name, item]) => [name, name === key ? inner : item]),
      )
}

function generateText(schema: Json): fc.Arbitrary<string> {
  const { minLength = 0, maxLength = 40, pattern, format } = schema as Bounds
  if (format === 'uuid') return fc.uuid()
  if (format === 'date') return fc.date(DATE_RANGE).map((date) => date.toISOString().slice(0, 10))
  if (format === 'date-time') return fc.date(DATE_RANGE).map((date) => date.toISOString())
  if (format === 'uri') return fc.webUrl()
  const max = Math.min(maxLength, minLength + 40)
  const plain = fc.string({ unit: 'grapheme-ascii', minLength, maxLength: max })
  const wide = fc.string({ unit: 'grapheme', minLength, maxLength: max })
  const free = fc.oneof(plain, wide, fc.constant('x'.repeat(Math.min(maxLength, 5000))))
  if (pattern === undefined) return free
  const simple = !/\\[pP]|\(\?/.test(pattern) && pattern.startsWith('^')
  return simple ? fc.stringMatching(new RegExp(pattern)) : plain.map((value) => `x${value}`)
}

const DATE_RANGE = { min: new Date('1990-01-01'), max: new Date('2099-12-31'), noInvalidDate: true }
