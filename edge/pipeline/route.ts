import type { z } from 'zod'
import type { Transaction } from '../../sql/db.ts'
import type { ErrorCode, Failure } from '../../sql/errors.ts'
import type { JobSpec } from '../../sql/jobs.ts'
import type { Reader } from '../../sql/reader.ts'
import type { ReadKind, Reads } from '../../sql/slow-reads.ts'
import type { JobRef, NewJob } from '../../tasks/task.ts'
import { compact } from '../http/compact.ts'
import type { Header } from '../http/reply.ts'
import type { EdgeRequest, ReplyHead, Responder } from '../http/server.ts'
import type { StreamSource } from '../streams/sse.ts'
import type { Auth } from './access.ts'
import type { Caller } from './auth.ts'
import type { Edge } from './context.ts'
import type { LimitName } from './limits.ts'
import type { RequestContext } from './request-context.ts'

/**
 * A route is one declaration with exactly one of four endings; validation, authorization, idempotency, errors,
 * compression, OpenAPI, waiting and streaming follow from it.
 */

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** JSON that is already text, such as PostgreSQL built it, or a whole answer with its own status and headers. */
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

/** An answer from JSON text that PostgreSQL built. */
export function json<T>(
  text: string,
  parts: { status?: number; headers?: readonly Header[] } = {},
): Answer<T> {
  return new Answer<T>({ ...parts, json: compact(text) })
}

/** An answer from JSON text that is compact already. */
export function verbatim<T>(
  text: string,
  parts: { status?: number; headers?: readonly Header[] } = {},
): Answer<T> {
  return new Answer<T>({ ...parts, json: text })
}

/** How a request that is not a GET writes. */
export interface Writes<R> {
  /**
   * Runs work in the transaction of the request: its Idempotency-Key and its kept answer are committed with what the work
   * writes. The work may run more than once and has no effects outside; those are for `tx.afterCommit`. A failure that it
   * throws undoes what it wrote, one that it returns does not; either is the answer.
   * @param fingerprint what a repetition must equal; default method, path, query and body. Asked for when there is a key.
   */
  transaction(
    work: (tx: Transaction) => Promise<R | Answer<R> | Failure>,
    fingerprint?: () => Buffer,
  ): Promise<Answer<R>>
  /** Adds jobs, with those of other requests where there is no key; `answer` is given their ids. */
  enqueue(specs: readonly JobSpec[], answer: (jobIds: readonly string[]) => R): Promise<Answer<R>>
}

/** The additional input of a `raw` handler, which answers through `responder` or returns an answer. */
export interface RawInput extends Writes<unknown> {
  readonly responder: Responder
  /** The head of an answer, with the headers that all have. */
  head(status: number, headers?: readonly Header[]): ReplyHead
}

/** The input of a handler. What is not declared is `undefined`. */
export interface Input<P, Q, B, C> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly caller: C
  readonly edge: Edge
  /** Reads as the route's `reads` says. */
  readonly reader: Reads
  readonly request: EdgeRequest
  readonly requestId: string
  readonly exchange: RequestContext
}

/** What a `job` route received from its body, before the transaction that adds the job. */
export interface Received {
  /** The part that a repetition under an Idempotency-Key must equal. */
  readonly fingerprint: Uint8Array
  /** Called if no job was added. */
  discard(): Promise<unknown>
}

/** The additional input of a `task`. */
export interface TaskInput {
  /** The first column of the first row; null when there is no row or it is null. */
  readonly read: Reader['text']
}

/** How a job is answered with its stream. */
export interface Follow<I> {
  /** The stream that a reconnecting reader names by Last-Event-ID, without adding a job; null: none. */
  resume(input: I): Promise<StreamSource | null>
  /** The stream of a job from its beginning. */
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
  /** Below the area's prefix; `:name` stands for one segment. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** Default: the area's. */
  readonly auth?: A
  readonly params?: P
  readonly query?: Q
  readonly body?: B
  /** The format of the body; default `json`. `multipart` and `bytes` are read by a `raw` handler or by `receive`. */
  readonly bodyType?: 'json' | 'form' | 'multipart' | 'bytes'
  /** For a `multipart` body: what JSON may be sent in its place, for the reference; whoever reads the body checks it. */
  readonly jsonBody?: z.ZodType
  /** A JSON body may have this many bytes unless `MAX_JSON_BYTES` is set; default 1 MiB. */
  readonly bodyBytes?: number
  /** Reads the body of a `job` route as it arrives; its result is `received` there. */
  readonly receive?: (input: Input<z.output<P>, z.output<Q>, undefined, CallerOf<A>>) => Promise<V>
  /** The body of a success; absent: no body. */
  readonly response?: R
  /** Its status; default 200, or 204 without a response. */
  readonly status?: number
  /** Other successes, for the reference: status -> meaning. */
  readonly alsoAnswers?: Readonly<Record<number, string>>
  /** Media type of the response when it is not JSON, or the range of those that it can have. */
  readonly produces?: string
  /** An example of such a response, for the reference. */
  readonly example?: string
  readonly errors?: readonly ErrorCode[]
  /** A POST that only reads: an API key needs the scope to read. */
  readonly isRead?: boolean
  /** It is about what people sign in with: API keys are refused. */
  readonly needsSession?: boolean
  /** An API key of an organization may call it: what it does keeps to that organization. Routes of one organization need no flag. */
  readonly organizationKeys?: boolean
  /** A POST whose effect must happen once: takes `Idempotency-Key`. */
  readonly sideEffect?: boolean
  /** For a POST without a key: why repeating it does no harm. */
  readonly repeatable?: string
  /** For a job-backed route that answers with the stream of its job instead of its result. */
  readonly follow?: Follow<Input<z.output<P>, z.output<Q>, z.output<B>, CallerOf<A>>>
  /** For a job-backed route: the answer from the job's result; default the whole result. */
  readonly answer?: (result: unknown) => unknown
  /** For a job-backed route: callers can't ask to be answered before the job ends. */
  readonly alwaysWaits?: boolean
  /** The caller is identified by a cookie other than the session's: the cross-site rule applies although it is public. */
  readonly cookieAuth?: boolean
  /** It sets cookies for any caller: the cross-site rule applies to every request. */
  readonly signsIn?: boolean
  /** A GET that costs money: cross-site requests are refused unless they have a bearer token. */
  readonly spends?: boolean
  /** What its `reader` reads; default: rows by key, which never wait for slower reads. */
  readonly reads?: ReadKind
  /**
   * What it `reads` also decides whether the caller may read: it comes from the primary, where somebody who has just been
   * removed is not let in.
   */
  readonly decidesAccess?: boolean
  /** For a GET whose answer tells of the end of a job: the lists that its caller reads then show what the job did. */
  readonly tellsOfWrites?: boolean
  /** How often a client or an account may call. */
  readonly limit?: LimitName
  /** Answers may hold credentials: never cached, and never kept for an Idempotency-Key. */
  readonly credentials?: boolean
  /** Adds to each success what is not stored anywhere, not even for an Idempotency-Key. */
  readonly complete?: (edge: Edge, text: string) => string
}

type CallerOf<A extends Auth> = A extends 'public' ? Caller | null : Caller
type Out<T extends z.ZodType> = z.output<T>

interface Endings<P, Q, B, R, C, V> {
  handle: (input: Input<P, Q, B, C> & Writes<R>) => Promise<R | Answer<R>> | R | Answer<R>
  job: (input: Input<P, Q, B, C> & { readonly tx: Transaction; readonly received: V }) => Promise<JobRef<R>>
  /** A `job` that is all that is written: those of requests that arrive together are added together. */
  task: (input: Input<P, Q, B, C> & TaskInput) => NewJob<R> | Promise<NewJob<R>>
  stream: (input: Input<P, Q, B, C>) => Promise<StreamSource>
  raw: (input: Input<P, Q, B, C> & RawInput) => Promise<Answer<unknown> | undefined>
}

type Only<E, K extends keyof E> = { readonly [N in K]: E[N] } & {
  readonly [N in Exclude<keyof E, K>]?: never
}
type OneEnding<E> = { [K in keyof E]: Only<E, K> }[keyof E]

/** A route without its types, as dispatch and the reference see it. */
export interface AnyRoute
  extends Omit<Declaration<z.ZodType, z.ZodType, z.ZodType, z.ZodType, Auth, Received>, 'receive' | 'follow'>,
    Partial<Endings<never, never, never, unknown, never, never>> {
  readonly receive?: (input: never) => Promise<Received>
  readonly follow?: Follow<never>
}

/**
 * Declares a route. The schemas type the handler: it receives their output and must return the response's input;
 * a job's result must be the response. More than one ending, or none, does not compile.
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
  // The one place where a route's types are erased: dispatch parses the input with the same schemas that typed it.
  return declaration as unknown as AnyRoute
}

/** Whether a job produces the route's answer. */
export function isJobBacked(route: AnyRoute): boolean {
  return route.job !== undefined || route.task !== undefined
}

/** Routes that share a prefix, a name and an access rule. */
export interface Area {
  readonly name: string
  readonly prefix: string
  readonly auth: Auth
  /** Status of invalid input: 422, but 400 where SPEC says so. */
  readonly invalidStatus: 422 | 400
  /** A query may have anything beside what is declared, as links to pages and probes do. */
  readonly takesAnyQuery: boolean
  readonly routes: readonly AnyRoute[]
}

/** Declares an area. */
export function area(
  name: string,
  prefix: string,
  options: { auth: Auth; invalidStatus?: 400; takesAnyQuery?: true },
  routes: readonly AnyRoute[],
): Area {
  const { auth, invalidStatus = 422, takesAnyQuery = false } = options
  return { name, prefix, auth, invalidStatus, takesAnyQuery, routes }
}
