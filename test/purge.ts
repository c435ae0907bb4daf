import type { Database } from '../sql/db.ts'
import { purgeAccounts } from '../tasks/accounts/purge.task.ts'
import type { TaskContext } from '../tasks/context.ts'

export type Progress = readonly [label: string, current: number | undefined]

/** Deletes the data of deleted accounts and organizations, as a worker does. Appends progress reports to `seen`. */
export function runPurge(
  db: Database,
  seen: Progress[] = [],
  signal = new AbortController().signal,
): ReturnType<typeof purgeAccounts.run> {
  const progress: TaskContext['reportProgress'] = (label, current) => void seen.push([label, current])
  const job = { id: '', attempt: 1, ownerId: null, requestId: 'the request' }
  return purgeAccounts.run({ db, job, reportProgress: progress, signal } as TaskContext, {})
}
