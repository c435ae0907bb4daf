import fc from 'fast-check'
import { createMultipart } from '../edge/harness.ts'
import type { Body, SentRequest } from './client.ts'
import { nameOf, type Operation, type Parameter } from './document.ts'
import { COMPLETE_BODIES, createFieldLookup, createPartLookup, generateSignedEvent } from './known.ts'
import {
  BROKEN_TEXTS,
  EXTRA_QUERIES,
  ODD_CONTENT_TYPES,
  ODD_FILES,
  ODD_PATH_PARTS,
  OPTIONAL_HEADERS,
} from './odd.ts'
import { type Components, type Json, oddText, oddValue, poisonTexts, Values } from './values.ts'
import type { Seeds } from './world.ts'

/** Generates requests of every operation, valid ones and ones with a broken part. */

type Text = fc.Arbitrary<string>
type Headers = Readonly<Record<string, string>>
const rarely = <T>(one: fc.Arbitrary<T>, often: fc.Arbitrary<T>, weight = 9): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: often }, { weight: 1, arbitrary: one })
const pickFrom = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)

// The server rejects request heads of more than 16 KiB.
const MAX_TARGET_LENGTH = 10_000
const MAX_PART_LENGTH = 3000
const encodePart = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).slice(0, MAX_PART_LENGTH).replace(/%.?$/, '')

interface EncodedBody {
  readonly body: Body
  readonly headers: Headers
}

export class Requests {
  private readonly values: Values
  private readonly parts: (operation: Operation, name: string) => readonly unknown[]

  constructor(components: Components, seeds: Seeds) {
    this.values = new Values(components, createFieldLookup(seeds))
    this.parts = createPartLookup(seeds)
  }

  of(operations: readonly Operation[]): fc.Arbitrary<SentRequest> {
    return fc.oneof(...operations.map((operation) => this.one(operation)))
  }

  private one(operation: Operation): fc.Arbitrary<SentRequest> {
    const others = pickFrom(
      ...['HEAD', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'].filter((each) => each !== operation.method),
    )
    const fields = {
      method: rarely(others, fc.constant(operation.method), 25),
      caller: fc.oneof(
        { weight: 4, arbitrary: fc.constant('owner') },
        { weight: 4, arbitrary: fc.constant('admin') },
        { weight: 5, arbitrary: pickFrom('other', 'moderator', 'nobody', 'cookie', 'stranger') },
      ),
      path: this.path(operation),
      query: this.query(operation.parameters.filter((each) => each.in === 'query')),
      headers: this.headers(),
      made: this.body(operation),
    }
    return fc.record(fields).map(({ method, caller, path, query, headers, made }) => {
      const target = `${path}${query === '' ? '' : `?${query}`}`
        .slice(0, MAX_TARGET_LENGTH)
        .replace(/%.?$/, '')
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
        pickFrom(...ODD_PATH_PARTS),
        fc.integer({ min: 1, max: 200 }).map(String),
      )
      return there.length === 0
        ? odd
        : rarely(
            odd,
            pickFrom(...there).map((value) => encodePart(String(value))),
            6,
          )
    })
    return fc.tuple(...pieces).map((texts) => texts.join(''))
  }

  private query(parameters: readonly Parameter[]): Text {
    const pairs = parameters.map(({ name, schema, required }) => {
      const good = this.values
        .generateValid(schema, name)
        .map((value) => `${name}=${encodePart(String(value))}`)
      const odd = oddText.map((value) => `${name}=${encodePart(value)}`)
      const given = rarely(odd, good, 5)
      return required === true ? rarely(fc.constant(''), given) : fc.oneof(fc.constant(''), given)
    })
    const extra = rarely(pickFrom(...EXTRA_QUERIES), fc.constant(''), 20)
    return fc.tuple(...pairs, extra).map((texts) => texts.filter((text) => text !== '').join('&'))
  }

  private headers(): fc.Arbitrary<Headers> {
    const one = fc.oneof(
      ...Object.entries(OPTIONAL_HEADERS).map(([name, value]) =>
        pickFrom(...value).map((text) => [name, text] as const),
      ),
    )
    const some = fc.array(one, { minLength: 1, maxLength: 3 })
    return rarely(some, fc.constant([]), 2).map((pairs) => Object.fromEntries(pairs))
  }

  private body(operation: Operation): fc.Arbitrary<EncodedBody | null> {
    const [content] = Object.entries(operation.requestBody?.content ?? {})
    if (content === undefined)
      return rarely<EncodedBody | null>(
        pickFrom(toEncodedBody('{}', 'application/json')),
        fc.constant(null),
        20,
      )
    const [type, { schema }] = content
    const good = this.good(operation, type, schema)
    const broken = fc
      .tuple(pickFrom(...BROKEN_TEXTS), pickFrom(type, ...ODD_CONTENT_TYPES))
      .map(([text, as]) => toEncodedBody(text, as))
    const mistyped = fc.tuple(good, pickFrom(...ODD_CONTENT_TYPES)).map(([{ body, headers }, as]) => ({
      body,
      headers: { ...headers, 'content-type': as },
    }))
    const spoiled = this.values.generateSpoiled(schema).map((value) => encodeBody(value, type))
    const poison = poisonTexts(this.values.generateValid(schema)).map((value) => encodeBody(value, type))
    const isForm = type.startsWith('multipart')
    return fc.oneof(
      { weight: 10, arbitrary: good },
      { weight: isForm ? 0 : 8, arbitrary: spoiled },
      { weight: isForm ? 0 : 3, arbitrary: poison },
      { weight: 1, arbitrary: broken },
      { weight: 1, arbitrary: mistyped },
    )
  }

  private good(operation: Operation, type: string, schema: Json): fc.Arbitrary<EncodedBody> {
    if (operation.path.endsWith('/webhook')) return generateSignedEvent(oddValue)
    if (type.startsWith('multipart')) return this.form(schema)
    const whole = COMPLETE_BODIES[nameOf(operation)] ?? this.values.generateValid(schema)
    return whole.map((value) => encodeBody(value, type))
  }

  private form(given: Json): fc.Arbitrary<EncodedBody> {
    const { properties } = this.values.resolve(given) as { properties: Readonly<Record<string, Json>> }
    const names = Object.keys(properties).filter((name) => name !== 'file')
    const value = rarely(oddText, pickFrom('2024-05-06', 'report', 'mail'), 3).map((text) =>
      text.replace(/[\r\n]/g, ' '),
    )
    const fields = fc.dictionary(names.length === 0 ? pickFrom('title') : pickFrom(...names), value, {
      maxKeys: 3,
    })
    return fc.tuple(pickFrom(...ODD_FILES), fields, fc.boolean()).map(([[name, bytes], all, isWhole]) => {
      const form = createMultipart(bytes, { name, fields: all })
      const whole = form.body
      return toEncodedBody(
        isWhole || name !== 'noname' ? whole : whole.subarray(0, whole.length - 10),
        form.type,
      )
    })
  }
}

function toEncodedBody(bytes: string | Uint8Array, type: string): EncodedBody {
  return {
    body: { bytes: () => Buffer.from(bytes as string) },
    headers: type === '' ? {} : { 'content-type': type },
  }
}

/** Encodes a value as a body of the given content type. */
function encodeBody(value: unknown, type: string): EncodedBody {
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
