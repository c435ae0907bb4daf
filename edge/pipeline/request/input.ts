import { z } from 'zod'
import { type Failure, fail, type InputProblem } from '../../../sql/errors.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { EdgeRequest } from '../../http/server.ts'
import { type AnyRoute, isJobBacked, isResumable } from '../route.ts'
import type { RouteEntry } from './match.ts'
import { omitNulls, unwrap } from './schemas.ts'

type Part = 'body' | 'query' | 'path' | 'header'

/** Returns the failure for input with a single problem. */
export function failInvalidField(part: Part, name: string, msg: string, type: string): Failure {
  return failInvalidInput([{ loc: [part, name], msg, type }])
}

/** Returns the failure for invalid input. */
export function failInvalidInput(problems: readonly InputProblem[]): Failure {
  const [first] = problems
  const where =
    first === undefined ? 'input' : first.loc.length > 1 ? first.loc.slice(1).join('.') : first.loc[0]
  return fail('request.invalid', { reason: `${where}: ${first?.msg ?? 'is not valid'}` }, { problems })
}

/** Parses one part of a request. @throws fail('request.invalid') with every problem. */
export function parsePart(
  schema: z.ZodType | undefined,
  part: Part,
  value: unknown,
  maxValues = MAX_VALUES,
): unknown {
  if (schema === undefined) return undefined
  // A schema may drop query parameters, so check only its output. Check a body as a whole, before parsing.
  const before = part === 'body' ? findTextProblems(value, [part], maxValues) : []
  if (before.length > 0) throw failInvalidInput(before)
  if (part === 'body') return parseAt(schema, value, [part])
  const data = parseValue(schema, value, [part])
  const after = findTextProblems(data, [part])
  if (after.length > 0) throw failInvalidInput(after)
  return data
}

/** Parses a value of a body, which is at `loc`. @throws fail('request.invalid') with every problem. */
export function parseAt(schema: z.ZodType, value: unknown, loc: Loc): unknown {
  return parseValue(schema, omitNulls(schema, value), loc)
}

function parseValue(schema: z.ZodType, value: unknown, loc: Loc): unknown {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw failInvalidInput(
    result.error.issues.slice(0, MAX_PROBLEMS).map((issue) => ({
      loc: [...loc, ...issue.path.map((key) => (typeof key === 'number' ? key : String(key)))],
      msg: issue.code === 'unrecognized_keys' ? describeUnknownFields(schema, issue) : issue.message,
      type: issue.code,
    })),
  )
}

/** Formats the message about unknown fields, which also lists the known ones. */
function describeUnknownFields(schema: z.ZodType, { keys, path }: z.core.$ZodIssueUnrecognizedKeys): string {
  let at: z.ZodType | undefined = unwrap(schema)
  for (const key of path) {
    at =
      at instanceof z.ZodObject
        ? (at.shape as Shape)[String(key)]
        : ((at as Partial<z.ZodArray>).element as z.ZodType | undefined)
    at = at && unwrap(at)
  }
  return formatUnknownFields(keys, at instanceof z.ZodObject ? Object.keys(at.shape) : [])
}

const formatUnknownFields = (unknown: readonly string[], known: readonly string[]): string =>
  `has no ${truncateNames(unknown).join(', ')}${known.length === 0 ? '' : `; its fields are ${known.join(', ')}`}`

/** Returns the problem of a body with an unknown field. */
export const buildUnknownFieldProblem = (name: string, known: readonly string[]): InputProblem => ({
  loc: ['body'],
  msg: formatUnknownFields([name], known),
  type: 'unrecognized_keys',
})

type Shape = Readonly<Record<string, z.ZodType>>

/** Descriptions of the query parameters of job-backed and streamed routes, for the reference. */
export const BACKGROUND_DESCRIPTION = 'true returns 202 with the job id immediately'
export const CALLBACK_URL_DESCRIPTION = 'With `background`: receives a webhook when the job ends'
export const LAST_EVENT_ID_DESCRIPTION =
  'Like the header `Last-Event-ID`, which a new `EventSource` cannot send; the header takes precedence'

export const AFTER_DESCRIPTION =
  'Ids of jobs that must end first, repeated or separated by commas; until then the job is `waiting`'
export const AFTER_OUTCOME_DESCRIPTION =
  'With `after`: `done` cancels the job if one of them does not succeed, `any` runs it'

/** The query of routes that add jobs without waiting, or by other handlers than `task` and `job`. */
export const JobLinksQuery = z.object({
  background: z.string().optional().meta({ type: 'boolean', description: BACKGROUND_DESCRIPTION }),
  callback_url: z
    .string()
    .optional()
    .meta({ format: 'uri', maxLength: 2000, description: CALLBACK_URL_DESCRIPTION }),
  after: z.array(z.string()).optional().describe(AFTER_DESCRIPTION),
  after_outcome: z
    .string()
    .optional()
    .meta({ enum: ['done', 'any'], description: AFTER_OUTCOME_DESCRIPTION }),
})

const JOB_PARAMETERS = ['background', 'callback_url', 'after', 'after_outcome']
const STREAM_PARAMETERS = ['last_event_id']

/**
 * Parses the query of a request. Unknown parameters count as problems, so that typos are not ignored.
 * @throws fail('request.invalid') with every problem.
 */
export function parseQuery({ area, route }: RouteEntry, text: string): unknown {
  // Most requests have no query and take this fast path.
  if (text === '' && route.query === undefined) return undefined
  const given = new URLSearchParams(text)
  if (text !== '' && !area.allowsAnyQuery) rejectUnknownParameters(route, given)
  return route.query && parsePart(route.query, 'query', collectQueryValues(route.query, given))
}

function rejectUnknownParameters(route: AnyRoute, given: URLSearchParams): void {
  const known = listParameterNames(route)
  const unknown = new Set([...given.keys()].filter((name) => !known.includes(name)))
  if (unknown.size === 0) return
  const msg = `is not a parameter; ${known.length === 0 ? 'there are none' : `valid parameters: ${known.join(', ')}`}`
  throw failInvalidInput(
    truncateNames([...unknown]).map((name) => ({ loc: ['query', name], msg, type: 'unrecognized_keys' })),
  )
}

/** Shortens a list of names for a message, to 10 names of at most 100 characters. */
const truncateNames = (names: readonly string[]): string[] =>
  names.slice(0, 10).map((name) => name.slice(0, 100))

const parameterNamesByRoute = new WeakMap<AnyRoute, readonly string[]>()

/** Returns the names of a route's query parameters. */
function listParameterNames(route: AnyRoute): readonly string[] {
  const known = parameterNamesByRoute.get(route)
  if (known !== undefined) return known
  const query = route.query && unwrap(route.query)
  const shape = query instanceof z.ZodObject ? Object.keys(query.shape) : []
  const found = [
    ...shape,
    ...(isJobBacked(route) && !route.alwaysWaits ? JOB_PARAMETERS : []),
    ...(isResumable(route) ? STREAM_PARAMETERS : []),
  ]
  parameterNamesByRoute.set(route, found)
  return found
}

const repeatableNamesBySchema = new WeakMap<z.ZodType, readonly string[]>()

/** Returns the parameters that a query may repeat, for which the schema has an array. */
function listRepeatableNames(schema: z.ZodType): readonly string[] {
  const known = repeatableNamesBySchema.get(schema)
  if (known !== undefined) return known
  const shape = schema instanceof z.ZodObject ? (schema.shape as Shape) : {}
  const found = Object.keys(shape).filter((name) => unwrap(shape[name]!) instanceof z.ZodArray)
  repeatableNamesBySchema.set(schema, found)
  return found
}

/** Collects the values of a query by name. A repeatable parameter keeps all values, any other only the last. */
function collectQueryValues(schema: z.ZodType, given: URLSearchParams): Record<string, unknown> {
  const values: Record<string, unknown> = Object.fromEntries(given)
  for (const name of listRepeatableNames(schema)) if (given.has(name)) values[name] = given.getAll(name)
  return values
}

const DEFAULT_MAX_JSON_BYTES = 1_048_576

/** Returns the maximum size of a JSON body in bytes. */
export function findMaxJsonBytes(settings: Settings, route: Pick<AnyRoute, 'bodyBytes'> = {}): number {
  return settings.maxJsonBytes ?? route.bodyBytes ?? DEFAULT_MAX_JSON_BYTES
}

/** Reads and parses a body. Also returns its bytes, for the fingerprint of an Idempotency-Key. */
export async function parseBody(
  route: AnyRoute,
  request: EdgeRequest,
  maxBytes: number,
): Promise<{ value: unknown; bytes: Uint8Array }> {
  const form = route.bodyType === 'form'
  const expected = form ? 'application/x-www-form-urlencoded' : 'application/json'
  const given = readMediaType(request)
  if (given !== expected && !(given.endsWith('+json') && !form)) {
    const bytes = given === '' ? await request.body.readBytes(maxBytes) : null
    // An absent body has no wrong type, so the schema reports the missing fields.
    if (bytes?.length !== 0) throw fail('request.media_type', { expected })
    return { value: parsePart(route.body, 'body', form ? {} : undefined), bytes }
  }
  const bytes = await request.body.readBytes(maxBytes)
  const text = decodeText(bytes)
  const raw = form ? Object.fromEntries(new URLSearchParams(text)) : parseJson(text)
  return { value: parsePart(route.body, 'body', raw, route.bodyValues), bytes }
}

function readMediaType(request: EdgeRequest): string {
  return request.header('content-type').split(';', 1)[0]!.trim().toLowerCase()
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decodeText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw fail('request.malformed', { reason: 'the body is not valid UTF-8' })
  }
}

function parseJson(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw fail('request.malformed', { reason: 'the body is not valid JSON' })
  }
}

/**
 * True if the caller of a job-backed route does not wait for the job: `?background=true`, or `Prefer: respond-async`
 * (RFC 7240, section 4.1).
 */
export function wantsBackground(request: EdgeRequest): boolean {
  if (/(^|[\s,;])respond-async($|[\s,;=])/i.test(request.header('prefer'))) return true
  const given = new URLSearchParams(request.query).get('background')
  if (given === null || given === 'false' || given === '0') return false
  if (given === 'true' || given === '1') return true
  throw failInvalidField('query', 'background', 'must be true or false', 'invalid_value')
}

/** Returns the id of the event after which a client resumes a stream; '' for a new stream. */
export function readLastEventId(request: EdgeRequest): string {
  const given = request.header('last-event-id')
  return given === '' ? (new URLSearchParams(request.query).get('last_event_id') ?? '') : given
}

type Loc = InputProblem['loc']

// JSON itself has no limits, and every traversal (here, in schemas, in the database) needs time and stack.
const MAX_DEPTH = 64
const MAX_VALUES = 10_000

// An answer repeats the keys above each problem. Without these limits, 190 KB of input became an answer of 500 MB.
const MAX_PROBLEMS = 100
const MAX_KEY_LENGTH = 100

const TOO_DEEP_MESSAGE = `must not be nested more than ${MAX_DEPTH} levels deep`

/**
 * Returns the first problems of an input, with their locations.
 * @param loc the part of the request that holds the input.
 */
export function findTextProblems(value: unknown, loc: Loc, maxValues = MAX_VALUES): readonly InputProblem[] {
  const count = { left: maxValues }
  if (isValid(value, 1, count)) return []
  if (count.left < 0)
    return [{ loc, msg: `must not have more than ${maxValues} keys and items in total`, type: 'too_big' }]
  const problems: InputProblem[] = []
  for (const problem of locateProblems(value, loc, 1)) if (problems.push(problem) === MAX_PROBLEMS) break
  return problems
}

function isValid(value: unknown, depth: number, count: { left: number }): boolean {
  if (typeof value === 'string') return findFlaw(value) === null
  if (typeof value !== 'object' || value === null) return true
  if (depth > MAX_DEPTH) return false
  const given = value as Record<string, unknown>
  for (const key in given) {
    if (--count.left < 0 || findFlaw(key) !== null || !isValid(given[key], depth + 1, count)) return false
  }
  return true
}

/** Describes a NUL or an unpaired surrogate, which JSON can represent but PostgreSQL cannot; null if there are none. */
function findFlaw(text: string): string | null {
  if (text.includes('\0')) return 'a NUL character'
  return text.isWellFormed() ? null : 'an unpaired surrogate'
}

/** Locates the problems. It is slower than {@link isValid}, so it runs only if there are some. */
function* locateProblems(value: unknown, loc: Loc, depth: number): Generator<InputProblem> {
  if (typeof value === 'string') {
    const flaw = findFlaw(value)
    if (flaw !== null) yield { loc, msg: `must not contain ${flaw}`, type: 'invalid_format' }
  } else if (typeof value === 'object' && value !== null) {
    if (depth > MAX_DEPTH) {
      yield { loc: loc.slice(0, 2), msg: TOO_DEEP_MESSAGE, type: 'too_big' }
      return
    }
    for (const [key, item] of Object.entries(value)) {
      const flaw = findFlaw(key)
      if (flaw !== null) yield { loc, msg: `must not have a key that contains ${flaw}`, type: 'invalid_key' }
      else
        yield* locateProblems(
          item,
          [...loc, Array.isArray(value) ? Number(key) : truncateKey(key)],
          depth + 1,
        )
    }
  }
}

const truncateKey = (key: string): string => key.slice(0, MAX_KEY_LENGTH)
