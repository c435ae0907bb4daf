import type { z } from 'zod'
import type { Transaction } from '../../sql/db.ts'
import type { ErrorCode, Failure } from '../../sql/errors.ts'
import type { EnqueuedJob, JobSpec } from '../../sql/jobs/jobs.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import type { ReadKind, Reads } from '../../sql/reads/slow-reads.ts'
import type { JobRef, NewJob } from '../../tasks/task.ts'
import { compactJson, type FailureRules, type Header } from '../http/reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from '../http/server.ts'
import type { StreamSource } from '../streams/sse.ts'
import type { Auth } from './access/access.ts'
import type { Caller } from './access/auth.ts'
import type { LimitName } from './access/limits.ts'
import { addNamedScope, addScopes } from './access/scopes.ts'
import type { Edge } from './context.ts'
import type { RequestContext } from './request/request-context.ts'

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

/** Creates an answer from JSON text of PostgreSQL, after compacting it. */
export function answerJson<T>(
  text: string,
  parts: { status?: number; headers?: readonly Header[] } = {},
): Answer<T> {
  return new Answer<T>({ ...parts, json: compactJson(text) })
}

/** Creates an answer from JSON text that is already compact. */
export function answerCompactJson<T>(
  text: string,
  parts: { status?: number; headers?: readonly Header[] } = {},
): Answer<T> {
  return new Answer<T>({ ...parts, json: text })
}

/** The ways in which a request other than GET can write. */
export interface Writes<R> {
  /**
   * Runs work in the transaction of the request, which also commits the Idempotency-Key and the stored answer. The work
   * may run more than once, so other effects belong in `tx.afterCommit`. A thrown failure rolls back the writes, and a
   * returned one commits them. Both become the answer. The default fingerprint covers method, path, query and body, and
   * is computed only if there is a key.
   */
  transaction(
    work: (tx: Transaction) => Promise<R | Answer<R> | Failure>,
    fingerprint?: () => Buffer,
  ): Promise<Answer<R>>
  /**
   * Adds jobs, batched with those of other requests unless there is a key or `link`, which runs in their transaction.
   * `answer` receives the jobs that were added or joined.
   */
  enqueue(
    specs: readonly JobSpec[],
    answer: (jobs: readonly EnqueuedJob[]) => R,
    link?: (tx: Transaction, jobs: readonly EnqueuedJob[]) => Promise<void>,
  ): Promise<Answer<R>>
}

/** Additional input of a `raw` handler, which either answers through `responder` or returns an answer. */
export interface RawInput extends Writes<unknown> {
  readonly responder: Responder
  /** Builds the head of an answer, with the common headers. */
  head(status: number, headers?: readonly Header[]): ReplyHead
}

/** The input of a handler. Parts that the route does not declare are undefined. */
export interface Input<P, Q, B, C> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly caller: C
  readonly edge: Edge
  /** Runs the kind of reads that the route declares in `reads`. */
  readonly reader: Reads
  readonly request: EdgeRequest
  readonly requestId: string
  readonly exchange: RequestContext
}

/** The body of a `job` route, received before the transaction that adds the job. */
export interface ReceivedBody {
  /** Fingerprint of the body, for the Idempotency-Key. */
  readonly fingerprint: Uint8Array
  /** Deletes the received body. The responder calls this if it has added no job. */
  discard(): Promise<unknown>
}

/** Additional input of a `task`. */
export interface TaskInput {
  /** Reads the first column of the first row; null without a row, or if the column is null. */
  readonly read: Reader['text']
}

/** Makes a route answer with the event stream of its job. */
export interface Follow<I> {
  /** True if the request asks for a stream; absent if all requests do. */
  applies?(input: I): boolean
  /**
   * Finds the stream that a reconnecting client names by Last-Event-ID, without adding a job; null if there is none.
   * Absent if the protocol of the stream has no ids.
   */
  resume?(input: I): Promise<StreamSource | null>
  /** Opens the stream of a job from its first event. */
  open(input: I, jobId: string): Promise<StreamSource>
}

interface Declaration<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  A extends Auth,
  V extends ReceivedBody,
> {
  readonly method: Method
  /** Path below the area's prefix; `:name` matches one segment. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** Access rule; defaults to that of the area. */
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
  /** Maximum number of keys and items in a JSON body; default 10,000. */
  readonly bodyValues?: number
  /** Reads the body of a `job` route as it arrives; `job` gets the result as `received`. */
  readonly receive?: (input: Input<z.output<P>, z.output<Q>, undefined, CallerOf<A>>) => Promise<V>
  /** Schema of the body of a success; absent if a success has no body. */
  readonly response?: R
  /** Status of a success; default 200, or 204 without a response. */
  readonly status?: number
  /** Meanings of additional statuses, for the reference, with the schema of a body that is not that of a success. */
  readonly alsoAnswers?: Readonly<Record<number, string | readonly [meaning: string, body: z.ZodType]>>
  /** Media types or media range of a response that is not JSON. */
  readonly produces?: string | readonly string[]
  /** Example of a response that is not JSON, for the reference. */
  readonly example?: string
  readonly errors?: readonly ErrorCode[]
  /** Scope that an API key needs instead of those of the area. */
  readonly scope?: string
  /** True for a POST that only reads, so that the read scope suffices. */
  readonly isRead?: boolean
  /** True if the route manages credentials, so that API keys are refused. */
  readonly needsSession?: boolean
  /**
   * True if a key limited to an organization may call the route, because the handler stays within it. Routes of one
   * organization need no flag.
   */
  readonly allowsOrganizationKeys?: boolean
  /** True for a POST whose effect must happen once, so that it accepts `Idempotency-Key`. */
  readonly sideEffect?: boolean
  /** Reason why repeating a POST without a key is harmless. */
  readonly whyRepeatable?: string
  /** For a job-backed route: answers with the job's stream instead of its result. */
  readonly follow?: Follow<Input<z.output<P>, z.output<Q>, z.output<B>, CallerOf<A>>>
  /** For a job-backed route: builds the answer from the job's result; default: the whole result. */
  readonly answer?: (result: unknown) => unknown
  /** For a job-backed route: true if callers always wait for the job to end. */
  readonly alwaysWaits?: boolean
  /**
   * True if a cookie other than the session's identifies the caller, so that the cross-site rule applies even if the
   * route is public.
   */
  readonly cookieAuth?: boolean
  /** True if the route sets cookies for any caller. The cross-site rule then applies to every request. */
  readonly signsIn?: boolean
  /** True for a GET that costs money. Cross-site requests then need a bearer token. */
  readonly costsMoney?: boolean
  /** Kind of reads that `reader` runs; defaults to rows by key, which never wait for slower reads. */
  readonly reads?: ReadKind
  /** True if the response may be some seconds old. With a replica, its `reads` then use that, and `Age` tells the age. */
  readonly mayLag?: boolean
  /** Rate limit per client or account. */
  readonly limit?: LimitName
  /** True if answers may contain credentials, and so need `Cache-Control: no-store`. */
  readonly hasCredentials?: boolean
  /** True if the path contains a credential. Logs and traces then show its pattern. */
  readonly hasSecretPath?: boolean
  /** Adds data to each success that is never stored, not even for an Idempotency-Key. */
  readonly addUnstored?: (edge: Edge, text: string) => string
}

type CallerOf<A extends Auth> = A extends 'public' ? Caller | null : Caller
type OutputOf<T extends z.ZodType> = z.output<T>

interface Handlers<P, Q, B, R, C, V> {
  handle: (input: Input<P, Q, B, C> & Writes<R>) => Promise<R | Answer<R>> | R | Answer<R>
  job: (input: Input<P, Q, B, C> & { readonly tx: Transaction; readonly received: V }) => Promise<JobRef<R>>
  /** Like `job`, for a job that is the only write. Concurrent requests add such jobs in one batch. */
  task: (input: Input<P, Q, B, C> & TaskInput) => NewJob<R> | Promise<NewJob<R>>
  stream: (input: Input<P, Q, B, C>) => Promise<StreamSource>
  raw: (input: Input<P, Q, B, C> & RawInput) => Promise<Answer<unknown> | undefined>
}

type OnlyOne<E, K extends keyof E> = { readonly [N in K]: E[N] } & {
  readonly [N in Exclude<keyof E, K>]?: never
}
type OneHandler<E> = { [K in keyof E]: OnlyOne<E, K> }[keyof E]

/** A route without its type parameters, as dispatch and the reference use it. */
export interface AnyRoute
  extends Omit<
      Declaration<z.ZodType, z.ZodType, z.ZodType, z.ZodType, Auth, ReceivedBody>,
      'receive' | 'follow'
    >,
    Partial<Handlers<never, never, never, unknown, never, never>> {
  readonly receive?: (input: never) => Promise<ReceivedBody>
  readonly follow?: Follow<never>
}

/**
 * Declares a route. The schemas type the handler, which receives their output and must return the response's input. The
 * result of a job must be the response. A route with several handlers, or none, does not compile.
 */
export function route<
  P extends z.ZodType = z.ZodUndefined,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
  R extends z.ZodType = z.ZodUndefined,
  const A extends Auth = 'user',
  V extends ReceivedBody = never,
>(
  declaration: Declaration<P, Q, B, R, A, V> &
    OneHandler<Handlers<OutputOf<P>, OutputOf<Q>, OutputOf<B>, z.input<R>, CallerOf<A>, V>>,
): AnyRoute {
  // This is the only cast that erases a route's types. It is safe because dispatch parses the input with the schemas
  // that typed it.
  return declaration as unknown as AnyRoute
}

/** True if a job produces the route's answer. */
export function isJobBacked(route: AnyRoute): boolean {
  return route.job !== undefined || route.task !== undefined
}

/** True if the route may answer with an event stream that `Last-Event-ID` resumes. */
export function isResumable(route: AnyRoute): boolean {
  return route.stream !== undefined || route.follow?.resume !== undefined
}

/** Routes with a common prefix, name and access rule. */
export interface Area extends FailureRules {
  readonly name: string
  readonly prefix: string
  readonly auth: Auth
  /** True if undeclared query parameters are allowed, as in probes and in links to pages. */
  readonly allowsAnyQuery: boolean
  readonly routes: readonly AnyRoute[]
}

/**
 * Declares an area. Its name is a tag of the reference, which `edge/guides/NAME.md` describes. The name is also a scope
 * of API keys if a route needs a credential.
 */
export function area(
  name: string,
  prefix: string,
  options: { auth: Auth; invalidStatus?: 400; errorFormat?: 'openai'; allowsAnyQuery?: true },
  routes: readonly AnyRoute[],
): Area {
  const { auth, invalidStatus = 422, errorFormat = 'plain', allowsAnyQuery = false } = options
  if (routes.some((route) => (route.auth ?? auth) !== 'public')) addScopes(name)
  for (const { scope } of routes) if (scope !== undefined) addNamedScope(scope)
  return { name, prefix, auth, invalidStatus, errorFormat, allowsAnyQuery, routes }
}
