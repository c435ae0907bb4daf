import { parentPort, workerData } from 'node:worker_threads'
import type { SlowStatement } from '../../sql/connections/slow.ts'
import { createDatabase } from '../../sql/db.ts'
import { type ErrorCode, Failure } from '../../sql/errors.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { logSlowStatements, runWithOrigin } from '../platform/telemetry/tracing.ts'
import { type CollectionRequest, createSearcher, type Search, type SearchHit } from './searcher.ts'

/**
 * Code of the search thread. A separate thread scores chunks and loads vectors, because both would block other event
 * loops.
 */

export interface SearchThreadData {
  readonly url: string
  readonly applicationName: string
  readonly validateRows: boolean
  readonly pooled: boolean
  readonly readTimeoutMs: number
  readonly writeTimeoutMs: number
  readonly slowQueryMs: number
}

export type SearchQuestion =
  | { readonly id: number; readonly search: Search }
  | { readonly id: number; readonly modelOf: CollectionRequest }

export type SearchAnswer =
  | { readonly id: number; readonly hits: readonly SearchHit[] }
  | { readonly id: number; readonly model: string | null }
  | { readonly id: number; readonly code: ErrorCode; readonly detail: string }
  | { readonly id: number; readonly error: string }

/** A slow statement and the id of its question. The main thread finds the question's origin by that id. */
export interface SlowSearch extends SlowStatement {
  readonly id?: number
}

const { url, applicationName, validateRows, pooled, readTimeoutMs, writeTimeoutMs, slowQueryMs } =
  workerData as SearchThreadData
const slowStatements = logSlowStatements(slowQueryMs, (data) => parentPort!.postMessage(data as SlowSearch))
// One connection suffices, because vectors are rarely loaded. It closes when idle.
const db = createDatabase({
  url,
  applicationName,
  size: 1,
  validateRows,
  pooled,
  statementMs: writeTimeoutMs,
  slow: slowStatements,
})
const reader = createReader({
  url,
  applicationName: `${applicationName}-reads`,
  pooled,
  answerMs: readTimeoutMs,
  slow: slowStatements,
})
const searcher = createSearcher(db, reader)

parentPort!.on('message', (question: SearchQuestion) => void respond(question))

async function respond(question: SearchQuestion): Promise<void> {
  const origin = { traceParent: null, logFields: () => ({ id: question.id }), record: null }
  parentPort!.postMessage(await runWithOrigin(origin, () => computeAnswer(question)))
}

async function computeAnswer(question: SearchQuestion): Promise<SearchAnswer> {
  const { id } = question
  try {
    const { search, modelOf } = searcher
    if ('search' in question) return { id, hits: await search(question.search) }
    return { id, model: await modelOf(question.modelOf) }
  } catch (error) {
    if (error instanceof Failure) return { id, code: error.code, detail: error.detail }
    return { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
