import { z } from 'zod'
import type { Publisher } from '../connections/notify.ts'
import { type Queries, type Query, sql } from '../db.ts'
import { ALONE_FROM_DEATHS, MAX_CRASHES, type ProgressEntry, SUSPECT_FROM_DEATHS } from './jobs.ts'

/** Reports of workers about their attempts: progress, events and ends. */

const Reported = z.object({
  progressed: z.array(z.string()),
  /** Number of the last event of each before its progress; null if it is unknown. */
  afters: z.array(z.number().nullable()),
  ended: z.array(z.string()),
})
export type Reported = z.output<typeof Reported>

export interface Report {
  readonly progress: readonly Pick<ProgressEntry, 'kind'>[]
  /** JSON text of the ends, see `serializeEntries`. */
  readonly ends: string
}

/** Stores a report, see `job_report`. With `notifies`, it also notifies subscribers, and must not run in a transaction. */
export const storeReport = ({ progress, ends }: Report, notifies: boolean): Query<Reported> =>
  sql.prepared('job_report', Reported)`
    call job_report(${JSON.stringify(progress)}::jsonb, ${ends}::jsonb, ${SUSPECT_FROM_DEATHS}, ${ALONE_FROM_DEATHS + MAX_CRASHES}, ${notifies})`

/** Stores a report and notifies subscribers, in the same call if nothing else was announced just before. */
export async function sendReport(
  db: Pick<Queries, 'one'>,
  publisher: Publisher,
  report: Report,
): Promise<Reported> {
  const notifies = publisher.takeTurn(urgencyOf(report))
  const reported = await db.one(storeReport(report, notifies))
  if (!notifies) notifyReported(publisher, report, reported)
  return reported
}

/** Notifies subscribers of a stored report. */
export function notifyReported(
  publisher: Publisher,
  report: Report,
  { progressed, afters, ended }: Reported,
): void {
  const urgency = urgencyOf(report)
  for (const [i, id] of progressed.entries()) publisher.notify(id, urgency, afters[i])
  for (const id of ended) publisher.notify(id)
}

/** Clients wait for events that a task emits. Progress may wait a moment. */
const urgencyOf = ({ progress }: Report): 'next' | 'soon' =>
  progress.some(({ kind }) => kind !== 'status') ? 'soon' : 'next'
