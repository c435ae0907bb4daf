import fc from 'fast-check'
import { multipart } from '../edge/harness.ts'
import type { Body, Sent } from './client.ts'
import { nameOf, type Operation, type Parameter } from './document.ts'
import { knownFields, knownParts, signedEvent, WHOLE } from './known.ts'
import { BROKEN_TEXTS, EXTRA_QUERIES, FILES, OPTIONAL_HEADERS, RAW_PARTS, TYPES } from './odd.ts'
import { type Components, type Json, oddText, oddValue, poisonTexts, Values } from './values.ts'
import type { Seeds } from './world.ts'

/** Generates requests of every operation, valid ones and ones with a broken part. */

type Text = fc.Arbitrary<string>
type Headers = Readonly<Record<string, string>>
const rarely = <T>(one: fc.Arbitrary<T>, often: fc.Arbitrary<T>, weight = 9): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: often }, { weight: 1, arbitrary: one })
const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)

// The server rejects request heads of more than 16 KiB.
const LONGEST_TARGET = 10_000
const LONGEST_PART = 3000
const encodePart = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).slice(0, LONGEST_PART).replace(/%.?$/, '')

interface Made {
  readonly body: Body
  readonly headers: Headers
}

export class Requests {
  private readonly values: Values
  private readonly parts: (operation: Operation, name: string) => readonly unknown[]

  constructor(components: Components, seeds: Seeds) {
    this.values = new Values(components, knownFields(seeds))
    this.parts = knownParts(seeds)
  }

  of(operations: readonly Operation[]): fc.Arbitrary<Sent> {
    return fc.oneof(...operations.map((operation) => this.one(operation)))
  }

  private one(operation: Operation): fc.Arbitrary<Sent> {
    const others = pick(
      ...['HEAD', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'].filter((each) => each !== operation.method),
    )
    const fields = {
      method: rarely(others, fc.constant(operation.method), 25),
      caller: fc.oneof(
        { weight: 4, arbitrary: fc.constant('owner') },
        { weight: 4, arbitrary: fc.constant('admin') },
        { weight: 5, arbitrary: pick('other', 'moderator', 'nobody', 'cookie', 'stranger') },
      ),
      path: this.path(operation),
      query: this.query(operation.parameters.filter((each) => each.in === 'query')),
      headers: this.headers(),
      made: this.body(operation),
    }
    return fc.record(fields).map(({ method, caller, path, query, headers, made }) => {
      const target = `${path}${query === '' ? '' : `?${query}`}`.slice(0, LONGEST_TARGET).replace(/%.?$/, '')
      const hasBody = made !== null && !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method)
      return {
        ...{ operation, method, target, body: hasBody ? made.body : null },
        ...{ caller, headers: { ...headers, ...(hasBody ? made.headers : {}) } },
      }
    })
  }

  private path(operation: Operation): Text {
    const pieces = operation.path.split(/(\{\w+})/).map((piece) => {
      if (!piece.startsWith('{')) return fc.constant(piece)
      const name = piece.slice(1, -1)
      const there = this.parts(operation, name)
      const odd = fc.oneof(
        oddText.map(encodePart),
        pick(...RAW_PARTS),
        fc.integer({ min: 1, max: 200 }).map(String),
      )
      return there.length === 0
        ? odd
        : rarely(
            odd,
            pick(...there).map((value) => encodePart(String(value))),
            6,
          )
    })
    return fc.tuple(...pieces).map((texts) => texts.join(''))
  }

  private query(parameters: readonly Parameter[]): Text {
    const pairs = parameters.map(({ name, schema, required }) => {
      const good = this.values.good(schema, name).map((value) => `${name}=${encodePart(String(value))}`)
      const odd = oddText.map((value) => `${name}=${encodePart(value)}`)
      const given = rarely(odd, good, 5)
      return required === true ? rarely(fc.constant(''), given) : fc.oneof(fc.constant(''), given)
    })
    const extra = rarely(pick(...EXTRA_QUERIES), fc.constant(''), 20)
    return fc.tuple(...pairs, extra).map((texts) => texts.filter((text) => text !== '').join('&'))
  }

  private headers(): fc.Arbitrary<Headers> {
    const one = fc.oneof(
      ...Object.entries(OPTIONAL_HEADERS).map(([name, value]) =>
        pick(...value).map((text) => [name, text] as const),
      ),
    )
    const some = fc.array(one, { minLength: 1, maxLength: 3 })
    return rarely(some, fc.constant([]), 2).map((pairs) => Object.fromEntries(pairs))
  }

  private body(operation: Operation): fc.Arbitrary<Made | null> {
    const [content] = Object.entries(operation.requestBody?.content ?? {})
    if (content === undefined)
      return rarely<Made | null>(pick(made('{}', 'application/json')), fc.constant(null), 20)
    const [type, { schema }] = content
    const good = this.good(operation, type, schema)
    const broken = fc.tuple(pick(...BROKEN_TEXTS), pick(type, ...TYPES)).map(([text, as]) => made(text, as))
    const mistyped = fc.tuple(good, pick(...TYPES)).map(([{ body, headers }, as]) => ({
      body,
      headers: { ...headers, 'content-type': as },
    }))
    const spoiled = this.values.spoiled(schema).map((value) => encodeBody(value, type))
    const poison = poisonTexts(this.values.good(schema)).map((value) => encodeBody(value, type))
    const isForm = type.startsWith('multipart')
    return fc.oneof(
      { weight: 10, arbitrary: good },
      { weight: isForm ? 0 : 8, arbitrary: spoiled },
      { weight: isForm ? 0 : 3, arbitrary: poison },
      { weight: 1, arbitrary: broken },
      { weight: 1, arbitrary: mistyped },
    )
  }

  private good(operation: Operation, type: string, schema: Json): fc.Arbitrary<Made> {
    if (operation.path.endsWith('/webhook')) return signedEvent(oddValue)
    if (type.startsWith('multipart')) return this.form(schema)
    const whole = WHOLE[nameOf(operation)] ?? this.values.good(schema)
    return whole.map((value) => encodeBody(value, type))
  }

  private form(given: Json): fc.Arbitrary<Made> {
    const { properties } = this.values.resolve(given) as { properties: Readonly<Record<string, Json>> }
    const names = Object.keys(properties).filter((name) => name !== 'file')
    const value = rarely(oddText, pick('2024-05-06', 'report', 'mail'), 3).map((text) =>
      text.replace(/[\r\n]/g, ' '),
    )
    const fields = fc.dictionary(names.length === 0 ? pick('title') : pick(...names), value, { maxKeys: 3 })
    return fc.tuple(pick(...FILES), fields, fc.boolean()).map(([[name, bytes], all, isWhole]) => {
      const form = multipart(bytes, { name, fields: all })
      const whole = form.body
      return made(isWhole || name !== 'noname' ? whole : whole.subarray(0, whole.length - 10), form.type)
    })
  }
}

function made(bytes: string | Uint8Array, type: string): Made {
  return {
    body: { bytes: () => Buffer.from(bytes as string) },
    headers: type === '' ? {} : { 'content-type': type },
  }
}

/** Encodes a value as a body of the given content type. */
function encodeBody(value: unknown, type: string): Made {
  const text = (): string => {
    if (type !== 'application/x-www-form-urlencoded') return JSON.stringify(value) ?? ''
    const pairs = Object.entries((value ?? {}) as object).map(([name, each]) => [
      name,
      // Encode objects as JSON, because an object may have a `toString` property that is not a function.
      (typeof each === 'string' ? each : (JSON.stringify(each) ?? '')).toWellFormed(),
    ])
    return new URLSearchParams(Object.fromEntries(pairs)).toString()
  }
  return { body: { bytes: () => Buffer.from(text()) }, headers: { 'content-type': type } }
}
