import type { z } from 'zod'
import type { Transaction } from '../../sql/db.ts'
import type { ErrorCode, Failure } from '../../sql/errors.ts'
import type { JobSpec } from '../../sql/jobs.ts'
import type { Reader } from '../../sql/reader.ts'
import type { ReadKind, Reads } from '../../sql/slow-reads.ts'
import type { JobRef, NewJob } from '../../tasks/task.ts'
import { compactJson } from '../http/compact.ts'
import type { Header } from '../http/reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from '../http/server.ts'
import type { StreamSource } from '../streams/sse.ts'
import type { Auth } from './access.ts'
import type { Caller } from './auth.ts'
import type { Edge } from './context.ts'
import type { LimitName } from './limits.ts'
import type { RequestContext } from './request-context.ts'
import { addScopes } from './scopes.ts'

/**
 * A route is one declaration with exactly one of five handlers: `handle`, `job`, `task`, `stream` or `raw`. Validation,
 * authorization, idempotency, errors, compression, OpenAPI, waiting and streaming follow from it.
 */

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** An answer with its own status and headers. Its body is a value, or JSON text such as PostgreSQL builds. */
export class Answer<T> {
  declare readonly _type?: T
  readonly status: number | undefined
  readonly headers: readonly Header[]
  readonly json: string | undefined
  readonly value: T | undefined

  constructor(parts: { status?: number; headers?: readonly Header[]; json?: string; value?: T }) {
    this.status = parts.status
    this.headers = parts.headers ?? []
    this.json = parts.json
    this.value = parts.value
  }

  withStatus(status: number): Answer<T> {
    const { headers, json, value } = this
    return new Answer<T>({
      status,
      headers,
      ...(json === undefined ? {} : { json }),
      ...(value === undefined ? {} : { value }),
    })
  }
}

/** An answer from JSON text of PostgreSQL, which it compacts. */
export function json<T>(
  text: string,
  parts: { status?: number; headers?: readonly Header[] } = {},
): Answer<T> {
  return new Answer<T>({ ...parts, json: compactJson(text) })
}

/** An answer from JSON text that is already compact. */
export function rawJson<T>(
  text: string,
  parts: { status?: number; headers?: readonly Header[] } = {},
): Answer<T> {
  return new Answer<T>({ ...parts, json: text })
}

/** Writes of a request that is not a GET. */
export interface Writes<R> {
  /**
   * Runs work in the transaction of the request; the Idempotency-Key and the stored answer commit with its writes. The
   * work may run more than once, so other effects belong in `tx.afterCommit`. A thrown failure rolls back the writes, a
   * returned one commits them; either is the answer. The default fingerprint covers method, path, query and body; it is
   * computed only with a key.
   */
  transaction(
    work: (tx: Transaction) => Promise<R | Answer<R> | Failure>,
    fingerprint?: () => Buffer,
  ): Promise<Answer<R>>
  /** Adds jobs, batched with other requests' jobs unless there is a key. `answer` receives their ids. */
  enqueue(specs: readonly JobSpec[], answer: (jobIds: readonly string[]) => R): Promise<Answer<R>>
}

/** Additional input of a `raw` handler, which answers through `responder` or returns an answer. */
export interface RawInput extends Writes<unknown> {
  readonly responder: Responder
  /** The head of an answer, with the common headers. */
  head(status: number, headers?: readonly Header[]): ReplyHead
}

/** The input of a handler; undeclared parts are undefined. */
export interface Input<P, Q, B, C> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly caller: C
  readonly edge: Edge
  /** The reader for the route's `reads`. */
  readonly reader: Reads
  readonly request: EdgeRequest
  readonly requestId: string
  readonly exchange: RequestContext
}

/** The body of a `job` route, received before the transaction that adds the job. */
export interface Received {
  /** Fingerprint of the body, for the Idempotency-Key. */
  readonly fingerprint: Uint8Array
  /** Releases the received body; called if no job was added. */
  discard(): Promise<unknown>
}

/** Additional input of a `task`. */
export interface TaskInput {
  /** Reads the first column of the first row; null without a row, or if the column is null. */
  readonly read: Reader['text']
}

/** The event stream of a job, as the answer of its route. */
export interface Follow<I> {
  /** The stream that a reconnecting client names by Last-Event-ID, without adding a job; null if there is none. */
  resume(input: I): Promise<StreamSource | null>
  /** The stream of a job from its first event. */
  open(input: I, jobId: string): Promise<StreamSource>
}

interface Declaration<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  A extends Auth,
  V extends Received,
> {
  readonly method: Method
  /** Path below the area's prefix; `:name` matches one segment. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** Access rule; default: the area's. */
  readonly auth?: A
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /** Format of the body; default `json`. A `raw` handler or `receive` reads `multipart` and `bytes`. */
  readonly bodyType?: 'json' | 'form' | 'multipart' | 'bytes'
  /** Alternative JSON schema of a `multipart` body, for the reference; the code that reads the body checks it. */
  readonly jsonBody?: z.ZodType
  /** Maximum size of a JSON body in bytes unless `MAX_JSON_BYTES` is set; default 1 MiB. */
  readonly bodyBytes?: number
  /** Reads the body of a `job` route as it arrives; `job` gets the result as `received`. */
  readonly receive?: (input: Input<z.output<P>, z.output<Q>, undefined, CallerOf<A>>) => Promise<V>
  /** Body of a success; absent: no body. */
  readonly response?: R
  /** Status of a success; default 200, or 204 without a response. */
  readonly status?: number
  /** Other statuses of a success, for the reference: status -> meaning. */
  readonly alsoAnswers?: Readonly<Record<number, string>>
  /** Media type or media range of a response that is not JSON. */
  readonly produces?: string
  /** Example of a response that is not JSON, for the reference. */
  readonly example?: string
  readonly errors?: readonly ErrorCode[]
  /** True for a POST that only reads: the read scope suffices. */
  readonly isRead?: boolean
  /** True if the route manages credentials: API keys are refused. */
  readonly needsSession?: boolean
  /** True if a key limited to an organization may call it, because the handler stays within it. Routes of one organization need no flag. */
  readonly allowsOrganizationKeys?: boolean
  /** True for a POST whose effect must happen once: it accepts `Idempotency-Key`. */
  readonly sideEffect?: boolean
  /** Reason why repeating a POST without a key is harmless. */
  readonly whyRepeatable?: string
  /** For a job-backed route: answers with the job's stream instead of its result. */
  readonly follow?: Follow<Input<z.output<P>, z.output<Q>, z.output<B>, CallerOf<A>>>
  /** For a job-backed route: builds the answer from the job's result; default: the whole result. */
  readonly answer?: (result: unknown) => unknown
  /** For a job-backed route: true if callers always wait for the job to end. */
  readonly alwaysWaits?: boolean
  /** True if a cookie other than the session's identifies the caller: the cross-site rule applies although the route is public. */
  readonly cookieAuth?: boolean
  /** True if it sets cookies for any caller: the cross-site rule applies to every request. */
  readonly signsIn?: boolean
  /** True for a GET that costs money: cross-site requests need a bearer token. */
  readonly costsMoney?: boolean
  /** Kind of reads for `reader`; default: rows by key, which never wait for slower reads. */
  readonly reads?: ReadKind
  /**
   * True if its reads also decide access: they come from the primary, which already knows that a member has been
   * removed.
   */
  readonly readsDecideAccess?: boolean
  /** True for a GET that reports the end of a job: its answer carries the WAL position, so that later lists include the job's writes. */
  readonly reportsWrites?: boolean
  /** Rate limit per client or account. */
  readonly limit?: LimitName
  /** True if answers may contain credentials: they get `Cache-Control: no-store`. */
  readonly hasCredentials?: boolean
  /** Adds data to each success that is never stored, not even for an Idempotency-Key. */
  readonly addUnstored?: (edge: Edge, text: string) => string
}

type CallerOf<A extends Auth> = A extends 'public' ? Caller | null : Caller
type Out<T extends z.ZodType> = z.output<T>

interface Endings<P, Q, B, R, C, V> {
  handle: (input: Input<P, Q, B, C> & Writes<R>) => Promise<R | Answer<R>> | R | Answer<R>
  job: (input: Input<P, Q, B, C> & { readonly tx: Transaction; readonly received: V }) => Promise<JobRef<R>>
  /** A `job` that is the only write: concurrent requests add their jobs in one batch. */
  task: (input: Input<P, Q, B, C> & TaskInput) => NewJob<R> | Promise<NewJob<R>>
  stream: (input: Input<P, Q, B, C>) => Promise<StreamSource>
  raw: (input: Input<P, Q, B, C> & RawInput) => Promise<Answer<unknown> | undefined>
}

type Only<E, K extends keyof E> = { readonly [N in K]: E[N] } & {
  readonly [N in Exclude<keyof E, K>]?: never
}
type OneEnding<E> = { [K in keyof E]: Only<E, K> }[keyof E]

/** A route without its type parameters, for dispatch and the reference. */
export interface AnyRoute
  extends Omit<Declaration<z.ZodType, z.ZodType, z.ZodType, z.ZodType, Auth, Received>, 'receive' | 'follow'>,
    Partial<Endings<never, never, never, unknown, never, never>> {
  readonly receive?: (input: never) => Promise<Received>
  readonly follow?: Follow<never>
}

/**
 * Declares a route. The schemas type the handler: it receives their output and must return the response's input.
 * A job's result must be the response. Several handlers, or none, do not compile.
 */
export function route<
  P extends z.ZodType = z.ZodUndefined,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
  R extends z.ZodType = z.ZodUndefined,
  const A extends Auth = 'user',
  V extends Received = never,
>(
  declaration: Declaration<P, Q, B, R, A, V> &
    OneEnding<Endings<Out<P>, Out<Q>, Out<B>, z.input<R>, CallerOf<A>, V>>,
): AnyRoute {
  // The only cast that erases a route's types: dispatch parses the input with the schemas that typed it.
  return declaration as unknown as AnyRoute
}

/** True if a job produces the route's answer. */
export function isJobBacked(route: AnyRoute): boolean {
  return route.job !== undefined || route.task !== undefined
}

/** Routes with a common prefix, name and access rule. */
export interface Area {
  readonly name: string
  readonly prefix: string
  readonly auth: Auth
  /** Status of invalid input: 422, but 400 where SPEC says so. */
  readonly invalidStatus: 422 | 400
  /** True if undeclared query parameters are allowed, as in links to pages and in probes. */
  readonly allowsAnyQuery: boolean
  readonly routes: readonly AnyRoute[]
}

/**
 * Declares an area. Its name is a tag of the reference, described by `edge/guides/NAME.md`. If a route needs a credential,
 * it is a scope of API keys, too.
 */
export function area(
  name: string,
  prefix: string,
  options: { auth: Auth; invalidStatus?: 400; allowsAnyQuery?: true },
  routes: readonly AnyRoute[],
): Area {
  const { auth, invalidStatus = 422, allowsAnyQuery: takesAnyQuery = false } = options
  if (routes.some((route) => (route.auth ?? auth) !== 'public')) addScopes(name)
  return { name, prefix, auth, invalidStatus, allowsAnyQuery: takesAnyQuery, routes }
}
