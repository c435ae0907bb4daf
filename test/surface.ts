import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { readMetrics } from './surface-metrics.ts'

/**
 * The surface on which callers and operators depend, and its changes since a release. `data/releases/VERSION.surface.json.gz`
 * keeps that of each release. Additions are compatible; what goes, or accepts or returns another type, is a break.
 */

/** The names and types that a release promises. */
export interface Surface {
  /** The API reference, `/openapi.json`. */
  readonly reference: Json
  /** Names of settings and of lines of the Procfile; metrics with their types and labels. */
  readonly settings: readonly string[]
  readonly metrics: readonly string[]
  readonly processes: readonly string[]
}

type Json = Readonly<Record<string, unknown>>

/** The service accepts `input` and returns `output`. */
type Direction = 'input' | 'output'

const readLines = (file: string, pattern: RegExp): string[] =>
  [...readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').matchAll(pattern)].map(([, name]) => name!)

/** Reads the surface of this version. `get` requests a path of a service and returns the text of the answer. */
export async function readSurface(get: (path: string) => Promise<string>): Promise<Surface> {
  return {
    reference: JSON.parse(await get('/openapi.json')) as Json,
    settings: readLines('.env.example', /^#?([A-Z][A-Z0-9_]+)=/gm),
    metrics: await readMetrics(),
    processes: readLines('Procfile', /^(\w+):/gm),
  }
}

/** Returns what a surface lacks, or has changed, of a released one. Each line names a place and the break. */
export function findBreaks(released: Surface, current: Surface): string[] {
  const gone = (['settings', 'metrics', 'processes'] as const).flatMap((kind) =>
    released[kind].filter((name) => !current[kind].includes(name)).map((name) => `${kind}: ${name} is gone`),
  )
  return [...gone, ...new Comparison(released.reference, current.reference).breaks()]
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options']
// Returns true if the current limit accepts less than the released one.
const LIMITS: Readonly<Record<string, (released: number, current: number) => boolean>> = {
  minimum: (released, current) => current > released,
  exclusiveMinimum: (released, current) => current > released,
  minLength: (released, current) => current > released,
  minItems: (released, current) => current > released,
  maximum: (released, current) => current < released,
  maxLength: (released, current) => current < released,
  maxItems: (released, current) => current < released,
}

/** Compares two API references. */
class Comparison {
  readonly #released: Json
  readonly #current: Json
  readonly #breaks: string[] = []
  /** Pairs of named schemas that were compared, or are being compared. */
  readonly #seen = new Set<string>()

  constructor(released: Json, current: Json) {
    this.#released = released
    this.#current = current
  }

  breaks(): string[] {
    this.#compareAll('paths', 'input', 'output')
    // The service sends webhooks, so their bodies are its output.
    this.#compareAll('webhooks', 'output', 'input')
    return this.#breaks
  }

  #compareAll(part: 'paths' | 'webhooks', sent: Direction, answered: Direction): void {
    for (const [path, item] of entriesOf(this.#released[part]))
      for (const method of METHODS) {
        const operation = (item as Json)[method] as Json | undefined
        if (operation === undefined) continue
        const at = `${method.toUpperCase()} ${path}`
        const now = ((this.#current[part] as Json)?.[path] as Json)?.[method] as Json | undefined
        if (now === undefined) this.#add(at, 'is gone')
        else this.#compareOperation(at, operation, now, { sent, answered })
      }
  }

  #add(at: string, text: string): void {
    this.#breaks.push(`${at}: ${text}`)
  }

  #compareOperation(
    at: string,
    released: Json,
    current: Json,
    { sent, answered }: { readonly sent: Direction; readonly answered: Direction },
  ): void {
    this.#compareParameters(at, listOf(released.parameters), listOf(current.parameters))
    const [body, bodyNow] = [
      released.requestBody as Json | undefined,
      current.requestBody as Json | undefined,
    ]
    if (body !== undefined) this.#compareContent(`${at} body`, body, bodyNow, sent)
    if (bodyNow?.required === true && body?.required !== true) this.#add(`${at} body`, 'is required now')
    for (const [status, response] of entriesOf(released.responses)) {
      const now = (current.responses as Json)[status] as Json | undefined
      if (now === undefined) this.#add(at, `does not answer ${status} any more`)
      else this.#compareContent(`${at} ${status}`, response as Json, now, answered)
    }
  }

  #compareParameters(at: string, released: readonly Json[], current: readonly Json[]): void {
    const find = (list: readonly Json[], { name, in: place }: Json): Json | undefined =>
      list.find((one) => one.name === name && one.in === place)
    for (const parameter of released) {
      const now = find(current, parameter)
      const place = `${at} ${parameter.in} ${parameter.name}`
      if (now === undefined) this.#add(place, 'is gone')
      else this.#compareSchema(place, parameter.schema as Json, now.schema as Json, 'input')
    }
    for (const parameter of current)
      if (parameter.required === true && find(released, parameter)?.required !== true)
        this.#add(`${at} ${parameter.in} ${parameter.name}`, 'is required now')
  }

  #compareContent(at: string, released: Json, current: Json | undefined, direction: Direction): void {
    for (const [type, media] of entriesOf(released.content)) {
      const now = (current?.content as Json | undefined)?.[type] as Json | undefined
      if (now === undefined) this.#add(at, `has no ${type} any more`)
      else this.#compareSchema(at, (media as Json).schema as Json, now.schema as Json, direction)
    }
  }

  #compareSchema(
    at: string,
    released: Json | undefined,
    current: Json | undefined,
    direction: Direction,
  ): void {
    if (released === undefined || current === undefined) return
    const pair = [released.$ref, current.$ref, direction].join(' ')
    if (released.$ref !== undefined && current.$ref !== undefined) {
      if (this.#seen.has(pair)) return
      this.#seen.add(pair)
    }
    const [before, now] = [resolve(this.#released, released), resolve(this.#current, current)]
    const [choices, choicesNow] = [this.#choices(this.#released, before), this.#choices(this.#current, now)]
    this.#compareTypes(at, choices, choicesNow, direction)
    if (choices.length > 1 || choicesNow.length > 1) {
      this.#compareChoices(at, choices, choicesNow, direction)
      return
    }
    this.#compareValues(at, before, now, direction)
    this.#compareFields(at, before, now, direction)
    for (const keyword of ['items', 'additionalProperties', 'propertyNames'])
      if (isObject(before[keyword]) && isObject(now[keyword]))
        this.#compareSchema(`${at}[]`, before[keyword], now[keyword], direction)
    if (direction === 'input') this.#compareLimits(at, before, now)
  }

  /** Returns the alternatives of a schema, each with one type; the schema itself if it has none. */
  #choices(reference: Json, schema: Json): readonly Json[] {
    const { anyOf, oneOf, type } = schema
    if (Array.isArray(type)) return type.map((each) => ({ ...schema, type: each }))
    const choices = (anyOf ?? oneOf) as readonly Json[] | undefined
    return choices?.flatMap((each) => this.#choices(reference, resolve(reference, each))) ?? [schema]
  }

  /** Reports each released alternative that no current one of its type can replace. */
  #compareChoices(
    at: string,
    released: readonly Json[],
    current: readonly Json[],
    direction: Direction,
  ): void {
    for (const choice of released) {
      const sameType = current.filter(({ type }) => type === choice.type)
      // A type that has gone is reported by `#compareTypes`, if it matters.
      if (sameType.length === 0) continue
      const attempts = sameType.map((now) => {
        const attempt = new Comparison(this.#released, this.#current)
        for (const pair of this.#seen) attempt.#seen.add(pair)
        attempt.#compareSchema(at, choice, now, direction)
        return attempt.#breaks
      })
      this.#breaks.push(...attempts.toSorted((a, b) => a.length - b.length)[0]!)
    }
  }

  #compareTypes(at: string, released: readonly Json[], current: readonly Json[], direction: Direction): void {
    const [types, now] = [typesOf(released), typesOf(current)]
    // The service may accept more types, and return fewer. An integer is a number.
    const [narrow, wide] = direction === 'input' ? [types, now] : [now, types]
    const isCovered = (type: string): boolean =>
      wide.includes(type) || (type === 'integer' && wide.includes('number'))
    if (wide.length > 0 && (narrow.length === 0 || !narrow.every(isCovered)))
      this.#add(at, `was ${types.join(' or ') || 'any type'}, is ${now.join(' or ') || 'any type'}`)
  }

  #compareValues(at: string, released: Json, current: Json, direction: Direction): void {
    for (const value of valuesOf(released))
      if (valuesOf(current).length > 0 && !valuesOf(current).includes(value))
        this.#add(at, `${value} is gone`)
    if (direction === 'input' && valuesOf(released).length === 0 && valuesOf(current).length > 0)
      this.#add(at, 'accepts only some values now')
  }

  #compareFields(at: string, released: Json, current: Json, direction: Direction): void {
    const fields = (current.properties ?? {}) as Json
    for (const [name, schema] of entriesOf(released.properties)) {
      if (fields[name] === undefined) this.#add(`${at}.${name}`, 'is gone')
      else this.#compareSchema(`${at}.${name}`, schema as Json, fields[name] as Json, direction)
    }
    const [required, requiredNow] = [namesOf(released.required), namesOf(current.required)]
    const [all, kept] = direction === 'input' ? [requiredNow, required] : [required, requiredNow]
    for (const name of all)
      if (!kept.includes(name) && (direction === 'input' || fields[name] !== undefined))
        this.#add(`${at}.${name}`, direction === 'input' ? 'is required now' : 'may be absent now')
  }

  #compareLimits(at: string, released: Json, current: Json): void {
    for (const [keyword, isStricter] of Object.entries(LIMITS)) {
      const now = current[keyword]
      if (typeof now !== 'number') continue
      const before = released[keyword]
      if (typeof before !== 'number' || isStricter(before, now)) this.#add(at, `${keyword} is ${now} now`)
    }
    // A format stands for its pattern, which a library may write in another way.
    const hasFormat = current.format !== undefined && current.format === released.format
    for (const keyword of hasFormat ? [] : ['pattern', 'format', 'allOf'])
      if (current[keyword] !== undefined && !isDeepStrictEqual(current[keyword], released[keyword]))
        this.#add(at, `${keyword} has changed`)
    if (
      current.additionalProperties === false &&
      released.additionalProperties !== false &&
      released.properties !== undefined
    )
      this.#add(at, 'refuses other fields now')
  }
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const entriesOf = (value: unknown): [string, unknown][] => Object.entries((value ?? {}) as Json)
const listOf = (value: unknown): readonly Json[] => (value ?? []) as readonly Json[]
const namesOf = (value: unknown): readonly string[] => (value ?? []) as readonly string[]

/** Returns a schema, or that which it refers to. */
function resolve(reference: Json, schema: Json): Json {
  const name = (schema.$ref as string | undefined)?.split('/').at(-1)
  const schemas = (reference.components as Json).schemas as Readonly<Record<string, Json>>
  return name === undefined ? schema : resolve(reference, schemas[name]!)
}

/** Returns the types of alternatives; none if one of them may have any type. */
const typesOf = (choices: readonly Json[]): readonly string[] => {
  const types = choices.map(typeOf)
  return types.includes(undefined) ? [] : [...new Set(types as string[])]
}

/** Returns the type of a schema; that of its values if it only lists them. */
const typeOf = ({ type, const: value }: Json): string | undefined =>
  (type as string | undefined) ?? (value === undefined ? undefined : typeof value)

const valuesOf = (schema: Json): readonly unknown[] =>
  schema.const !== undefined ? [schema.const] : ((schema.enum as unknown[]) ?? [])
